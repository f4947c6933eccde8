//! The maps of a device as this process sees them: mapped for reading, no system call to read a bucket.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use agent_common::bucket::{Bucket, NO_SEQUENCE, Totals, direction, place};
use analysis::series::DurationNs;

use super::Slot;

/// Words of an entry: buckets and totals are of one size.
const WORDS: usize = size_of::<Bucket>() / size_of::<u64>();

const _: () = assert!(size_of::<Totals>() == size_of::<Bucket>());

/// The rings of a device: for each direction and CPU one.
#[derive(Debug)]
pub(crate) struct Rings {
    entries: Mapping,
    count: u32,
    slots: u32,
    interval: DurationNs,
}

impl Rings {
    /// Maps the rings. `count` and `slots` are those that the map was made for.
    ///
    /// # Errors
    ///
    /// If the kernel does not map it.
    pub(super) fn map(map: BorrowedFd<'_>, count: u32, slots: u32, interval: DurationNs) -> io::Result<Self> {
        let entries = Mapping::new(map, (direction::COUNT * count * slots) as usize)?;
        Ok(Self { entries, count, slots, interval })
    }

    /// How many CPUs have a ring: that of a CPU has its number.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Buckets of a ring.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// The length of a bucket.
    pub(crate) fn interval(&self) -> DurationNs {
        self.interval
    }

    /// The bucket of a number in the ring of a CPU.
    ///
    /// The answer is final for buckets that ended at least 10 ms ago; it says nothing of the current and the previous
    /// one, which are still being written.
    pub(crate) fn read(&self, direction: u32, ring: u32, sequence: u64) -> Slot {
        if direction >= direction::COUNT || ring >= self.count || sequence == NO_SEQUENCE {
            return Slot::Empty;
        }
        let Some(entry) = self.entries.entry(place(direction, ring, self.count, sequence, self.slots)) else {
            return Slot::Empty;
        };
        match read(entry, sequence) {
            // A slot that is being taken over has no number either. That one is for a bucket of now, so that the ring
            // has gone round since the one that is asked for.
            Slot::Empty if number(entry) == NO_SEQUENCE && self.now() >= sequence + u64::from(self.slots) => Slot::Lost,
            slot => slot,
        }
    }

    /// The number of the bucket that is being written.
    pub(crate) fn now(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        // The monotonic clock begins at 0.
        let ns = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        ns / self.interval.0.max(1)
    }
}

/// Reads an entry as the bucket `sequence`.
///
/// The writer takes a slot over by exchanging its number for [`NO_SEQUENCE`], clearing it, and exchanging that for the
/// new number; both exchanges are full barriers. So what is read between two sights of one number is of that number.
fn read(entry: &[AtomicU64; WORDS], sequence: u64) -> Slot {
    match number(entry) {
        found if found == sequence => {}
        found if found > sequence => return Slot::Lost,
        _ => return Slot::Empty,
    }
    let words = copy(entry);
    fence(Ordering::Acquire);
    if number(entry) == sequence { Slot::Read(bucket(words)) } else { Slot::Lost }
}

fn number(entry: &[AtomicU64; WORDS]) -> u64 {
    let [number, ..] = entry;
    number.load(Ordering::Acquire)
}

fn copy(entry: &[AtomicU64; WORDS]) -> [u64; WORDS] {
    entry.each_ref().map(|word| word.load(Ordering::Relaxed))
}

/// The fields of a bucket, whose layout is `#[repr(C)]` without padding: in this
/// machine's byte order.
fn bucket(words: [u64; WORDS]) -> Bucket {
    let [sequence, low, high, traffic, marks, far, roce, rest] = words;
    let [bytes, packets] = halves(traffic);
    let [ce_bytes, retransmit_bytes] = halves(marks);
    let [cross_region_bytes, roce_bytes] = halves(far);
    let [roce_cnps, roce_nak_sequence, roce_nak_rnr, roce_nak_other] = quarters(roce);
    let [roce_retries, roce_packets, napi_exhausted, reserved] = quarters(rest);
    Bucket {
        sequence,
        sketch: [low, high],
        bytes,
        packets,
        ce_bytes,
        retransmit_bytes,
        cross_region_bytes,
        roce_bytes,
        roce_cnps,
        roce_nak_sequence,
        roce_nak_rnr,
        roce_nak_other,
        roce_retries,
        roce_packets,
        napi_exhausted,
        reserved,
    }
}

