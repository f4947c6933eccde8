//! Headers of a packet: the common shapes, read where they lie; every other one by `walk`.
//!
//! Common are TCP and UDP over IPv4 or IPv6 in Ethernet, without tags, options and tunnels, in a packet's first piece.

use aya_ebpf::bindings::__sk_buff;

use super::{maps, walk};

/// Types of what follows a link header.
pub(crate) mod ethertype {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const SERVICE_VLAN: u16 = 0x88a8;
    pub(crate) const BRIDGED: u16 = 0x6558;
}

/// What follows a network header.
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const DESTINATION: u8 = 60;
}

/// UDP ports of what lies in UDP.
pub(crate) mod port {
    pub(crate) const VXLAN: u16 = 4789;
    pub(crate) const ROCE: u16 = 4791;
    pub(crate) const GENEVE: u16 = 6081;
}

pub(crate) const ETHERNET: u32 = agent_common::bucket::ETHERNET_HEADER;
pub(crate) const IPV4_HEADER: u32 = 20;
pub(crate) const IPV6_HEADER: u32 = 40;
pub(crate) const TCP_HEADER: u32 = 20;
pub(crate) const UDP_HEADER: u32 = 8;
const SYN: u8 = 2;

/// What the headers of a packet say. Flags are numbers, 0 or 1: the verifier follows each branch on its own.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Headers {
    /// Bytes up to the end of the innermost transport header: what each segment repeats.
    pub(crate) length: u32,
    /// A hash of the innermost addresses, ports and protocol.
    pub(crate) flow: u32,
    /// Flag: `flow` is one.
    pub(crate) is_flow: u32,
    /// Flag: the outermost network header carries the congestion mark.
    pub(crate) ce: u32,
    /// TCP: the number of the first byte.
    pub(crate) sequence: u32,
    /// TCP: bytes after the headers; 0 for the first segment of a connection too.
    pub(crate) payload: u32,
    /// The version of the outermost network header: 4 or 6; 0 if there is none.
    pub(crate) version: u32,
    /// Where it begins.
    pub(crate) network: u32,
    /// Where the transport header of that one begins; 0 if it has none.
    pub(crate) transport: u32,
    /// Where the headers of RoCEv2 begin; 0 if there are none.
    pub(crate) roce: u32,
    /// Flag: headers that should be there could not be read.
    pub(crate) unparsed: u32,
}

const NOTHING: Headers = Headers {
    length: 0,
    flow: 0,
    is_flow: 0,
    ce: 0,
    sequence: 0,
    payload: 0,
    version: 0,
    network: 0,
    transport: 0,
    roce: 0,
    unparsed: 0,
};

impl Headers {
    /// Nothing could be read.
    pub(crate) const UNPARSED: Self = Self { unparsed: 1, ..NOTHING };
}

/// Reads the headers.
#[inline(always)]
pub(crate) fn headers(skb: *mut __sk_buff) -> Headers {
    if maps::link_header() == ETHERNET
        && let Some(found) = common(skb)
    {
        return found;
    }
    walk::headers(skb)
}

/// The common shapes; `None` for every other one.
#[inline(always)]
fn common(skb: *mut __sk_buff) -> Option<Headers> {
    // SAFETY: the kernel gives the context.
    let (data, end) = unsafe { ((*skb).data as usize, (*skb).data_end as usize) };
    if data + (ETHERNET + IPV4_HEADER + UDP_HEADER) as usize > end {
        return None;
    }
    // SAFETY: in bounds as just checked.
    match u16::from_be(unsafe { lie::half::<12>(data) }) {
        ethertype::IPV4 => ipv4(skb, data, end),
        ethertype::IPV6 => ipv6(skb, data, end),
        _ => None,
    }
}

#[inline(always)]
fn ipv4(skb: *mut __sk_buff, data: usize, end: usize) -> Option<Headers> {
    const VERSION_AND_LENGTH: u8 = 0x45;
    const AT: u32 = ETHERNET + IPV4_HEADER;
    // SAFETY: the caller has checked that the header and eight bytes more are there.
    let (first, second, third, source, target, ports) = unsafe {
        (
            lie::word::<14>(data),
            lie::word::<18>(data),
            lie::word::<22>(data),
            lie::word::<26>(data),
            lie::word::<30>(data),
            lie::word::<34>(data),
        )
    };
    let [version, class, ..] = first.to_ne_bytes();
    if version != VERSION_AND_LENGTH || is_fragment(second) {
        return None;
    }
    let addresses = pair(source, target);
    let outer = Headers { network: ETHERNET, transport: AT, version: 4, ce: congestion(class), is_flow: 1, ..NOTHING };
    let [_, protocol, ..] = third.to_ne_bytes();
    match protocol {
        protocol::TCP => {
            if data + (AT + TCP_HEADER) as usize > end {
                return None;
            }
            // SAFETY: in bounds as just checked.
            let (sequence, flags) = unsafe { (lie::word::<38>(data), lie::word::<46>(data)) };
            Some(tcp(skb, [ports, sequence, flags], AT, addresses, outer))
        }
        protocol::UDP => udp(AT, ports, addresses, outer),
        _ => None,
    }
}

