//! From rings of buckets to samples: which buckets may be read now, CPUs folded into one, and what was lost on the way.

use std::ops::Range;

use agent_common::bucket::{Bucket, direction};
use agent_common::tick::{Tick, Ticking};
use analysis::series::{DurationNs, Roce, Sketch, Traffic};

use super::placed::Placed;
use crate::kernel::sampler::Slot;

/// How long a bucket must be over before it is read: whoever counted into it last may have been held up in between.
const GUARD_NS: u64 = 10_000_000;

/// Slots at the far end of a ring that are left alone: the writers take them over while they would be read.
const MARGIN: u64 = 4;

/// How long a bucket may be before its counters of 32 bits may have run over: at 400 Gbit/s, after 86 ms.
const LONGEST: DurationNs = DurationNs(80_000_000);

/// Rings of buckets: one for each direction and CPU, all of the same length.
pub(crate) trait Buckets {
    /// Rings of one direction: CPUs that have one.
    fn count(&self) -> u32;

    /// Buckets of a ring.
    fn slots(&self) -> u32;

    /// How long a bucket lasts.
    fn interval(&self) -> DurationNs;

    /// What stands in the slot of bucket `sequence` ([`direction`], ring from 0).
    fn read(&self, direction: u32, ring: u32, sequence: u64) -> Slot;

    /// What the tick says of itself, where one tells buckets apart.
    fn ticking(&self) -> Option<Ticking> {
        None
    }

    /// When bucket `sequence` began by its tick; `None` if it had none, or that is forgotten.
    fn tick(&self, _sequence: u64) -> Option<u64> {
        None
    }
}

/// What passed in one bucket, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Folded {
    /// The bucket's number.
    pub(crate) sequence: u64,
    /// Towards the host.
    pub(crate) rx: Traffic,
    /// Away from the host.
    pub(crate) tx: Traffic,
}

/// What one look at the rings came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    /// Buckets that were looked at, or lost: all from the last look's end on.
    pub(crate) range: Range<u64>,
    /// Buckets in which something passed, by rising number.
    pub(crate) samples: Vec<Folded>,
    /// Buckets of which at least one CPU's part was overwritten: runs by rising number.
    pub(crate) lost: Vec<Range<u64>>,
    /// When they began.
    pub(crate) placed: Placed,
}

impl Piece {
    /// How many buckets are lost.
    pub(crate) fn lost_count(&self) -> u64 {
        self.lost.iter().map(|run| run.end - run.start).sum()
    }

    /// Buckets that were read in full: runs by rising number.
    pub(crate) fn covered(&self) -> Vec<Range<u64>> {
        let mut covered = Vec::new();
        let mut start = self.range.start;
        for run in self.lost.iter().chain([&(self.range.end..self.range.end)]) {
            if run.start > start {
                covered.push(start..run.start);
            }
            start = run.end;
        }
        covered
    }

    /// Adds the piece that follows, as far as it lies within a range.
    pub(crate) fn extend(&mut self, more: Piece, within: &Range<u64>) {
        let clip = |run: &Range<u64>| run.start.max(within.start)..run.end.min(within.end);
        let range = clip(&more.range);
        if range.is_empty() {
            return;
        }
        if self.range.is_empty() {
            self.range = range;
        } else {
            self.range.end = range.end;
        }
        self.samples.extend(more.samples.into_iter().filter(|sample| within.contains(&sample.sequence)));
        more.lost.iter().for_each(|run| self.lose(clip(run)));
        self.placed.extend(more.placed);
    }

    /// Takes all of it for lost.
    pub(crate) fn lose_all(&mut self) {
        self.samples.clear();
        self.lost.clear();
        self.lose(self.range.clone());
    }

    fn lose(&mut self, run: Range<u64>) {
        match self.lost.last_mut() {
            _ if run.is_empty() => {}
            Some(last) if last.end == run.start => last.end = run.end,
            _ => self.lost.push(run),
        }
    }
}

/// Where reading has got to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    next: u64,
}

impl Drain {
    /// Begins with the first bucket that begins after `now_ns` (`CLOCK_MONOTONIC`): the programs must be attached by
    /// then, or its beginning would be missing.
    pub(crate) fn new(interval: DurationNs, now_ns: u64) -> Self {
        Self { next: number(interval, now_ns) + 1 }
    }

    /// The first bucket that was not looked at.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Reads every bucket that may be read and was not yet. `now` is `CLOCK_MONOTONIC`.
    ///
    /// However long it was not called, no more than a ring is looked at; what lies before it is lost.
    pub(crate) fn read(&mut self, rings: &(impl Buckets + ?Sized), now: impl Fn() -> u64) -> Piece {
        let interval = rings.interval();
        let begun = now();
        let end = match rings.ticking() {
            None => readable(interval, begun),
            Some(ticking) => ticked_until(rings, self.next, ticking.current, begun),
        };
        if end <= self.next {
            return Piece { range: self.next..self.next, ..Piece::default() };
        }
        let mut piece = Piece { range: self.next..end, ..Piece::default() };
        let first = kept(rings, begun).clamp(self.next, end);
        piece.placed = placed(rings, first..=end);
        let mut fold = Fold::new(first..end);
        for way in 0..direction::COUNT {
            for ring in 0..rings.count() {
                for sequence in first..end {
                    fold.add(way, sequence, rings.read(way, ring, sequence));
                }
            }
        }
        // Whatever the writers may have taken over meanwhile was not surely there when it was read: an empty slot could
        // be one that is being cleared.
        let sure = kept(rings, now()).clamp(first, end);
        piece.lose(self.next..sure);
        fold.finish(sure, interval, &mut piece);
        self.next = end;
        piece
    }
}

