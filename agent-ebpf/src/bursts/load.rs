//! Copies of what lies in a packet: read where it lies if that is in the packet's first piece, else by a helper.

use core::arch::asm;
use core::mem::MaybeUninit;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;

/// Headers that lie further inside are left to the helper.
const NEAR: u32 = 0x3ff;

/// Types of which every bit pattern is a value, and how they are read where they lie.
pub(crate) trait Plain: Sized {
    /// # Safety
    ///
    /// All of it must have been found to lie within the packet.
    unsafe fn lie(at: usize) -> Self;
}

impl Plain for u16 {
    #[inline(always)]
    unsafe fn lie(at: usize) -> Self {
        let value: u64;
        // SAFETY: it reads what the caller answers for.
        unsafe {
            asm!(
                "{value} = *(u16 *)({at} + 0)",
                value = lateout(reg) value,
                at = in(reg) at,
                options(pure, readonly, nostack),
            );
        }
        value as u16
    }
}

impl<const N: usize> Plain for [u8; N] {
    #[inline(always)]
    unsafe fn lie(at: usize) -> Self {
        // SAFETY: the caller answers for it.
        unsafe { (at as *const Self).read() }
    }
}

impl<const N: usize> Plain for [u32; N] {
    #[inline(always)]
    unsafe fn lie(at: usize) -> Self {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            let value: u64;
            // SAFETY: it reads what the caller answers for.
            unsafe {
                asm!(
                    "{value} = *(u32 *)({at} + 0)",
                    value = lateout(reg) value,
                    at = in(reg) at + 4 * index,
                    options(pure, readonly, nostack),
                );
            }
            *word = value as u32;
        }
        words
    }
}

/// What lies at `at`; `None` if the packet ends before.
#[inline(always)]
pub(crate) fn load<T: Plain>(skb: *mut __sk_buff, at: u32) -> Option<T> {
    // SAFETY: the kernel gives the context.
    let (data, end) = unsafe { ((*skb).data as usize, (*skb).data_end as usize) };
    let start = data + (at & NEAR) as usize;
    if at <= NEAR && start + size_of::<T>() <= end {
        // SAFETY: in bounds as just checked.
        return Some(unsafe { T::lie(start) });
    }
    let mut copy = MaybeUninit::<T>::uninit();
    // SAFETY: the helper writes all of it, or says that it did not; every bit pattern is a value.
    unsafe {
        let failed = bpf_skb_load_bytes(skb.cast(), at, copy.as_mut_ptr().cast(), size_of::<T>() as u32);
        (failed == 0).then(|| copy.assume_init())
    }
}

/// Words as they lie.
#[inline(always)]
pub(crate) fn words<const N: usize>(skb: *mut __sk_buff, at: u32) -> Option<[u32; N]> {
    load(skb, at)
}

/// Two bytes of the network's order as a number.
#[inline(always)]
pub(crate) fn two(skb: *mut __sk_buff, at: u32) -> Option<u16> {
    load(skb, at).map(u16::from_be)
}
