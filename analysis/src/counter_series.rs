//! Counters of one port over time, by what they mean and not by what a driver calls them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

pub use crate::counter::{Counter, Lane};
use crate::delta::{Delta, Gap};
use crate::series::{BitsPerSecond, Direction, DurationNs, UtcNs};

/// When a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The time of the reading that it begins with.
    pub start: UtcNs,
    /// The time to the next reading, as a clock measured it that is never set (`CLOCK_MONOTONIC`).
    pub length: DurationNs,
}

impl When {
    /// When it ended.
    #[must_use]
    pub const fn end(self) -> UtcNs {
        self.start.after(self.length)
    }
}

/// What lies between two samples that do not follow on one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// A time without samples (or the clock was set forward), about so many samples long.
    Hole(usize),
    /// The clock was set back.
    ClockBack,
}

/// Samples of one port's counters, in the order in which they were read; the oldest make room for new ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterSeries {
    /// The port's line rate; `None` if it states none.
    pub line_rate: Option<BitsPerSecond>,
    samples_max: usize,
    when: VecDeque<When>,
    columns: BTreeMap<Counter, Column>,
    /// Of each sample, whether it does not follow on the one before it.
    broken: VecDeque<bool>,
}

/// One counter's samples.
#[derive(Clone, Debug, Default, PartialEq)]
struct Column {
    deltas: VecDeque<Delta>,
    /// How many of them are something else than a known 0.
    stirred: usize,
}

impl Column {
    /// Keeps so many: what is added was not offered.
    fn resize(&mut self, length: usize) {
        let added = length.saturating_sub(self.deltas.len());
        self.deltas.resize(length, Err(Gap::NotOffered));
        self.stirred += added;
    }

    fn put(&mut self, at: usize, delta: Delta) {
        let sum = match self.deltas.get_mut(at) {
            Some(sum) => {
                let before = *sum;
                *sum = before.and_then(|sum| delta.map(|more| sum.saturating_add(more)));
                self.stirred -= usize::from(before != Ok(0));
                *sum
            }
            None => {
                self.deltas.push_back(delta);
                delta
            }
        };
        self.stirred += usize::from(sum != Ok(0));
    }

    fn forgotten(&mut self, delta: Option<Delta>) {
        self.stirred -= usize::from(delta.is_some_and(|delta| delta != Ok(0)));
    }
}

impl CounterSeries {
    /// An empty one, of at most `samples_max` samples.
    #[must_use]
    pub fn new(line_rate: Option<BitsPerSecond>, samples_max: usize) -> Self {
        Self { line_rate, samples_max, ..Self::default() }
    }

    /// Takes one sample. A counter that is not among `values` is absent from it; values of one counter add up, as reads
    /// and writes that waited for the bus, and one of them unknown makes the sum so. A sample without length holds no
    /// values.
    pub fn push(&mut self, when: When, values: impl IntoIterator<Item = (Counter, Delta)>) {
        let before = self.when.len();
        for (counter, delta) in values {
            let delta = if when.length.0 == 0 { Err(Gap::Cached) } else { delta };
            let column = self.columns.entry(counter).or_default();
            column.resize(column.deltas.len().max(before));
            column.put(before, delta);
        }
        self.when.push_back(when);
        self.broken.push_back(self.break_before(before).is_some());
        for column in self.columns.values_mut() {
            column.resize(before + 1);
        }
        while self.when.len() > self.samples_max {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        self.when.pop_front();
        self.broken.pop_front();
        if let Some(first) = self.broken.front_mut() {
            *first = false;
        }
        self.columns.retain(|_, column| {
            let first = column.deltas.pop_front();
            column.forgotten(first);
            column.stirred < column.deltas.len() || column.deltas.iter().any(|delta| *delta != Err(Gap::NotOffered))
        });
    }

    /// How many samples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.when.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.when.is_empty()
    }

    /// When sample `at` was taken.
    #[must_use]
    pub fn when(&self, at: usize) -> Option<When> {
        self.when.get(at).copied()
    }

    /// What `counter` counted in sample `at`.
    ///
    /// # Errors
    ///
    /// Why that is not known.
    pub fn delta(&self, counter: Counter, at: usize) -> Delta {
        let column = self.columns.get(&counter);
        column.and_then(|column| column.deltas.get(at)).copied().unwrap_or(Err(Gap::NotOffered))
    }

    /// Whether nothing is missing from these samples and those of `counters` that they hold, of which there is at least
    /// one, have all stood still: then nothing that they tell of has happened. As good as a look at each sample, and
    /// nearly free.
    pub(crate) fn is_still(&self, counters: impl IntoIterator<Item = Counter>) -> bool {
        let mut held = counters.into_iter().filter_map(|counter| self.columns.get(&counter)).peekable();
        !self.broken.contains(&true) && held.peek().is_some() && held.all(|column| column.stirred == 0)
    }

    /// Whether any sample holds `counter`.
    #[must_use]
    pub fn offers(&self, counter: Counter) -> bool {
        self.columns.contains_key(&counter)
    }

    /// The counters that the samples hold, in order.
    pub fn counters(&self) -> impl Iterator<Item = Counter> {
        self.columns.keys().copied()
    }

    /// What `counter` counted in `samples`, as far as it is known: `None` if it is in none of them.
    #[must_use]
    pub fn known(&self, counter: Counter, samples: Range<usize>) -> Option<u64> {
        let column = self.columns.get(&counter)?;
        let known = column.deltas.iter().skip(samples.start).take(samples.len()).filter_map(|delta| delta.ok());
        known.fold(None, |sum, more| Some(sum.unwrap_or(0u64).saturating_add(more)))
    }

    /// Sample `at` and those before it that began no longer than `hold` before its end; always at least `at` itself.
    #[must_use]
    pub fn back(&self, at: usize, hold: DurationNs) -> Range<usize> {
        let Some(end) = self.when(at).map(When::end) else { return at..at };
        let before = self.when.iter().take(at).rev();
        let recent = before.take_while(|when| when.start <= end && end.since(when.start) <= hold).count();
        at - recent..at + 1
    }

    /// What lies between sample `at` and the one before it, if it is more than a quarter of the shorter one: clocks are
    /// slewed, and readings take their time.
    #[must_use]
    pub fn break_before(&self, at: usize) -> Option<Break> {
        let (before, after) = (self.when(at.checked_sub(1)?)?, self.when(at)?);
        let length = before.length.0.min(after.length.0).max(1);
        let (hole, overlap) = (after.start.since(before.end()).0, before.end().since(after.start).0);
        if overlap > length / 4 {
            Some(Break::ClockBack)
        } else if hole > length / 4 {
            Some(Break::Hole(usize::try_from(hole.div_ceil(length)).unwrap_or(usize::MAX)))
        } else {
            None
        }
    }

    /// What pause can stop in `direction` here: priorities if any has pause counters, otherwise the port. With
    /// priorities, the port's own pause frames are those of all of them once more.
    #[must_use]
    pub fn lanes(&self, direction: Direction) -> BTreeSet<Lane> {
        let lanes = self.columns.keys().filter_map(|counter| match counter {
            Counter::PauseFrames(lane, of) | Counter::PauseTime(lane, of) if *of == direction => Some(*lane),
            _ => None,
        });
        let mut lanes: BTreeSet<Lane> = lanes.collect();
        if lanes.len() > 1 {
            lanes.remove(&Lane::Port);
        }
        lanes
    }
}

#[cfg(test)]
mod tests;
