//! Every map, and the only functions that touch one.
//!
//! Kernel memory: 27 MiB at 256 possible CPUs, 4 MiB at 2. `fabricscope hooks` computes it for the host it runs on.

use core::arch::asm;

use agent_common::counter;
use agent_common::health::{self, DevicePath, DropKey, HealthKey, HealthRecord, NETDEV, PATHS};
use agent_common::histogram::BUCKETS;
use agent_common::place::{PLACES, WINDOW, place};
use agent_common::record::{
    Call, CmRecord, CqKey, DeviceEventKey, DeviceRecord, ErrorKey, FailureRecord, Qp, QpKey, VerbCounterKey,
    VerbCounters,
};
use agent_common::settings::Settings;
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, LruHashMap, PerCpuArray, PerCpuHashMap, RingBuf};

/// Who holds each place of [`CALLS`], as [`super::verbs`] numbers threads; 0 where it is free.
#[map]
static OWNERS: Array<[u64; PLACES]> = Array::with_max_entries(1, 0);
/// Calls that are under way. A hash map would cost a lock and a copy at each end of each call.
#[map]
static CALLS: Array<Call> = Array::with_max_entries(PLACES as u32, 0);
/// Calls that returned, by device and verb.
#[map]
static VERBS: PerCpuHashMap<VerbCounterKey, VerbCounters> = PerCpuHashMap::with_max_entries(1024, 0);
/// Failures by device, verb, answering hook and errno.
#[map]
static ERRORS: PerCpuHashMap<ErrorKey, u64> = PerCpuHashMap::with_max_entries(1024, 0);
/// Durations of the calls that succeeded, by verb.
#[map]
static HISTOGRAM: PerCpuHashMap<u64, [u64; BUCKETS]> = PerCpuHashMap::with_max_entries(96, 0);
/// What was lost, by `counter::TABLE`.
#[map]
static LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(counter::TABLE.len() as u32, 0);
/// Connection manager events by type.
#[map]
static CM_EVENTS: PerCpuArray<u64> = PerCpuArray::with_max_entries(32, 0);
/// Device events by device, port and type.
#[map]
static DEVICE_EVENTS: PerCpuHashMap<DeviceEventKey, u64> = PerCpuHashMap::with_max_entries(256, 0);
/// QPs whose creation was seen. The oldest make room for new ones.
#[map]
static QPS: LruHashMap<QpKey, Qp> = LruHashMap::with_max_entries(8192, 0);
/// CQs that were made, by device and completion vector.
#[map]
static CQS: PerCpuHashMap<CqKey, u64> = PerCpuHashMap::with_max_entries(512, 0);
/// Health events by device, part and hook.
#[map]
static HEALTH: PerCpuHashMap<HealthKey, u64> = PerCpuHashMap::with_max_entries(256, 0);
/// Polls that used up their budget, by network device.
#[map]
static NAPI: PerCpuHashMap<[u8; NETDEV], u64> = PerCpuHashMap::with_max_entries(128, 0);
/// Dropped packets by network device and reason.
#[map]
static DROPS: PerCpuHashMap<DropKey, u64> = PerCpuHashMap::with_max_entries(512, 0);
/// Where health hooks find what they read; one value, written as the settings are.
#[map]
static HEALTH_SETTINGS: Array<health::Settings> = Array::with_max_entries(1, 0);
/// By the hook's number: how to get from a function's first argument to its device.
#[map]
static HEALTH_PATHS: Array<DevicePath> = Array::with_max_entries(PATHS as u32, 0);
/// Events on their way to user space.
#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(1 << 20, 0);
/// One value, written by user space before anything is attached and when a module brings offsets.
#[map]
static SETTINGS: Array<Settings> = Array::with_max_entries(1, 0);

/// Counters of nothing: a static, since clearing one on the stack would be a call.
static NOTHING: VerbCounters = VerbCounters { calls: 0, failures: 0, probes: 0, duration_ns: 0 };

/// A histogram of nothing: too big for the stack.
static EMPTY: [u64; BUCKETS] = [0; BUCKETS];

/// The settings; `None` if the operator has stopped everything.
#[inline(always)]
pub(crate) fn settings() -> Option<&'static Settings> {
    SETTINGS.get(0).filter(|settings| settings.halt == 0)
}

/// Counts a loss.
#[inline(always)]
pub(crate) fn lost(slot: u32) {
    add(LOST.get_ptr_mut(slot), 1);
}

/// The call this thread has under way, and its place.
#[inline(always)]
pub(crate) fn open(thread: u64) -> Option<(*mut Call, u32)> {
    let owners = OWNERS.get_ptr_mut(0)?.cast::<u64>();
    for step in 0..WINDOW {
        let place = place(thread, step);
        // SAFETY: a place is below PLACES.
        if unsafe { owners.add(place as usize).read_volatile() } == thread {
            return Some((CALLS.get_ptr_mut(place)?, place));
        }
    }
    None
}

