//! Pause over time: which share of each part of a span a pause held, for pictures.

use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::pause::{QUANTA_MAX, occupancy};
use crate::series::{Direction, DurationNs, Span};

/// A device may count this much more in a sample than passed: it was read at some time during the reading, and updates
/// its counters at times of its own.
const SLACK: DurationNs = DurationNs(1_000_000);

/// One of the equal parts that a span is divided into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// When.
    pub span: Span,
    /// How much of it was measured.
    pub measured: DurationNs,
    /// Nanoseconds of it in which a pause held; of a sample that reaches into several bins each has its share by time.
    pub paused: f64,
    /// The largest share in a sample that lies in it for a good part; `None` if no time was measured.
    pub peak: Option<f64>,
}

/// Pause of one lane in one direction, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// How much time was measured.
    pub measured: DurationNs,
    /// Nanoseconds of it in which a pause held.
    pub paused: f64,
    /// The largest share in one sample.
    pub peak: f64,
    /// It is reckoned from frames, each at its longest, and not from time that the device counted.
    pub from_frames: bool,
}

impl Total {
    /// The share of the measured time; `None` if there is none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        share(self.paused, self.measured)
    }
}

impl Bin {
    /// The share of the measured time; `None` if there is none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        share(self.paused, self.measured)
    }
}

fn share(paused: f64, measured: DurationNs) -> Option<f64> {
    (measured.0 > 0).then(|| (paused / measured.0 as f64).min(1.0))
}

/// Each sample in which the pause of a lane is known: when, and for how many nanoseconds it held.
fn paused(series: &CounterSeries, lane: Lane, direction: Direction) -> impl Iterator<Item = (Span, f64)> + '_ {
    let time = Counter::PauseTime(lane, direction);
    let counts_time = series.offers(time);
    (0..series.len()).filter_map(move |at| {
        let when = series.when(at).filter(|when| when.length.0 > 0)?;
        let length = when.length.0 as f64;
        let paused = if counts_time {
            let paused = series.delta(time, at).ok()? as f64;
            // More than that is no time of this sample: what a source had kept, or another unit.
            Some(paused).filter(|paused| *paused <= 1.05 * length + SLACK.0 as f64)?
        } else {
            occupancy(series, lane, direction, at, QUANTA_MAX).ok()?.share * length
        };
        Some((Span { start: when.start, end: when.end() }, paused))
    })
}

/// All of a series.
#[must_use]
pub fn total(series: &CounterSeries, lane: Lane, direction: Direction) -> Total {
    let from_frames = !series.offers(Counter::PauseTime(lane, direction));
    paused(series, lane, direction).fold(Total { from_frames, ..Total::default() }, |total, (span, paused)| {
        let share = share(paused, span.length()).unwrap_or_default();
        Total {
            measured: DurationNs(total.measured.0.saturating_add(span.length().0)),
            paused: total.paused + paused,
            peak: total.peak.max(share),
            ..total
        }
    })
}

/// A lane in `count` equal parts of a span of time.
#[must_use]
pub fn bins(series: &CounterSeries, lane: Lane, direction: Direction, over: Span, count: usize) -> Vec<Bin> {
    let mut bins: Vec<Bin> =
        parts(over, count).map(|span| Bin { span, measured: DurationNs(0), paused: 0.0, peak: None }).collect();
    for (span, paused) in paused(series, lane, direction) {
        let Some(inside) = over.overlap(span) else { continue };
        let first = bins.partition_point(|bin| bin.span.end <= inside.start);
        for bin in bins.iter_mut().skip(first) {
            let Some(both) = bin.span.overlap(inside) else { break };
            bin.measured.0 += both.length().0;
            bin.paused += paused * both.length().0 as f64 / span.length().0 as f64;
            if both.length().0 >= span.length().0.min(bin.span.length().0) / 2 {
                let found = share(paused, span.length()).unwrap_or_default();
                bin.peak = Some(bin.peak.map_or(found, |peak| peak.max(found)));
            }
        }
    }
    bins
}

