//! The drain on rings that are written as the kernel side writes them, with a clock that the test moves.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use agent_common::bucket::{NO_SEQUENCE, SLOTS, place};

use super::*;

const MS: u64 = 1_000_000;

/// Rings in memory: slots are taken over when they are written, as in the kernel.
struct Rings {
    count: u32,
    interval: DurationNs,
    slots: RefCell<HashMap<u32, Bucket>>,
    /// Slots that are being cleared or change while they are read.
    torn: RefCell<Vec<u32>>,
    now: Cell<u64>,
    /// How far the clock goes with each read.
    step: Cell<u64>,
}

impl Rings {
    fn new(count: u32, interval_ns: u64) -> Self {
        // A host that has been up for a while.
        let now = Cell::new(1_000_000 * MS);
        let (slots, torn) = (RefCell::default(), RefCell::default());
        Self { count, interval: DurationNs(interval_ns), slots, torn, now, step: Cell::new(0) }
    }

    fn at(&self, way: u32, ring: u32, sequence: u64) -> u32 {
        place(way, ring, self.count, sequence, SLOTS)
    }

    /// A packet at this time.
    fn packet(&self, way: u32, ring: u32, bytes: u32) {
        let sequence = self.now.get() / self.interval.0;
        let mut slots = self.slots.borrow_mut();
        let bucket = slots.entry(self.at(way, ring, sequence)).or_default();
        if bucket.sequence != sequence {
            *bucket = Bucket { sequence, ..Bucket::default() };
        }
        bucket.bytes += bytes;
        bucket.packets += 1;
        bucket.sketch[(ring % 2) as usize] |= 1 << (ring / 2 % 64);
    }

    fn pass(&self, ns: u64) {
        self.now.set(self.now.get() + ns);
    }

    fn read(&self, drain: &mut Drain) -> Piece {
        drain.read(self, || self.now.get())
    }

    fn drain(&self) -> Drain {
        Drain::new(self.interval, self.now.get())
    }
}

impl Buckets for Rings {
    fn count(&self) -> u32 {
        self.count
    }

    fn slots(&self) -> u32 {
        SLOTS
    }

    fn interval(&self) -> DurationNs {
        self.interval
    }

    fn read(&self, way: u32, ring: u32, sequence: u64) -> Slot {
        self.pass(self.step.get());
        let at = self.at(way, ring, sequence);
        if self.torn.borrow().contains(&at) {
            return Slot::Lost;
        }
        match self.slots.borrow().get(&at) {
            Some(bucket) if bucket.sequence == sequence => Slot::Read(*bucket),
            Some(bucket) if bucket.sequence != NO_SEQUENCE && bucket.sequence > sequence => Slot::Lost,
            _ => Slot::Empty,
        }
    }
}

fn bytes(piece: &Piece) -> u64 {
    piece.samples.iter().map(|sample| sample.rx.bytes + sample.tx.bytes).sum()
}

#[test]
fn only_buckets_that_are_over_for_long_enough_are_read() {
    let rows = [
        // interval, now, the first that may not be read yet
        (MS, 1_000 * MS, 990),
        (MS, 1_000 * MS + MS - 1, 990),
        (MS, 5 * MS, 0),
        (100_000, 1_000 * MS, 9_900),
        (10 * MS, 1_000 * MS, 99),
        // The guard has passed for 99, which is the one before the current one.
        (10 * MS, 1_009 * MS, 99),
        (10 * MS, 1_010 * MS, 100),
    ];
    for (interval, now, expected) in rows {
        assert_eq!(readable(DurationNs(interval), now), expected, "{interval} {now}");
    }
}

#[test]
fn what_is_not_over_comes_later_and_once() {
    let rings = Rings::new(1, MS);
    let mut drain = rings.drain();
    rings.pass(2 * MS);
    rings.packet(direction::RX, 0, 100);
    rings.pass(9 * MS);
    assert_eq!(bytes(&rings.read(&mut drain)), 0, "it is over for less than the guard");
    rings.pass(3 * MS);
    let piece = rings.read(&mut drain);
    assert_eq!((bytes(&piece), piece.samples.len(), piece.lost_count()), (100, 1, 0));
    rings.pass(100 * MS);
    let piece = rings.read(&mut drain);
    assert_eq!((bytes(&piece), piece.covered().len()), (0, 1), "empty is measured, and nothing comes twice");
}

#[test]
fn the_bucket_in_which_the_programs_were_attached_is_left_out() {
    let rings = Rings::new(1, MS);
    let mut drain = rings.drain();
    rings.packet(direction::RX, 0, 100);
    rings.pass(50 * MS);
    let piece = rings.read(&mut drain);
    assert_eq!((bytes(&piece), piece.range.start), (0, 1_000_001));
}

