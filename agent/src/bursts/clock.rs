//! Where buckets lie on UTC: the offset between the clocks, measured at both ends of a window.
//!
//! Buckets count `CLOCK_MONOTONIC`. It is slewed together with `CLOCK_REALTIME` (clock_gettime(2)), so that the offset
//! between them changes in steps only: when somebody sets the time, or at a leap second. A step is what is looked for.

use analysis::series::{DurationNs, UtcNs};

use crate::kernel::clock::{monotonic_ns, realtime_error, realtime_ns};

/// Readings of which the tightest is taken: an interrupt between two clocks makes one useless, hardly all.
const READINGS: usize = 5;

/// Beyond what two readings are uncertain by, the offset changes by no more than this without a step.
const NOISE_NS: u64 = 10_000;

/// The clocks: the host's, or in tests any.
pub(crate) trait Clocks {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    fn monotonic(&self) -> u64;

    /// `CLOCK_REALTIME` in nanoseconds.
    fn realtime(&self) -> i64;

    /// How wrong `CLOCK_REALTIME` may be; `None` if nobody keeps it.
    fn error(&self) -> Option<DurationNs>;
}

/// The clocks of this host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostClocks;

impl Clocks for HostClocks {
    fn monotonic(&self) -> u64 {
        monotonic_ns()
    }

    fn realtime(&self) -> i64 {
        realtime_ns()
    }

    fn error(&self) -> Option<DurationNs> {
        realtime_error()
    }
}

/// One comparison of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// UTC less `CLOCK_MONOTONIC`.
    ns: i64,
    /// The true one is no further away than this.
    uncertain_ns: u64,
}

impl Offset {
    /// Compares the clocks now.
    pub(crate) fn measure(clocks: &impl Clocks) -> Self {
        let reading = |_| {
            let before = clocks.monotonic();
            let realtime = clocks.realtime();
            let bracket = clocks.monotonic().saturating_sub(before);
            let middle = i64::try_from(before.saturating_add(bracket / 2)).unwrap_or(i64::MAX);
            Self { ns: realtime.saturating_sub(middle), uncertain_ns: bracket.div_ceil(2) }
        };
        (0..READINGS).map(reading).min_by_key(|reading| reading.uncertain_ns).unwrap_or(Self { ns: 0, uncertain_ns: 0 })
    }

    /// A time of `CLOCK_MONOTONIC` on UTC.
    pub(crate) fn utc(self, monotonic_ns: u64) -> UtcNs {
        UtcNs(i64::try_from(monotonic_ns).unwrap_or(i64::MAX).saturating_add(self.ns))
    }

    /// A time of UTC on `CLOCK_MONOTONIC`; 0 for one before it began.
    pub(crate) fn monotonic(self, utc: UtcNs) -> u64 {
        u64::try_from(utc.0.saturating_sub(self.ns)).unwrap_or_default()
    }
}

/// The offset in use. It is kept as long as the clocks agree with it, so that buckets of one window follow on those of
/// the window before to the nanosecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    offset: Offset,
}

/// How a window lies on UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// What its buckets are placed by.
    pub(crate) offset: Offset,
    /// How far their times may be off from UTC; `None` if nobody keeps the clock.
    pub(crate) error: Option<DurationNs>,
    /// By how much the clock was set meanwhile (forward is positive), if it was.
    pub(crate) step_ns: Option<i64>,
}

impl Placing {
    /// Compares the clocks at the beginning of the first window.
    pub(crate) fn new(clocks: &impl Clocks) -> Self {
        Self { offset: Offset::measure(clocks) }
    }

    /// The offset in use.
    pub(crate) fn offset(&self) -> Offset {
        self.offset
    }