/// The two halves of a word in the order in which they stand in memory.
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes)
}

/// The four quarters of a word in the order in which they stand in memory.
fn quarters(word: u64) -> [u16; 4] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [[a, b], [c, d], [e, f], [g, h]].map(u16::from_ne_bytes)
}

/// The totals of both directions, summed over CPUs.
#[derive(Debug)]
pub(super) struct TotalsMap {
    entries: Mapping,
    /// Entries of one direction: one for each CPU that can ever be there.
    cpus: u32,
}

impl TotalsMap {
    /// Maps the totals. `cpus` is the number that the map was made for.
    ///
    /// # Errors
    ///
    /// If the kernel does not map it.
    pub(super) fn map(map: BorrowedFd<'_>, cpus: u32) -> io::Result<Self> {
        Ok(Self { entries: Mapping::new(map, (direction::COUNT * cpus) as usize)?, cpus })
    }

    /// Received and sent. Each number is exact; they are not all of one instant while packets pass.
    pub(super) fn read(&self) -> [Totals; 2] {
        [direction::RX, direction::TX].map(|direction| {
            let entries = (0..self.cpus).filter_map(|cpu| self.entries.entry(direction * self.cpus + cpu));
            entries.map(copy).fold(Totals::default(), add)
        })
    }
}

fn add(sum: Totals, words: [u64; WORDS]) -> Totals {
    let [skbs, skb_bytes, segments, wire_bytes, unparsed, no_ring, rotations, retransmit_bytes] = words;
    Totals {
        skbs: sum.skbs + skbs,
        skb_bytes: sum.skb_bytes + skb_bytes,
        segments: sum.segments + segments,
        wire_bytes: sum.wire_bytes + wire_bytes,
        unparsed: sum.unparsed + unparsed,
        no_ring: sum.no_ring + no_ring,
        rotations: sum.rotations + rotations,
        retransmit_bytes: sum.retransmit_bytes + retransmit_bytes,
    }
}

/// An array map of 64-byte values, mapped for reading.
#[derive(Debug)]
struct Mapping {
    start: NonNull<[AtomicU64; WORDS]>,
    entries: usize,
    bytes: NonZeroUsize,
}