#[test]
fn all_processors_are_folded_into_one() {
    let rings = Rings::new(256, MS);
    let mut drain = rings.drain();
    rings.pass(MS);
    for ring in 0..256 {
        rings.packet(direction::TX, ring, u32::MAX);
    }
    rings.packet(direction::RX, 3, 7);
    rings.pass(20 * MS);
    let piece = rings.read(&mut drain);
    let [sample] = piece.samples.as_slice() else { panic!("{piece:?}") };
    assert_eq!((sample.tx.bytes, sample.tx.packets), (256 * u64::from(u32::MAX), 256));
    assert_eq!(sample.tx.flows, Sketch(u128::MAX), "sketches are merged by OR");
    assert_eq!((sample.rx.bytes, sample.rx.flows), (7, Sketch(1 << 65)));
}

#[test]
fn a_ring_that_goes_round_between_looks_in_time_loses_nothing() {
    for interval in [100_000, MS, 10 * MS] {
        let rings = Rings::new(2, interval);
        let mut drain = rings.drain();
        let (mut sent, mut seen, mut covered) = (0, 0, 0);
        for round in 0..5_000u32 {
            rings.pass(interval);
            rings.packet(round % 2, round / 2 % 2, round);
            sent += u64::from(round);
            if round % 128 == 0 {
                let piece = rings.read(&mut drain);
                assert_eq!(piece.lost_count(), 0);
                seen += bytes(&piece);
                covered += piece.range.end - piece.range.start;
            }
        }
        rings.pass(20 * MS.max(interval));
        let piece = rings.read(&mut drain);
        assert_eq!(seen + bytes(&piece), sent, "{interval}");
        covered += piece.range.end - piece.range.start;
        assert_eq!(1_000_000 * MS / interval + 1 + covered, drain.next, "every bucket is looked at once");
    }
}

/// What SIGSTOP does: nobody reads for longer than the ring lasts.
#[test]
fn a_long_pause_is_lost_and_counted_and_nothing_old_is_taken_for_new() {
    // Pauses in milliseconds; the ring lasts 512.
    for (pause, lost) in [(400, 0), (497, 0), (498, 1), (600, 103), (5_000, 4_503), (3_600_000, 3_599_503)] {
        let rings = Rings::new(2, MS);
        let mut drain = rings.drain();
        rings.pass(20 * MS);
        rings.packet(direction::RX, 1, 1);
        rings.read(&mut drain);
        let begin = rings.now.get() / MS;
        rings.pass(pause * MS - 300 * MS);
        rings.packet(direction::RX, 0, 1_000);
        rings.pass(300 * MS);
        let piece = rings.read(&mut drain);
        let from = drain.next - (piece.range.end - piece.range.start);
        // Of the pause's buckets those are lost that the ring no longer holds, the margin among them.
        assert_eq!(piece.lost_count(), lost, "{pause}");
        assert!(piece.range.start == from && from <= begin);
        let expected = 1_000 + u64::from(lost < 11);
        assert_eq!(bytes(&piece), expected, "{pause}: what is still there is read, what was read is not read again");
        let covered: u64 = piece.covered().iter().map(|run| run.end - run.start).sum();
        assert_eq!(covered + piece.lost_count(), piece.range.end - piece.range.start);
        // It goes on as if nothing had been.
        rings.pass(100 * MS);
        assert_eq!((rings.read(&mut drain).lost_count(), drain.next), (0, rings.now.get() / MS - 10));
    }
}

#[test]
fn a_torn_bucket_is_lost_for_all_processors() {
    let rings = Rings::new(2, MS);
    let mut drain = rings.drain();
    for _ in 0..5 {
        rings.pass(MS);
        rings.packet(direction::RX, 0, 10);
    }
    rings.torn.borrow_mut().push(rings.at(direction::TX, 1, 1_000_003));
    rings.pass(20 * MS);
    let piece = rings.read(&mut drain);
    assert_eq!(piece.lost.first(), Some(&(1_000_003..1_000_004)));
    assert_eq!(piece.lost_count(), 1);
    assert_eq!(
        piece.samples.iter().map(|sample| sample.sequence).collect::<Vec<_>>(),
        [1_000_001, 1_000_002, 1_000_004, 1_000_005]
    );
    assert_eq!(piece.covered(), [1_000_001..1_000_003, 1_000_004..piece.range.end]);
}

/// The reader is stopped in the middle of reading: an empty slot may have become empty only now.
#[test]
fn what_writers_may_have_taken_over_while_it_was_read_is_lost() {
    let rings = Rings::new(1, MS);
    let mut drain = rings.drain();
    rings.pass(MS);
    rings.packet(direction::RX, 0, 10);
    rings.pass(100 * MS);
    rings.step.set(100 * MS);
    let piece = rings.read(&mut drain);
    assert_eq!((bytes(&piece), piece.lost_count()), (0, piece.range.end - piece.range.start));
    assert!(piece.covered().is_empty());
}

#[test]
fn a_clock_that_stands_still_or_begins_yields_nothing() {
    let rings = Rings::new(1, MS);
    rings.now.set(0);
    let mut drain = rings.drain();
    let piece = rings.read(&mut drain);
    assert!(piece.range.is_empty() && piece.covered().is_empty() && piece.samples.is_empty());
    rings.pass(13 * MS);
    assert_eq!(rings.read(&mut drain).range, 1..3);
    assert!(rings.read(&mut drain).range.is_empty());
}
