//! Pause without end: a host that stops its network, or a network that stops this host.
//!
//! Pause alone is no storm: a line that is paused a lot and still carries something is a busy one. A storm is pause for
//! practically all of the time and nothing that gets through meanwhile.

use std::fmt;

use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::delta::Gap;
use crate::pause::{Basis, is_still, meaning, occupancy};
use crate::series::Direction;
use crate::sum::Sum;
use crate::verdict::{Episode, Hysteresis, Level, Verdict, Why, episodes};

/// 99 % of the time over two measured intervals, as the pause watchdogs of switches have it (SONiC; Junos takes two
/// intervals of 100 ms). A storm is over after two intervals with less than 95 % or with progress.
pub const STORM: Hysteresis = Hysteresis { enter: 0.99, leave: 0.95, enter_samples: 2, leave_samples: 2 };

/// One event that the device reports is a storm; it is over after two intervals without any.
pub const REPORTED: Hysteresis = Hysteresis { enter: 1.0, leave: 1.0, enter_samples: 1, leave_samples: 2 };

/// A time in which a lane was paused practically all the time and carried nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Storm {
    /// Tx: this host causes the storm. Rx: it is the victim.
    pub direction: Direction,
    /// What was paused.
    pub lane: Lane,
    /// When.
    pub episode: Episode,
    /// The smallest share of a sample in which the pause held, of the samples that are known.
    pub share_min: f64,
    /// How the shares are known.
    pub basis: Basis,
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, lane, episode, share_min, basis } = self;
        let (what, moved) = match direction {
            Direction::Tx => ("pause storm from this host", "received"),
            Direction::Rx => ("this host is the victim of a pause storm", "sent"),
        };
        write!(
            f,
            "{what}: {lane} paused for {episode}, at least {:.1} % of each sample ({basis}), ",
            share_min * 100.0
        )?;
        write!(f, "and nothing {moved} on it; {}", meaning(*direction))
    }
}

/// Storms of `lane`: with tx pause this host causes them, with rx pause it is their victim.
#[must_use]
pub fn storms(
    series: &CounterSeries,
    lane: Lane,
    direction: Direction,
    limits: &Hysteresis,
    quanta: u16,
) -> Verdict<Vec<Storm>> {
    if series.len() >= limits.enter_samples && is_still(series, lane, direction) {
        return Verdict::Quiet;
    }
    let found = episodes(series, limits, |at| level(series, lane, direction, at, limits, quanta));
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let (mut share_min, mut basis) = (1.0f64, Basis::Time);
            for at in episode.samples.clone() {
                // A sample in an episode may be one that carried something: it takes two to end it.
                if let (Ok(false), Ok(known)) =
                    (progress(series, lane, direction, at), occupancy(series, lane, direction, at, quanta))
                {
                    share_min = share_min.min(known.share);
                    basis = known.basis;
                }
            }
            Storm { direction, lane, episode, share_min, basis }
        });
        evidence.collect()
    })
}

fn level(
    series: &CounterSeries,
    lane: Lane,
    direction: Direction,
    at: usize,
    limits: &Hysteresis,
    quanta: u16,
) -> Level {
    let progress = progress(series, lane, direction, at);
    if progress == Ok(true) {
        return Level::Low;
    }
    match (occupancy(series, lane, direction, at, quanta), progress) {
        (Ok(known), _) if known.share < limits.leave => Level::Low,
        (Ok(known), Ok(_)) => limits.level(known.share),
        (Ok(_), Err(why)) | (Err(why), _) => Level::Unknown(why),
    }
}

/// Whether `lane` carried anything of what the pause is to stop: tx pause stops what is received, rx pause what is sent.
fn progress(series: &CounterSeries, lane: Lane, direction: Direction, at: usize) -> Result<bool, Why> {
    let carried = direction.other();
    let (packets, bytes) = (Counter::Packets(lane, carried), Counter::Bytes(lane, carried));
    for counter in [packets, bytes] {
        if let Ok(count) = series.delta(counter, at) {
            return Ok(count > 0);
        }
    }
    // Nothing on the port is nothing on the priority; something on the port says nothing.
    match series.delta(Counter::Packets(Lane::Port, carried), at) {
        Ok(0) => Ok(false),
        _ => {
            let counter = if series.offers(bytes) && !series.offers(packets) { bytes } else { packets };
            Err(Why::absent(counter, series.delta(counter, at).err().unwrap_or(Gap::Unread)))
        }
    }
}

