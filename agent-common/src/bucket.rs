//! The burst sampler's time bucket, its place in a ring, and the totals beside it.
//!
//! A bucket belongs to one direction of one network device on one CPU, so that it has one writer. Its number counts
//! intervals of `CLOCK_MONOTONIC` since boot: bucket `n` covers `[n * interval, (n + 1) * interval)` nanoseconds, or what
//! its [tick](crate::tick) says. A ring holds [`SLOTS`] of them; bucket `n` lives in slot `n % slots`.

/// Which way a packet goes, seen from the host.
pub mod direction {
    /// Towards the host: tc ingress.
    pub const RX: u32 = 0;
    /// Away from the host: tc egress.
    pub const TX: u32 = 1;
    /// How many there are.
    pub const COUNT: u32 = 2;
}

/// What user space tells the programs when it loads them: names of the kernel side's constants.
pub mod constant {
    /// `u64`: nanoseconds of a bucket.
    pub const INTERVAL: &str = "INTERVAL";
    /// `u32`: 1 where a tick tells buckets apart instead of the clock.
    pub const TICKED: &str = "TICKED";
    /// `u32`: slots of a ring, a power of two.
    pub const SLOTS: &str = "SLOTS";
    /// `u32`: CPUs that have a ring.
    pub const RINGS: &str = "RING_COUNT";
    /// `u32`: CPUs that have totals: all that can ever be there.
    pub const CPUS: &str = "CPUS";
    /// `u32`: bytes of the header that the device's link layer puts before the network layer's: 14, 24 or none.
    pub const LINK_HEADER: &str = "LINK_HEADER";
    /// `u32`: 1 to look received segments up in their sockets.
    pub const SUSPECTED: &str = "SUSPECTED";
    /// `u32`: 1 to tell peers by the prefixes of the region.
    pub const REGIONAL: &str = "REGIONAL";
    /// `u32`: 0 to leave the sketch of flows out, which only measuring its cost asks for.
    pub const SKETCHED: &str = "SKETCHED";
    /// `u32`: bytes from a `struct tcp_sock` to its queue of segments that came out of order, from the running kernel's
    /// BTF; `u32::MAX` if unknown.
    pub const OUT_OF_ORDER: &str = "OUT_OF_ORDER";
    /// `u32`: 1 to look for the mark ([`RETRANSMIT_MARK`](super::RETRANSMIT_MARK)) in received segments.
    pub const MARKED: &str = "MARKED";
    /// `u32`: the device's index.
    pub const IFINDEX: &str = "IFINDEX";
    /// `u32`: the inode number of its network namespace, by which it is told from one of the same index elsewhere.
    pub const NETNS: &str = "NETNS";
    /// `u32`: bytes from a `struct napi_struct` to its device, from the running kernel's BTF.
    pub const NAPI_DEVICE: &str = "NAPI_DEVICE";
    /// `u32`: bytes from a `struct net_device` to its index.
    pub const DEVICE_INDEX: &str = "DEVICE_INDEX";
    /// `u32`: bytes from a `struct net_device` to its network namespace.
    pub const DEVICE_NETNS: &str = "DEVICE_NETNS";
    /// `u32`: bytes from a `struct net` to its inode number.
    pub const NETNS_NUMBER: &str = "NETNS_NUMBER";
}

/// Bytes of the header of an Ethernet device.
pub const ETHERNET_HEADER: u32 = 14;

/// Bytes of what an IPoIB device has before the network header: 20 of a hardware address that only the kernel sees, and
/// the 4 of the header on the wire.
pub const IPOIB_HEADER: u32 = 24;

/// Of [`IPOIB_HEADER`], those that are not on the wire.
pub const IPOIB_PSEUDO_HEADER: u32 = 20;

/// RoCEv2 queue pairs of a device whose requests are followed. More of them make the oldest forgotten, whose requests
/// that are sent again are then missed.
pub const QUEUE_PAIRS: u32 = 4096;

/// Slots of a ring, unless many devices are sampled. A power of two.
pub const SLOTS: u32 = 512;

/// Slots of a ring where many devices are sampled. A power of two.
pub const SLOTS_MANY: u32 = 256;

/// The mark of a TCP segment that is sent again, in the byte of the TCP header that holds its length: the first of the
/// three reserved bits, which receivers must ignore (RFC 9293, section 3.1). The last one's neighbour, once NS, is in use
/// by now (RFC 9768), so this is the one that will be given a meaning last.
pub const RETRANSMIT_MARK: u8 = 0x08;

/// The number of a bucket that is being cleared, or was never written: no bucket of a running clock.
pub const NO_SEQUENCE: u64 = 0;

/// Bits of the sketch of active flows.
pub const SKETCH_BITS: u32 = 128;

