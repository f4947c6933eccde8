//! How much of the time a pause held, by priority and direction, and whose trouble it tells of.

use std::fmt;

use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::delta::Gap;
use crate::series::{BitsPerSecond, Direction, DurationNs};
use crate::verdict::{Episode, Hysteresis, Level, Verdict, Why, episodes};

/// The most quanta that one pause frame can ask for, and what devices send as long as they want no more (IEEE 802.3
/// annex 31B: the pause time is a field of 16 bits).
pub const QUANTA_MAX: u16 = u16::MAX;

/// Bit times in one quantum (IEEE 802.3 annex 31B).
const QUANTUM_BITS: u64 = 512;

/// Pause may exceed the time that passed by so much: a device updates its counters at times of its own.
const PASSED_TIMES_MAX: f64 = 1.05;

/// A twentieth of the time is where pause begins to cost; a fiftieth where it no longer does. The project's own choice.
pub const PRESSURE: Hysteresis = Hysteresis { enter: 0.05, leave: 0.02, enter_samples: 2, leave_samples: 2 };

/// What pause in this direction says, in the words that are used everywhere.
#[must_use]
pub const fn meaning(direction: Direction) -> &'static str {
    match direction {
        Direction::Rx => "rx pause: the network cannot take what this host sends",
        Direction::Tx => "tx pause: this host cannot take what the network sends",
    }
}

/// How long `frames` pause frames of `quanta` each hold a link of this rate.
#[must_use]
pub fn pause_time(frames: u64, quanta: u16, rate: BitsPerSecond) -> DurationNs {
    let bits = u128::from(frames) * u128::from(quanta) * u128::from(QUANTUM_BITS);
    let ns = bits.saturating_mul(1_000_000_000) / u128::from(rate.0.max(1));
    DurationNs(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The share of a sample's time in which a pause held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// The share, 0 to 1.
    pub share: f64,
    /// It was no less than this.
    pub at_least: f64,
    /// It was no more than this.
    pub at_most: f64,
    /// How it is known.
    pub basis: Basis,
}

/// What an occupancy is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The device counted the time.
    Time,
    /// The device counted frames, each taken to ask for so many quanta. It may have asked for none, which ends a pause.
    Frames {
        /// Of 512 bit times each.
        quanta: u16,
    },
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => f.write_str("from the device's pause time"),
            Self::Frames { quanta } => write!(f, "if each pause frame asked for {quanta} quanta"),
        }
    }
}

/// The share of sample `at` in which a pause of `lane` held in `direction`, from the device's pause time or, where it
/// offers none, from its frames at `quanta` each.
///
/// # Errors
///
/// The counter has no value, shows more time than passed, or there are frames and no line rate.
pub fn occupancy(
    series: &CounterSeries,
    lane: Lane,
    direction: Direction,
    at: usize,
    quanta: u16,
) -> Result<Occupancy, Why> {
    let counter = Counter::PauseTime(lane, direction);
    if !series.offers(counter) {
        return from_frames(series, lane, direction, at, quanta);
    }
    let paused = series.delta(counter, at).map_err(|gap| Why::absent(counter, gap))?;
    let share = DurationNs(paused).seconds() / seconds(series, counter, at)?;
    if share > PASSED_TIMES_MAX {
        return Err(Why::MoreThanPassed(share));
    }
    let share = share.min(1.0);
    Ok(Occupancy { share, at_least: share, at_most: share, basis: Basis::Time })
}

fn seconds(series: &CounterSeries, counter: Counter, at: usize) -> Result<f64, Why> {
    let length = series.when(at).map_or(0, |when| when.length.0);
    if length == 0 { Err(Why::absent(counter, Gap::Cached)) } else { Ok(DurationNs(length).seconds()) }
}

