//! What drivers and the kernel say about a NIC that is not well, and what the host could not keep up with.
//!
//! Events are rare: counted by device, and sent. Polls and dropped packets are many: only counted.

use core::mem::MaybeUninit;

use agent_common::health::{DropKey, HOPS, HealthKey, HealthRecord, NETDEV, Settings};
use agent_common::hook::Cookie;
use agent_common::record::kind;
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::{bpf_get_attach_cookie, bpf_ktime_get_ns};
use aya_ebpf::macros::{kprobe, tracepoint};
use aya_ebpf::programs::{ProbeContext, TracePointContext};

use crate::{maps, read};

/// `devlink:devlink_health_report`: a driver reports an error by one of its reporters (net/devlink/health.c).
#[tracepoint]
pub(crate) fn health_report(ctx: TracePointContext) -> u32 {
    event(&ctx, |base, settings, record| {
        read::event_text(&mut record.device, base, settings.report_device);
        read::event_text(&mut record.part, base, settings.report_part);
        read::event_text(&mut record.message, base, settings.report_message);
    })
}

/// `devlink:devlink_hwerr`: the hardware refused a command of the driver (include/trace/events/devlink.h).
#[tracepoint]
pub(crate) fn health_hwerr(ctx: TracePointContext) -> u32 {
    event(&ctx, |base, settings, record| {
        read::event_text(&mut record.device, base, settings.hwerr_device);
        read::event_text(&mut record.message, base, settings.hwerr_message);
        record.values[0] = read::kernel::<i32>(base, settings.hwerr_error).unwrap_or(0) as u64;
    })
}

/// `net:net_dev_xmit_timeout`: a transmit queue has been stopped for too long (net/sched/sch_generic.c).
#[tracepoint]
pub(crate) fn health_timeout(ctx: TracePointContext) -> u32 {
    event(&ctx, |base, settings, record| {
        read::event_text(&mut record.device, base, settings.timeout_netdev);
        record.values[0] = u64::from(read::kernel::<u32>(base, settings.timeout_queue).unwrap_or(0));
    })
}

/// `napi:napi_poll`: a driver has handled packets (net/core/dev.c). As many as it was allowed: more wait.
#[tracepoint]
pub(crate) fn health_napi(ctx: TracePointContext) -> u32 {
    let Some(settings) = maps::health_settings() else { return 0 };
    let base = ctx.as_ptr() as u64;
    let work = read::kernel::<i32>(base, settings.napi_work).unwrap_or(0);
    let budget = read::kernel::<i32>(base, settings.napi_budget).unwrap_or(0);
    // Busy polling by sockets has budgets of its own making, and one of nothing is for cleaning up only.
    if work >= budget && budget > 0 {
        let mut netdev = [0; NETDEV];
        read::event_text(&mut netdev, base, settings.napi_netdev);
        maps::count_napi(&netdev);
    }
    0
}

/// `skb:kfree_skb`: the kernel throws a packet away (net/core/skbuff.c).
#[tracepoint]
pub(crate) fn health_drop(ctx: TracePointContext) -> u32 {
    let Some(settings) = maps::health_settings() else { return 0 };
    let base = ctx.as_ptr() as u64;
    let Some(reason) = read::kernel::<u32>(base, settings.drop_reason) else { return 0 };
    let mut key = DropKey { netdev: [0; NETDEV], reason, reserved: 0 };
    let packet = read::kernel::<u64>(base, settings.drop_packet).unwrap_or(0);
    let netdev = read::kernel::<u64>(packet, settings.packet_netdev).unwrap_or(0);
    // A socket's queue keeps numbers of its own in the pointer's place; the kernel's addresses have the highest bit.
    if netdev >> 63 == 1 && settings.netdev_name != agent_common::health::UNKNOWN {
        read::kernel_text(&mut key.netdev, netdev + u64::from(settings.netdev_name));
    }
    maps::count_drop(&key);
    0
}

/// A driver's own function that runs when something is wrong.
#[kprobe]
pub(crate) fn driver_health_kprobe(ctx: ProbeContext) -> u32 {
    if maps::settings().is_none() {
        return 0;
    }
    let mut place = MaybeUninit::<HealthRecord>::uninit();
    // SAFETY: the record is made of numbers and bytes, and a multiple of eight bytes long.
    let record = unsafe { read::clear(&mut place) };
    record.values = [1, 2, 3].map(|index| ctx.arg::<u64>(index).unwrap_or(0));
    // SAFETY: a helper that only reads the context.
    let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
    device_of(cookie.hook(), ctx.arg::<u64>(0).unwrap_or(0), &mut record.device);
    tell(cookie, record);
    0
}

/// Follows the hook's path from its first argument to the name of the device.
#[inline(always)]
fn device_of(hook: u16, first: u64, name: &mut [u8; agent_common::health::NAME]) {
    let Some(path) = maps::device_path(hook) else { return };
    let mut object = first.wrapping_sub(u64::from(path.back));
    for index in 0..HOPS {
        if index as u32 >= path.hops_len {
            break;
        }
        let Some(next) = read::kernel::<u64>(object, path.hops[index]) else { return };
        object = next;
    }
    if object != 0 {
        read::kernel_text(name, object.wrapping_add(u64::from(path.name)));
    }
}

/// An event of a tracepoint: `fill` writes what its record says.
#[inline(always)]
fn event(ctx: &TracePointContext, fill: impl FnOnce(u64, &Settings, &mut HealthRecord)) -> u32 {
    let Some(settings) = maps::health_settings() else { return 0 };
    let mut place = MaybeUninit::<HealthRecord>::uninit();
    // SAFETY: the record is made of numbers and bytes, and a multiple of eight bytes long.
    let record = unsafe { read::clear(&mut place) };
    fill(ctx.as_ptr() as u64, settings, record);
    // SAFETY: a helper that only reads the context.
    tell(Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) }), record);
    0
}

/// Counts an event and sends it.
#[inline(always)]
fn tell(cookie: Cookie, record: &mut HealthRecord) {
    record.kind = kind::HEALTH;
    record.hook = u32::from(cookie.hook());
    // SAFETY: a helper without arguments.
    record.time_ns = unsafe { bpf_ktime_get_ns() };
    maps::count_health(&HealthKey { device: record.device, part: record.part, hook: record.hook, reserved: 0 });
    maps::send_health(record);
}