/// The call this thread has under way.
#[inline(always)]
pub(crate) fn call(thread: u64) -> Option<*mut Call> {
    open(thread).map(|(call, _)| call)
}

/// A call begins: where its record goes. What stands there is of another call, save that `start_ns` is 0.
///
/// A record whose end was missed is taken over by the thread's next call. It stays where an earlier place has become
/// free since.
#[inline(always)]
pub(crate) fn begin(thread: u64) -> Option<*mut Call> {
    let owners = OWNERS.get_ptr_mut(0)?.cast::<u64>();
    for step in 0..WINDOW {
        let place = place(thread, step);
        // SAFETY: a place is below PLACES, and a word of the map is its own.
        let owner = unsafe { owners.add(place as usize) };
        // SAFETY: as above.
        let taken = unsafe { owner.read_volatile() };
        // SAFETY: as above.
        if taken == thread || (taken == 0 && unsafe { compare_exchange(owner, 0, thread) } == 0) {
            let call = CALLS.get_ptr_mut(place)?;
            // SAFETY: the map gave the pointer, and the place is this thread's.
            unsafe { (&raw mut (*call).start_ns).write_volatile(0) };
            return Some(call);
        }
    }
    lost(counter::INFLIGHT_FULL);
    None
}

/// A call is over; its place is free for others.
#[inline(always)]
pub(crate) fn end(call: *mut Call, place: u32) {
    // Who reads the place from outside while the next one fills it must not take this time for the next one's.
    // SAFETY: the map gave the pointer, and the place is still this thread's.
    unsafe { (&raw mut (*call).start_ns).write_volatile(0) };
    if let Some(owners) = OWNERS.get_ptr_mut(0) {
        // SAFETY: the index is below PLACES.
        unsafe { exchange(owners.cast::<u64>().add(place as usize & (PLACES - 1)), 0) };
    }
}

/// The counters of a device and verb on this CPU.
#[inline(always)]
pub(crate) fn verb_counters(key: &VerbCounterKey) -> Option<*mut VerbCounters> {
    if let Some(found) = VERBS.get_ptr_mut(key) {
        return Some(found);
    }
    let _ = VERBS.insert(key, &NOTHING, u64::from(BPF_NOEXIST));
    let found = VERBS.get_ptr_mut(key);
    if found.is_none() {
        lost(counter::VERBS_FULL);
    }
    found
}

/// Counts a failure.
#[inline(always)]
pub(crate) fn count_error(key: &ErrorKey) {
    if ERRORS.get_ptr_mut(key).is_none() {
        let _ = ERRORS.insert(key, &0, u64::from(BPF_NOEXIST));
    }
    if !add(ERRORS.get_ptr_mut(key), 1) {
        lost(counter::ERRORS_FULL);
    }
}

/// Counts a CQ that was made.
#[inline(always)]
pub(crate) fn count_cq(key: &CqKey) {
    if CQS.get_ptr_mut(key).is_none() {
        let _ = CQS.insert(key, &0, u64::from(BPF_NOEXIST));
    }
    if !add(CQS.get_ptr_mut(key), 1) {
        lost(counter::CQS_FULL);
    }
}

/// How many completion vectors a device has.
#[inline(always)]
pub(crate) fn set_vectors(key: &CqKey, vectors: u64) {
    if CQS.insert(key, &vectors, 0).is_err() {
        lost(counter::CQS_FULL);
    }
}

/// Counts a duration.
#[inline(always)]
pub(crate) fn observe(verb: u64, bucket: usize) {
    let mut found = HISTOGRAM.get_ptr_mut(&verb);
    if found.is_none() {
        let _ = HISTOGRAM.insert(&verb, &EMPTY, u64::from(BPF_NOEXIST));
        found = HISTOGRAM.get_ptr_mut(&verb);
    }
    let Some(buckets) = found else {
        lost(counter::HISTOGRAM_FULL);
        return;
    };
    let bucket = core::hint::black_box(bucket);
    if bucket < BUCKETS {
        // SAFETY: the value has BUCKETS elements and the index is below.
        add(Some(unsafe { buckets.cast::<u64>().add(bucket) }), 1);
    }
}

/// Counts a connection manager event.
#[inline(always)]
pub(crate) fn count_cm(event: u32) {
    add(CM_EVENTS.get_ptr_mut(event), 1);
}

