//! The drain on rings whose buckets a tick tells apart: one that is late, that misses buckets, that stands still.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use agent_common::bucket::SLOTS;
use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
/// A host that has been up for a while.
const BEGIN: u64 = 1_000_000;

/// One ring in memory, written as the kernel side writes it: packets count into the bucket of the last tick.
struct Rings {
    now: Cell<u64>,
    current: Cell<u64>,
    ticks: RefCell<HashMap<u64, (u64, u64)>>,
    slots: RefCell<HashMap<u64, Bucket>>,
}

impl Rings {
    /// The first tick comes at once.
    fn new() -> Self {
        let rings = Self {
            now: Cell::new(BEGIN * MS),
            current: Cell::new(0),
            ticks: RefCell::default(),
            slots: RefCell::default(),
        };
        rings.beat();
        rings
    }

    fn beat(&self) {
        let sequence = self.now.get() / MS;
        self.current.set(sequence);
        self.ticks.borrow_mut().insert(sequence % u64::from(SLOTS), (sequence, self.now.get()));
    }

    fn pass(&self, ns: u64) {
        self.now.set(self.now.get() + ns);
    }

    /// So many milliseconds with a tick at the end of each.
    fn run(&self, milliseconds: u64) {
        for _ in 0..milliseconds {
            self.now.set((self.now.get() / MS + 1) * MS);
            self.beat();
        }
    }

    fn packet(&self, bytes: u32) {
        let sequence = self.current.get();
        let mut slots = self.slots.borrow_mut();
        let bucket = slots.entry(sequence % u64::from(SLOTS)).or_default();
        if bucket.sequence != sequence {
            *bucket = Bucket { sequence, ..Bucket::default() };
        }
        bucket.bytes += bytes;
    }

    fn drain(&self) -> Drain {
        Drain::new(DurationNs(MS), self.now.get())
    }

    fn read(&self, drain: &mut Drain) -> Piece {
        drain.read(self, || self.now.get())
    }
}

impl Buckets for Rings {
    fn count(&self) -> u32 {
        1
    }

    fn slots(&self) -> u32 {
        SLOTS
    }

    fn interval(&self) -> DurationNs {
        DurationNs(MS)
    }

    fn read(&self, way: u32, _ring: u32, sequence: u64) -> Slot {
        match self.slots.borrow().get(&(sequence % u64::from(SLOTS))) {
            Some(bucket) if way == direction::RX && bucket.sequence == sequence => Slot::Read(*bucket),
            Some(bucket) if way == direction::RX && bucket.sequence > sequence => Slot::Lost,
            _ => Slot::Empty,
        }
    }

    fn ticking(&self) -> Option<Ticking> {
        Some(Ticking { current: self.current.get(), ..Ticking::default() })
    }

    fn tick(&self, sequence: u64) -> Option<u64> {
        let found = self.ticks.borrow().get(&(sequence % u64::from(SLOTS))).copied();
        found.filter(|(number, _)| *number == sequence).map(|(_, start_ns)| start_ns)
    }
}

/// Number, start and length of each sample, times in microseconds since the beginning.
fn samples(piece: &Piece) -> Vec<(u64, u64, u64)> {
    let since = |ns: u64| (ns - BEGIN * MS) / 1_000;
    let one = |sample: &Folded| {
        let length = piece.placed.length(sample.sequence, DurationNs(MS));
        let start = piece.placed.start_ns(sample.sequence, DurationNs(MS));
        (sample.sequence - BEGIN, since(start), length.0 / 1_000)
    };
    piece.samples.iter().map(one).collect()
}

