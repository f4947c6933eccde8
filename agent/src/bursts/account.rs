//! What one network device has come to since the agent started: exact totals, and bursts as they end.

use std::collections::VecDeque;

use agent_common::bucket::Totals;
use analysis::answer::Answer;
use analysis::burst::{Burst, Share, bursts};
use analysis::series::{BitsPerSecond, Direction, Series, UtcNs};

/// Seconds that the highest rates are kept for.
const RECENT: usize = 16;

/// Seconds in a nanosecond count.
const SECOND_NS: i64 = 1_000_000_000;

/// A histogram of whole numbers: how many were at most each bound, and not at most the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Histogram {
    bounds: &'static [u64],
    counts: Vec<u64>,
    /// The sum of all.
    pub(crate) sum: u64,
}

impl Histogram {
    fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0 }
    }

    fn add(&mut self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(value);
    }

    /// Upper bounds with how many lie below each and not below the one before; the last has no bound.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        self.bounds.iter().map(|bound| Some(*bound)).chain([None]).zip(self.counts.iter().copied())
    }
}

/// Bounds of burst lengths in nanoseconds.
const LENGTHS: &[u64] = &[
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    1_000_000_000,
];

/// Bounds of burst volumes in bytes.
const VOLUMES: &[u64] = &[10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Lengths and volumes of the bursts of one direction, all devices together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// In nanoseconds.
    pub(crate) lengths: Histogram,
    /// In bytes.
    pub(crate) volumes: Histogram,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { lengths: Histogram::new(LENGTHS), volumes: Histogram::new(VOLUMES) }
    }
}

/// One direction of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// Bytes on the wire, of which those of programs that are gone stand in `gone`.
    pub(crate) bytes: u64,
    /// Packets on the wire.
    pub(crate) packets: u64,
    /// Payload bytes sent again, or suspected of it.
    pub(crate) retransmit_bytes: u64,
    /// TCP segments sent again, or suspected of it.
    pub(crate) retransmit_segments: u64,
    /// Bytes marked ECN `CE`.
    pub(crate) ce_bytes: u64,
    /// Packets marked so.
    pub(crate) ce_packets: u64,
    /// Payload bytes that carry the mark of what was sent again.
    pub(crate) marked_bytes: u64,
    /// Segments that do.
    pub(crate) marked_segments: u64,
    /// Bursts that have ended.
    pub(crate) bursts: u64,
    /// How long they took, in nanoseconds.
    pub(crate) burst_ns: u64,
    /// A burst that had not ended when the last series did.
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    end: UtcNs,
    ns: u64,
    bytes: u64,
}

/// What passed in one second, and its fastest sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// Of UTC.
    second: i64,
    /// Received and sent bytes.
    pub(crate) bytes: [u64; 2],
    /// The rates of the fastest samples.
    pub(crate) peak: [u64; 2],
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Received and sent.
    pub(crate) ways: [Way; 2],
    /// Buckets that were lost.
    pub(crate) lost: u64,
    /// Its line rate.
    pub(crate) line_rate: Option<BitsPerSecond>,
    /// Whether it tells which received bytes may have been sent again.
    pub(crate) suspects: bool,
    /// Totals of programs that are gone, and the last of those that run.
    gone: [Totals; 2],
    last: [Totals; 2],
    recent: VecDeque<Second>,
}

/// What is taken from totals: where a counter stands there, and where in the account.
type Counter = (fn(&mut Totals) -> &mut u64, fn(&mut Way) -> &mut u64);

const COUNTERS: [Counter; 8] = [
    (|totals| &mut totals.wire_bytes, |way| &mut way.bytes),
    (|totals| &mut totals.segments, |way| &mut way.packets),
    (|totals| &mut totals.retransmit_bytes, |way| &mut way.retransmit_bytes),
    (|totals| &mut totals.retransmit_segments, |way| &mut way.retransmit_segments),
    (|totals| &mut totals.ce_bytes, |way| &mut way.ce_bytes),
    (|totals| &mut totals.ce_packets, |way| &mut way.ce_packets),
    (|totals| &mut totals.marked_bytes, |way| &mut way.marked_bytes),
    (|totals| &mut totals.marked_segments, |way| &mut way.marked_segments),
];

impl Account {
    /// Takes what was read of the device.
    pub(crate) fn take(
        &mut self,
        series: &Series,
        totals: Option<&[Totals; 2]>,
        threshold: Share,
        sizes: &mut [Sizes; 2],
    ) {
        self.lost = self.lost.saturating_add(series.lost);
        self.line_rate = series.line_rate;
        self.suspects = series.fields.rx.retransmits;
        if let Some(totals) = totals {
            self.total(totals);
        }
        for ((direction, way), sizes) in Direction::ALL.into_iter().zip(&mut self.ways).zip(sizes) {
            way.detect(series, direction, threshold, sizes);
        }
        self.remember(series);
    }