/// Counts a device event.
#[inline(always)]
pub(crate) fn count_device(key: &DeviceEventKey) {
    if DEVICE_EVENTS.get_ptr_mut(key).is_none() {
        let _ = DEVICE_EVENTS.insert(key, &0, u64::from(BPF_NOEXIST));
    }
    if !add(DEVICE_EVENTS.get_ptr_mut(key), 1) {
        lost(counter::RING_DEVICE);
    }
}

/// What is known of a QP.
#[inline(always)]
pub(crate) fn qp(key: &QpKey) -> Option<*mut Qp> {
    QPS.get_ptr_mut(key)
}

/// Remembers a QP.
#[inline(always)]
pub(crate) fn set_qp(key: &QpKey, qp: &Qp) {
    let _ = QPS.insert(key, qp, 0);
}

/// A place in the ring buffer for a failure.
#[inline(always)]
pub(crate) fn failure() -> Option<aya_ebpf::maps::ring_buf::RingBufEntry<FailureRecord>> {
    let entry = EVENTS.reserve::<FailureRecord>(0);
    if entry.is_none() {
        lost(counter::RING_VERBS);
    }
    entry
}

/// Sends a connection manager event.
#[inline(always)]
pub(crate) fn send_cm(record: &CmRecord) {
    if EVENTS.output::<CmRecord>(record, 0).is_err() {
        lost(counter::RING_CM);
    }
}

/// Sends a device event.
#[inline(always)]
pub(crate) fn send_device(record: &DeviceRecord) {
    if EVENTS.output::<DeviceRecord>(record, 0).is_err() {
        lost(counter::RING_DEVICE);
    }
}

/// Where health hooks find what they read; `None` if the operator has stopped everything.
#[inline(always)]
pub(crate) fn health_settings() -> Option<&'static health::Settings> {
    settings().and(HEALTH_SETTINGS.get(0))
}

/// How a hook gets from its function's first argument to the device; `None` if that is not known on this kernel.
#[inline(always)]
pub(crate) fn device_path(hook: u16) -> Option<&'static DevicePath> {
    HEALTH_PATHS.get(u32::from(hook)).filter(|path| path.known != 0)
}

/// Counts a health event.
#[inline(always)]
pub(crate) fn count_health(key: &HealthKey) {
    if add(HEALTH.get_ptr_mut(key), 1) {
        return;
    }
    let _ = HEALTH.insert(key, &0, u64::from(BPF_NOEXIST));
    if !add(HEALTH.get_ptr_mut(key), 1) {
        lost(counter::HEALTH_FULL);
    }
}

/// Counts a poll that used up its budget.
#[inline(always)]
pub(crate) fn count_napi(netdev: &[u8; NETDEV]) {
    if add(NAPI.get_ptr_mut(netdev), 1) {
        return;
    }
    let _ = NAPI.insert(netdev, &0, u64::from(BPF_NOEXIST));
    if !add(NAPI.get_ptr_mut(netdev), 1) {
        lost(counter::NAPI_FULL);
    }
}

/// Counts a dropped packet.
#[inline(always)]
pub(crate) fn count_drop(key: &DropKey) {
    if add(DROPS.get_ptr_mut(key), 1) {
        return;
    }
    let _ = DROPS.insert(key, &0, u64::from(BPF_NOEXIST));
    if !add(DROPS.get_ptr_mut(key), 1) {
        lost(counter::DROPS_FULL);
    }
}

/// Sends a health event.
#[inline(always)]
pub(crate) fn send_health(record: &HealthRecord) {
    if EVENTS.output::<HealthRecord>(record, 0).is_err() {
        lost(counter::RING_HEALTH);
    }
}

/// Adds to a value of this CPU's own; says whether there was one.
///
/// Nothing else runs between the load and the store on the paths where counts must be exact: kprobe programs run with
/// preemption off, and the other kind is used at the system call boundary only where the kernel does not preempt.
#[inline(always)]
fn add(value: Option<*mut u64>, amount: u64) -> bool {
    let Some(value) = value else { return false };
    // SAFETY: the map gave the pointer, and per-CPU values are not shared.
    unsafe { *value += amount };
    true
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
        asm!("{value} = xchg_64({place} + 0, {value})", place = in(reg) place, value = inout(reg) value => _);
    }
}

/// Writes `new` if `expected` stands there; says what stood there. With full barriers.
///
/// # Safety
///
/// `place` must be a word of a map.
#[inline(always)]
unsafe fn compare_exchange(place: *mut u64, expected: u64, new: u64) -> u64 {
    let found;
    // SAFETY: it writes to `place` and to the register that the instruction answers in.
    unsafe {
        asm!(
            "r0 = cmpxchg_64({place} + 0, r0, {new})",
            place = in(reg) place,
            new = in(reg) new,
            inout("r0") expected => found,
        );
    }
    found
}