fn from_frames(
    series: &CounterSeries,
    lane: Lane,
    direction: Direction,
    at: usize,
    quanta: u16,
) -> Result<Occupancy, Why> {
    let counter = Counter::PauseFrames(lane, direction);
    let frames = series.delta(counter, at).map_err(|gap| Why::absent(counter, gap))?;
    let rate = series.line_rate.ok_or(Why::NoLineRate)?;
    let length = seconds(series, counter, at)?;
    let longest = pause_time(1, QUANTA_MAX, rate);
    // A frame of the sample before may hold on into this one, unless there is known to have been none for that long.
    let before = at.checked_sub(1).filter(|_| series.break_before(at).is_none());
    let none_before = before.is_some_and(|before| {
        series.delta(counter, before) == Ok(0) && series.when(before).is_some_and(|when| when.length >= longest)
    });
    let frames_at_most = frames.saturating_add(u64::from(!none_before));
    let share = |frames, quanta| (pause_time(frames, quanta, rate).seconds() / length).min(1.0);
    Ok(Occupancy {
        share: share(frames, quanta),
        at_least: 0.0,
        at_most: share(frames_at_most, QUANTA_MAX),
        basis: Basis::Frames { quanta },
    })
}

/// Whether there was no pause of `lane` in any sample, and that is known.
pub(crate) fn is_still(series: &CounterSeries, lane: Lane, direction: Direction) -> bool {
    let time = Counter::PauseTime(lane, direction);
    if series.offers(time) {
        return series.is_still([time]);
    }
    // Frames tell a time only at a known line rate.
    series.line_rate.is_some() && series.is_still([Counter::PauseFrames(lane, direction)])
}

/// A time in which pause took a good part of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Pressure {
    /// Whose trouble it is.
    pub direction: Direction,
    /// What was paused.
    pub lane: Lane,
    /// When.
    pub episode: Episode,
    /// The mean share of the time over the samples that are known.
    pub share: f64,
    /// The largest share in one sample.
    pub share_max: f64,
    /// How the shares are known.
    pub basis: Basis,
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, lane, episode, share, share_max, basis } = self;
        let (share, share_max) = (share * 100.0, share_max * 100.0);
        write!(f, "{}: {lane} paused {share:.1} % of {episode}, ", meaning(*direction))?;
        write!(f, "at most {share_max:.1} % of one sample ({basis})")
    }
}

