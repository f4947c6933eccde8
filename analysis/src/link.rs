//! A link that goes down again and again.

use std::fmt;

use crate::counter_series::{Counter, CounterSeries};
use crate::delta::Gap;
use crate::series::{DurationNs, UtcNs};
use crate::verdict::{Episode, Hysteresis, Level, Verdict, Why, episodes};

/// When a link counts as flapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlapLimits {
    /// Changes within this time belong together.
    pub window: DurationNs,
    /// Over the changes in one window.
    pub changes: Hysteresis,
}

/// Three times down within ten minutes; over after ten minutes without. The project's own choice: once is a fault of its
/// own, and a link that came back is not well yet.
pub const FLAP: FlapLimits = FlapLimits {
    window: DurationNs(600_000_000_000),
    changes: Hysteresis { enter: 3.0, leave: 1.0, enter_samples: 1, leave_samples: 1 },
};

/// A time in which a link flapped.
#[derive(Clone, Debug, PartialEq)]
pub struct Flap {
    /// From the change that was one too many to the end of the last window with a change in it.
    pub episode: Episode,
    /// It went down so often, those before the episode that led to it included.
    pub downs: u64,
    /// The end of the last sample in which it went down.
    pub last: UtcNs,
}

impl fmt::Display for Flap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ongoing = if self.episode.ongoing { ", and is not well yet" } else { "" };
        write!(f, "the link went down {} times{ongoing}", self.downs)
    }
}

/// Whether the link flapped.
#[must_use]
pub fn flaps(series: &CounterSeries, limits: &FlapLimits) -> Verdict<Vec<Flap>> {
    let downs = Counter::LinkDowns;
    let found = episodes(series, &limits.changes, |at| {
        let recent = series.back(at, limits.window);
        let level = limits.changes.level(series.known(downs, recent.clone()).unwrap_or(0) as f64);
        // A first reading ends no interval: nothing was missed there.
        let unknown =
            recent.map(|at| series.delta(downs, at)).find_map(|delta| delta.err().filter(|gap| *gap != Gap::First));
        match unknown {
            Some(gap) if level != Level::High => Level::Unknown(Why::absent(downs, gap)),
            _ => level,
        }
    });
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let samples = series.back(episode.samples.start, limits.window).start..episode.samples.end;
            let last = samples.clone().rev().find(|&at| series.delta(downs, at).is_ok_and(|count| count > 0));
            let last = last.and_then(|at| series.when(at)).map_or(episode.span.start, |when| when.end());
            Flap { downs: series.known(downs, samples).unwrap_or(0), last, episode }
        });
        evidence.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::Delta;

    /// Samples of one minute: a digit is the times that the link went down, `?` not read, `s` saturated, `f` first.
    fn find(samples: &str) -> Verdict<Vec<Flap>> {
        let mut series = CounterSeries::new(None, 99);
        for (at, letter) in samples.chars().enumerate() {
            let delta: Delta = match letter {
                '?' => Err(Gap::Unread),
                's' => Err(Gap::Saturated),
                'f' => Err(Gap::First),
                digit => Ok(u64::from(digit.to_digit(10).unwrap())),
            };
            let when = When { start: UtcNs(at as i64 * 60_000_000_000), length: DurationNs(60_000_000_000) };
            series.push(when, [(Counter::LinkDowns, delta)]);
        }
        flaps(&series, &FLAP)
    }

    #[test]
    fn three_times_down_within_ten_minutes_is_a_flap() {
        let rows = [
            ("0000", "quiet"),
            ("1001", "quiet"),
            ("100000000101", "quiet"),
            ("100010001", "firing"),
            ("1000100001", "firing"),
            ("10001000001", "quiet"),
            ("3", "firing"),
            ("f00", "quiet"),
            ("0?0", "cannot tell"),
            ("3?0", "firing"),
            ("sss", "cannot tell"),
            ("", "cannot tell"),
        ];
        for (samples, expected) in rows {
            assert_eq!(find(samples).name(), expected, "{samples}");
        }
        assert_eq!(find("0ss"), Verdict::CannotTell(Why::absent(Counter::LinkDowns, Gap::Saturated)));
    }

    #[test]
    fn a_link_that_came_back_is_not_well_yet() {
        let flap = |samples| match find(samples) {
            Verdict::Firing(mut found) if found.len() == 1 => found.remove(0),
            other => panic!("{samples}: {other:?}"),
        };
        let found = flap("0102000000000");
        assert_eq!((found.downs, found.last, found.episode.ongoing), (3, UtcNs(240_000_000_000), true));
        assert_eq!(found.to_string(), "the link went down 3 times, and is not well yet");
        assert_eq!(flap("01020000000000").to_string(), "the link went down 3 times");
    }
}
