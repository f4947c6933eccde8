//! Reading kernel and user memory: fixed sizes and sizes with a bound, never a fault.

use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::{bpf_probe_read_kernel, bpf_probe_read_kernel_str, bpf_probe_read_user};
use aya_ebpf::helpers::{bpf_probe_read_kernel as read_kernel, bpf_probe_read_user as read_user};

use agent_common::settings::UNKNOWN;

/// A value at `base + offset` in kernel memory; `None` if the offset is unknown or the memory cannot be read.
#[inline(always)]
pub(crate) fn kernel<T: Copy>(base: u64, offset: u32) -> Option<T> {
    if base == 0 || offset == UNKNOWN {
        return None;
    }
    // SAFETY: the helper checks the address and fails instead of faulting.
    unsafe { read_kernel((base + u64::from(offset)) as *const T) }.ok()
}

/// A value in user memory.
#[inline(always)]
pub(crate) fn user<T: Copy>(address: u64) -> Option<T> {
    if address == 0 {
        return None;
    }
    // SAFETY: the helper checks the address and fails instead of faulting.
    unsafe { read_user(address as *const T) }.ok()
}

/// Copies `length` bytes, at most `N`, from user memory to `target`; says how many it copied.
///
/// # Safety
///
/// `target` must point to `N` writable bytes.
#[inline(always)]
pub(crate) unsafe fn user_bytes<const N: u32>(target: *mut u8, address: u64, length: u64) -> u32 {
    if address == 0 || length == 0 {
        return 0;
    }
    let length = if length > u64::from(N) { N } else { length as u32 };
    // The optimiser would otherwise drop the one comparison that the verifier has to see before the call, or join it
    // with another one so that older verifiers do not understand it.
    let length = core::hint::black_box(length);
    if length > N {
        return 0;
    }
    // SAFETY: the helper checks the source; the caller answers for the target.
    let failed = unsafe { bpf_probe_read_user(target.cast(), length, address as *const _) };
    if failed == 0 { length } else { 0 }
}

/// Copies `N` bytes from kernel memory to `target`; says whether it could.
///
/// # Safety
///
/// `target` must point to `N` writable bytes.
#[inline(always)]
pub(crate) unsafe fn kernel_bytes<const N: u32>(target: *mut u8, base: u64, offset: u32) -> bool {
    if base == 0 || offset == UNKNOWN {
        return false;
    }
    // SAFETY: the helper checks the source; the caller answers for the target.
    unsafe { bpf_probe_read_kernel(target.cast(), N, (base + u64::from(offset)) as *const _) == 0 }
}

/// Copies the text at an address of kernel memory, cut to the target's length; what follows it in the target stays.
#[inline(always)]
pub(crate) fn kernel_text<const N: usize>(target: &mut [u8; N], address: u64) {
    if address != 0 {
        // SAFETY: the helper checks the source, and the target has N bytes.
        let _ = unsafe { bpf_probe_read_kernel_str(target.as_mut_ptr().cast(), N as u32, address as *const _) };
    }
}

/// Copies the text of a trace event's record: its field says in the lower half where it stands in the record.
#[inline(always)]
pub(crate) fn event_text<const N: usize>(target: &mut [u8; N], record: u64, field: u32) {
    if let Some(place) = kernel::<u32>(record, field) {
        kernel_text(target, record + u64::from(place & 0xffff));
    }
}

/// Clears a value word by word. The compiler would make its own clearing a call to a loop over bytes, some six
/// instructions each: for a call's record that is more than all the rest of its entry.
///
/// # Safety
///
/// All bits zero must be a value of `T`, whose size must be a multiple of eight bytes and its alignment eight.
#[inline(always)]
pub(crate) unsafe fn clear<T>(place: &mut MaybeUninit<T>) -> &mut T {
    let words = place.as_mut_ptr().cast::<u64>();
    for index in 0..size_of::<T>() / size_of::<u64>() {
        // SAFETY: the word lies within the value, and is aligned as the value is.
        unsafe { words.add(index).write_volatile(0) };
    }
    // SAFETY: every word was written, and the caller answers for zero.
    unsafe { place.assume_init_mut() }
}
