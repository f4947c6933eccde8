//! What moved between two readings.

use std::cell::LazyCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::catalogue::{Row, Source, Unit};
use super::readout::{Place, Readout, Series, Subject};

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
    let is_same = |a: &&Series, b: &Series| a.place == b.place && a.row.is(b.row) && a.priority == b.priority;
    // Mostly the same counters are there in the same order; only else are they looked for.
    let known = LazyCell::new(|| earlier.series.iter().map(|series| (key(series), series)).collect::<BTreeMap<_, _>>());
    let rates = later.series.iter().enumerate().map(|(at, series)| {
        let before = earlier.series.get(at).filter(|before| is_same(before, series));
        let before = before.or_else(|| known.get(&key(series)).copied());
        let before = before.filter(|before| before.epoch == series.epoch);
        let counts = series.row.unit != Unit::Percent && !series.saturated;
        Rate {
            place: Arc::clone(&series.place),
            row: series.row,
            priority: series.priority,
            value: series.value,
            increase: before.filter(|_| counts).and_then(|before| series.value.checked_sub(before.value)),
            saturated: series.saturated,
            source: series.source,
        }
    });
    Interval { elapsed: later.at.saturating_duration_since(earlier.at), rates: rates.collect() }
}

fn key(series: &Series) -> (&Place, &'static str, Option<u8>) {
    (&*series.place, series.row.name, series.priority)
}

impl Interval {
    /// Those of one device.
    pub(crate) fn of(&self, subject: &Subject) -> &[Rate] {
        let device = |rate: &Rate| (rate.place.kind, &*rate.place.device).cmp(&(subject.kind, &*subject.name));
        let from = self.rates.partition_point(|rate| device(rate) == Ordering::Less);
        let rest = self.rates.get(from..).unwrap_or_default();
        rest.get(..rest.partition_point(|rate| device(rate) == Ordering::Equal)).unwrap_or_default()
    }
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
    use crate::counters::relations::Relations;

    fn readout(at: Instant, name: &str, value: u64, epoch: u64, saturated: bool) -> Readout {
        let place = Arc::new(Place { kind: Kind::Netdev, device: "eth0".to_owned(), port: None });
        let (row, source) = (row(name).expect("a row"), Source::Ethtool);
        let series = vec![Series { place, row, priority: None, value, saturated, epoch, source, at }];
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
    fn counters_are_found_again_wherever_they_stand() {
        let now = Instant::now();
        let all = ["nic_received_bytes", "nic_sent_bytes", "nic_received_packets"];
        let with = |names: &[&str], value| Readout {
            series: names.iter().flat_map(|name| readout(now, name, value, 0, false).series).collect(),
            ..readout(now, all[0], value, 0, false)
        };
        for (earlier, later) in [(&all[..], &all[..]), (&all, &all[1..]), (&all[1..], &all), (&all[..2], &all[1..])] {
            let increases = between(&with(earlier, 3), &with(later, 10)).rates;
            for rate in increases {
                let expected = earlier.contains(&rate.row.name).then_some(7);
                assert_eq!(rate.increase, expected, "{} from {earlier:?} to {later:?}", rate.row.name);
            }
        }
    }

    #[test]
    fn each_device_has_its_own_rates() {
        let now = Instant::now();
        let names = [(Kind::Rdma, "mlx5_1"), (Kind::Rdma, "mlx5_10"), (Kind::Netdev, "eth0"), (Kind::Netdev, "mlx5_1")];
        let of_two = |(kind, device): (Kind, &str)| {
            let place = Arc::new(Place { kind, device: device.to_owned(), port: None });
            let series = |name| readout(now, name, 1, 0, false).series.remove(0);
            ["nic_received_bytes", "nic_sent_bytes"].map(|name| Series { place: Arc::clone(&place), ..series(name) })
        };
        let series = names.into_iter().flat_map(of_two).collect();
        let readout = Readout { series, ..readout(now, "nic_received_bytes", 1, 0, false) };
        let interval = between(&readout, &readout);
        let subject = |kind, name: &str| Subject {
            kind,
            name: name.to_owned(),
            driver: None,
            port_of: None,
            priorities: None,
            quarantined: None,
            failures: vec![],
            relations: Relations::default(),
        };
        for (kind, name) in names {
            let rates = interval.of(&subject(kind, name));
            let own = |rate: &Rate| (rate.place.kind, &*rate.place.device) == (kind, name);
            assert!(rates.len() == 2 && rates.iter().all(own), "{name}: {rates:?}");
        }
        assert!(interval.of(&subject(Kind::Netdev, "eth1")).is_empty());
        assert!(interval.of(&subject(Kind::Rdma, "a")).is_empty());
    }

    #[test]
    fn a_share_is_shown_while_it_is_not_nothing() {
        let now = Instant::now();
        let of = |value| readout(now, "nic_pcie_stalled_read_percent", value, 0, false);
        assert!(between(&of(0), &of(7)).rates[0].moved());
        assert!(!between(&of(7), &of(0)).rates[0].moved());
    }
}
