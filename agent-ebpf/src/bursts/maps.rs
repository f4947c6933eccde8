//! Every map and constant of the sampler, and the only functions that touch one.

use core::arch::asm;

use agent_common::bucket::{
    Bucket, ETHERNET_HEADER, NO_SEQUENCE, QUEUE_PAIRS as QUEUE_PAIRS_SEEN, SLOTS as DEFAULT_SLOTS, Totals, place,
};
use agent_common::settings::UNKNOWN;
use agent_common::tick::{Tick, Ticking};
use aya_ebpf::Global;
use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::map;
use aya_ebpf::maps::lpm_trie::Key;
use aya_ebpf::maps::{Array, LpmTrie, LruHashMap, PerCpuArray};

use super::walk::Walk;

// Constants are written before the programs are loaded, under the names of `agent_common::bucket::constant`: the
// verifier knows their values, and drops what they switch off.
#[unsafe(no_mangle)]
static INTERVAL: Global<u64> = Global::new(1_000_000);
#[unsafe(no_mangle)]
static TICKED: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SLOTS: Global<u32> = Global::new(DEFAULT_SLOTS);
#[unsafe(no_mangle)]
static RING_COUNT: Global<u32> = Global::new(1);
#[unsafe(no_mangle)]
static CPUS: Global<u32> = Global::new(1);
#[unsafe(no_mangle)]
static LINK_HEADER: Global<u32> = Global::new(ETHERNET_HEADER);
#[unsafe(no_mangle)]
static REGIONAL: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SUSPECTED: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static SKETCHED: Global<u32> = Global::new(1);
#[unsafe(no_mangle)]
static OUT_OF_ORDER: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static MARKED: Global<u32> = Global::new(0);

// What tells a poll of the device from others.
#[unsafe(no_mangle)]
static IFINDEX: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static NETNS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static NAPI_DEVICE: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static DEVICE_INDEX: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static DEVICE_NETNS: Global<u32> = Global::new(UNKNOWN);
#[unsafe(no_mangle)]
static NETNS_NUMBER: Global<u32> = Global::new(UNKNOWN);

/// The buckets: direction by direction, CPU by CPU, slot by slot. Mapped by the reader.
#[map]
static RINGS: Array<Bucket> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// The totals: direction by direction, CPU by CPU. Mapped by the reader.
#[map]
static TOTALS: Array<Totals> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// When buckets began, slot by slot, where a tick tells them apart. Mapped by the reader.
#[map]
static TICKS: Array<Tick> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// The tick's own state. Mapped by the reader.
#[map]
static TICKING: Array<Ticking> = Array::with_max_entries(1, BPF_F_MMAPABLE);
/// Each CPU's walk through a packet.
#[map]
static WALK: PerCpuArray<Walk> = PerCpuArray::with_max_entries(1, 0);
/// The prefixes of the host's region, of IPv6 addresses; those of IPv4 are mapped into them.
#[map]
static REGIONS: LpmTrie<[u32; 4], u8> = LpmTrie::with_max_entries(1, 0);
/// The highest packet number that was seen of a RoCEv2 queue pair. The oldest make room for new ones.
#[map]
static QUEUE_PAIRS: LruHashMap<u64, u32> = LruHashMap::with_max_entries(QUEUE_PAIRS_SEEN, 0);

/// Bytes of the device's link header.
#[inline(always)]
pub(crate) fn link_header() -> u32 {
    LINK_HEADER.load()
}

/// Whether received segments are looked up in their sockets.
#[inline(always)]
pub(crate) fn suspected() -> bool {
    SUSPECTED.load() != 0
}

/// Bytes from a `struct tcp_sock` to its queue of segments that came out of order; `UNKNOWN` if unknown.
#[inline(always)]
pub(crate) fn out_of_order() -> u32 {
    OUT_OF_ORDER.load()
}

/// Whether the mark of segments that were sent again is looked for.
#[inline(always)]
pub(crate) fn marked() -> bool {
    MARKED.load() != 0
}

/// The device, and where the kernel keeps what tells it from others.
pub(crate) struct Own {
    pub(crate) ifindex: u32,
    pub(crate) netns: u32,
    pub(crate) napi_device: u32,
    pub(crate) device_index: u32,
    pub(crate) device_netns: u32,
    pub(crate) netns_number: u32,
}

/// What tells the device from others.
#[inline(always)]
pub(crate) fn own() -> Own {
    Own {
        ifindex: IFINDEX.load(),
        netns: NETNS.load(),
        napi_device: NAPI_DEVICE.load(),
        device_index: DEVICE_INDEX.load(),
        device_netns: DEVICE_NETNS.load(),
        netns_number: NETNS_NUMBER.load(),
    }
}

/// Whether peers are told by their region.
#[inline(always)]
pub(crate) fn regional() -> bool {
    REGIONAL.load() != 0
}

