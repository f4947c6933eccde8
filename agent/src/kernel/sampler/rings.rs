//! The rings of a device: mapped for reading, no system call to read a bucket.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use agent_common::bucket::{Bucket, NO_SEQUENCE, direction, place};
use agent_common::tick::Ticking;
use analysis::series::DurationNs;

use super::Slot;
use super::mapping::{Mapping, copy};
use super::tick::Ticks;

/// Words of a bucket.
const WORDS: usize = size_of::<Bucket>() / size_of::<u64>();

/// The rings of a device: for each direction and CPU one.
#[derive(Debug)]
pub(crate) struct Rings {
    entries: Mapping<WORDS>,
    count: u32,
    slots: u32,
    interval: DurationNs,
    /// `None` where the clock tells buckets apart.
    ticks: Option<Ticks>,
}

impl Rings {
    /// Maps the rings. `count` and `slots` are those that the map was made for.
    ///
    /// # Errors
    ///
    /// If the kernel does not map it.
    pub(super) fn map(map: BorrowedFd<'_>, count: u32, slots: u32, interval: DurationNs) -> io::Result<Self> {
        let entries = Mapping::new(map, (direction::COUNT * count * slots) as usize)?;
        Ok(Self { entries, count, slots, interval, ticks: None })
    }

    /// With the tick that tells buckets apart.
    pub(super) fn with_ticks(self, ticks: Ticks) -> Self {
        Self { ticks: Some(ticks), ..self }
    }

    /// Whether buckets still begin: by the clock they always do.
    pub(super) fn go_on(&self) -> bool {
        self.ticks.as_ref().is_none_or(Ticks::goes_on)
    }

    /// What the tick says of itself; `None` where the clock tells buckets apart.
    pub(crate) fn ticking(&self) -> Option<Ticking> {
        self.ticks.as_ref().map(Ticks::state)
    }

    /// When a bucket began by its tick (`CLOCK_MONOTONIC` in nanoseconds); `None` if it had none, or that is forgotten.
    pub(crate) fn tick(&self, sequence: u64) -> Option<u64> {
        self.ticks.as_ref()?.start_ns(sequence)
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
}