/// One bucket. All counters begin at 0 with each number; the 16-bit ones stop at their largest value.
///
/// One cache line, and full: 8 bytes of number, 16 of sketch, 24 of six counters of 32 bits, 14 of seven of 16 bits, and
/// 2 that no counter of bytes fits in. Payload bytes that carry [`RETRANSMIT_MARK`] are therefore in [`Totals`] alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Bucket {
    /// The bucket's number, or [`NO_SEQUENCE`]. Written last when a slot is taken over.
    pub sequence: u64,
    /// Linear-counting sketch of the flows seen: one bit a hash value. Merged across CPUs by OR.
    pub sketch: [u64; 2],
    /// Bytes on the wire, without preamble and frame check sequence.
    pub bytes: u32,
    /// Packets on the wire: segments of what the kernel handles as one.
    pub packets: u32,
    /// Of the bytes, those with ECN `CE` in the outer IP header.
    pub ce_bytes: u32,
    /// Payload bytes: sent again (tx), or suspected of it (rx).
    pub retransmit_bytes: u32,
    /// Of the bytes, those whose peer is outside the configured prefixes.
    pub cross_region_bytes: u32,
    /// Of the bytes, those of RoCEv2.
    pub roce_bytes: u32,
    /// RoCEv2 congestion notification packets.
    pub roce_cnps: u16,
    /// RoCEv2 negative acknowledgements: packet sequence error.
    pub roce_nak_sequence: u16,
    /// RoCEv2 negative acknowledgements: receiver not ready.
    pub roce_nak_rnr: u16,
    /// RoCEv2 negative acknowledgements: any other kind (invalid request, remote access, remote operation, invalid RD).
    pub roce_nak_other: u16,
    /// RoCEv2 request packets whose sequence number the queue pair had passed already.
    pub roce_retries: u16,
    /// RoCEv2 packets.
    pub roce_packets: u16,
    /// Polls of the device that used up their budget on this CPU: more packets wait. Of rx alone.
    pub napi_exhausted: u16,
    /// Not used.
    pub reserved: u16,
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// What one CPU has counted of one direction since the programs were loaded. Exact, whatever becomes of buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Totals {
    /// Packets as the kernel handles them.
    pub skbs: u64,
    /// Their bytes (`skb->len`).
    pub skb_bytes: u64,
    /// Packets on the wire.
    pub segments: u64,
    /// Bytes on the wire, by the rules of [`Bucket::bytes`].
    pub wire_bytes: u64,
    /// Of the packets, those whose headers could not be read: counted, without flow, ECN and the rest.
    pub unparsed: u64,
    /// Packets on a CPU that has no ring: it came online after the start.
    pub no_ring: u64,
    /// Buckets taken over: how often this CPU's ring moved on.
    pub rotations: u64,
    /// Payload bytes counted as sent again.
    pub retransmit_bytes: u64,
    /// TCP segments counted as sent again, those without payload (SYN, FIN) not among them.
    pub retransmit_segments: u64,
    /// Packets on the wire with ECN `CE` in the outer IP header.
    pub ce_packets: u64,
    /// Their bytes, by the rules of [`Bucket::ce_bytes`].
    pub ce_bytes: u64,
    /// Payload bytes of segments that carry [`RETRANSMIT_MARK`]: those that were given it (tx), or came with it (rx,
    /// where it is looked for).
    pub marked_bytes: u64,
    /// Such segments.
    pub marked_segments: u64,
    /// Not used: CPUs share no cache line.
    pub reserved: [u64; 3],
}

const _: () = assert!(size_of::<Totals>() == 128);

/// The entry of a bucket in the array of all rings.
///
/// `slots` must be a power of two; `rings` is the number of CPUs that have one. Directions come first, then CPUs.
#[must_use]
#[inline(always)]
pub const fn place(direction: u32, ring: u32, rings: u32, sequence: u64, slots: u32) -> u32 {
    (direction * rings + ring) * slots + (sequence as u32 & (slots - 1))
}

/// Bytes that the rings of one device take in the kernel.
#[must_use]
pub const fn ring_bytes(rings: u32, slots: u32) -> u64 {
    direction::COUNT as u64 * rings as u64 * slots as u64 * size_of::<Bucket>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_of_every_ring_has_a_place_of_its_own() {
        let (rings, slots) = (3, 8);
        let mut seen = [0u8; 48];
        for direction in 0..direction::COUNT {
            for ring in 0..rings {
                // The ring goes round: eight numbers in a row, wherever they begin.
                for sequence in 0xffff_fffd_u64..0x1_0000_0005 {
                    seen[place(direction, ring, rings, sequence, slots) as usize] += 1;
                }
            }
        }
        assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
    }

    #[test]
    fn memory_is_what_is_stated() {
        // 256 CPUs: 16 MiB a device, 64 MiB for eight devices with the shorter ring.
        assert_eq!(ring_bytes(256, SLOTS), 16 << 20);
        assert_eq!(8 * ring_bytes(256, SLOTS_MANY), 64 << 20);
        assert_eq!(ring_bytes(2, SLOTS), 128 << 10);
    }
}
