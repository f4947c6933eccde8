//! How often a port's link went down in the last ten minutes, however often the port is read.

use std::time::Duration;

use analysis::counter_series::{Counter, CounterSeries, When};
use analysis::delta::Delta;
use analysis::series::DurationNs;

use crate::config::limits;

/// The samples of one port's link.
#[derive(Debug)]
pub(super) struct LinkWindow {
    samples: CounterSeries,
    /// Readings that are too short for a sample of their own.
    pending: Option<(When, Option<Delta>)>,
}

impl LinkWindow {
    /// Nothing yet. `pace` is the time between two readings.
    pub(super) fn new(pace: Duration) -> Self {
        let most = limits::CARRIER_WINDOW.as_nanos().div_ceil(pace.max(limits::LINK_SAMPLE).as_nanos());
        // What the last two samples say is worth knowing however far they are apart.
        let samples = CounterSeries::new(None, usize::try_from(most).unwrap_or(usize::MAX).max(2));
        Self { samples, pending: None }
    }

    /// Takes what the counters say of a reading; none for a port that does not count. What could not be read makes all
    /// of its sample unknown.
    pub(super) fn take(&mut self, when: When, deltas: impl Iterator<Item = Delta>) {
        let sum = |one: Delta, other: Delta| Ok(one?.saturating_add(other?));
        let (earlier, before) = self.pending.take().unwrap_or((When { length: DurationNs(0), ..when }, None));
        let length = DurationNs(earlier.length.0.saturating_add(when.length.0));
        let when = When { start: earlier.start, length };
        let delta = before.into_iter().chain(deltas).reduce(sum);
        if u128::from(length.0) < limits::LINK_SAMPLE.as_nanos() {
            self.pending = Some((when, delta));
        } else {
            self.samples.push(when, delta.map(|delta| (Counter::LinkDowns, delta)));
        }
    }

    /// All of them, the oldest first.
    pub(super) fn samples(&self) -> &CounterSeries {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use analysis::delta::Gap;
    use analysis::series::UtcNs;

    use super::*;

    /// The samples after readings of this many milliseconds each.
    fn samples(milliseconds: u64, deltas: &[Option<Delta>]) -> Vec<(u64, Delta)> {
        let length = DurationNs(milliseconds * 1_000_000);
        let mut window = LinkWindow::new(Duration::from_millis(milliseconds));
        for (number, delta) in (0i64..).zip(deltas) {
            let start = UtcNs(number * i64::try_from(length.0).unwrap());
            window.take(When { start, length }, delta.iter().copied());
        }
        let samples = window.samples();
        let all = (0..samples.len()).map(|at| (samples.when(at).unwrap(), samples.delta(Counter::LinkDowns, at)));
        all.map(|(when, delta)| (when.length.0 / 1_000_000, delta)).collect()
    }

    #[test]
    fn short_readings_share_a_sample() {
        let (one, none) = (Some(Ok(1)), Some(Ok(0)));
        assert_eq!(samples(10_000, &[none, one]), [(10_000, Ok(0)), (10_000, Ok(1))]);
        assert_eq!(samples(400, &[one, none, one, one]), [(1_200, Ok(2))]);
        let unread = Some(Err(Gap::Unread));
        assert_eq!(samples(400, &[one, unread, one]), [(1_200, Err(Gap::Unread))]);
        assert_eq!(samples(1_000, &[None]), [(1_000, Err(Gap::NotOffered))]);
    }

    #[test]
    fn the_window_is_ten_minutes_whatever_the_pace() {
        let covered = |milliseconds: u64| {
            let readings = vec![Some(Ok(0)); usize::try_from(1_200_000 / milliseconds).unwrap()];
            samples(milliseconds, &readings).iter().map(|(length, _)| length).sum::<u64>()
        };
        for milliseconds in [100, 1_000, 10_000] {
            assert_eq!(covered(milliseconds), 600_000, "{milliseconds}");
        }
    }
}
