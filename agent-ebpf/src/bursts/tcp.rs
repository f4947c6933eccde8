//! What TCP sends again, told by the socket's own numbers.

use agent_common::bucket::direction;
use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_tcp_sock;

use super::parse::Headers;

/// Payload bytes of a segment that were sent, or received, before.
#[inline(always)]
pub(crate) fn sent_again(skb: *mut __sk_buff, direction: u32, headers: &Headers) -> u32 {
    if !headers.is_data {
        return 0;
    }
    if direction == direction::TX { sent(skb, headers) } else { 0 }
}

/// Sent: what lies before the first byte that the socket has not sent yet. A segment that is new has its number there,
/// since the socket moves it on only after the segment has left. Packets of other hosts have no socket.
#[inline(always)]
fn sent(skb: *mut __sk_buff, headers: &Headers) -> u32 {
    // SAFETY: the kernel gives the context; a socket that is not there is null, which is checked before each use.
    let next = unsafe {
        let socket = (*skb).__bindgen_anon_2.sk;
        if socket.is_null() {
            return 0;
        }
        let tcp = bpf_tcp_sock(socket);
        if tcp.is_null() {
            return 0;
        }
        (*tcp).snd_nxt
    };
    before(next, headers)
}

/// Payload bytes before `next`, in the sequence numbers' circle.
#[inline(always)]
fn before(next: u32, headers: &Headers) -> u32 {
    let behind = next.wrapping_sub(headers.sequence);
    if behind == 0 || behind > u32::MAX / 2 { 0 } else { behind.min(headers.payload) }
}