/// The parts of a span, as many as have a length.
fn parts(over: Span, count: usize) -> impl Iterator<Item = Span> {
    let edge = move |number: usize| {
        let after = u128::from(over.length().0) * number as u128 / count.max(1) as u128;
        // No more than the length.
        over.start.after(DurationNs(u64::try_from(after).unwrap_or(u64::MAX)))
    };
    (0..count).map(move |number| Span { start: edge(number), end: edge(number + 1) }).filter(|span| span.length().0 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::{Delta, Gap};
    use crate::series::{BitsPerSecond, UtcNs};

    const MS: u64 = 1_000_000;
    const LANE: Lane = Lane::Priority(3);

    fn time(ms: u64) -> UtcNs {
        UtcNs(0).after(DurationNs(ms * MS))
    }

    fn series(counter: Counter, deltas: &[Delta]) -> CounterSeries {
        let mut series = CounterSeries::new(Some(BitsPerSecond(100_000_000_000)), deltas.len());
        for (at, delta) in (0..).zip(deltas) {
            series.push(When { start: time(at), length: DurationNs(MS) }, [(counter, *delta)]);
        }
        series
    }

    #[track_caller]
    fn check(deltas: &[Delta], count: usize, expected: &[Option<f64>]) {
        let series = series(Counter::PauseTime(LANE, Direction::Rx), deltas);
        let over = Span { start: time(0), end: time(4) };
        let found: Vec<_> = bins(&series, LANE, Direction::Rx, over, count).iter().map(Bin::share).collect();
        assert_eq!(found, expected, "{deltas:?}");
    }

    #[test]
    fn shares_are_of_the_measured_time() {
        let half = MS / 2;
        check(&[Ok(MS), Ok(0), Ok(half), Ok(0)], 4, &[Some(1.0), Some(0.0), Some(0.5), Some(0.0)]);
        check(&[Ok(MS), Ok(0), Ok(half), Ok(0)], 2, &[Some(0.5), Some(0.25)]);
        check(&[Ok(MS), Err(Gap::Reset), Ok(0)], 4, &[Some(1.0), None, Some(0.0), None]);
        check(&[Ok(MS), Err(Gap::Reset), Ok(0)], 2, &[Some(1.0), Some(0.0)]);
        // A sample that lies in two bins.
        check(&[Ok(half)], 8, &[Some(0.5), Some(0.5), None, None, None, None, None, None]);
    }

    #[test]
    fn a_reading_that_came_late_is_made_up_for_by_the_next() {
        check(&[Ok(MS / 2), Ok(3 * MS / 2), Ok(0), Ok(0)], 2, &[Some(1.0), Some(0.0)]);
        let found =
            total(&series(Counter::PauseTime(LANE, Direction::Rx), &[Ok(MS / 2), Ok(3 * MS / 2)]), LANE, Direction::Rx);
        assert_eq!((found.share(), found.peak, found.measured), (Some(1.0), 1.0, DurationNs(2 * MS)));
    }

    #[test]
    fn what_cannot_be_a_time_of_the_sample_is_not_measured() {
        check(&[Ok(990 * MS), Ok(MS), Ok(0), Ok(0)], 4, &[None, Some(1.0), Some(0.0), Some(0.0)]);
    }

    #[test]
    fn frames_tell_too_and_say_that_they_do() {
        // 65,535 quanta of 512 bit times at 100 Gbit/s are 0.336 ms.
        let series = series(Counter::PauseFrames(LANE, Direction::Tx), &[Ok(0), Ok(1), Ok(0)]);
        let found = total(&series, LANE, Direction::Tx);
        assert!(found.from_frames && (found.peak - 0.3355).abs() < 1e-3, "{found:?}");
        assert_eq!(total(&CounterSeries::default(), LANE, Direction::Tx).share(), None);
    }
}