#[test]
fn a_bucket_lasts_from_its_tick_to_the_next_one() {
    let rings = Rings::new();
    let mut drain = rings.drain();
    rings.run(1);
    rings.packet(1);
    // The second comes late by 0.4 ms, those after it not at all until the sixth is due and over for 0.1 ms.
    rings.pass(MS + 400_000);
    rings.beat();
    rings.packet(2);
    rings.pass(3 * MS + 700_000);
    rings.beat();
    rings.packet(4);
    rings.run(12);
    let piece = rings.read(&mut drain);
    assert_eq!(samples(&piece), [(1, 1_000, 1_400), (2, 2_400, 3_700), (6, 6_100, 900)]);
    assert_eq!((piece.lost_count(), piece.range.clone()), (0, BEGIN + 1..BEGIN + 8));
    let regularity = piece.placed.regularity(piece.range.start, piece.range.end).unwrap();
    assert_eq!((regularity.missed, regularity.longest), (3, DurationNs(3_700_000)));
}

#[test]
fn a_bucket_is_read_when_the_next_tick_is_old_enough_and_not_before() {
    let rings = Rings::new();
    let mut drain = rings.drain();
    rings.run(1);
    rings.packet(1);
    // No tick comes, however long it takes: the bucket goes on.
    rings.pass(60 * MS);
    assert!(rings.read(&mut drain).range.is_empty());
    rings.packet(2);
    rings.beat();
    rings.pass(10 * MS - 1);
    assert!(rings.read(&mut drain).range.is_empty());
    rings.pass(1);
    let piece = rings.read(&mut drain);
    assert_eq!(samples(&piece), [(1, 1_000, 60_000)]);
    assert_eq!(piece.samples[0].rx.bytes, 3);
}

#[test]
fn a_bucket_that_may_have_run_over_is_lost_if_anything_passed() {
    for (bytes, lost) in [(7, 1), (0, 0)] {
        let rings = Rings::new();
        let mut drain = rings.drain();
        rings.run(1);
        if bytes > 0 {
            rings.packet(bytes);
        }
        rings.pass(90 * MS);
        rings.beat();
        rings.run(11);
        let piece = rings.read(&mut drain);
        assert_eq!((piece.lost_count(), piece.samples.len()), (lost, 0));
    }
}

#[test]
fn a_ring_that_went_round_is_lost_and_nothing_old_is_taken_for_new() {
    let rings = Rings::new();
    let mut drain = rings.drain();
    rings.run(1);
    rings.packet(1);
    rings.run(2_000);
    rings.packet(2);
    rings.run(20);
    let piece = rings.read(&mut drain);
    assert_eq!(samples(&piece), [(2_001, 2_001_000, 1_000)]);
    assert!(piece.lost_count() > 1_400 && piece.lost_count() < 1_600, "{}", piece.lost_count());
}

proptest! {
    /// Whatever the ticks do: each byte is read once or lost, and samples follow each other without overlap, a piece
    /// where the one before ended.
    #[test]
    fn nothing_is_read_twice(steps in prop::collection::vec((1_u64..3 * MS, any::<bool>(), any::<bool>()), 1..400)) {
        let rings = Rings::new();
        let mut drain = rings.drain();
        rings.run(2);
        let (mut sent, mut all) = (0_u64, Piece::default());
        let everything = 0..u64::MAX;
        for (pass, beats, reads) in steps {
            rings.pass(pass);
            if beats && rings.now.get() / MS > rings.current.get() {
                rings.beat();
            }
            rings.packet(1);
            sent += 1;
            if reads {
                all.extend(rings.read(&mut drain), &everything);
            }
        }
        rings.run(20);
        all.extend(rings.read(&mut drain), &everything);
        let seen: u64 = all.samples.iter().map(|sample| sample.rx.bytes).sum();
        prop_assert!(if all.lost.is_empty() { seen == sent } else { seen < sent }, "{seen} of {sent}: {:?}", all.lost);
        let spans = samples(&all);
        prop_assert!(spans.is_sorted());
        for pair in all.samples.windows(2) {
            let [one, next] = [pair[0].sequence, pair[1].sequence];
            let end = all.placed.start_ns(one, DurationNs(MS)) + all.placed.length(one, DurationNs(MS)).0;
            prop_assert!(end <= all.placed.start_ns(next, DurationNs(MS)));
        }
    }
}
