//! Headers of any packet, one after the other, copied by a helper wherever they lie.
//!
//! What is found, and where the walk is, stands in a map and not in registers. What comes out of memory is any number to
//! the verifier, so that after each step all ways that led there are one to it; else it would follow each to its end.

use aya_ebpf::bindings::__sk_buff;

use super::load::{two, words};
use super::maps;
use super::parse::{
    ETHERNET, Headers, IPV4_HEADER, IPV6_HEADER, UDP_HEADER, congestion, destination, ethertype, flow, fold,
    is_fragment, pair, port, protocol, tcp_length, tcp_payload, traffic_class,
};

/// VLAN tags inside of a packet that are read: the outermost is beside it as a rule.
const TAGS: u32 = 2;
/// Extension headers of IPv6 that are read.
const EXTENSIONS: u32 = 4;
/// Network headers that are read: a tunnel's, and the one inside.
const LAYERS: u32 = 2;

/// A walk through a packet. Each CPU has one: nothing else runs between the beginning of a program and its end.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Walk {
    found: Headers,
    /// Where the next header begins.
    at: u32,
    /// Its type: an ethertype while the network header is ahead, 0 at the end.
    kind: u16,
    /// What follows the network header.
    protocol: u8,
    /// Flag: this is a part of a packet.
    fragment: u8,
    /// Both addresses of the network header, in one word.
    addresses: u64,
}

/// Reads a field.
macro_rules! get {
    ($walk:ident . $($field:ident).+) => {
        // SAFETY: the map gave the pointer, and this program alone uses it now.
        unsafe { (&raw const (*$walk).$($field).+).read_volatile() }
    };
}

/// Writes a field.
macro_rules! set {
    ($walk:ident . $($field:ident).+ = $value:expr) => {{
        let value = $value;
        // SAFETY: as for reading.
        unsafe { (&raw mut (*$walk).$($field).+).write_volatile(value) }
    }};
}

/// Reads the headers.
#[inline(always)]
pub(crate) fn headers(skb: *mut __sk_buff) -> Headers {
    let Some(walk) = maps::walk() else { return Headers::UNPARSED };
    set!(walk.found.length = 0);
    set!(walk.found.flow = 0);
    set!(walk.found.is_flow = 0);
    set!(walk.found.ce = 0);
    set!(walk.found.sequence = 0);
    set!(walk.found.payload = 0);
    set!(walk.found.version = 0);
    set!(walk.found.network = 0);
    set!(walk.found.transport = 0);
    set!(walk.found.roce = 0);
    set!(walk.found.unparsed = 1);
    if all(skb, walk).is_some() {
        set!(walk.found.unparsed = 0);
    }
    Headers {
        length: get!(walk.found.length),
        flow: get!(walk.found.flow),
        is_flow: get!(walk.found.is_flow),
        ce: get!(walk.found.ce),
        sequence: get!(walk.found.sequence),
        payload: get!(walk.found.payload),
        version: get!(walk.found.version),
        network: get!(walk.found.network),
        transport: get!(walk.found.transport),
        roce: get!(walk.found.roce),
        unparsed: get!(walk.found.unparsed),
    }
}

/// `None` if a header is not there as a whole.
#[inline(always)]
fn all(skb: *mut __sk_buff, walk: *mut Walk) -> Option<()> {
    let link = maps::link_header();
    set!(walk.at = link);
    set!(
        walk.kind = match link {
            0 => version_type(words(skb, 0)?),
            ETHERNET => two(skb, 12)?,
            _ => two(skb, 20)?,
        }
    );
    for layer in 0..LAYERS {
        for _ in 0..TAGS {
            tag(skb, walk)?;
        }
        match get!(walk.kind) {
            ethertype::IPV4 => network4(skb, walk)?,
            ethertype::IPV6 => network6(skb, walk)?,
            // No address, no port: ARP and its like, and the end.
            _ => return Some(()),
        }
        if layer == 0 {
            set!(walk.found.transport = if get!(walk.fragment) == 0 { get!(walk.at) } else { 0 });
        }
        transport(skb, walk)?;
    }
    Some(())
}

/// A VLAN tag, if one is next.
#[inline(always)]
fn tag(skb: *mut __sk_buff, walk: *mut Walk) -> Option<()> {
    let kind = get!(walk.kind);
    if kind == ethertype::VLAN || kind == ethertype::SERVICE_VLAN {
        let at = get!(walk.at);
        set!(walk.kind = two(skb, at + 2)?);
        set!(walk.at = at + 4);
    }
    Some(())
}

/// The version, the place and the congestion mark of the outermost network header.
#[inline(always)]
fn outermost(walk: *mut Walk, version: u32, traffic_class: u8) {
    if get!(walk.found.version) == 0 {
        set!(walk.found.version = version);
        set!(walk.found.network = get!(walk.at));
        set!(walk.found.ce = congestion(traffic_class));
    }
}

#[inline(always)]
fn network4(skb: *mut __sk_buff, walk: *mut Walk) -> Option<()> {
    let at = get!(walk.at);
    let [first, second, third, source, target] = words(skb, at)?;
    let [version, class, ..] = first.to_ne_bytes();
    let length = u32::from(version & 0xf) * 4;
    if version >> 4 != 4 || length < IPV4_HEADER {
        return None;
    }
    outermost(walk, 4, class);
    let [_, protocol, ..] = third.to_ne_bytes();
    set!(walk.protocol = protocol);
    set!(walk.fragment = u8::from(is_fragment(second)));
    set!(walk.addresses = pair(source, target));
    set!(walk.at = at + length);
    Some(())
}

