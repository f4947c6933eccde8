//! What TCP sends again, told by the socket's own numbers.

use core::mem::MaybeUninit;

use agent_common::bucket::direction;
use agent_common::settings::UNKNOWN;
use aya_ebpf::bindings::{__sk_buff, BPF_F_CURRENT_NETNS, bpf_sock};
use aya_ebpf::helpers::generated::{
    bpf_sk_release, bpf_skb_load_bytes, bpf_skc_lookup_tcp, bpf_skc_to_tcp_sock, bpf_tcp_sock,
};

use super::maps;
use super::parse::Headers;

/// A connection as the look-up takes it: both addresses and both ports as they lie in the packet.
const TUPLE4: u32 = 12;
const TUPLE6: u32 = 36;
const PORTS: u32 = 4;

/// Payload bytes of a segment that were sent, or received, before.
#[inline(always)]
pub(crate) fn sent_again(skb: *mut __sk_buff, direction: u32, headers: &Headers) -> u32 {
    if headers.payload == 0 {
        return 0;
    }
    match direction {
        direction::TX => sent(skb, headers),
        _ if maps::suspected() => received(skb, headers),
        _ => 0,
    }
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

/// Received, and suspected only: what the socket has already, and what fills the hole before segments that came out of
/// order. A network that changes their order does that too. A segment that waits while a program holds the socket is
/// compared with an older state of it, so some are missed.
#[inline(always)]
fn received(skb: *mut __sk_buff, headers: &Headers) -> u32 {
    let mut tuple = MaybeUninit::<[u32; 9]>::uninit();
    let place = tuple.as_mut_ptr().cast::<u8>();
    let (from, size) = match headers.version {
        4 => (headers.network + 12, TUPLE4),
        6 => (headers.network + 8, TUPLE6),
        _ => return 0,
    };
    if headers.transport == 0 {
        return 0;
    }
    // SAFETY: the helpers write both parts of the tuple, which has room for either version's, or say that they did not.
    // The socket that is found is given back on every way.
    unsafe {
        let loaded = if size == TUPLE4 {
            bpf_skb_load_bytes(skb.cast(), from, place.cast(), TUPLE4 - PORTS)
                | bpf_skb_load_bytes(skb.cast(), headers.transport, place.add(8).cast(), PORTS)
        } else {
            bpf_skb_load_bytes(skb.cast(), from, place.cast(), TUPLE6 - PORTS)
                | bpf_skb_load_bytes(skb.cast(), headers.transport, place.add(32).cast(), PORTS)
        };
        if loaded != 0 {
            return 0;
        }
        let socket = if size == TUPLE4 {
            bpf_skc_lookup_tcp(skb.cast(), tuple.as_mut_ptr().cast(), TUPLE4, BPF_F_CURRENT_NETNS as u64, 0)
        } else {
            bpf_skc_lookup_tcp(skb.cast(), tuple.as_mut_ptr().cast(), TUPLE6, BPF_F_CURRENT_NETNS as u64, 0)
        };
        if socket.is_null() {
            return 0;
        }
        let again = again(socket, headers);
        bpf_sk_release(socket.cast());
        again
    }
}

/// # Safety
///
/// `socket` must be one that is held.
#[inline(always)]
unsafe fn again(socket: *mut bpf_sock, headers: &Headers) -> u32 {
    // SAFETY: the caller holds the socket; the helpers say what it is not.
    unsafe {
        let tcp = bpf_tcp_sock(socket);
        if tcp.is_null() {
            return 0;
        }
        let next = (*tcp).rcv_nxt;
        if next != headers.sequence {
            return before(next, headers);
        }
        let offset = maps::out_of_order();
        if offset == UNKNOWN {
            return 0;
        }
        let tcp = bpf_skc_to_tcp_sock(socket.cast());
        if tcp.is_null() {
            return 0;
        }
        // The root of a tree: null if it is empty.
        let queue = tcp.cast::<u8>().add(offset as usize).cast::<u64>();
        if queue.read() == 0 { 0 } else { headers.payload }
    }
}

/// Payload bytes before `next`, in the sequence numbers' circle.
#[inline(always)]
fn before(next: u32, headers: &Headers) -> u32 {
    let behind = next.wrapping_sub(headers.sequence);
    if behind == 0 || behind > u32::MAX / 2 { 0 } else { behind.min(headers.payload) }
}