/// Whether flows are sketched.
#[inline(always)]
pub(crate) fn sketched() -> bool {
    SKETCHED.load() != 0
}

/// Whether an address is of the host's region.
#[inline(always)]
pub(crate) fn is_near(address: [u32; 4]) -> bool {
    REGIONS.get(Key::new(128, address)).is_some()
}

/// The highest packet number of a queue pair.
#[inline(always)]
pub(crate) fn highest(flow: u32, queue_pair: u32) -> Option<*mut u32> {
    QUEUE_PAIRS.get_ptr_mut(u64::from(flow) << 32 | u64::from(queue_pair))
}

/// A queue pair's first packet number.
#[inline(always)]
pub(crate) fn remember(flow: u32, queue_pair: u32, sequence: u32) {
    let _ = QUEUE_PAIRS.insert(u64::from(flow) << 32 | u64::from(queue_pair), sequence, 0);
}

/// This CPU's walk.
#[inline(always)]
pub(crate) fn walk() -> Option<*mut Walk> {
    WALK.get_ptr_mut(0)
}

/// The totals of a direction on a CPU.
#[inline(always)]
pub(crate) fn totals(direction: u32, cpu: u32) -> Option<*mut Totals> {
    TOTALS.get_ptr_mut(direction * CPUS.load() + cpu)
}

/// The bucket of now of a direction on a CPU, taken over if it was of another time; `None` if the CPU has no ring.
#[inline(always)]
pub(crate) fn bucket(direction: u32, cpu: u32, totals: *mut Totals) -> Option<*mut Bucket> {
    let rings = RING_COUNT.load();
    if cpu >= rings {
        return None;
    }
    let sequence = now()?;
    let bucket = RINGS.get_ptr_mut(place(direction, cpu, rings, sequence, SLOTS.load()))?;
    // SAFETY: the map gave the pointers, and only this CPU writes to them, one program at a time.
    unsafe {
        if (*bucket).sequence != sequence {
            take_over(bucket, sequence);
            (*totals).rotations += 1;
        }
    }
    Some(bucket)
}

/// The number of the bucket of now.
#[inline(always)]
fn now() -> Option<u64> {
    if TICKED.load() != 0 {
        let ticking = TICKING.get_ptr(0)?;
        // SAFETY: the map gave the pointer; the tick writes the word at once.
        return Some(unsafe { (&raw const (*ticking).current).read_volatile() });
    }
    // SAFETY: the helper has no conditions.
    unsafe { bpf_ktime_get_ns() }.checked_div(INTERVAL.load())
}

/// Begins the bucket of a time; how long it is to the end of its interval.
///
/// The tick is the only writer. Packets see the new number after its beginning can be read.
#[inline(always)]
pub(crate) fn begin(now: u64) -> Option<u64> {
    let interval = INTERVAL.load();
    let sequence = now.checked_div(interval)?;
    let ticking = TICKING.get_ptr_mut(0)?;
    let tick = TICKS.get_ptr_mut(sequence as u32 & (SLOTS.load() - 1))?;
    // SAFETY: the maps gave the pointers.
    unsafe {
        let words = tick.cast::<u64>();
        exchange(words, NO_SEQUENCE);
        words.add(1).write_volatile(now);
        exchange(words, sequence);
        let before = (*ticking).current;
        if before != NO_SEQUENCE {
            (*ticking).missed += sequence.saturating_sub(before + 1);
        }
        (*ticking).ticks += 1;
        (*ticking).start_ns = now;
        exchange(ticking.cast(), sequence);
    }
    Some((sequence + 1) * interval - now)
}

/// Gives a bucket a new number and nothing in it.
///
/// A reader that sees one number before and after it has read has read what is of that number: both exchanges are full
/// barriers, so nothing is cleared before the old number is gone, and the new one is not there before all is cleared.
///
/// # Safety
///
/// `bucket` must be a bucket that nobody else writes.
#[inline(always)]
unsafe fn take_over(bucket: *mut Bucket, sequence: u64) {
    let words = bucket.cast::<u64>();
    // SAFETY: the number is the first word, and each index is one of the words of the bucket.
    unsafe {
        exchange(words, NO_SEQUENCE);
        for index in 1..size_of::<Bucket>() / size_of::<u64>() {
            words.add(index).write_volatile(0);
        }
        exchange(words, sequence);
    }
}

/// An atomic exchange with full barriers, which the compiler offers to programs for BPF in no other way.
///
/// # Safety
///
/// `place` must be a word of a map.
#[inline(always)]
unsafe fn exchange(place: *mut u64, value: u64) {
    // SAFETY: it writes to `place` and the register of `value` only.
    unsafe {
        asm!(
            "{value} = xchg_64({place} + 0, {value})",
            place = in(reg) place,
            value = inout(reg) value => _,
        );
    }
}