#[inline(always)]
fn network6(skb: *mut __sk_buff, walk: *mut Walk) -> Option<()> {
    let at = get!(walk.at);
    let [first, second, s0, s1, s2, s3, t0, t1, t2, t3] = words(skb, at)?;
    let [version, ..] = first.to_ne_bytes();
    if version >> 4 != 6 {
        return None;
    }
    outermost(walk, 6, traffic_class(first));
    let [_, _, protocol, _] = second.to_ne_bytes();
    set!(walk.protocol = protocol);
    set!(walk.fragment = 0);
    set!(walk.addresses = fold([s0, s1, s2, s3], [t0, t1, t2, t3]));
    set!(walk.at = at + IPV6_HEADER);
    for _ in 0..EXTENSIONS {
        extension(skb, walk)?;
    }
    Some(())
}

/// An extension header, if one is next.
#[inline(always)]
fn extension(skb: *mut __sk_buff, walk: *mut Walk) -> Option<()> {
    let (at, protocol) = (get!(walk.at), get!(walk.protocol));
    let is_fragment = protocol == protocol::FRAGMENT;
    if !is_fragment && !matches!(protocol, protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION) {
        return Some(());
    }
    let [header] = words(skb, at)?;
    let [next, length, high, low] = u32::to_ne_bytes(header);
    if is_fragment {
        // One that is alone (an atomic fragment) is none.
        set!(walk.fragment = u8::from(u16::from_be_bytes([high, low]) & 0xfff9 != 0));
    }
    set!(walk.protocol = next);
    set!(walk.at = at + if is_fragment { 8 } else { (u32::from(length) + 1) * 8 });
    Some(())
}

/// What follows the network header: the end, or another packet.
#[inline(always)]
fn transport(skb: *mut __sk_buff, walk: *mut Walk) -> Option<()> {
    let (at, protocol, addresses) = (get!(walk.at), get!(walk.protocol), get!(walk.addresses));
    set!(walk.kind = 0);
    set!(walk.found.length = at);
    set!(walk.found.flow = flow(addresses, 0, protocol));
    set!(walk.found.is_flow = 1);
    // Only the first fragment has ports: all of a packet are one flow without.
    if get!(walk.fragment) != 0 {
        return Some(());
    }
    match protocol {
        protocol::TCP => {
            let [ports, sequence, _, flags, _] = words(skb, at)?;
            set!(walk.found.length = at + tcp_length(flags));
            set!(walk.found.flow = flow(addresses, ports, protocol::TCP));
            set!(walk.found.sequence = u32::from_be(sequence));
            set!(walk.found.payload = tcp_payload(skb, at, flags));
        }
        protocol::UDP => {
            let [ports, _] = words(skb, at)?;
            let inside = at + UDP_HEADER;
            set!(walk.found.length = inside);
            set!(walk.found.flow = flow(addresses, ports, protocol::UDP));
            match destination(ports) {
                port::VXLAN => inner(skb, walk, inside + 8, ethertype::BRIDGED)?,
                port::GENEVE => geneve(skb, walk, inside)?,
                port::ROCE => set!(walk.found.roce = inside),
                _ => {}
            }
        }
        protocol::IPV4 => set!(walk.kind = ethertype::IPV4),
        protocol::IPV6 => set!(walk.kind = ethertype::IPV6),
        protocol::GRE => gre(skb, walk, at)?,
        _ => {}
    }
    Some(())
}

#[inline(always)]
fn geneve(skb: *mut __sk_buff, walk: *mut Walk, at: u32) -> Option<()> {
    let [header] = words(skb, at)?;
    let [options, _, high, low] = u32::to_ne_bytes(header);
    inner(skb, walk, at + 8 + u32::from(options & 0x3f) * 4, u16::from_be_bytes([high, low]))
}

#[inline(always)]
fn gre(skb: *mut __sk_buff, walk: *mut Walk, at: u32) -> Option<()> {
    let [header] = words(skb, at)?;
    let [flags, _, high, low] = u32::to_ne_bytes(header);
    // Checksum, key and sequence number are there if their flags are.
    let optional = u32::from(flags >> 7 & 1) + u32::from(flags >> 5 & 1) + u32::from(flags >> 4 & 1);
    inner(skb, walk, at + 4 + optional * 4, u16::from_be_bytes([high, low]))
}

/// What a tunnel carries begins at `at`: a frame with its own link header, or a network header.
#[inline(always)]
fn inner(skb: *mut __sk_buff, walk: *mut Walk, at: u32, kind: u16) -> Option<()> {
    let bridged = kind == ethertype::BRIDGED;
    set!(walk.kind = if bridged { two(skb, at + 12)? } else { kind });
    set!(walk.at = at + if bridged { ETHERNET } else { 0 });
    Some(())
}

/// The type of a packet without a link header, by its version.
#[inline(always)]
fn version_type([first]: [u32; 1]) -> u16 {
    let [first, ..] = first.to_ne_bytes();
    match first >> 4 {
        4 => ethertype::IPV4,
        6 => ethertype::IPV6,
        _ => 0,
    }
}