/// The bucket that a time lies in.
fn number(interval: DurationNs, now_ns: u64) -> u64 {
    now_ns / interval.0.max(1)
}

/// The first bucket that may not be read yet: neither the current one nor the one before, nor any that is over for less
/// than the guard.
fn readable(interval: DurationNs, now_ns: u64) -> u64 {
    let current = number(interval, now_ns);
    number(interval, now_ns.saturating_sub(GUARD_NS)).min(current.saturating_sub(1))
}

/// The same where a tick tells buckets apart: a bucket is over since the tick of the next one, whenever that came.
fn ticked_until(rings: &(impl Buckets + ?Sized), next: u64, current: u64, now_ns: u64) -> u64 {
    let until = now_ns.saturating_sub(GUARD_NS);
    let latest = number(rings.interval(), until).min(current);
    let earliest = kept(rings, now_ns).max(next);
    let is_over = |sequence: &u64| rings.tick(*sequence).is_some_and(|start_ns| start_ns <= until);
    (earliest..=latest).rev().find(is_over).unwrap_or(next)
}

/// The ticks of these buckets, and of the one after them.
fn placed(rings: &(impl Buckets + ?Sized), range: std::ops::RangeInclusive<u64>) -> Placed {
    let tick = |sequence| rings.tick(sequence).map(|start_ns| Tick { sequence, start_ns });
    Placed::new(range.filter_map(tick).collect())
}

/// The first bucket that no writer can have taken over yet.
fn kept(rings: &(impl Buckets + ?Sized), now_ns: u64) -> u64 {
    (number(rings.interval(), now_ns) + 1 + MARGIN).saturating_sub(u64::from(rings.slots()))
}

/// Buckets of all CPUs on their way to becoming one.
struct Fold {
    first: u64,
    buckets: Vec<Part>,
}

#[derive(Clone, Copy, Default)]
struct Part {
    any: bool,
    lost: bool,
    rx: Traffic,
    tx: Traffic,
}

impl Fold {
    fn new(range: Range<u64>) -> Self {
        let count = usize::try_from(range.end - range.start).unwrap_or_default();
        Self { first: range.start, buckets: vec![Part::default(); count] }
    }

    fn add(&mut self, way: u32, sequence: u64, slot: Slot) {
        let at = usize::try_from(sequence - self.first).unwrap_or(usize::MAX);
        let Some(part) = self.buckets.get_mut(at) else { return };
        match slot {
            Slot::Empty => {}
            Slot::Lost => part.lost = true,
            Slot::Read(bucket) => {
                part.any = true;
                add(if way == direction::RX { &mut part.rx } else { &mut part.tx }, &bucket);
            }
        }
    }

    fn finish(self, sure: u64, interval: DurationNs, piece: &mut Piece) {
        for (sequence, part) in (self.first..).zip(self.buckets).filter(|(sequence, _)| *sequence >= sure) {
            let too_long = piece.placed.length(sequence, interval) > LONGEST;
            if part.lost || part.any && too_long {
                piece.lose(sequence..sequence + 1);
            } else if part.any {
                piece.samples.push(Folded { sequence, rx: part.rx, tx: part.tx });
            }
        }
    }
}

/// Adds one CPU's bucket. A 64-bit sum of 32-bit counters of all CPUs has room.
fn add(traffic: &mut Traffic, bucket: &Bucket) {
    traffic.bytes += u64::from(bucket.bytes);
    traffic.packets += u64::from(bucket.packets);
    traffic.ce_bytes += u64::from(bucket.ce_bytes);
    traffic.retransmit_bytes += u64::from(bucket.retransmit_bytes);
    traffic.cross_region_bytes += u64::from(bucket.cross_region_bytes);
    traffic.napi_exhausted += u32::from(bucket.napi_exhausted);
    let [low, high] = bucket.sketch;
    traffic.flows = Sketch(traffic.flows.0 | u128::from(low) | u128::from(high) << 64);
    let roce: &mut Roce = &mut traffic.roce;
    roce.bytes += u64::from(bucket.roce_bytes);
    roce.packets += u32::from(bucket.roce_packets);
    roce.cnps += u32::from(bucket.roce_cnps);
    roce.nak_sequence += u32::from(bucket.roce_nak_sequence);
    roce.nak_rnr += u32::from(bucket.roce_nak_rnr);
    roce.nak_other += u32::from(bucket.roce_nak_other);
    roce.retries += u32::from(bucket.roce_retries);
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod ticked;