    /// The programs have gone: what they counted stays, and the next ones begin at 0.
    pub(crate) fn end(&mut self) {
        self.gone.iter_mut().zip(&mut self.last).for_each(|(gone, last)| bury(gone, last));
    }

    /// Fewer packets than the last time are of new programs, where the end of those before was not told.
    fn total(&mut self, totals: &[Totals; 2]) {
        for (((way, gone), last), now) in self.ways.iter_mut().zip(&mut self.gone).zip(&mut self.last).zip(totals) {
            if now.skbs < last.skbs {
                bury(gone, last);
            }
            for (of, to) in COUNTERS {
                *to(way) = of(gone).saturating_add(*of(&mut { *now }));
            }
            *last = *now;
        }
    }

    fn remember(&mut self, series: &Series) {
        for sample in &series.samples {
            let second = sample.start.0.div_euclid(SECOND_NS);
            if self.recent.back().is_none_or(|last| last.second != second) {
                if self.recent.len() >= RECENT {
                    self.recent.pop_front();
                }
                self.recent.push_back(Second { second, ..Second::default() });
            }
            let Some(last) = self.recent.back_mut() else { continue };
            for ((direction, bytes), peak) in Direction::ALL.into_iter().zip(&mut last.bytes).zip(&mut last.peak) {
                let more = direction.of(sample).bytes;
                *bytes = bytes.saturating_add(more);
                let rate = u128::from(more) * 8_000_000_000 / u128::from(sample.length.0.max(1));
                *peak = (*peak).max(u64::try_from(rate).unwrap_or(u64::MAX));
            }
        }
    }

    /// The last second before `now` that is over.
    pub(crate) fn last_second(&self, now: UtcNs) -> Second {
        let wanted = now.0.div_euclid(SECOND_NS) - 1;
        self.recent.iter().find(|second| second.second == wanted).copied().unwrap_or_default()
    }

    /// The rates of the fastest samples within the last 15 seconds before `now`.
    pub(crate) fn peak(&self, now: UtcNs) -> [u64; 2] {
        let since = now.0.div_euclid(SECOND_NS) - RECENT as i64 + 1;
        let recent = self.recent.iter().filter(|second| second.second >= since);
        recent.fold([0, 0], |[rx, tx], second| [rx.max(second.peak[0]), tx.max(second.peak[1])])
    }
}

/// Adds the totals of programs that are gone to those of the ones before.
fn bury(gone: &mut Totals, last: &mut Totals) {
    let mut last = std::mem::take(last);
    COUNTERS.iter().for_each(|(of, _)| *of(gone) = of(gone).saturating_add(*of(&mut last)));
}

impl Way {
    /// Counts the bursts that have ended. One that goes on to the end of the series is kept open: the next series may
    /// go on with it.
    fn detect(&mut self, series: &Series, direction: Direction, threshold: Share, sizes: &mut Sizes) {
        let found = match bursts(series, direction, threshold) {
            Answer::Found(found) => found,
            Answer::Quiet => Vec::new(),
            Answer::CannotTell(_) => return,
        };
        let end = series.covered.last().map(|span| span.end);
        for burst in &found {
            let run = self.follow(burst, series, sizes);
            if Some(run.end) == end {
                self.open = Some(run);
            } else {
                self.close(run, sizes);
            }
        }
        if self.open.is_some_and(|open| Some(open.end) != end)
            && let Some(open) = self.open.take()
        {
            self.close(open, sizes);
        }
    }

    /// The burst, with the open one before it if it follows on that.
    fn follow(&mut self, burst: &Burst, series: &Series, sizes: &mut Sizes) -> Open {
        let run = Open { end: burst.span().end, ns: burst.length.0, bytes: burst.bytes };
        match self.open.take() {
            Some(open) if open.end.0.abs_diff(burst.start.0) < series.interval.0 / 2 => {
                Open { ns: open.ns.saturating_add(run.ns), bytes: open.bytes.saturating_add(run.bytes), ..run }
            }
            Some(open) => {
                self.close(open, sizes);
                run
            }
            None => run,
        }
    }

    fn close(&mut self, run: Open, sizes: &mut Sizes) {
        self.bursts += 1;
        self.burst_ns = self.burst_ns.saturating_add(run.ns);
        sizes.lengths.add(run.ns);
        sizes.volumes.add(run.bytes);
    }
}

#[cfg(test)]
mod tests {
    use analysis::series::{DurationNs, Fields, Measured, Sample, Span, Traffic};

    use super::*;

    const MS: i64 = 1_000_000;

