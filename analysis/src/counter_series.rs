//! Counters of one port over time, by what they mean and not by what a driver calls them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;

use crate::delta::{Delta, Gap};
use crate::series::{BitsPerSecond, Direction, DurationNs, UtcNs};

/// What a pause stops: the whole port, or one priority of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The whole port (IEEE 802.3x pause).
    Port,
    /// One priority, 0 to 7 (IEEE 802.1Qbb priority flow control).
    Priority(u8),
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port => f.write_str("the port"),
            Self::Priority(priority) => write!(f, "priority {priority}"),
        }
    }
}

/// A counter, by its meaning. Counts of the interval, if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Bytes on the wire.
    Bytes(Lane, Direction),
    /// Packets on the wire.
    Packets(Lane, Direction),
    /// Pause frames: rx are the network's, tx this host's own.
    PauseFrames(Lane, Direction),
    /// Nanoseconds in which a pause held. Only from a source whose unit is known.
    PauseTime(Lane, Direction),
    /// Times that a pause began or ended.
    PauseTransitions(Lane, Direction),
    /// The device warns that it has been sending pause for long.
    StormWarnings,
    /// The device stopped sending pause because it had been doing so for too long.
    StormErrors,
    /// Packets that the device dropped with its receive buffer full.
    BufferDiscards(Lane),
    /// Packets dropped at the port for lack of room.
    Discards(Direction),
    /// Packets for which no receive work request was posted.
    OutOfBuffer,
    /// Seconds in which the device waited for the host's bus.
    BusStalls,
    /// Packets dropped because the host's bus did not take them.
    BusDiscards,
    /// Congestion notification packets sent to those who send to this host.
    CnpSent,
    /// Congestion notification packets acted upon.
    CnpHandled,
    /// Packets that came marked as having met congestion.
    EcnMarked,
    /// Packets that came out of order: one before them was lost, or overtaken.
    OutOfSequence,
    /// Negative acknowledgements that came back for a gap in the sequence.
    SequenceErrors,
    /// Acknowledgements that implied a gap in the sequence.
    ImpliedNaks,
    /// Requests for which no acknowledgement came in time.
    Timeouts,
    /// Requests that the peer was not ready for.
    ReceiverNotReady,
    /// Times that the link went down.
    LinkDowns,
}

