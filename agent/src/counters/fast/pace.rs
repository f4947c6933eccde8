//! How often a source is read: as was asked for, or more seldom while it is slow.

use std::time::Duration;

use crate::config::limits;

/// The pace of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    asked: Duration,
    now: Duration,
    /// Readings one after the other that took too long, with the least that one of them took.
    slow: u32,
    least: Duration,
    /// For how long readings have been quick enough for a faster pace, and how long that has to last.
    calm: Duration,
    calm_for: Duration,
}

/// What a reading changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Slower,
    Faster,
}

impl Pace {
    pub(super) fn new(asked: Duration) -> Self {
        let (slow, least, calm) = (0, Duration::MAX, Duration::ZERO);
        Self { asked, now: asked, slow, least, calm, calm_for: limits::FAST_CALM }
    }

    /// The time from one reading to the next.
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// What was asked for.
    pub(super) fn asked(&self) -> Duration {
        self.asked
    }

    /// Takes how long a reading took, of which `parts` are to fit into the pace. One slow reading is nothing: the thread
    /// may have been held up.
    pub(super) fn note(&mut self, took: Duration, parts: u32) -> Option<Change> {
        let needed = took.saturating_mul(parts);
        if needed > self.now {
            self.calm = Duration::ZERO;
            self.slow += 1;
            self.least = self.least.min(needed);
            if self.slow < limits::FAST_SLOW_READINGS {
                return None;
            }
            while self.now < self.least && self.now < limits::FAST_SLOWEST {
                self.now = self.now.saturating_mul(2);
            }
            self.now = self.now.min(limits::FAST_SLOWEST.max(self.asked));
            (self.slow, self.least) = (0, Duration::MAX);
            // One that goes back and forth does so less and less often.
            self.calm_for = self.calm_for.saturating_mul(2).min(limits::FAST_CALM_MAX);
            return Some(Change::Slower);
        }
        (self.slow, self.least) = (0, Duration::MAX);
        if self.now <= self.asked {
            return None;
        }
        self.calm = if needed <= self.now / 2 { self.calm.saturating_add(self.now) } else { Duration::ZERO };
        if self.calm < self.calm_for {
            return None;
        }
        self.calm = Duration::ZERO;
        self.now = (self.now / 2).max(self.asked);
        Some(Change::Faster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The pace in milliseconds after so many readings of so many microseconds each, of which four are to fit.
    #[track_caller]
    fn check(pace: &mut Pace, micros: u64, readings: u32, expected: u128) {
        for _ in 0..readings {
            pace.note(Duration::from_micros(micros), 4);
        }
        assert_eq!(pace.now().as_millis(), expected, "{micros} us, {readings} times");
    }

    #[test]
    fn a_slow_source_is_read_more_seldom_and_a_held_up_reading_is_nothing() {
        let mut pace = Pace::new(MS);
        check(&mut pace, 250, 100, 1);
        check(&mut pace, 9_000, limits::FAST_SLOW_READINGS - 1, 1);
        check(&mut pace, 100, 1, 1);
        // 0.9 ms each: four of them fit into 4 ms.
        check(&mut pace, 900, limits::FAST_SLOW_READINGS, 4);
        check(&mut pace, 900, 1000, 4);
        check(&mut pace, 3_600_000, 100, limits::FAST_SLOWEST.as_millis());
    }

    #[test]
    fn it_is_read_faster_again_when_it_has_been_quick_for_a_while_and_later_each_time() {
        let mut pace = Pace::new(MS);
        let back = |pace: &mut Pace| {
            check(pace, 900, limits::FAST_SLOW_READINGS, 4);
            let mut waited = Duration::ZERO;
            while pace.now() > pace.asked() {
                assert!(waited <= limits::FAST_CALM_MAX * 2, "it is not read faster again: {pace:?}");
                waited += pace.now();
                pace.note(Duration::from_micros(100), 4);
            }
            waited
        };
        let waits: Vec<Duration> = (0..8).map(|_| back(&mut pace)).collect();
        assert!(waits[0] >= limits::FAST_CALM && waits[1] > waits[0] * 3 / 2, "{waits:?}");
        assert_eq!(waits[7], waits[6], "{waits:?}");
    }
}
