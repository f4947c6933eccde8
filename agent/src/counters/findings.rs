//! What the detectors say of each port and of what devices hold, from the counters of the last readings.

pub(crate) mod board;
pub(crate) mod record;
mod resources;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use analysis::counter_series::{Counter, CounterSeries, Lane, When};
use analysis::delta::{Delta, Gap};
use analysis::port::{self, Finding, Limits};
use analysis::series::{DurationNs, UtcNs};
pub(crate) use resources::EXHAUSTION;
use resources::Resources;

use super::meanings::{Meaning, meaning};
use super::readout::{Kind, Place, Readout, Series, Subject};
use crate::config::limits;
use crate::host::links::stated_speed;
use crate::host::roots::Roots;
use link::LinkWindow;

/// One row of one place, of one priority.
type Key = (Arc<Place>, &'static str, Option<u8>);

/// The last readings of every port.
pub(crate) struct Windows {
    net: PathBuf,
    samples_max: usize,
    pace: Duration,
    ports: BTreeMap<Place, Port>,
    resources: Resources,
    left_out: usize,
}

/// A port: of an RDMA device with its network device, or a network device alone.
struct Port {
    netdev: Option<String>,
    /// The reading before.
    last: Option<Clock>,
    samples: CounterSeries,
    link: LinkWindow,
    /// The rows that each counter was read from the last time.
    rows: Rows,
    /// What every row that was ever read here stood at; absent where it could not be read the last time.
    known: BTreeMap<Key, Option<Stood>>,
}

/// One moment on both clocks.
#[derive(Clone, Copy)]
struct Clock {
    at: Instant,
    utc: UtcNs,
}

impl Clock {
    /// A moment before it, on both clocks: a port's own in a reading of many.
    fn moved_to(self, at: Instant) -> Self {
        let before = i64::try_from(self.at.saturating_duration_since(at).as_nanos()).unwrap_or(i64::MAX);
        Self { at, utc: UtcNs(self.utc.0.saturating_sub(before)) }
    }

    fn until(self, later: Self) -> When {
        let length = later.at.saturating_duration_since(self.at).as_nanos();
        When { start: self.utc, length: DurationNs(u64::try_from(length).unwrap_or(u64::MAX)) }
    }
}

#[derive(Clone, Copy)]
struct Stood {
    value: u64,
    epoch: u64,
}

/// The catalogue's rows that counters come from.
type Rows = BTreeMap<Counter, Vec<&'static str>>;

/// What a finding is about: a port, a device, or one kind of the objects that a device holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct About {
    /// The port or device.
    pub(crate) place: Place,
    /// Its network device, where it is an RDMA device's port.
    pub(crate) netdev: Option<String>,
    /// The kind of objects, as the kernel names it: `qp`, `mr`.
    pub(crate) object: Option<String>,
}

impl About {
    /// The RDMA device, and the network device.
    pub(crate) fn names(&self) -> [Option<&str>; 2] {
        match self.place.kind {
            Kind::Rdma => [Some(&self.place.device), self.netdev.as_deref()],
            Kind::Netdev => [None, Some(&self.place.device)],
        }
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place.device)?;
        if let Some(port) = self.place.port {
            write!(f, " port {port}")?;
        }
        if let Some(netdev) = &self.netdev {
            write!(f, " ({netdev})")?;
        }
        if let Some(object) = &self.object {
            write!(f, " {object}")?;
        }
        Ok(())
    }
}

/// What one detector says of one port or device.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    /// What it is about.
    pub(crate) about: About,
    /// The answer.
    pub(crate) finding: Finding,
    /// Where the counters of the evidence were read.
    pub(crate) rows: Arc<Rows>,
}

impl Windows {
    /// Nothing yet. `pace` is the time between two readings.
    pub(crate) fn new(roots: &Roots, pace: Duration) -> Self {
        let samples = limits::FINDING_WINDOW.as_nanos().div_ceil(pace.as_nanos().max(1));
        // What the last two samples say is worth knowing however far they are apart.
        let samples_max = usize::try_from(samples).unwrap_or(usize::MAX).clamp(2, limits::FINDING_SAMPLES);
        let net = roots.sysfs.join("class/net");
        let resources = Resources::new(samples_max);
        Self { net, samples_max, pace, ports: BTreeMap::new(), resources, left_out: 0 }
    }

