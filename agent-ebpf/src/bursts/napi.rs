//! Polls of the device that used up their budget: the host does not keep up with what comes.
//!
//! The tracepoint `napi:napi_poll` (`struct napi_struct *napi, int work, int budget`; net/core/dev.c) follows each poll, on
//! the CPU that polled and with its softirqs held off, as the classifier of received packets ran within that poll. That
//! holds for softirqs, for threads that poll (threaded NAPI) and for sockets that do (busy polling): a CPU's bucket has
//! one writer at a time. What netpoll does has a budget of 0 and is not counted.

use agent_common::bucket::direction;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;

use super::maps;

/// Counts a poll, if it is the device's and used up its budget.
#[inline(always)]
pub(crate) fn count(napi: u64, work: i32, budget: i32) {
    // Nearly all polls end here.
    if work < budget || budget <= 0 || !is_of_device(napi) {
        return;
    }
    // SAFETY: the helper has no conditions.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(totals) = maps::totals(direction::RX, cpu) else { return };
    let Some(bucket) = maps::bucket(direction::RX, cpu, totals) else { return };
    // SAFETY: the map gave the pointer, and only this CPU writes to it, one program at a time.
    unsafe { (*bucket).napi_exhausted = (*bucket).napi_exhausted.saturating_add(1) };
}

/// Whether the queue belongs to the device: its index is one of its network namespace.
#[inline(always)]
fn is_of_device(napi: u64) -> bool {
    let own = maps::own();
    let find = || {
        let device = read::<u64>(napi, own.napi_device)?;
        if read::<u32>(device, own.device_index)? != own.ifindex {
            return None;
        }
        let netns = read::<u64>(device, own.device_netns)?;
        read::<u32>(netns, own.netns_number)
    };
    find() == Some(own.netns)
}

#[inline(always)]
fn read<T: Copy>(base: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address and fails instead of faulting.
    unsafe { bpf_probe_read_kernel(base.wrapping_add(u64::from(offset)) as *const T) }.ok()
}