    /// Compares the clocks at the end of a window, which is the beginning of the next.
    ///
    /// After a step the window is placed by the clock as it is now; its error grows by the step, since it is not known
    /// where in the window the step was.
    pub(crate) fn window(&mut self, clocks: &impl Clocks) -> Window {
        let now = Offset::measure(clocks);
        let change = now.ns.saturating_sub(self.offset.ns);
        let allowed = NOISE_NS.saturating_add(now.uncertain_ns).saturating_add(self.offset.uncertain_ns);
        let step_ns = (change.unsigned_abs() > allowed).then_some(change);
        if step_ns.is_some() {
            self.offset = now;
        }
        let own = change.unsigned_abs().saturating_add(now.uncertain_ns);
        let error = clocks.error().map(|error| DurationNs(error.0.saturating_add(own)));
        Window { offset: self.offset, error, step_ns }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Clocks that the test sets. Each look takes `look` nanoseconds; the third one of a measurement takes `held`.
    struct Set {
        monotonic: Cell<u64>,
        ahead: Cell<i64>,
        look: u64,
        held: u64,
        looks: Cell<u32>,
        error: Option<DurationNs>,
    }

    impl Set {
        fn new(error: Option<u64>) -> Self {
            let (monotonic, ahead) = (Cell::new(5_000_000_000), Cell::new(1_700_000_000_000_000_000));
            Self { monotonic, ahead, look: 40, held: 0, looks: Cell::new(0), error: error.map(DurationNs) }
        }

        fn pass(&self) -> u64 {
            let looks = self.looks.get();
            self.looks.set(looks + 1);
            let time = if looks.is_multiple_of(3) { self.held } else { 0 } + self.look;
            self.monotonic.set(self.monotonic.get() + time);
            self.monotonic.get()
        }
    }

    impl Clocks for Set {
        fn monotonic(&self) -> u64 {
            self.pass()
        }

        fn realtime(&self) -> i64 {
            i64::try_from(self.pass()).unwrap() + self.ahead.get()
        }

        fn error(&self) -> Option<DurationNs> {
            self.error
        }
    }

    #[test]
    fn clocks_that_agree_keep_the_offset_to_the_nanosecond() {
        let clocks = Set::new(Some(250_000));
        let mut placing = Placing::new(&clocks);
        let first = placing.offset();
        for noise in [0, 3, -7_000, 9_000] {
            clocks.ahead.set(1_700_000_000_000_000_000 + noise);
            let window = placing.window(&clocks);
            assert_eq!((window.offset, window.step_ns), (first, None), "{noise}");
            let error = window.error.unwrap().0;
            assert!(error >= 250_000 + noise.unsigned_abs() && error < 250_200 + noise.unsigned_abs(), "{error}");
        }
    }

    #[test]
    fn a_step_is_noticed_both_ways_and_its_window_says_how_wrong_it_may_be() {
        for step in [20_000_000i64, -20_000_000, 3_600_000_000_000, -50_000] {
            let clocks = Set::new(Some(1_000));
            let mut placing = Placing::new(&clocks);
            clocks.ahead.set(clocks.ahead.get() + step);
            let window = placing.window(&clocks);
            assert_eq!(window.step_ns.map(|found| (found - step).abs() <= 40), Some(true), "{window:?}");
            assert!(window.error.unwrap().0 >= step.unsigned_abs(), "{window:?}");
            let after = placing.window(&clocks);
            assert_eq!((after.step_ns, after.offset), (None, window.offset), "it is noticed once");
            assert!(after.error.unwrap().0 < 2_000);
        }
    }

    #[test]
    fn a_clock_that_nobody_keeps_has_no_error_to_state() {
        let clocks = Set::new(None);
        assert_eq!(Placing::new(&clocks).window(&clocks).error, None);
    }

    #[test]
    fn a_reading_that_was_held_up_is_not_taken() {
        let clocks = Set { held: 3_000_000, ..Set::new(None) };
        // Only the first of three looks is held up, before the bracket opens.
        let offset = Offset::measure(&clocks);
        assert!(offset.uncertain_ns <= 40, "{offset:?}");
        clocks.looks.set(1);
        let clocks = Set { look: 40, held: 2_000_000, looks: Cell::new(2), ..Set::new(None) };
        let offset = Offset::measure(&clocks);
        assert!((offset.ns - 1_700_000_000_000_000_000).abs() <= offset.uncertain_ns.try_into().unwrap());
    }

    #[test]
    fn times_come_and_go() {
        let clocks = Set::new(None);
        let offset = Offset::measure(&clocks);
        assert_eq!(offset.monotonic(offset.utc(7_000_000_000)), 7_000_000_000);
        assert_eq!(offset.monotonic(UtcNs(0)), 0);
        assert_eq!(offset.monotonic(UtcNs(i64::MIN)), 0);
        assert_eq!(offset.utc(u64::MAX), UtcNs(i64::MAX));
    }

    #[test]
    fn this_host_s_clocks_can_be_compared() {
        let offset = Offset::measure(&HostClocks);
        assert!(offset.uncertain_ns < 1_000_000_000, "{offset:?}");
        assert_eq!(Placing::new(&HostClocks).window(&HostClocks).step_ns, None);
    }
}
