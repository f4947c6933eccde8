//! Connection manager events, from the kernel's own tracepoint.

use agent_common::record::{CmRecord, kind};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::tracepoint;
use aya_ebpf::programs::TracePointContext;

use crate::{maps, read};

/// Types of event that are no trouble: address and route resolved, request, response, established, multicast joined,
/// time-wait over. They are counted and not sent (`enum rdma_cm_event_type`, include/rdma/rdma_cm.h).
const PLAIN: u32 = 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 9 | 1 << 12 | 1 << 15;

/// `rdma_cma:cm_event_handler`: an event is about to be handed to the owner of an id.
#[tracepoint]
pub(crate) fn cm_event(ctx: TracePointContext) -> u32 {
    let Some(settings) = maps::settings() else { return 0 };
    let base = ctx.as_ptr() as u64;
    let Some(event) = read::kernel::<u32>(base, settings.cm_event) else { return 0 };
    maps::count_cm(event);
    if PLAIN & 1u32.unbounded_shl(event) != 0 {
        return 0;
    }
    let mut record = CmRecord {
        kind: kind::CM,
        event,
        // SAFETY: a helper without arguments.
        time_ns: unsafe { bpf_ktime_get_ns() },
        status: read::kernel::<i32>(base, settings.cm_status).unwrap_or(0),
        cm_id: read::kernel::<u32>(base, settings.cm_id).unwrap_or(0),
        source: [0; 32],
        destination: [0; 32],
    };
    // SAFETY: the targets have 32 bytes; a `struct sockaddr_in6` has 28.
    unsafe {
        read::kernel_bytes::<28>(record.source.as_mut_ptr(), base, settings.cm_source);
        read::kernel_bytes::<28>(record.destination.as_mut_ptr(), base, settings.cm_destination);
    }
    maps::send_cm(&record);
    0
}