#[inline(always)]
fn ipv6(skb: *mut __sk_buff, data: usize, end: usize) -> Option<Headers> {
    const AT: u32 = ETHERNET + IPV6_HEADER;
    if data + (AT + UDP_HEADER) as usize > end {
        return None;
    }
    // SAFETY: in bounds as just checked.
    let (first, second, source, target, ports) = unsafe {
        (
            lie::word::<14>(data),
            lie::word::<18>(data),
            [lie::word::<22>(data), lie::word::<26>(data), lie::word::<30>(data), lie::word::<34>(data)],
            [lie::word::<38>(data), lie::word::<42>(data), lie::word::<46>(data), lie::word::<50>(data)],
            lie::word::<54>(data),
        )
    };
    let outer = Headers {
        network: ETHERNET,
        transport: AT,
        version: 6,
        ce: congestion(traffic_class(first)),
        is_flow: 1,
        ..NOTHING
    };
    let [_, _, protocol, _] = second.to_ne_bytes();
    let addresses = fold(source, target);
    match protocol {
        protocol::TCP => {
            if data + (AT + TCP_HEADER) as usize > end {
                return None;
            }
            // SAFETY: in bounds as just checked.
            let (sequence, flags) = unsafe { (lie::word::<58>(data), lie::word::<66>(data)) };
            Some(tcp(skb, [ports, sequence, flags], AT, addresses, outer))
        }
        protocol::UDP => udp(AT, ports, addresses, outer),
        _ => None,
    }
}

/// A TCP header at `at`: its ports, its sequence number, and its word of length and flags.
#[inline(always)]
fn tcp(skb: *mut __sk_buff, [ports, sequence, flags]: [u32; 3], at: u32, addresses: u64, outer: Headers) -> Headers {
    Headers {
        length: at + tcp_length(flags),
        flow: flow(addresses, ports, protocol::TCP),
        sequence: u32::from_be(sequence),
        payload: tcp_payload(skb, at, flags),
        ..outer
    }
}

/// Bytes of a TCP header by its word of length and flags.
#[inline(always)]
pub(crate) fn tcp_length(word: u32) -> u32 {
    u32::from(word.to_ne_bytes()[0] >> 4) * 4
}

/// Payload of a TCP segment whose header is at `at`; none if it is the first of a connection.
#[inline(always)]
pub(crate) fn tcp_payload(skb: *mut __sk_buff, at: u32, word: u32) -> u32 {
    let [_, flags, ..] = word.to_ne_bytes();
    // SAFETY: the kernel gives the context.
    let length = unsafe { (*skb).len };
    if flags & SYN == 0 { length.saturating_sub(at + tcp_length(word)) } else { 0 }
}

/// A UDP header at `at` with these ports; `None` if another packet lies in it.
#[inline(always)]
fn udp(at: u32, ports: u32, addresses: u64, outer: Headers) -> Option<Headers> {
    let length = at + UDP_HEADER;
    let roce = match destination(ports) {
        port::VXLAN | port::GENEVE => return None,
        port::ROCE => length,
        _ => 0,
    };
    Some(Headers { length, flow: flow(addresses, ports, protocol::UDP), roce, ..outer })
}

/// The traffic class in the first word of an IPv6 header.
#[inline(always)]
pub(crate) fn traffic_class(word: u32) -> u8 {
    (u32::from_be(word) >> 20) as u8
}

/// Whether both bits of ECN are set, as a number.
#[inline(always)]
pub(crate) fn congestion(traffic_class: u8) -> u32 {
    u32::from(traffic_class & traffic_class >> 1 & 1)
}

/// Whether the second word of an IPv4 header is a fragment's: more follow, or it is not the first.
#[inline(always)]
pub(crate) fn is_fragment(word: u32) -> bool {
    u32::from_be(word) & 0x3fff != 0
}

/// The destination of two ports as they lie in a packet.
#[inline(always)]
pub(crate) fn destination(ports: u32) -> u16 {
    u32::from_be(ports) as u16
}

/// Two words as one.
#[inline(always)]
pub(crate) fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Both addresses of IPv6 in one word. Addresses of a site differ in their last bits, which must not cancel out.
#[inline(always)]
pub(crate) fn fold([s0, s1, s2, s3]: [u32; 4], [t0, t1, t2, t3]: [u32; 4]) -> u64 {
    let source = (pair(s0, s1) ^ pair(s3, s2)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let target = (pair(t0, t1) ^ pair(t3, t2)).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    source ^ target >> 29 ^ target << 35
}

/// A hash in whose every bit every bit of the flow has its share: neighbouring ports must fall as if at random.
#[inline(always)]
pub(crate) fn flow(addresses: u64, ports: u32, protocol: u8) -> u32 {
    let mut hash = addresses ^ (u64::from(ports) << 8 | u64::from(protocol)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash >> 32) as u32
}

/// Reads where the bytes lie. Headers lie at any address, and the compiler reads what may be unaligned byte by byte;
/// the kernel's verifier allows whole words, on the machines that the kernel side is built for.
mod lie {
    use core::arch::asm;

    /// Four bytes as they lie.
    ///
    /// # Safety
    ///
    /// They must have been found to lie within the packet.
    #[inline(always)]
    pub(super) unsafe fn word<const AT: u32>(data: usize) -> u32 {
        let value: u64;
        // SAFETY: it reads what the caller answers for.
        unsafe {
            asm!(
                "{value} = *(u32 *)({data} + {at})",
                value = lateout(reg) value,
                data = in(reg) data,
                at = const AT,
                options(pure, readonly, nostack),
            );
        }
        value as u32
    }

    /// Two bytes as they lie.
    ///
    /// # Safety
    ///
    /// As for [`word`].
    #[inline(always)]
    pub(super) unsafe fn half<const AT: u32>(data: usize) -> u16 {
        let value: u64;
        // SAFETY: it reads what the caller answers for.
        unsafe {
            asm!(
                "{value} = *(u16 *)({data} + {at})",
                value = lateout(reg) value,
                data = in(reg) data,
                at = const AT,
                options(pure, readonly, nostack),
            );
        }
        value as u16
    }
}
