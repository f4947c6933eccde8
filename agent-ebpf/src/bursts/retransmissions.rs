//! What the kernel itself says of TCP segments that it sends again, to hold the sampler's count against.

use agent_common::retransmission::{ENTRIES, OTHERS, OWN, Traced};
use agent_common::settings::UNKNOWN;
use aya_ebpf::Global;
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::RawTracePointContext;

// As in `maps`: written before the program is loaded, under the names of `agent_common::retransmission::constant`.
#[unsafe(no_mangle)]
static SKB_LENGTH: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static SKB_SEGMENTS: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static SOCKET_NAMESPACE: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static NAMESPACE_NUMBER: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static OWN_NAMESPACE: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static TELLS_FAILURES: Global<u32> = Global::new(0);

/// The counters: of the own network namespace, and of all others.
#[map]
static TRACED: PerCpuArray<Traced> = PerCpuArray::with_max_entries(ENTRIES, 0);

/// `tcp_retransmit_skb(sk, skb)`, in newer kernels with the error as a third argument (net/ipv4/tcp_output.c,
/// `__tcp_retransmit_skb`). Without headers at this place: the length is that of the payload.
#[inline(always)]
pub(crate) fn count(ctx: &RawTracePointContext) {
    let (socket, skb): (u64, u64) = (ctx.arg(0), ctx.arg(1));
    let entry = if is_own(socket).unwrap_or(false) { OWN } else { OTHERS };
    let Some(traced) = TRACED.get_ptr_mut(entry) else { return };
    let failed = TELLS_FAILURES.load() != 0 && ctx.arg::<i32>(2) != 0;
    let length: u32 = read(skb, SKB_LENGTH.load()).unwrap_or_default();
    let segments: u16 = read(skb, SKB_SEGMENTS.load()).unwrap_or_default();
    // SAFETY: the map gave the pointer to what is this CPU's own. TCP sends with soft interrupts off: nothing comes
    // between.
    unsafe {
        if failed {
            (*traced).failures += 1;
            return;
        }
        (*traced).events += 1;
        (*traced).segments += u64::from(segments);
        if length != 0 {
            (*traced).data_segments += u64::from(segments);
            (*traced).bytes += u64::from(length);
        }
    }
}

/// Whether a socket is of the own network namespace.
#[inline(always)]
fn is_own(socket: u64) -> Option<bool> {
    let namespace: u64 = read(socket, SOCKET_NAMESPACE.load())?;
    let number: u32 = read(namespace, NAMESPACE_NUMBER.load())?;
    Some(number == OWN_NAMESPACE.load())
}

/// What lies in a structure of the kernel; `None` if its place is not known.
#[inline(always)]
fn read<T>(structure: u64, place: u32) -> Option<T> {
    if place == UNKNOWN {
        return None;
    }
    // SAFETY: the helper reads any address, or says that it could not.
    unsafe { bpf_probe_read_kernel((structure + u64::from(place)) as *const T) }.ok()
}