/// Whether pause took more of the time than `limits` allow.
#[must_use]
pub fn pressure(
    series: &CounterSeries,
    lane: Lane,
    direction: Direction,
    limits: &Hysteresis,
    quanta: u16,
) -> Verdict<Vec<Pressure>> {
    if series.len() >= limits.enter_samples && is_still(series, lane, direction) {
        return Verdict::Quiet;
    }
    let share = |at| occupancy(series, lane, direction, at, quanta);
    let found = episodes(series, limits, |at| match share(at) {
        Ok(occupancy) => limits.level(occupancy.share),
        Err(why) => Level::Unknown(why),
    });
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let (mut paused, mut length, mut share_max, mut basis) = (0.0, 0.0, 0.0f64, Basis::Time);
            for at in episode.samples.clone() {
                if let (Ok(occupancy), Some(when)) = (share(at), series.when(at)) {
                    paused += occupancy.share * when.length.seconds();
                    length += when.length.seconds();
                    share_max = share_max.max(occupancy.share);
                    basis = occupancy.basis;
                }
            }
            Pressure { direction, lane, episode, share: paused / length, share_max, basis }
        });
        evidence.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::Delta;
    use crate::series::UtcNs;

    const LANE: Lane = Lane::Priority(3);
    const MS: u64 = 1_000_000;

    /// Samples of 10 ms on a line of 100 Gbit/s.
    fn series(counter: Counter, deltas: &[Delta]) -> CounterSeries {
        let mut series = CounterSeries::new(Some(BitsPerSecond(100_000_000_000)), 99);
        for (at, delta) in deltas.iter().enumerate() {
            let when = When { start: UtcNs(at as i64 * 10_000_000), length: DurationNs(10 * MS) };
            series.push(when, [(counter, *delta)]);
        }
        series
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        let rows = [
            (1, 65_535, 100_000_000_000, 335_539),
            (1, 65_535, 400_000_000_000, 83_884),
            (1, 65_535, 10_000_000_000, 3_355_392),
            (1, 1, 512_000_000_000, 1),
            (3, 0, 100_000_000_000, 0),
            (u64::MAX, 65_535, 1, u64::MAX),
            (1, 1, 0, 512_000_000_000),
        ];
        for (frames, quanta, rate, expected) in rows {
            assert_eq!(pause_time(frames, quanta, BitsPerSecond(rate)), DurationNs(expected), "{frames} {quanta}");
        }
    }

    #[test]
    fn time_that_the_device_counted_is_taken_over_time_that_passed() {
        let counter = Counter::PauseTime(LANE, Direction::Rx);
        let rows = [
            (Ok(0), Ok(0.0)),
            (Ok(5 * MS), Ok(0.5)),
            (Ok(10 * MS), Ok(1.0)),
            (Ok(10 * MS + MS / 4), Ok(1.0)),
            (Ok(20 * MS), Err(Why::MoreThanPassed(2.0))),
            (Err(Gap::Reset), Err(Why::absent(counter, Gap::Reset))),
        ];
        for (delta, expected) in rows {
            let found = occupancy(&series(counter, &[delta]), LANE, Direction::Rx, 0, QUANTA_MAX);
            assert_eq!(found.map(|occupancy| occupancy.share), expected, "{delta:?}");
        }
        let missing = occupancy(&series(counter, &[Ok(1)]), LANE, Direction::Tx, 0, QUANTA_MAX);
        let frames = Counter::PauseFrames(LANE, Direction::Tx);
        assert_eq!(missing, Err(Why::absent(frames, Gap::NotOffered)));
    }

    #[test]
    fn frames_tell_bounds_and_say_what_they_assume() {
        let counter = Counter::PauseFrames(LANE, Direction::Tx);
        let one = 0.033_553_9;
        let rows = [
            (vec![Ok(0), Ok(0)], 1, QUANTA_MAX, (0.0, 0.0)),
            (vec![Ok(0), Ok(1)], 1, QUANTA_MAX, (one, one)),
            (vec![Ok(0), Ok(1)], 1, QUANTA_MAX / 2, (one / 2.0, one)),
            // What went before is not known: one more frame may hold on into the sample.
            (vec![Ok(1)], 0, QUANTA_MAX, (one, 2.0 * one)),
            (vec![Ok(1), Ok(0)], 1, QUANTA_MAX, (0.0, one)),
            (vec![Err(Gap::Reset), Ok(0)], 1, QUANTA_MAX, (0.0, one)),
            (vec![Ok(0), Ok(900)], 1, QUANTA_MAX, (1.0, 1.0)),
        ];
        for (deltas, at, quanta, (share, at_most)) in rows {
            let found = occupancy(&series(counter, &deltas), LANE, Direction::Tx, at, quanta).unwrap();
            assert!((found.share - share).abs() < 1e-4, "{deltas:?}: {found:?}");
            assert!((found.at_most - at_most).abs() < 1e-4, "{deltas:?}: {found:?}");
            assert_eq!((found.at_least, found.basis), (0.0, Basis::Frames { quanta }));
        }
        let mut unknown = series(counter, &[Ok(1)]);
        unknown.line_rate = None;
        assert_eq!(occupancy(&unknown, LANE, Direction::Tx, 0, QUANTA_MAX), Err(Why::NoLineRate));
    }

    #[test]
    fn pressure_is_entered_at_a_twentieth_and_left_below_a_fiftieth() {
        let counter = Counter::PauseTime(LANE, Direction::Rx);
        let check = |tenths_ms: &[u64]| {
            let deltas: Vec<Delta> = tenths_ms.iter().map(|&tenths| Ok(tenths * MS / 10)).collect();
            pressure(&series(counter, &deltas), LANE, Direction::Rx, &PRESSURE, QUANTA_MAX)
        };
        assert_eq!(check(&[4, 4, 4, 4]), Verdict::Quiet);
        assert_eq!(check(&[5, 0, 5, 0]), Verdict::Quiet);
        let Verdict::Firing(found) = check(&[0, 5, 5, 2, 2, 1, 1]) else { panic!() };
        assert_eq!((found.len(), found[0].episode.samples.clone()), (1, 1..5));
        assert_eq!(
            found[0].to_string(),
            "rx pause: the network cannot take what this host sends: priority 3 paused 3.5 % of 0.040 s, \
             at most 5.0 % of one sample (from the device's pause time)"
        );
    }
}
