//! The mark of TCP segments that are sent again: set where the configuration asks for it, counted where it arrives.
//!
//! Only a TCP header that the outermost IP header is followed by is looked at and marked, not one in a tunnel.

use agent_common::bucket::RETRANSMIT_MARK;
use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::{bpf_l4_csum_replace, bpf_skb_store_bytes};

use super::load::load;
use super::parse::{Headers, protocol};

/// The length of the TCP header, the reserved bits and the flags.
const FLAGS: u32 = 12;
const CHECKSUM: u32 = 16;

/// Where these lie in a packet, and what they are.
#[inline(always)]
fn flags(skb: *mut __sk_buff, headers: &Headers) -> Option<(u32, [u8; 2])> {
    let at = headers.network + if headers.version == 4 { 9 } else { 6 };
    if headers.payload == 0 || headers.transport == 0 || load::<[u8; 1]>(skb, at)? != [protocol::TCP] {
        return None;
    }
    let at = headers.transport + FLAGS;
    Some((at, load(skb, at)?))
}

/// Whether a segment with payload carries the mark.
#[inline(always)]
pub(crate) fn is_marked(skb: *mut __sk_buff, headers: &Headers) -> bool {
    flags(skb, headers).is_some_and(|(_, [length, _])| length & RETRANSMIT_MARK != 0)
}

/// Sets the mark, and mends the checksum as far as it is complete already; whether the segment carries it then.
///
/// The headers of a packet that TCP sends are its own: the copy that TCP keeps to send it once more holds none.
#[inline(always)]
pub(crate) fn set(skb: *mut __sk_buff, headers: &Headers) -> bool {
    let Some((at, found)) = flags(skb, headers) else { return false };
    let [length, rest] = found;
    let marked = [length | RETRANSMIT_MARK, rest];
    if marked == found {
        return true;
    }
    let (from, to) = (u16::from_ne_bytes(found), u16::from_ne_bytes(marked));
    // SAFETY: the kernel gives the context, and checks that both places lie in the packet.
    unsafe {
        bpf_l4_csum_replace(skb, headers.transport + CHECKSUM, u64::from(from), u64::from(to), 2) == 0
            && bpf_skb_store_bytes(skb, at, marked.as_ptr().cast(), 1, 0) == 0
    }
}
