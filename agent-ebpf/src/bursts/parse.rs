//! Headers of a packet: the two common shapes in place, every other one step by step.
//!
//! The common ones, TCP and UDP over IPv4 or IPv6 without tags, options and tunnels, are read where they lie. Everything
//! else, and what is not in the first piece of a packet, is copied by a helper, header by header.

use core::mem::MaybeUninit;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;

use super::maps;

/// Types of what follows a link header.
mod ethertype {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const SERVICE_VLAN: u16 = 0x88a8;
    pub(super) const BRIDGED: u16 = 0x6558;
}

/// What follows a network header.
mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const DESTINATION: u8 = 60;
}

/// UDP ports of what lies in UDP.
mod port {
    pub(super) const VXLAN: u16 = 4789;
    pub(super) const ROCE: u16 = 4791;
    pub(super) const GENEVE: u16 = 6081;
}

const ETHERNET: u32 = agent_common::bucket::ETHERNET_HEADER;
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
const TCP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;
/// VLAN tags inside of a packet that are read: the outermost is beside it as a rule.
const TAGS: u32 = 2;
/// Extension headers of IPv6 that are read.
const EXTENSIONS: u32 = 4;
/// Network headers that are read: a tunnel's, and the one inside.
const LAYERS: u32 = 2;

/// The congestion mark: both bits of ECN.
const CONGESTION: u8 = 3;
const SYN: u8 = 2;

/// What the headers of a packet say.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Headers {
    /// Bytes up to the end of the innermost transport header: what each segment repeats.
    pub(crate) length: u32,
    /// A hash of the innermost addresses, ports and protocol.
    pub(crate) flow: u32,
    /// TCP: the number of the first byte.
    pub(crate) sequence: u32,
    /// TCP: bytes after the headers.
    pub(crate) payload: u32,
    /// Where the outermost network header begins.
    pub(crate) network: u32,
    /// Where the transport header of that one begins; 0 if it has none.
    pub(crate) transport: u32,
    /// Where the headers of RoCEv2 begin; 0 if there are none.
    pub(crate) roce: u32,
    /// The version of the outermost network header: 4 or 6; 0 if there is none.
    pub(crate) version: u8,
    /// The outermost network header carries the congestion mark.
    pub(crate) ce: bool,
    /// `flow` is one.
    pub(crate) is_flow: bool,
    /// A TCP segment with payload that is not the first of a connection.
    pub(crate) is_data: bool,
    /// Headers that should be there could not be read.
    pub(crate) unparsed: bool,
}

const NOTHING: Headers = Headers {
    length: 0,
    flow: 0,
    sequence: 0,
    payload: 0,
    network: 0,
    transport: 0,
    roce: 0,
    version: 0,
    ce: false,
    is_flow: false,
    is_data: false,
    unparsed: false,
};

