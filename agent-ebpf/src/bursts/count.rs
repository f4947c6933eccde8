//! What is counted of a packet: sizes on the wire, into totals and the bucket of now.

use agent_common::bucket::{Bucket, IPOIB_HEADER, IPOIB_PSEUDO_HEADER, SKETCH_BITS, Totals, direction};
use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;

use super::parse::{self, Headers};
use super::{maps, marks, region, roce, tcp};

/// Bytes of a VLAN tag, which the kernel keeps beside the packet and the wire carries in it.
const VLAN_TAG: u32 = 4;

/// Counts a packet; marks it last if that is wanted and TCP sends it again.
#[inline(always)]
pub(crate) fn count(skb: *mut __sk_buff, direction: u32, mark: bool) {
    // SAFETY: the helper has no conditions.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(totals) = maps::totals(direction, cpu) else { return };
    let headers = parse::headers(skb);
    let wire = on_the_wire(skb, direction, &headers);
    let retransmitted = tcp::sent_again(skb, direction, &headers);
    // SAFETY: the map gave the pointers, and only this CPU writes to them, one program at a time.
    unsafe {
        add(totals, skb, wire, &headers, retransmitted);
        match maps::bucket(direction, cpu, totals) {
            Some(bucket) => fill(bucket, skb, direction, wire, &headers, retransmitted),
            None => (*totals).no_ring += 1,
        }
        let marked = if direction == direction::RX {
            maps::marked() && marks::is_marked(skb, &headers)
        } else {
            mark && retransmitted != 0 && marks::set(skb, &headers)
        };
        if marked {
            (*totals).marked_bytes += u64::from(headers.payload);
            (*totals).marked_segments += u64::from(wire.segments);
        }
    }
}

/// # Safety
///
/// `totals` must be this CPU's own.
#[inline(always)]
unsafe fn add(totals: *mut Totals, skb: *mut __sk_buff, wire: Wire, headers: &Headers, retransmitted: u32) {
    // SAFETY: the caller answers for the totals, the kernel for the packet.
    unsafe {
        (*totals).skbs += 1;
        (*totals).skb_bytes += u64::from((*skb).len);
        (*totals).segments += u64::from(wire.segments);
        (*totals).wire_bytes += u64::from(wire.bytes);
        (*totals).unparsed += u64::from(headers.unparsed);
        if retransmitted != 0 {
            (*totals).retransmit_bytes += u64::from(retransmitted);
            (*totals).retransmit_segments += u64::from(wire.segments);
        }
        if headers.ce != 0 {
            (*totals).ce_packets += u64::from(wire.segments);
            (*totals).ce_bytes += u64::from(wire.bytes);
        }
    }
}

/// # Safety
///
/// `bucket` must be this CPU's own.
#[inline(always)]
unsafe fn fill(
    bucket: *mut Bucket,
    skb: *mut __sk_buff,
    direction: u32,
    wire: Wire,
    headers: &Headers,
    retransmitted: u32,
) {
    // SAFETY: the caller answers for the bucket.
    unsafe {
        (*bucket).bytes += wire.bytes;
        (*bucket).packets += wire.segments;
        (*bucket).ce_bytes += wire.bytes * headers.ce;
        (*bucket).retransmit_bytes += retransmitted;
        if region::is_far(skb, direction, headers) {
            (*bucket).cross_region_bytes += wire.bytes;
        }
        if maps::sketched() {
            let bit = headers.flow % SKETCH_BITS;
            let word = (&raw mut (*bucket).sketch).cast::<u64>().add((bit / u64::BITS) as usize);
            *word |= u64::from(headers.is_flow) << (bit % u64::BITS);
        }
        roce::count(skb, headers, bucket, wire.bytes);
    }
}

/// What the wire carries for a packet.
#[derive(Clone, Copy)]
struct Wire {
    segments: u32,
    bytes: u32,
}

/// Each segment has the headers that were parsed. A driver that joins packets itself may leave their number out. Of what
/// it sends the kernel tells the same by `wire_len`, which knows transports that are not parsed here, and does not know
/// the inner headers of tunnels everywhere (not in Linux 6.1): the larger one is right.
#[inline(always)]
fn on_the_wire(skb: *mut __sk_buff, direction: u32, headers: &Headers) -> Wire {
    // SAFETY: the kernel gives the context.
    let (length, size, mut segments) = unsafe { ((*skb).len, (*skb).gso_size, (*skb).gso_segs) };
    if size == 0 {
        segments = 1;
    } else if segments == 0 {
        let payload = length.saturating_sub(headers.length);
        segments = payload.div_ceil(size).max(1);
    }
    let mut bytes = length + (segments - 1) * headers.length;
    if direction == direction::TX {
        // SAFETY: as above.
        bytes = bytes.max(unsafe { (*skb).wire_len });
    }
    // SAFETY: as above.
    if unsafe { (*skb).vlan_present } != 0 {
        bytes += segments * VLAN_TAG;
    }
    if maps::link_header() == IPOIB_HEADER {
        bytes = bytes.saturating_sub(segments * IPOIB_PSEUDO_HEADER);
    }
    Wire { segments, bytes }
}
