//! Reads everything once, whenever it is told to, and remembers what it takes to make counts of numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Statistics;
use super::block::{Gathered, Part};
use super::catalogue::Source;
use super::device::Device;
use super::discover::{Search, fingerprint};
use super::filter::Filter;
use super::namespaces::Namespaces;
use super::netlink::devlink::Reporter;
use super::netlink::rdma::Bound;
use super::readout::{Further, Kind, Place, Readout, Series, Subject};
use crate::config::limits;
use crate::health::resources::Used;
use crate::host::roots::Roots;

/// The reader.
pub(crate) struct Collector {
    roots: Roots,
    filter: Filter,
    all: bool,
    queue_pairs: bool,
    statistics: Box<dyn Statistics>,
    devices: Vec<Device>,
    elsewhere: Namespaces,
    /// The devices of the last look, by which a change is noticed.
    fingerprint: Vec<(String, u64)>,
    /// When everything was looked for; it is again at once where this is absent.
    looked: Option<Instant>,
}

impl Collector {
    /// A reader that has not looked yet. `all` has counters shown too that no row of the catalogue knows.
    pub(crate) fn new(roots: Roots, filter: Filter, all: bool, statistics: Box<dyn Statistics>) -> Self {
        let (devices, elsewhere, fingerprint) = (Vec::new(), Namespaces::default(), Vec::new());
        Self { roots, filter, all, queue_pairs: false, statistics, devices, elsewhere, fingerprint, looked: None }
    }

    /// Has counters read too that are bound to queue pairs: there may be many, so that only who looks at them asks.
    pub(crate) fn with_queue_pairs(mut self) -> Self {
        self.queue_pairs = true;
        self
    }

    /// A full reading. Nothing on the host is no error, nor is anything that a device answers.
    pub(crate) fn read(&mut self, now: Instant) -> Readout {
        self.look(now);
        let mut gathered = Gathered { kept: self.kept(), ..Gathered::default() };
        let mut durations: BTreeMap<Source, Duration> = BTreeMap::new();
        for device in &mut self.devices {
            let outcome = device.read(now, &*self.statistics, &mut durations, &mut gathered);
            if outcome.gone {
                self.looked = None;
            }
        }
        if self.statistics.is_exclusive() {
            let wanted = (&self.roots, &self.filter, self.all);
            self.elsewhere.read(now, wanted, &mut durations, &mut gathered);
        } else {
            self.elsewhere = Namespaces::default();
        }
        let mut subjects: Vec<Subject> = self.devices.iter().map(|device| self.subject(device, now)).collect();
        subjects.extend(self.elsewhere.subjects(now));
        let (reporters, closed_namespaces) = (self.reporters(&subjects), self.elsewhere.closed);
        let further = Further { reporters, bound: self.bound(), closed_namespaces };
        Readout {
            at: Instant::now(),
            subjects,
            counters: gathered.asked,
            series: series(gathered.parts),
            shown: gathered.shown,
            resources: self.resources(),
            durations: durations.into_iter().collect(),
            further,
        }
    }

    fn subject(&self, device: &Device, now: Instant) -> Subject {
        let mut subject = device.subject(now);
        if device.kind == Kind::Netdev {
            subject.relations.changes = device.index.and_then(|index| self.statistics.changes(index));
        }
        subject
    }

    /// Of the devices that are read, or all if nothing is left out: an adapter may report that has no device yet.
    fn reporters(&self, subjects: &[Subject]) -> Vec<Reporter> {
        let mut reporters = self.statistics.reporters();
        if !self.filter.is_all() {
            let is_of = |subject: &Subject, reporter: &Reporter| subject.relations.stands_on(&reporter.device);
            reporters.retain(|reporter| subjects.iter().any(|subject| is_of(subject, reporter)));
        }
        reporters.truncate(limits::REPORTERS);
        reporters
    }

    /// Where single queue pairs may be shown.
    fn bound(&self) -> Vec<(String, Bound)> {
        let devices = self.devices.iter().filter(|device| self.queue_pairs && device.kind == Kind::Rdma);
        let of = |device: &Device| {
            let found = device.index.map(|index| self.statistics.bound(index)).unwrap_or_default();
            let wanted = found.into_iter().filter(|bound| self.filter.wants_port(bound.port));
            wanted.map(|bound| (device.name.clone(), bound)).collect::<Vec<_>>()
        };
        devices.flat_map(of).take(limits::BOUND_COUNTERS).collect()
    }

