//! The tick that tells packets which bucket is written, where the configuration asks for it instead of the clock.
//!
//! A program is run once to set the timer; the timer then runs `tick`, which sets it again. It ends with the map that
//! holds it, when no process has that open any more.

use core::ffi::c_void;

use aya_ebpf::bindings::bpf_timer;
use aya_ebpf::btf_maps;
use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_timer_init, bpf_timer_set_callback, bpf_timer_start};
use aya_ebpf::macros::btf_map;

use super::maps;

/// The kernel finds the timer by its type's name.
#[repr(C)]
struct Timer {
    timer: bpf_timer,
}

/// The clock that the timer goes by.
const CLOCK_MONOTONIC: u64 = 1;

/// There is no such entry: an error that the kernel gives of nothing else here, `-ENOENT`.
const NOTHING: i64 = -2;

/// The timer. A map of its own, since the kernel lets none be mapped that holds one.
#[btf_map]
static TIMER: btf_maps::Array<Timer, 1> = btf_maps::Array::new();

/// Sets the timer for the first time. The first bucket begins now. 0, or the kernel's error.
#[inline(always)]
pub(crate) fn start() -> i64 {
    let Some(timer) = TIMER.get_ptr_mut(0) else { return NOTHING };
    let run: unsafe extern "C" fn(*mut c_void, *mut u32, *mut Timer) -> i32 = tick;
    // SAFETY: the timer lies in a map of the object, and the function has the type that the kernel calls.
    unsafe {
        let own = &raw mut (*timer).timer;
        let mut failed = bpf_timer_init(own, (&raw const TIMER).cast_mut().cast(), CLOCK_MONOTONIC);
        if failed == 0 {
            failed = bpf_timer_set_callback(own, run as *mut c_void);
        }
        if failed == 0 { advance(own) } else { failed }
    }
}

/// What the timer runs: once, unless it sets it again.
unsafe extern "C" fn tick(_map: *mut c_void, _key: *mut u32, timer: *mut Timer) -> i32 {
    // SAFETY: the kernel gives the map's entry.
    unsafe { advance(&raw mut (*timer).timer) };
    0
}

/// Begins a bucket, and sets the timer for the end of its interval. 0, or the kernel's error.
///
/// # Safety
///
/// `timer` must be the one of the map.
#[inline(always)]
unsafe fn advance(timer: *mut bpf_timer) -> i64 {
    // SAFETY: the first helper has no conditions, and the caller answers for the timer.
    unsafe {
        match maps::begin(bpf_ktime_get_ns()) {
            Some(rest) => bpf_timer_start(timer, rest, 0),
            None => NOTHING,
        }
    }
}
