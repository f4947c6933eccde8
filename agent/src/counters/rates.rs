//! What moved between two readings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::catalogue::{Row, Source, Unit};
use super::readout::{Place, Readout, Series};

/// One counter over an interval.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    /// Whose.
    pub(crate) place: Arc<Place>,
    /// What it means.
    pub(crate) row: &'static Row,
    /// Of those that count by priority.
    pub(crate) priority: Option<u8>,
    /// Its value at the end; seconds are kept as microseconds.
    pub(crate) value: u64,
    /// By how much it grew, likewise; absent where it began again, stands at its end, or is no count.
    pub(crate) increase: Option<u64>,
    /// It stands at the end of its range and counts no more.
    pub(crate) saturated: bool,
    /// Where it was read.
    pub(crate) source: Source,
}

/// Counters over a measured time.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// Measured, not asked for.
    pub(crate) elapsed: Duration,
    /// In the order of the later reading.
    pub(crate) rates: Vec<Rate>,
}

/// From one reading to a later one.
pub(crate) fn between(earlier: &Readout, later: &Readout) -> Interval {
    type Key<'a> = (&'a Place, &'static str, Option<u8>);
    let key = |series: &Series| (series.row.name, series.priority);
    let known: BTreeMap<Key<'_>, &Series> = earlier
        .series
        .iter()
        .map(|series| {
            let (name, priority) = key(series);
            ((&*series.place, name, priority), series)
        })
        .collect();
    let rates = later.series.iter().map(|series| {
        let (name, priority) = key(series);
        let before = known.get(&(&*series.place, name, priority)).filter(|before| before.epoch == series.epoch);
        let counts = series.row.unit != Unit::Percent && !series.saturated;
        Rate {
            place: Arc::clone(&series.place),
            row: series.row,
            priority,
            value: series.value,
            increase: before.filter(|_| counts).and_then(|before| series.value.checked_sub(before.value)),
            saturated: series.saturated,
            source: series.source,
        }
    });
    Interval { elapsed: later.at.saturating_duration_since(earlier.at), rates: rates.collect() }
}

impl Rate {
    /// Whether it moved, or stands where it should not.
    pub(crate) fn moved(&self) -> bool {
        match self.row.unit {
            Unit::Percent => self.value > 0,
            _ => self.increase.is_some_and(|increase| increase > 0),
        }
    }

    /// By second.
    pub(crate) fn per_second(&self, elapsed: Duration) -> Option<f64> {
        let seconds = elapsed.as_secs_f64();
        self.increase.filter(|_| seconds > 0.0).map(|increase| self.row.in_unit(increase) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::counters::catalogue::row;
    use crate::counters::readout::{Further, Kind};

    fn readout(at: Instant, name: &str, value: u64, epoch: u64, saturated: bool) -> Readout {
        let place = Arc::new(Place { kind: Kind::Netdev, device: "eth0".to_owned(), port: None });
        let (row, source) = (row(name).expect("a row"), Source::Ethtool);
        let series = vec![Series { place, row, priority: None, value, saturated, epoch, source }];
        let (subjects, shown, resources, durations) = (vec![], vec![], vec![], vec![]);
        Readout { at, subjects, series, shown, resources, durations, counters: 1, further: Further::default() }
    }

    /// The rate over two seconds.
    #[track_caller]
    fn check(name: &str, values: [u64; 2], epochs: [u64; 2], saturated: bool, expected: Option<f64>) {
        let now = Instant::now();
        let earlier = readout(now, name, values[0], epochs[0], saturated);
        let later = readout(now + Duration::from_secs(2), name, values[1], epochs[1], saturated);
        let interval = between(&earlier, &later);
        assert_eq!(interval.rates[0].per_second(interval.elapsed), expected);
    }

    #[test]
    fn rates_are_by_measured_second() {
        check("nic_received_bytes", [10, 30], [0, 0], false, Some(10.0));
        check("nic_received_bytes", [10, 10], [0, 0], false, Some(0.0));
        check("nic_received_pause_seconds", [1_000_000, 3_000_000], [0, 0], false, Some(1.0));
    }

    #[test]
    fn what_began_again_or_is_saturated_has_no_rate() {
        check("nic_received_bytes", [100, 3], [0, 1], false, None);
        check("nic_received_bytes", [3, 100], [0, 1], false, None);
        check("rdma_link_down_events", [255, 255], [0, 0], true, None);
        check("nic_pcie_stalled_read_percent", [3, 40], [0, 0], false, None);
    }

    #[test]
    fn what_was_not_there_before_has_no_rate() {
        let now = Instant::now();
        let later = readout(now, "nic_received_bytes", 5, 0, false);
        let earlier = Readout { series: vec![], ..later.clone() };
        assert_eq!(between(&earlier, &later).rates[0].increase, None);
        assert_eq!(between(&later, &later).rates[0].per_second(Duration::ZERO), None);
    }

    #[test]
    fn a_share_is_shown_while_it_is_not_nothing() {
        let now = Instant::now();
        let of = |value| readout(now, "nic_pcie_stalled_read_percent", value, 0, false);
        assert!(between(&of(0), &of(7)).rates[0].moved());
        assert!(!between(&of(7), &of(0)).rates[0].moved());
    }
}
