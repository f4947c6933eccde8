//! Asynchronous events of devices, ports and resources.
//!
//! `struct ib_event` (include/rdma/ib_verbs.h) is a device pointer, a union (a resource's pointer or a port number) and
//! the type; it has had this layout since it was made.

use agent_common::hook::{Cookie, role};
use agent_common::record::{DEVICE_NAME, DeviceEventKey, DeviceRecord, kind};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::{bpf_get_attach_cookie, bpf_get_func_arg, bpf_ktime_get_ns};
use aya_ebpf::macros::{fentry, kprobe};
use aya_ebpf::programs::{FEntryContext, ProbeContext};

use crate::{maps, read};

/// Types of event whose element is a QP: `IB_EVENT_QP_FATAL` to `IB_EVENT_PATH_MIG_ERR`, and the last WQE.
const QP_EVENTS: u32 = 0b1_0000_0000_0000_1111_1110;
/// Types of event whose element is a port number: active, error, LID, P_Key, SM, reregister, GID, speed.
const PORT_EVENTS: u32 = 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 18 | 1 << 20;

/// `IB_EVENT_GID_CHANGE`.
const GID_CHANGE: u32 = 18;

/// The event is the first argument: `ib_dispatch_event`, `ib_uverbs_qp_event_handler` and its like.
#[kprobe]
pub(crate) fn device_event_kprobe(ctx: ProbeContext) -> u32 {
    // SAFETY: a helper that only reads the context.
    let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
    device_event(cookie, ctx.arg::<u64>(0).unwrap_or(0));
    0
}

/// See [`device_event_kprobe`].
#[fentry]
pub(crate) fn device_event_fentry(ctx: FEntryContext) -> i32 {
    let mut event = 0;
    // SAFETY: helpers that only read the context.
    let cookie = unsafe {
        bpf_get_func_arg(ctx.as_ptr(), 0, &raw mut event);
        Cookie(bpf_get_attach_cookie(ctx.as_ptr()))
    };
    device_event(cookie, event);
    0
}

#[inline(always)]
fn device_event(cookie: Cookie, event: u64) {
    let Some(settings) = maps::settings() else { return };
    let (Some(device), Some(element), Some(event_type)) =
        (read::kernel::<u64>(event, 0), read::kernel::<u64>(event, 8), read::kernel::<u32>(event, 16))
    else {
        return;
    };
    // A driver's own event of this type is not handed on: the core tells one for each GID in its place.
    if (event_type == GID_CHANGE) != (cookie.role() == role::GID_EVENT) {
        return;
    }
    let mut key = DeviceEventKey { device: [0; DEVICE_NAME], port: 0, event: event_type };
    // SAFETY: the target has DEVICE_NAME bytes.
    unsafe {
        read::kernel_bytes::<{ DEVICE_NAME as u32 }>(key.device.as_mut_ptr(), device, settings.ib_device_name);
    }
    let bit = 1u32.unbounded_shl(event_type);
    let mut qp_number = 0;
    if PORT_EVENTS & bit != 0 {
        key.port = element as u32;
    } else if QP_EVENTS & bit != 0 {
        qp_number = read::kernel::<u32>(element, settings.ib_qp_num).unwrap_or(0);
    }
    maps::count_device(&key);
    let record = DeviceRecord {
        kind: kind::DEVICE,
        event: event_type,
        // SAFETY: a helper without arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
        element: if qp_number == 0 { key.port } else { qp_number },
        hook: u32::from(cookie.hook()),
        device: key.device,
    };
    maps::send_device(&record);
}
