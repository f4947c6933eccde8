//! Copies of what lies in a packet, by a helper, wherever the packet keeps it.

use core::mem::MaybeUninit;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;

/// Types of which every bit pattern is a value.
pub(crate) trait Plain {}
impl Plain for u16 {}
impl<const N: usize> Plain for [u8; N] {}
impl<const N: usize> Plain for [u32; N] {}

/// What lies at `at`; `None` if the packet ends before.
#[inline(always)]
pub(crate) fn load<T: Plain>(skb: *mut __sk_buff, at: u32) -> Option<T> {
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
