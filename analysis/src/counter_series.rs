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
            self.when.pop_front();
            self.columns.retain(|_, column| {
                column.pop_front();
                column.iter().any(|delta| *delta != Err(Gap::NotOffered))
            });
        }
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
mod tests {
    use super::*;

    fn when(start: i64, length: u64) -> When {
        When { start: UtcNs(start), length: DurationNs(length) }
    }

    #[test]
    fn what_is_not_given_is_absent() {
        let mut series = CounterSeries::new(None, 3);
        series.push(when(0, 10), [(Counter::LinkDowns, Ok(1))]);
        series.push(when(10, 10), [(Counter::Timeouts, Ok(0)), (Counter::LinkDowns, Err(Gap::Reset))]);
        series.push(when(20, 0), [(Counter::Timeouts, Ok(5))]);
        let absent = Err(Gap::NotOffered);
        let rows = [
            (Counter::LinkDowns, [Ok(1), Err(Gap::Reset), absent]),
            (Counter::Timeouts, [absent, Ok(0), Err(Gap::Cached)]),
            (Counter::CnpSent, [absent; 3]),
        ];
        for (counter, expected) in rows {
            assert_eq!([0, 1, 2].map(|at| series.delta(counter, at)), expected, "{counter}");
        }
        assert_eq!(series.known(Counter::LinkDowns, 0..3), Some(1));
        assert_eq!(series.known(Counter::LinkDowns, 1..3), None);
        assert_eq!(series.known(Counter::CnpSent, 0..3), None);
    }

    #[test]
    fn the_oldest_make_room_and_take_their_counters_with_them() {
        let mut series = CounterSeries::new(None, 2);
        series.push(when(0, 10), [(Counter::LinkDowns, Ok(1))]);
        series.push(when(10, 10), [(Counter::Timeouts, Ok(2))]);
        assert!(series.offers(Counter::LinkDowns));
        series.push(when(20, 10), [(Counter::Timeouts, Ok(3))]);
        assert_eq!(series.len(), 2);
        assert_eq!(series.counters().collect::<Vec<_>>(), [Counter::Timeouts]);
        assert_eq!(series.known(Counter::Timeouts, 0..2), Some(5));
    }

    #[test]
    fn values_of_one_meaning_add_up() {
        let mut series = CounterSeries::new(None, 9);
        let stalls = Counter::BusStalls;
        series.push(when(0, 10), [(stalls, Ok(1)), (stalls, Ok(2))]);
        series.push(when(10, 10), [(stalls, Ok(1)), (stalls, Err(Gap::Unread))]);
        series.push(when(20, 10), [(stalls, Err(Gap::Unread)), (stalls, Ok(1))]);
        assert_eq!([0, 1, 2].map(|at| series.delta(stalls, at)), [Ok(3), Err(Gap::Unread), Err(Gap::Unread)]);
    }

    #[test]
    fn holes_and_steps_of_the_clock_are_seen() {
        let rows = [
            (10, None),
            (12, None),
            (13, Some(Break::Hole(1))),
            (45, Some(Break::Hole(4))),
            (8, None),
            (7, Some(Break::ClockBack)),
        ];
        for (start, expected) in rows {
            let mut series = CounterSeries::new(None, 9);
            series.push(when(0, 10), []);
            series.push(when(start, 10), []);
            assert_eq!(series.break_before(1), expected, "{start}");
            assert_eq!(series.break_before(0), None);
        }
    }

    #[test]
    fn looking_back_keeps_to_its_time() {
        let mut series = CounterSeries::new(None, 9);
        for at in 0..5 {
            series.push(when(at * 10, 10), []);
        }
        let rows = [(4, 30, 2..5), (4, 5, 4..5), (4, 29, 3..5), (0, 30, 0..1), (4, 1_000, 0..5), (7, 10, 7..7)];
        for (at, hold, expected) in rows {
            assert_eq!(series.back(at, DurationNs(hold)), expected, "{at} {hold}");
        }
    }

    #[test]
    fn with_priorities_the_port_is_no_lane() {
        let mut series = CounterSeries::new(None, 9);
        series.push(when(0, 10), [(Counter::PauseFrames(Lane::Port, Direction::Rx), Ok(1))]);
        assert_eq!(series.lanes(Direction::Rx), BTreeSet::from([Lane::Port]));
        series.push(when(10, 10), [(Counter::PauseTime(Lane::Priority(3), Direction::Rx), Ok(1))]);
        assert_eq!(series.lanes(Direction::Rx), BTreeSet::from([Lane::Priority(3)]));
        assert!(series.lanes(Direction::Tx).is_empty());
    }
}
