//! RoCEv2 that passes the kernel: congestion notifications, refusals, requests sent again.
//!
//! Layouts are those of the InfiniBand Architecture Specification, volume 1: the base transport header (BTH) of twelve
//! bytes follows the UDP header; an acknowledgement has four more (AETH).

use agent_common::bucket::Bucket;
use aya_ebpf::bindings::__sk_buff;

use super::load::words;
use super::maps;
use super::parse::Headers;

/// A congestion notification packet.
const CNP: u8 = 0x81;
/// The lower bits of an acknowledgement's opcode.
const ACKNOWLEDGE: u8 = 0x11;
/// The upper bits of an opcode: reliable connection, and the extended one. Others send nothing again.
const RELIABLE: u8 = 0;
const EXTENDED_RELIABLE: u8 = 5;
/// How far back a request can be sent again, in packets. What lies farther back is of a new connection, whose queue
/// pair has the number of an older one.
const WINDOW: u32 = 1 << 16;
const SEQUENCE_MASK: u32 = 0x00ff_ffff;

/// Counts a RoCEv2 packet of so many bytes on the wire; any other is passed over.
///
/// # Safety
///
/// `bucket` must be this CPU's own.
#[inline(always)]
pub(crate) unsafe fn count(skb: *mut __sk_buff, headers: &Headers, bucket: *mut Bucket, bytes: u32) {
    if headers.roce == 0 {
        return;
    }
    // SAFETY: the caller answers for the bucket.
    unsafe {
        (*bucket).roce_bytes += bytes;
        add(&raw mut (*bucket).roce_packets);
    }
    let Some([first, pair, last]) = words(skb, headers.roce) else { return };
    let [opcode, ..] = u32::to_ne_bytes(first);
    let (transport, operation) = (opcode >> 5, opcode & 0x1f);
    // SAFETY: as above.
    unsafe {
        if opcode == CNP {
            add(&raw mut (*bucket).roce_cnps);
        } else if transport != RELIABLE && transport != EXTENDED_RELIABLE {
            // Of the others nothing can be told.
        } else if operation == ACKNOWLEDGE {
            refusal(skb, headers, bucket);
        } else if is_request(operation) {
            let queue_pair = u32::from_be(pair) & SEQUENCE_MASK;
            if is_again(headers.flow, queue_pair, u32::from_be(last) & SEQUENCE_MASK) {
                add(&raw mut (*bucket).roce_retries);
            }
        }
    }
}

/// Counts an acknowledgement that is none.
///
/// # Safety
///
/// `bucket` must be this CPU's own.
#[inline(always)]
unsafe fn refusal(skb: *mut __sk_buff, headers: &Headers, bucket: *mut Bucket) {
    let Some([extension]) = words(skb, headers.roce + 12) else { return };
    let [syndrome, ..] = u32::to_ne_bytes(extension);
    // SAFETY: the caller answers for the bucket.
    unsafe {
        match (syndrome >> 5 & 3, syndrome & 0x1f) {
            (1, _) => add(&raw mut (*bucket).roce_nak_rnr),
            (3, 0) => add(&raw mut (*bucket).roce_nak_sequence),
            (3, _) => add(&raw mut (*bucket).roce_nak_other),
            _ => {}
        }
    }
}

/// Sends, writes, the request of a read, atomics; not what answers them.
#[inline(always)]
fn is_request(operation: u8) -> bool {
    operation <= 0x0c || operation == 0x13 || operation == 0x14 || operation >= 0x16
}

/// Whether the queue pair was past this packet's number already. A read that is asked for again from its middle has a
/// number of its own: it is not seen.
#[inline(always)]
fn is_again(flow: u32, queue_pair: u32, sequence: u32) -> bool {
    let Some(highest) = maps::highest(flow, queue_pair) else {
        maps::remember(flow, queue_pair, sequence);
        return false;
    };
    // SAFETY: the map gave the pointer. Two CPUs that write at once lose one of two neighbouring numbers.
    unsafe {
        let behind = (*highest).wrapping_sub(sequence) & SEQUENCE_MASK;
        if behind < WINDOW {
            return true;
        }
        *highest = sequence;
        false
    }
}

/// # Safety
///
/// `counter` must be this CPU's own.
#[inline(always)]
unsafe fn add(counter: *mut u16) {
    // SAFETY: the caller answers for it.
    unsafe { *counter = (*counter).saturating_add(1) };
}