impl Counter {
    /// What it counts, as one word for output and files.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Bytes(..) => "bytes",
            Self::Packets(..) => "packets",
            Self::PauseFrames(..) => "pause_frames",
            Self::PauseTime(..) => "pause_time",
            Self::PauseTransitions(..) => "pause_transitions",
            Self::StormWarnings => "storm_warnings",
            Self::StormErrors => "storm_errors",
            Self::BufferDiscards(_) => "buffer_discards",
            Self::Discards(_) => "discards",
            Self::OutOfBuffer => "out_of_buffer",
            Self::BusStalls => "bus_stalls",
            Self::BusDiscards => "bus_discards",
            Self::CnpSent => "cnps_sent",
            Self::CnpHandled => "cnps_handled",
            Self::EcnMarked => "ecn_marked",
            Self::OutOfSequence => "out_of_sequence",
            Self::SequenceErrors => "sequence_errors",
            Self::ImpliedNaks => "implied_naks",
            Self::Timeouts => "timeouts",
            Self::ReceiverNotReady => "receiver_not_ready",
            Self::LinkDowns => "link_downs",
        }
    }

    /// The unit of what it counts.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Bytes(..) => "bytes",
            Self::PauseFrames(..) => "frames",
            Self::PauseTime(..) => "nanoseconds",
            Self::BusStalls => "seconds",
            Self::PauseTransitions(..)
            | Self::StormWarnings
            | Self::StormErrors
            | Self::ImpliedNaks
            | Self::Timeouts
            | Self::ReceiverNotReady
            | Self::LinkDowns => "events",
            Self::Packets(..)
            | Self::BufferDiscards(_)
            | Self::Discards(_)
            | Self::OutOfBuffer
            | Self::BusDiscards
            | Self::CnpSent
            | Self::CnpHandled
            | Self::EcnMarked
            | Self::OutOfSequence
            | Self::SequenceErrors => "packets",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            Self::Bytes(lane, direction) => return write!(f, "{} bytes of {lane}", direction.name()),
            Self::Packets(lane, direction) => return write!(f, "{} packets of {lane}", direction.name()),
            Self::PauseFrames(lane, direction) => return write!(f, "{} pause frames of {lane}", direction.name()),
            Self::PauseTime(lane, direction) => return write!(f, "{} pause time of {lane}", direction.name()),
            Self::PauseTransitions(lane, direction) => {
                return write!(f, "{} pause transitions of {lane}", direction.name());
            }
            Self::BufferDiscards(lane) => return write!(f, "buffer discards of {lane}"),
            Self::Discards(direction) => return write!(f, "{} discards", direction.name()),
            Self::StormWarnings => "pause storm warnings",
            Self::StormErrors => "pause storm errors",
            Self::OutOfBuffer => "packets out of buffer",
            Self::BusStalls => "seconds of bus stall",
            Self::BusDiscards => "bus discards",
            Self::CnpSent => "CNPs sent",
            Self::CnpHandled => "CNPs handled",
            Self::EcnMarked => "ECN-marked packets",
            Self::OutOfSequence => "packets out of sequence",
            Self::SequenceErrors => "packet sequence errors",
            Self::ImpliedNaks => "implied sequence errors",
            Self::Timeouts => "acknowledgement timeouts",
            Self::ReceiverNotReady => "receiver not ready",
            Self::LinkDowns => "link downs",
        };
        f.write_str(plain)
    }
}

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
    columns: BTreeMap<Counter, VecDeque<Delta>>,
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
            column.resize(column.len().max(before), Err(Gap::NotOffered));
            match column.get_mut(before) {
                Some(sum) => *sum = sum.and_then(|sum| delta.map(|more| sum.saturating_add(more))),
                None => column.push_back(delta),
            }
        }
        self.when.push_back(when);
        for column in self.columns.values_mut() {
            column.resize(before + 1, Err(Gap::NotOffered));
        }
        while self.when.len() > self.samples_max {
            self.forget_first();
        }
    }

    /// Takes one sample of a counter of rare events, and forgets what ended longer than `keep` before it. Samples in which
    /// nothing happened are kept as one, of at most a tenth of `keep`: a long time takes little room.
    pub fn push_rare(&mut self, when: When, counter: Counter, delta: Delta, keep: DurationNs) {
        let last = self.len().checked_sub(1);
        let quiet = last.is_some_and(|last| delta == Ok(0) && self.delta(counter, last) == Ok(0));
        self.push(when, [(counter, delta)]);
        if quiet && self.break_before(self.len().saturating_sub(1)).is_none() {
            self.join_last(DurationNs(keep.0 / 10));
        }
        while self.when.front().is_some_and(|first| when.end().since(first.end()) > keep) {
            self.forget_first();
        }
    }

    /// Makes one of the last two samples, if that is no longer than `longest`: the values of the last are forgotten.
    fn join_last(&mut self, longest: DurationNs) {
        let Some([before, last]) = self.len().checked_sub(2).map(|at| [self.when.get(at), self.when.get(at + 1)])
        else {
            return;
        };
        let (Some(before), Some(last)) = (before.copied(), last.copied()) else { return };
        let length = last.end().since(before.start);
        if length > longest {
            return;
        }
        self.when.pop_back();
        for column in self.columns.values_mut() {
            column.pop_back();
        }
        if let Some(joined) = self.when.back_mut() {
            joined.length = length;
        }
    }

    fn forget_first(&mut self) {
        self.when.pop_front();
        self.columns.retain(|_, column| {
            column.pop_front();
            column.iter().any(|delta| *delta != Err(Gap::NotOffered))
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
        self.columns.get(&counter).and_then(|column| column.get(at)).copied().unwrap_or(Err(Gap::NotOffered))
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
        let known = column.iter().skip(samples.start).take(samples.len()).filter_map(|delta| delta.ok());
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