/// A time in which the device itself reported that it sends pause for too long.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    /// When.
    pub episode: Episode,
    /// It warned so often.
    pub warnings: u64,
    /// It gave up so often, and takes what comes, or drops it.
    pub errors: u64,
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warnings, errors, .. } = self;
        write!(f, "the device reported a pause storm from this host: {warnings} warnings, {errors} errors; ")?;
        f.write_str(meaning(Direction::Tx))
    }
}

/// Storms that the device reports.
#[must_use]
pub fn reported(series: &CounterSeries, limits: &Hysteresis) -> Verdict<Vec<Reported>> {
    let counters = [Counter::StormErrors, Counter::StormWarnings];
    if series.len() >= limits.enter_samples && series.is_still(counters) {
        return Verdict::Quiet;
    }
    let found =
        episodes(series, limits, |at| Sum::of(series, counters, at..at + 1).level(|count| limits.level(count as f64)));
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let known = |counter| series.known(counter, episode.samples.clone()).unwrap_or(0);
            Reported { warnings: known(Counter::StormWarnings), errors: known(Counter::StormErrors), episode }
        });
        evidence.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::Delta;
    use crate::pause::QUANTA_MAX;
    use crate::series::{BitsPerSecond, DurationNs, UtcNs};

    const LANE: Lane = Lane::Priority(3);

    /// Samples of 100 ms on a line of 100 Gbit/s: pause in this unit, and packets the other way.
    fn series(pause: Counter, packets: Counter, samples: &[(Delta, Delta)]) -> CounterSeries {
        let mut series = CounterSeries::new(Some(BitsPerSecond(100_000_000_000)), 99);
        for (at, (paused, moved)) in samples.iter().enumerate() {
            let when = When { start: UtcNs(at as i64 * 100_000_000), length: DurationNs(100_000_000) };
            series.push(when, [(pause, *paused), (packets, *moved)]);
        }
        series
    }

    const TX_TIME: Counter = Counter::PauseTime(LANE, Direction::Tx);
    const RX_PACKETS: Counter = Counter::Packets(LANE, Direction::Rx);
    const FULL: Delta = Ok(100_000_000);
    const ALMOST: Delta = Ok(99_000_000);
    const UNDER: Delta = Ok(98_900_000);
    const LITTLE: Delta = Ok(94_900_000);

    #[track_caller]
    fn check(samples: &[(Delta, Delta)], expected: &Verdict<usize>) {
        let series = series(TX_TIME, RX_PACKETS, samples);
        let found = storms(&series, LANE, Direction::Tx, &STORM, QUANTA_MAX);
        assert_eq!(&found.map(|storms| storms.len()), expected, "{samples:?}");
    }

    #[test]
    fn pause_without_progress_for_two_samples_is_a_storm() {
        check(&[(ALMOST, Ok(0)), (ALMOST, Ok(0))], &Verdict::Firing(1));
        check(&[(ALMOST, Ok(0)), (UNDER, Ok(0))], &Verdict::Quiet);
        check(&[(FULL, Ok(0)), (Ok(0), Ok(0)), (FULL, Ok(0)), (Ok(0), Ok(0))], &Verdict::Quiet);
    }

    #[test]
    fn pause_with_progress_is_none() {
        check(&[(FULL, Ok(1)), (FULL, Ok(1)), (FULL, Ok(1))], &Verdict::Quiet);
        check(&[(FULL, Ok(0)), (FULL, Ok(1)), (FULL, Ok(0)), (FULL, Ok(1))], &Verdict::Quiet);
    }

    #[test]
    fn a_storm_goes_on_until_two_samples_are_better() {
        let storm = [(FULL, Ok(0)), (FULL, Ok(0))];
        let with = |rest: &[(Delta, Delta)]| [&storm, rest, &storm].concat();
        check(&with(&[(UNDER, Ok(0)), (UNDER, Ok(0)), (UNDER, Ok(0))]), &Verdict::Firing(1));
        check(&with(&[(LITTLE, Ok(0))]), &Verdict::Firing(1));
        check(&with(&[(LITTLE, Ok(0)), (LITTLE, Ok(0))]), &Verdict::Firing(2));
        check(&with(&[(FULL, Ok(7)), (FULL, Ok(7))]), &Verdict::Firing(2));
    }

    #[test]
    fn what_is_not_known_is_needed_only_where_it_decides() {
        let reset = Err(Gap::Reset);
        check(&[(reset, Ok(1)), (reset, Ok(1))], &Verdict::Quiet);
        check(&[(Ok(0), reset), (Ok(0), reset)], &Verdict::Quiet);
        check(&[(FULL, reset), (FULL, reset)], &Verdict::CannotTell(Why::absent(RX_PACKETS, Gap::Reset)));
        check(&[(reset, Ok(0)), (FULL, Ok(0))], &Verdict::CannotTell(Why::absent(TX_TIME, Gap::Reset)));
        check(&[(FULL, Ok(0))], &Verdict::CannotTell(Why::TooFew { have: 1, need: 2, of: "samples" }));
    }

    #[test]
    fn nothing_on_the_port_is_nothing_on_the_priority() {
        let port = Counter::Packets(Lane::Port, Direction::Rx);
        let samples = [(FULL, Ok(0)), (FULL, Ok(0))];
        let find = |packets, samples: &[(Delta, Delta)]| {
            storms(&series(TX_TIME, packets, samples), LANE, Direction::Tx, &STORM, QUANTA_MAX)
        };
        assert_eq!(find(port, &samples).name(), "firing");
        let why = Why::absent(RX_PACKETS, Gap::NotOffered);
        assert_eq!(find(port, &[(FULL, Ok(9)), (FULL, Ok(9))]), Verdict::CannotTell(why));
        assert_eq!(find(Counter::Bytes(LANE, Direction::Rx), &samples).name(), "firing");
    }

    #[test]
    fn each_direction_says_whose_trouble_it_is() {
        let say = |pause, packets, direction| {
            let samples = [(Ok(300), Ok(0)), (Ok(300), Ok(0))];
            let Verdict::Firing(found) = storms(&series(pause, packets, &samples), LANE, direction, &STORM, QUANTA_MAX)
            else {
                panic!()
            };
            found[0].to_string()
        };
        assert_eq!(
            say(Counter::PauseFrames(LANE, Direction::Tx), RX_PACKETS, Direction::Tx),
            "pause storm from this host: priority 3 paused for 0.200 s and going on, at least 100.0 % of each sample \
             (if each pause frame asked for 65535 quanta), and nothing received on it; \
             tx pause: this host cannot take what the network sends"
        );
        let sent = Counter::Packets(LANE, Direction::Tx);
        assert_eq!(
            say(Counter::PauseFrames(LANE, Direction::Rx), sent, Direction::Rx),
            "this host is the victim of a pause storm: priority 3 paused for 0.200 s and going on, at least 100.0 % of \
             each sample (if each pause frame asked for 65535 quanta), and nothing sent on it; \
             rx pause: the network cannot take what this host sends"
        );
    }

    #[test]
    fn a_storm_that_the_device_reports_is_one() {
        let find = |samples: &[(Delta, Delta)]| {
            reported(&series(Counter::StormWarnings, Counter::StormErrors, samples), &REPORTED)
        };
        assert_eq!(find(&[(Ok(0), Ok(0))]), Verdict::Quiet);
        let Verdict::Firing(found) = find(&[(Ok(1), Ok(0)), (Ok(0), Ok(2)), (Ok(0), Ok(0)), (Ok(0), Ok(0))]) else {
            panic!()
        };
        assert_eq!((found.len(), found[0].warnings, found[0].errors, found[0].episode.ongoing), (1, 1, 2, false));
        assert_eq!(find(&[(Err(Gap::Unread), Ok(1))]).name(), "firing");
        assert_eq!(find(&[(Err(Gap::Unread), Ok(0))]).name(), "cannot tell");
        assert_eq!(reported(&CounterSeries::new(None, 9), &REPORTED).name(), "cannot tell");
    }
}