// SAFETY: the memory is only read, by atomic loads, and stays mapped until the value is dropped, by whichever thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(map: BorrowedFd<'_>, entries: usize) -> io::Result<Self> {
        let bytes = entries.checked_mul(size_of::<Bucket>()).and_then(NonZeroUsize::new);
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a new mapping wherever the kernel finds room; it touches no memory of ours.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes.get(), libc::PROT_READ, libc::MAP_SHARED, map.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
        Ok(Self { start, entries, bytes })
    }

    fn entry(&self, index: u32) -> Option<&[AtomicU64; WORDS]> {
        let index = usize::try_from(index).ok().filter(|index| *index < self.entries)?;
        // SAFETY: the mapping has this many entries of this size, begins at a page, and lives as long as `self`; the
        // kernel side writes it while it is read, which is what atomics are for.
        Some(unsafe { self.start.add(index).as_ref() })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped, once; no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    /// A file that stands for the kernel's map, and the rings that are mapped from it.
    struct Map {
        file: std::fs::File,
        rings: Rings,
    }

    const RINGS: u32 = 2;
    const SLOTS: u32 = 8;
    const SECOND: DurationNs = DurationNs(1_000_000_000);

    impl Map {
        fn new() -> Self {
            let file = tempfile::tempfile().unwrap();
            file.set_len(u64::from(direction::COUNT * RINGS * SLOTS) * 64).unwrap();
            let rings = Rings::map(file.as_fd(), RINGS, SLOTS, SECOND).unwrap();
            Self { file, rings }
        }

        fn write(&self, direction: u32, ring: u32, sequence: u64, words: [u64; WORDS]) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let at = u64::from(place(direction, ring, RINGS, sequence, SLOTS)) * 64;
            self.file.write_all_at(&bytes, at).unwrap();
        }
    }

    #[test]
    fn a_slot_is_read_as_the_bucket_it_is_of() {
        let map = Map::new();
        let now = map.rings.now();
        map.write(direction::TX, 1, now, [now, 1, 2, 7 << 32 | 100, 0, 0, 0, 0]);
        let expected = Bucket { sequence: now, sketch: [1, 2], bytes: 100, packets: 7, ..Bucket::default() };
        let rows = [
            (direction::TX, 1, now, Slot::Read(expected)),
            (direction::TX, 0, now, Slot::Empty),
            (direction::RX, 1, now, Slot::Empty),
            // The slot still holds an older bucket: nothing has passed since.
            (direction::TX, 1, now + u64::from(SLOTS), Slot::Empty),
            // It holds a newer one: this one is gone.
            (direction::TX, 1, now - u64::from(SLOTS), Slot::Lost),
            (direction::COUNT, 0, now, Slot::Empty),
            (direction::TX, RINGS, now, Slot::Empty),
            (direction::TX, 1, NO_SEQUENCE, Slot::Empty),
        ];
        for (direction, ring, sequence, slot) in rows {
            assert_eq!(map.rings.read(direction, ring, sequence), slot, "{direction} {ring} {sequence}");
        }
    }

    #[test]
    fn a_slot_without_a_number_is_new_or_being_taken_over() {
        let map = Map::new();
        let now = map.rings.now();
        assert_eq!(map.rings.read(direction::RX, 0, now - 1), Slot::Empty);
        // A whole ring ago: whoever takes the slot over now has thrown that bucket away.
        assert_eq!(map.rings.read(direction::RX, 0, now - u64::from(SLOTS)), Slot::Lost);
    }

    #[test]
    fn every_field_comes_from_its_own_place() {
        let numbers: Vec<u8> = (0..64).collect();
        let words: [u64; WORDS] =
            std::array::from_fn(|index| u64::from_ne_bytes(numbers[index * 8..index * 8 + 8].try_into().unwrap()));
        let word = |at: usize| u32::from_ne_bytes(numbers[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_ne_bytes(numbers[at..at + 2].try_into().unwrap());
        let found = bucket(words);
        assert_eq!(found.bytes, word(std::mem::offset_of!(Bucket, bytes)));
        assert_eq!(found.packets, word(std::mem::offset_of!(Bucket, packets)));
        assert_eq!(found.ce_bytes, word(std::mem::offset_of!(Bucket, ce_bytes)));
        assert_eq!(found.retransmit_bytes, word(std::mem::offset_of!(Bucket, retransmit_bytes)));
        assert_eq!(found.cross_region_bytes, word(std::mem::offset_of!(Bucket, cross_region_bytes)));
        assert_eq!(found.roce_bytes, word(std::mem::offset_of!(Bucket, roce_bytes)));
        assert_eq!(found.roce_cnps, half(std::mem::offset_of!(Bucket, roce_cnps)));
        assert_eq!(found.roce_nak_sequence, half(std::mem::offset_of!(Bucket, roce_nak_sequence)));
        assert_eq!(found.roce_nak_rnr, half(std::mem::offset_of!(Bucket, roce_nak_rnr)));
        assert_eq!(found.roce_nak_other, half(std::mem::offset_of!(Bucket, roce_nak_other)));
        assert_eq!(found.roce_retries, half(std::mem::offset_of!(Bucket, roce_retries)));
        assert_eq!(found.roce_packets, half(std::mem::offset_of!(Bucket, roce_packets)));
        assert_eq!(found.napi_exhausted, half(std::mem::offset_of!(Bucket, napi_exhausted)));
    }

    #[test]
    fn totals_are_summed_over_cpus() {
        let sum = [[1, 2, 3, 4, 5, 6, 7, 8], [10, 20, 30, 40, 50, 60, 70, 80]].into_iter().fold(Totals::default(), add);
        let expected = Totals {
            skbs: 11,
            skb_bytes: 22,
            segments: 33,
            wire_bytes: 44,
            unparsed: 55,
            no_ring: 66,
            rotations: 77,
            retransmit_bytes: 88,
        };
        assert_eq!(sum, expected);
    }
}