    /// Looks for devices again if they have changed, and from time to time in any case: a port's network device may be
    /// another one now.
    fn look(&mut self, now: Instant) {
        let found = fingerprint(&self.roots);
        let recent = |looked: Instant| now.saturating_duration_since(looked) < limits::COUNTER_LOOK;
        if self.looked.is_some_and(recent) && found == self.fingerprint {
            return;
        }
        self.fingerprint = found;
        self.looked = Some(now);
        // A device that is gone may be in another namespace now, or come from one.
        self.elsewhere.look_soon();
        let search = Search { roots: &self.roots, filter: &self.filter, all: self.all, statistics: &*self.statistics };
        let mut old = std::mem::take(&mut self.devices);
        for facts in search.devices() {
            let known = old.iter().position(|device| device.kind == facts.kind && device.name == facts.name);
            let mut device = Device::new(facts);
            if let Some(known) = known {
                device.inherit(old.swap_remove(known));
            }
            if device.kind == Kind::Netdev {
                device.priorities = self.statistics.priorities(&device.name);
            }
            self.devices.push(device);
        }
    }

    /// Of the devices that are read: a filter leaves out the others.
    fn resources(&self) -> Vec<Used> {
        let is_read = |used: &Used| self.devices.iter().any(|d| d.kind == Kind::Rdma && d.name == used.device);
        let mut resources = self.statistics.resources();
        resources.retain(is_read);
        resources
    }

    fn kept(&self) -> usize {
        self.devices.iter().flat_map(|device| &device.blocks).map(super::block::Block::kept).sum()
    }
}

/// Parts of the same series are added up; where several sources tell the same, the first is taken.
fn series(gathered: BTreeMap<Arc<Place>, Vec<Part>>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::with_capacity(gathered.values().map(Vec::len).sum());
    for (place, mut parts) in gathered {
        parts.sort_by_key(|part| (part.order, part.found.priority, part.found.name.rank));
        let mut last = None;
        for part in parts {
            let Part { order, found, value, saturated, epoch, source, at } = part;
            let (row, priority, rank) = (found.row, found.priority, found.name.rank);
            match (series.last_mut(), last) {
                (Some(sum), Some((same, taken))) if same == (order, priority) => {
                    if taken == rank {
                        sum.value = sum.value.saturating_add(value);
                        sum.saturated |= saturated;
                        sum.epoch = sum.epoch.wrapping_add(epoch);
                    }
                }
                _ => {
                    last = Some(((order, priority), rank));
                    let place = Arc::clone(&place);
                    series.push(Series { place, row, priority, value, saturated, epoch, source, at });
                }
            }
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Driver, Found, Name, Scale, Width, row};
    use super::*;

    const fn name(rank: u8) -> Name {
        let (source, width) = (Source::Ethtool, Width::Full);
        Name { driver: Driver::Any, source, name: "any", width, scale: Scale::One, rank }
    }

    static FIRST: Name = name(0);
    static SECOND: Name = name(7);

    fn part(row_name: &str, priority: Option<u8>, name: &'static Name, value: u64, saturated: bool) -> Part {
        let row = row(row_name).unwrap();
        let (source, at) = (Source::Ethtool, Instant::now());
        let found = Found { row, name, priority };
        Part { order: super::super::catalogue::order(row), found, value, saturated, epoch: 1, source, at }
    }

    #[test]
    fn parts_of_one_rank_are_a_sum_and_what_tells_the_same_again_is_left() {
        let (bytes, pause) = ("nic_received_bytes", "pfc_received_pause_frames");
        let parts = vec![
            part(pause, Some(3), &FIRST, 5, false),
            part(bytes, None, &SECOND, 1000, true),
            part(bytes, None, &FIRST, 1, false),
            part(pause, Some(0), &SECOND, 7, false),
            part(bytes, None, &FIRST, 2, false),
        ];
        let place = |device: &str| Arc::new(Place { kind: Kind::Netdev, device: device.to_owned(), port: None });
        let alone = vec![part(bytes, None, &SECOND, 9, true)];
        let found = series(BTreeMap::from([(place("eth1"), parts), (place("eth0"), alone)]));
        let told = |series: &Series| {
            let Series { place, row, priority, value, saturated, epoch, .. } = series;
            (place.device.clone(), row.name, *priority, *value, *saturated, *epoch)
        };
        let expected = [
            ("eth0".to_owned(), bytes, None, 9, true, 1),
            ("eth1".to_owned(), bytes, None, 3, false, 2),
            ("eth1".to_owned(), pause, Some(0), 7, false, 1),
            ("eth1".to_owned(), pause, Some(3), 5, false, 1),
        ];
        assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected);
    }
}
