//! Which series have a place: once given a place is kept, so that no series comes and goes with the others' numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::table::Metric;
use crate::config::limits;

/// The device label of what more devices share than have series of their own.
pub(super) const OTHER: &str = "other";

/// Places of one device, of what belongs to no device, and of errors.
#[derive(Debug, Default)]
pub(super) struct Seats {
    devices: BTreeMap<String, BTreeSet<(Metric, String)>>,
    counters: BTreeMap<String, BTreeSet<(usize, String)>>,
    unreadable: BTreeMap<String, BTreeSet<String>>,
    netdevs: BTreeMap<String, BTreeSet<(usize, String)>>,
    errors: BTreeSet<[String; 4]>,
    histograms: BTreeSet<String>,
    shared: BTreeMap<Metric, BTreeSet<String>>,
}

/// Places kept free for the series that all further verbs and events of a device share: failures, calls, refused
/// probes, events.
const SHARED: usize = 4;

impl Seats {
    /// The device's own name if it has series of its own, else [`OTHER`].
    pub(super) fn device<'a>(&mut self, name: &'a str) -> &'a str {
        if self.devices.contains_key(name) {
            return name;
        }
        // Names that are no device's (none, unknown, other) take none of the devices' places.
        let is_device = |name: &str| !matches!(name, "" | UNKNOWN | OTHER);
        let devices = self.devices.keys().filter(|name| is_device(name)).count();
        if is_device(name) && devices >= limits::SERIES_DEVICES {
            return OTHER;
        }
        self.devices.insert(name.to_owned(), BTreeSet::new());
        name
    }

    /// Whether the device's series has a place.
    pub(super) fn take(&mut self, device: &str, metric: Metric, series: &str) -> bool {
        let Some(seats) = self.devices.get_mut(device) else {
            return false;
        };
        let key = (metric, series.to_owned());
        // Counters are read when it is their turn: their places stay free, so that who comes first decides nothing.
        let most = limits::SERIES_PER_DEVICE - limits::SERIES_COUNTERS - limits::SERIES_UNREADABLE - SHARED;
        seats.contains(&key) || (seats.len() < most && seats.insert(key))
    }

    /// Whether an RDMA device's counter, by its place in the catalogue, has a place among the device's series.
    pub(super) fn take_counter(&mut self, device: &str, counter: usize, series: &str) -> bool {
        if !self.devices.contains_key(device) {
            return false;
        }
        let seats = self.counters.entry(device.to_owned()).or_default();
        let key = (counter, series.to_owned());
        seats.contains(&key) || (seats.len() < limits::SERIES_COUNTERS && seats.insert(key))
    }

    /// Whether what keeps an RDMA device's counters from being read has a place among the device's series.
    pub(super) fn take_unreadable(&mut self, device: &str, reason: &str) -> bool {
        if !self.devices.contains_key(device) {
            return false;
        }
        let seats = self.unreadable.entry(device.to_owned()).or_default();
        seats.contains(reason) || (seats.len() < limits::SERIES_UNREADABLE && seats.insert(reason.to_owned()))
    }

    /// Whether a network device's counter has a place.
    pub(super) fn take_netdev(&mut self, netdev: &str, counter: usize, series: &str) -> bool {
        if !self.netdevs.contains_key(netdev) && self.netdevs.len() >= limits::SERIES_DEVICES {
            return false;
        }
        let seats = self.netdevs.entry(netdev.to_owned()).or_default();
        let key = (counter, series.to_owned());
        seats.contains(&key) || (seats.len() < limits::SERIES_PER_NETDEV && seats.insert(key))
    }

    /// Network devices that have series of their own.
    pub(super) fn netdevs(&self) -> usize {
        self.netdevs.len()
    }

    /// Whether the error has a series of its own. Each device's shared one has a place besides.
    pub(super) fn take_error(&mut self, labels: [&str; 4]) -> bool {
        let labels = labels.map(str::to_owned);
        // The devices, and the names that are no device's.
        let shared = limits::SERIES_DEVICES + 3;
        self.errors.contains(&labels)
            || (self.errors.len() < limits::SERIES_ERRORS - shared && self.errors.insert(labels))
    }

    /// Whether a series that counts against no device has one of `most` places of its metric.
    pub(super) fn take_shared(&mut self, metric: Metric, series: &str, most: usize) -> bool {
        let seats = self.shared.entry(metric).or_default();
        seats.contains(series) || (seats.len() < most && seats.insert(series.to_owned()))
    }

    /// Whether the verb has a histogram of its own.
    pub(super) fn take_histogram(&mut self, verb: &str) -> bool {
        self.histograms.contains(verb)
            || (self.histograms.len() < limits::HISTOGRAM_VERBS && self.histograms.insert(verb.to_owned()))
    }
}

/// The device label of calls whose device is not known.
pub(super) const UNKNOWN: &str = "unknown";