    /// One character a millisecond: `#` a megabyte received, `.` nothing, `?` not measured. Line rate 8 Gbit/s.
    fn series(start_ms: i64, text: &str) -> Series {
        let mut series = Series {
            interval: DurationNs(1_000_000),
            line_rate: Some(BitsPerSecond(8_000_000_000)),
            fields: Fields::both(Measured::BYTES),
            ..Series::default()
        };
        for (at, kind) in (start_ms..).zip(text.chars()) {
            let (start, end) = (UtcNs(at * MS), UtcNs((at + 1) * MS));
            if kind == '#' {
                let rx = Traffic { bytes: 1_000_000, ce_bytes: 10, ..Traffic::default() };
                series.samples.push(Sample { start, length: series.interval, rx, ..Sample::default() });
            }
            match series.covered.last_mut() {
                _ if kind == '?' => series.lost += 1,
                Some(last) if last.end == start => last.end = end,
                _ => series.covered.push(Span { start, end }),
            }
        }
        series
    }

    #[track_caller]
    fn check(texts: &[&str], bursts: u64, ms: u64) -> Account {
        let mut account = Account::default();
        let mut sizes = <[Sizes; 2]>::default();
        let mut at = 5_000;
        for text in texts {
            account.take(&series(at, text), None, Share::DEFAULT, &mut sizes);
            at += i64::try_from(text.len()).unwrap();
        }
        let [rx, tx] = &account.ways;
        assert_eq!((rx.bursts, rx.burst_ns / 1_000_000), (bursts, ms), "{texts:?}");
        assert_eq!(tx.bursts, 0);
        let counted = |histogram: &Histogram| histogram.buckets().map(|(_, count)| count).sum::<u64>();
        assert_eq!((counted(&sizes[0].lengths), counted(&sizes[0].volumes)), (bursts, bursts));
        assert_eq!((sizes[0].lengths.sum / 1_000_000, sizes[0].volumes.sum / 1_000_000), (ms, ms));
        account
    }

    #[test]
    fn a_burst_is_counted_once_when_it_has_ended() {
        check(&["..##..#."], 2, 3);
        check(&["..##"], 0, 0);
        check(&["..##", "#..."], 1, 3);
        check(&["..##", "####", "#..."], 1, 7);
        check(&["..##", "....", "#..."], 2, 3);
        check(&["..##", ".#..", "...."], 2, 3);
        check(&["####", "#.##", "."], 2, 7);
        check(&["....", "...."], 0, 0);
    }

    #[test]
    fn time_that_was_not_measured_ends_a_burst() {
        let account = check(&["..##?##."], 2, 4);
        assert_eq!(account.lost, 1);
        check(&["..##", "??##", "...."], 2, 4);
        check(&["..##", "????", "...."], 1, 2);
    }

    #[test]
    fn a_clock_that_is_set_back_ends_a_burst() {
        let mut account = Account::default();
        account.take(&series(9_000, "..##"), None, Share::DEFAULT, &mut Default::default());
        account.take(&series(1_000, "##.."), None, Share::DEFAULT, &mut Default::default());
        assert_eq!(account.ways[0].bursts, 2);
    }

    #[test]
    fn totals_go_on_when_a_device_comes_back() {
        let totals = |skbs: u64| {
            let one = Totals { skbs, segments: 2 * skbs, wire_bytes: 100 * skbs, ..Totals::default() };
            [one, Totals::default()]
        };
        let mut account = Account::default();
        let mut sizes = <[Sizes; 2]>::default();
        for (skbs, packets) in [(5, 10), (7, 14), (0, 14), (1, 16), (9, 32)] {
            account.take(&series(0, "."), Some(&totals(skbs)), Share::DEFAULT, &mut sizes);
            assert_eq!((account.ways[0].packets, account.ways[0].bytes), (packets, 50 * packets));
        }
        // The next one has counted more than the one before when it is looked at first.
        account.end();
        account.take(&series(0, "."), Some(&totals(11)), Share::DEFAULT, &mut sizes);
        assert_eq!(account.ways[0].packets, 54);
    }

    #[test]
    fn the_fastest_sample_of_the_last_seconds_is_known() {
        let mut account = check(&["#"], 0, 0);
        let at = |ms: i64| UtcNs(ms * MS);
        assert_eq!(account.peak(at(5_500)), [8_000_000_000, 0]);
        assert_eq!(account.last_second(at(5_500)).bytes, [0, 0], "the second is not over");
        assert_eq!(account.last_second(at(6_500)).bytes, [1_000_000, 0]);
        assert_eq!(account.peak(at(19_500)), [8_000_000_000, 0]);
        assert_eq!(account.peak(at(21_000)), [0, 0]);
        for second in 6..100 {
            account.take(&series(second * 1_000, "#"), None, Share::DEFAULT, &mut Default::default());
        }
        assert!(account.recent.len() <= RECENT);
    }

    #[test]
    fn a_histogram_counts_each_value_below_its_bound() {
        let mut histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, u64::MAX] {
            histogram.add(value);
        }
        let counts: Vec<_> = histogram.buckets().collect();
        assert_eq!(counts, [(Some(10), 2), (Some(20), 2), (None, 2)]);
        assert_eq!(histogram.sum, u64::MAX);
    }
}