/// Reads the headers.
#[inline(always)]
pub(crate) fn headers(skb: *mut __sk_buff) -> Headers {
    if maps::link_header() == ETHERNET
        && let Some(found) = common(skb)
    {
        return found;
    }
    let mut found = MaybeUninit::<Headers>::uninit();
    // SAFETY: all bits zero are `NOTHING`.
    let found = unsafe { clear(&mut found) };
    // A function of its own keeps the registers of the common way free.
    found.unparsed = stepwise(skb, found);
    *found
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
    let outer = Headers {
        network: ETHERNET,
        transport: AT,
        version: 4,
        ce: class & CONGESTION == CONGESTION,
        is_flow: true,
        ..NOTHING
    };
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
        ce: traffic_class(first) & CONGESTION == CONGESTION,
        is_flow: true,
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
    let [words, flags, ..] = flags.to_ne_bytes();
    let length = at + u32::from(words >> 4) * 4;
    // SAFETY: the kernel gives the context.
    let payload = unsafe { (*skb).len }.saturating_sub(length);
    Headers {
        length,
        flow: flow(addresses, ports, protocol::TCP),
        sequence: u32::from_be(sequence),
        payload,
        is_data: payload != 0 && flags & SYN == 0,
        ..outer
    }
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

/// Any packet, one header after the other. Says whether a header that should be there is not: the verifier wants a
/// function to return something.
#[inline(never)]
fn stepwise(skb: *mut __sk_buff, found: &mut Headers) -> bool {
    walk(skb, found).is_none()
}

/// `None` if a header is not there as a whole.
#[inline(always)]
fn walk(skb: *mut __sk_buff, found: &mut Headers) -> Option<()> {
    let mut at = maps::link_header();
    let mut kind = match at {
        0 => version_type(load(skb, 0)?),
        ETHERNET => two(skb, 12)?,
        _ => two(skb, 20)?,
    };
    for layer in 0..LAYERS {
        for _ in 0..TAGS {
            if kind != ethertype::VLAN && kind != ethertype::SERVICE_VLAN {
                break;
            }
            kind = two(skb, at + 2)?;
            at += 4;
        }
        let network = match kind {
            ethertype::IPV4 => network4(skb, at)?,
            ethertype::IPV6 => network6(skb, at)?,
            // No address, no port: ARP and its like.
            _ => return Some(()),
        };
        if layer == 0 {
            found.ce = network.traffic_class & CONGESTION == CONGESTION;
            found.version = if kind == ethertype::IPV4 { 4 } else { 6 };
            found.network = at;
            found.transport = if network.fragment { 0 } else { network.end };
        }
        let Some((next, inside)) = transport(skb, found, &network)? else { return Some(()) };
        (at, kind) = (next, inside);
    }
    Some(())
}

/// A network header.
#[derive(Clone, Copy)]
struct Network {
    end: u32,
    addresses: u64,
    protocol: u8,
    traffic_class: u8,
    fragment: bool,
}

#[inline(always)]
fn network4(skb: *mut __sk_buff, at: u32) -> Option<Network> {
    let [first, second, third, source, target] = words(skb, at)?;
    let [version, class, ..] = first.to_ne_bytes();
    let length = u32::from(version & 0xf) * 4;
    if version >> 4 != 4 || length < IPV4_HEADER {
        return None;
    }
    let [_, protocol, ..] = third.to_ne_bytes();
    Some(Network {
        end: at + length,
        addresses: pair(source, target),
        protocol,
        traffic_class: class,
        fragment: is_fragment(second),
    })
}

#[inline(always)]
fn network6(skb: *mut __sk_buff, at: u32) -> Option<Network> {
    let [first, second, s0, s1, s2, s3, t0, t1, t2, t3] = words(skb, at)?;
    let [version, ..] = first.to_ne_bytes();
    if version >> 4 != 6 {
        return None;
    }
    let [_, _, protocol, _] = second.to_ne_bytes();
    let mut network = Network {
        end: at + IPV6_HEADER,
        addresses: fold([s0, s1, s2, s3], [t0, t1, t2, t3]),
        protocol,
        traffic_class: traffic_class(first),
        fragment: false,
    };
    for _ in 0..EXTENSIONS {
        let is_fragment = network.protocol == protocol::FRAGMENT;
        let has_length = matches!(network.protocol, protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION);
        if !is_fragment && !has_length {
            break;
        }
        let [extension] = words(skb, network.end)?;
        let [next, length, high, low] = extension.to_ne_bytes();
        if is_fragment {
            // One that is alone (an atomic fragment) is none.
            network.fragment = u16::from_be_bytes([high, low]) & 0xfff9 != 0;
        }
        network.protocol = next;
        network.end += if is_fragment { 8 } else { (u32::from(length) + 1) * 8 };
    }
    Some(network)
}

/// What follows a network header: fills in what it says, or where the inner packet begins and of what type it is.
#[inline(always)]
fn transport(skb: *mut __sk_buff, found: &mut Headers, network: &Network) -> Option<Option<(u32, u16)>> {
    let at = network.end;
    found.length = at;
    found.flow = flow(network.addresses, 0, network.protocol);
    found.is_flow = true;
    // Only the first fragment has ports: all of a packet are one flow without.
    if network.fragment {
        return Some(None);
    }
    match network.protocol {
        protocol::TCP => {
            let [ports, sequence, _, flags, _] = words(skb, at)?;
            let header = tcp(skb, [ports, sequence, flags], at, network.addresses, NOTHING);
            found.length = header.length;
            found.flow = header.flow;
            found.sequence = header.sequence;
            found.payload = header.payload;
            found.is_data = header.is_data;
            Some(None)
        }
        protocol::UDP => {
            let [ports, _] = words(skb, at)?;
            found.length = at + UDP_HEADER;
            found.flow = flow(network.addresses, ports, protocol::UDP);
            match destination(ports) {
                port::VXLAN => Some(Some((at + UDP_HEADER + 8 + ETHERNET, bridged(skb, at + UDP_HEADER + 8)?))),
                port::GENEVE => geneve(skb, at + UDP_HEADER).map(Some),
                port::ROCE => {
                    found.roce = at + UDP_HEADER;
                    Some(None)
                }
                _ => Some(None),
            }
        }
        protocol::IPV4 => Some(Some((at, ethertype::IPV4))),
        protocol::IPV6 => Some(Some((at, ethertype::IPV6))),
        protocol::GRE => gre(skb, at).map(Some),
        _ => Some(None),
    }
}

/// The type of a frame inside a tunnel.
#[inline(always)]
fn bridged(skb: *mut __sk_buff, at: u32) -> Option<u16> {
    two(skb, at + 12)
}

#[inline(always)]
fn geneve(skb: *mut __sk_buff, at: u32) -> Option<(u32, u16)> {
    let [header] = words(skb, at)?;
    let [options, _, high, low] = header.to_ne_bytes();
    inside(skb, at + 8 + u32::from(options & 0x3f) * 4, u16::from_be_bytes([high, low]))
}

#[inline(always)]
fn gre(skb: *mut __sk_buff, at: u32) -> Option<(u32, u16)> {
    let [header] = words(skb, at)?;
    let [flags, _, high, low] = header.to_ne_bytes();
    // Checksum, key and sequence number are there if their flags are.
    let optional = u32::from(flags >> 7 & 1) + u32::from(flags >> 5 & 1) + u32::from(flags >> 4 & 1);
    inside(skb, at + 4 + optional * 4, u16::from_be_bytes([high, low]))
}

/// Where the network header begins in what a tunnel carries, and its type.
#[inline(always)]
fn inside(skb: *mut __sk_buff, at: u32, kind: u16) -> Option<(u32, u16)> {
    if kind == ethertype::BRIDGED { Some((at + ETHERNET, bridged(skb, at)?)) } else { Some((at, kind)) }
}

/// The type of a packet without a link header, by its version.
#[inline(always)]
fn version_type([first]: [u8; 1]) -> u16 {
    match first >> 4 {
        4 => ethertype::IPV4,
        6 => ethertype::IPV6,
        _ => 0,
    }
}

/// The traffic class in the first word of an IPv6 header.
#[inline(always)]
fn traffic_class(word: u32) -> u8 {
    (u32::from_be(word) >> 20) as u8
}

/// Whether the second word of an IPv4 header is a fragment's: more follow, or it is not the first.
#[inline(always)]
fn is_fragment(word: u32) -> bool {
    u32::from_be(word) & 0x3fff != 0
}

/// The destination of two ports as they lie in a packet.
#[inline(always)]
fn destination(ports: u32) -> u16 {
    u32::from_be(ports) as u16
}

/// Two words as one.
#[inline(always)]
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Both addresses of IPv6 in one word. Addresses of a site differ in their last bits, which must not cancel out.
#[inline(always)]
fn fold([s0, s1, s2, s3]: [u32; 4], [t0, t1, t2, t3]: [u32; 4]) -> u64 {
    let source = (pair(s0, s1) ^ pair(s3, s2)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let target = (pair(t0, t1) ^ pair(t3, t2)).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    source ^ target >> 29 ^ target << 35
}

/// A hash in whose every bit every bit of the flow has its share: neighbouring ports must fall as if at random.
#[inline(always)]
fn flow(addresses: u64, ports: u32, protocol: u8) -> u32 {
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

/// A copy of `N` words at `at`, wherever they are.
#[inline(always)]
pub(crate) fn words<const N: usize>(skb: *mut __sk_buff, at: u32) -> Option<[u32; N]> {
    load(skb, at)
}

/// Two bytes of the network's order as a number.
#[inline(always)]
fn two(skb: *mut __sk_buff, at: u32) -> Option<u16> {
    load(skb, at).map(u16::from_be)
}

/// A copy of what lies at `at`.
#[inline(always)]
pub(crate) fn load<T: Plain>(skb: *mut __sk_buff, at: u32) -> Option<T> {
    let mut copy = MaybeUninit::<T>::uninit();
    // SAFETY: the helper writes all of it, or says that it did not; every bit pattern is a value.
    unsafe {
        let failed = bpf_skb_load_bytes(skb.cast(), at, copy.as_mut_ptr().cast(), size_of::<T>() as u32);
        (failed == 0).then(|| copy.assume_init())
    }
}

/// Clears a value word by word. The compiler would make its own clearing a call to a loop over bytes, some five
/// instructions each: longer than most headers take to read.
///
/// # Safety
///
/// All bits zero must be a value of `T`, whose size must be a multiple of eight bytes and its alignment eight.
#[inline(always)]
unsafe fn clear<T>(place: &mut MaybeUninit<T>) -> &mut T {
    let words = place.as_mut_ptr().cast::<u64>();
    for index in 0..size_of::<T>() / size_of::<u64>() {
        // SAFETY: the word lies within the value, and is aligned as the value is.
        unsafe { words.add(index).write_volatile(0) };
    }
    // SAFETY: the caller says that this is a value.
    unsafe { place.assume_init_mut() }
}

/// Types of which every bit pattern is a value.
pub(crate) trait Plain {}
impl Plain for u16 {}
impl<const N: usize> Plain for [u8; N] {}
impl<const N: usize> Plain for [u32; N] {}
