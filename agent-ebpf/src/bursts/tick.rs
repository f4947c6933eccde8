//! The tick that tells packets which bucket is written, where the configuration asks for it instead of the clock.
//!
//! A program is run once to set the timer; the timer then runs `tick`, which sets it again. It ends with the map that
//! holds it, when no process has that open any more.

use core::ffi::c_void;

use aya_ebpf::btf_maps;
use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_timer_init, bpf_timer_set_callback, bpf_timer_start};
use aya_ebpf::macros::btf_map;

use super::maps;

/// The type's name is how the kernel finds the timer.
#[repr(C, align(8))]
#[expect(non_camel_case_types, reason = "the kernel's name")]
struct bpf_timer {
    opaque: [u64; 2],
}

#[repr(C)]
pub(crate) struct Timer {
    timer: bpf_timer,
}

/// The clock that the timer goes by.
const CLOCK_MONOTONIC: u64 = 1;

/// The timer. A map of its own, since the kernel lets none be mapped that holds one.
#[btf_map]
static TIMER: btf_maps::Array<Timer, 1> = btf_maps::Array::new();

/// Sets the timer for the first time. The first bucket begins now. 0, or the kernel's error.
#[inline(always)]
pub(crate) fn start() -> i64 {
    let Some(timer) = TIMER.get_ptr_mut(0) else { return -1 };
    let of = timer.cast::<aya_ebpf::bindings::bpf_timer>();
    // SAFETY: the timer lies in a map of the object, and the function has the type that the kernel calls.
    unsafe {
        let failed = bpf_timer_init(of, (&raw const TIMER).cast_mut().cast(), CLOCK_MONOTONIC);
        if failed != 0 {
            return failed;
        }
        let function: unsafe extern "C" fn(*mut c_void, *mut u32, *mut Timer) -> i32 = tick;
        let failed = bpf_timer_set_callback(of, function as *mut c_void);
        if failed != 0 {
            return failed;
        }
    }
    advance(timer)
}

/// What the timer runs.
unsafe extern "C" fn tick(_map: *mut c_void, _key: *mut u32, timer: *mut Timer) -> i32 {
    advance(timer);
    0
}

/// Begins a bucket, and sets the timer for the end of this interval.
#[inline(always)]
fn advance(timer: *mut Timer) -> i64 {
    // SAFETY: the helper has no conditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let rest = maps::begin(now);
    // SAFETY: the kernel gave the timer.
    unsafe { bpf_timer_start(timer.cast(), rest, 0) }
}