    /// Takes the next reading, which was over at `utc`.
    pub(crate) fn take(&mut self, readout: &Readout, utc: UtcNs) {
        let clock = Clock { at: readout.at, utc };
        self.resources.take(&readout.resources);
        let mut read: BTreeMap<Place, BTreeMap<Key, (&'static Meaning, &Series)>> = BTreeMap::new();
        for of_place in readout.series.chunk_by(|a, b| a.place == b.place) {
            let Some(place) = of_place.first().map(|series| &series.place) else { continue };
            let subject = readout.subject(place);
            let known = of_place.iter().filter_map(|series| Some((meaning(series.row.name)?, series)));
            let mut known = known.filter(|(_, series)| !is_no_lane(subject, series)).peekable();
            if known.peek().is_some() {
                let keyed = known.map(|(meaning, series)| {
                    ((Arc::clone(place), series.row.name, series.priority), (meaning, series))
                });
                read.entry(port_of(readout, place)).or_default().extend(keyed);
            }
        }
        let there = |place: &Place| {
            readout.subjects.iter().any(|subject| subject.kind == place.kind && subject.name == place.device)
        };
        self.ports.retain(|place, _| there(place));
        for (place, port) in &mut self.ports {
            port.take(clock, &read.remove(place).unwrap_or_default());
        }
        self.left_out = 0;
        for (place, series) in read {
            if self.ports.len() >= limits::FINDING_PORTS {
                self.left_out += 1;
                continue;
            }
            let mut port = Port::new(self.samples_max, self.pace);
            port.take(clock, &series);
            self.ports.insert(place, port);
        }
        for (place, port) in &mut self.ports {
            port.netdev = netdev_of(readout, place).or_else(|| port.netdev.take());
            let netdev = if place.kind == Kind::Netdev { Some(&place.device) } else { port.netdev.as_ref() };
            port.samples.line_rate = netdev.and_then(|netdev| stated_speed(&self.net.join(netdev)));
        }
    }

    /// What every detector says of every port and device.
    pub(crate) fn findings(&self) -> Vec<Judged> {
        let of_port = |(place, port): (&Place, &Port)| {
            let about = About { place: place.clone(), netdev: port.netdev.clone(), object: None };
            let rows = Arc::new(port.rows.clone());
            let found = port::findings_with_link(&port.samples, port.link.samples(), &Limits::DEFAULT).into_iter();
            found.map(|finding| Judged { about: about.clone(), finding, rows: Arc::clone(&rows) }).collect::<Vec<_>>()
        };
        self.ports.iter().flat_map(of_port).chain(self.resources.findings()).collect()
    }

    /// How far back the port with the most samples goes.
    pub(crate) fn covers(&self) -> DurationNs {
        let length = |port: &Port| {
            let samples = (0..port.samples.len()).filter_map(|at| port.samples.when(at));
            samples.fold(0u64, |sum, when| sum.saturating_add(when.length.0))
        };
        DurationNs(self.ports.values().map(length).max().unwrap_or(0))
    }

    /// Ports of the last reading that are one too many to be judged.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }
}

/// A priority whose flow control is off and that never saw pause is none that pause can stop: with the priorities of
/// drivers that show all eight, nobody would look at the pause of the port.
fn is_no_lane(subject: Option<&Subject>, series: &Series) -> bool {
    let Some(priority) = series.priority.filter(|_| series.row.name.starts_with("pfc_")) else { return false };
    let on = subject.and_then(|subject| subject.priorities).is_none_or(|mask| u32::from(mask) >> priority & 1 == 1);
    !on && series.value == 0
}

/// The port that a place belongs to: pause is counted by the network device, loss by the RDMA device on it.
fn port_of(readout: &Readout, place: &Place) -> Place {
    let port = match place.kind {
        Kind::Netdev => readout
            .subject(place)
            .and_then(|subject| subject.port_of.as_ref())
            .map(|(device, port)| Place { kind: Kind::Rdma, device: device.clone(), port: Some(*port) })
            .filter(|port| netdev_of(readout, port).as_ref() == Some(&place.device)),
        // Of a device with one port, what counts for the device counts for the port.
        Kind::Rdma if place.port.is_none() => {
            let mut ports = readout.series.iter().map(|series| &*series.place);
            let is_port = |other: &&Place| other.kind == Kind::Rdma && other.device == place.device;
            let first = ports.find(|other| is_port(other) && other.port.is_some());
            first
                .filter(|first| !ports.any(|other| is_port(&other) && other.port != first.port && other.port.is_some()))
                .cloned()
        }
        Kind::Rdma => None,
    };
    port.unwrap_or_else(|| place.clone())
}

/// The network device of an RDMA port, if it has one alone: of VLANs on it, which have no driver, the one below. The
/// counters of several, as of a bond, are no one's sum.
fn netdev_of(readout: &Readout, port: &Place) -> Option<String> {
    let of_port = |subject: &&Subject| {
        let on = subject.port_of.as_ref();
        subject.kind == Kind::Netdev
            && on.is_some_and(|(device, number)| *device == port.device && Some(*number) == port.port)
    };
    let all: Vec<&Subject> = readout.subjects.iter().filter(of_port).collect();
    let real: Vec<&Subject> = all.iter().copied().filter(|subject| subject.driver.is_some()).collect();
    match if real.is_empty() { &*all } else { &*real } {
        [one] => Some(one.name.clone()),
        _ => None,
    }
}

impl Port {
    fn new(samples_max: usize, pace: Duration) -> Self {
        let (samples, link) = (CounterSeries::new(None, samples_max), LinkWindow::new(pace));
        Self { netdev: None, last: None, samples, link, rows: Rows::new(), known: BTreeMap::new() }
    }

    /// Takes a reading that was over at `clock`.
    fn take(&mut self, clock: Clock, read: &BTreeMap<Key, (&'static Meaning, &Series)>) {
        // Pause is held against the time that passed between its own two readings.
        let is_pause = |meaning: &Meaning| matches!((meaning.counter)(Lane::Port), Counter::PauseTime(..));
        let of_pause = read.values().find(|(meaning, _)| is_pause(meaning));
        let own = of_pause.or_else(|| read.values().next()).map_or(clock.at, |(_, series)| series.at);
        let now = clock.moved_to(own);
        let when = self.last.replace(now).map(|last| last.until(now));
        let mut ranks = Ranks::new();
        for (key, (meaning, series)) in read {
            let stood = Stood { value: meaning.count(series.value), epoch: series.epoch };
            let delta = match self.known.insert(key.clone(), Some(stood)) {
                _ if series.saturated => Err(Gap::Saturated),
                None => Err(Gap::First),
                Some(None) => Err(Gap::Unread),
                Some(Some(before)) => grown(before, stood),
            };
            add(&mut ranks, meaning, key.2, delta);
        }
        for (key, stood) in &mut self.known {
            if !read.contains_key(key)
                && let Some(meaning) = meaning(key.1)
            {
                *stood = None;
                add(&mut ranks, meaning, key.2, Err(Gap::Unread));
            }
        }
        self.rows = ranks.iter().map(|(counter, parts)| (*counter, parts.rows.clone())).collect();
        if let Some(when) = when {
            let values = ranks.into_iter().flat_map(|(counter, parts)| {
                let grown = move |delta: Delta| delta.map(|growth| Meaning::in_unit(counter, growth));
                parts.deltas.into_iter().map(move |delta| (counter, grown(delta)))
            });
            let values: Vec<(Counter, Delta)> = values.collect();
            self.link.take(when, values.iter().filter(|(counter, _)| *counter == Counter::LinkDowns).map(|(_, d)| *d));
            self.samples.push(when, values);
        }
    }
}

fn grown(before: Stood, now: Stood) -> Delta {
    if before.epoch == now.epoch { now.value.checked_sub(before.value).ok_or(Gap::Reset) } else { Err(Gap::Reset) }
}

/// By counter, the growth of its best rows.
type Ranks = BTreeMap<Counter, Parts>;

#[derive(Debug, Default)]
struct Parts {
    rank: u8,
    rows: Vec<&'static str>,
    deltas: Vec<Delta>,
}

fn add(ranks: &mut Ranks, meaning: &Meaning, priority: Option<u8>, delta: Delta) {
    let counter = (meaning.counter)(priority.map_or(Lane::Port, Lane::Priority));
    let parts = ranks.entry(counter).or_insert_with(|| Parts { rank: meaning.rank, ..Parts::default() });
    if meaning.rank < parts.rank {
        *parts = Parts { rank: meaning.rank, ..Parts::default() };
    }
    if meaning.rank == parts.rank {
        parts.rows.push(meaning.row);
        parts.deltas.push(delta);
    }
}

mod link;
#[cfg(test)]
mod tests;
