//! The counters of one place from one source, read together: files that are kept open, or a driver's statistics.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::Statistics;
use super::carrier::Carrier;
use super::catalogue::{CARRIER_DOWNS, CARRIER_UPS, Driver, Found, Scale, Source, find, order};
use super::netlink::ethtool::Group;
use super::readout::{Place, Shown};
use super::track::Track;
use super::value::{FILE_BYTES, Failure, parse};
use crate::config::limits;
use crate::host::read;

/// One counter.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) found: Option<Found>,
    /// The row's place in the catalogue.
    order: usize,
    track: Track,
    file: Option<File>,
    /// How often in a row it could not be read.
    failed: u32,
    /// For how many more readings it is left alone.
    skip: u32,
}

/// Where a block's numbers come from.
#[derive(Clone, Debug)]
pub(super) enum From {
    /// A file each.
    Files(PathBuf),
    /// All at once.
    Ethtool(String),
    /// All at once, from the port of the RDMA device of this number.
    Rdma(u32, u32),
    /// A group of what the kernel defines for every network device.
    Standard(String, Group),
    /// How often the link of the network device of this index came and went.
    Carrier(u32),
}

/// Counters that are read together.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) place: Arc<Place>,
    pub(super) source: Source,
    from: From,
    driver: Driver,
    all: bool,
    counters: Vec<Counter>,
    /// The statistics could not be had the last time.
    refused: bool,
}

/// One counter's contribution to a series.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) order: usize,
    pub(super) found: Found,
    pub(super) value: u64,
    pub(super) saturated: bool,
    pub(super) epoch: u64,
    pub(super) source: Source,
    pub(super) at: Instant,
}

/// What the reading of a device gathers.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// By place, in the order of reading.
    pub(super) parts: BTreeMap<Arc<Place>, Vec<Part>>,
    pub(super) shown: Vec<Shown>,
    /// Counters asked for.
    pub(super) asked: usize,
    /// Files that are kept open.
    pub(super) kept: usize,
    pub(super) failures: Vec<Failed>,
}

/// A counter that could not be read.
#[derive(Debug)]
pub(super) struct Failed {
    /// The driver's name for it.
    pub(super) name: String,
    /// Why not.
    pub(super) failure: Failure,
    /// It could be read before, or was never tried.
    pub(super) first: bool,
}

impl From {
    /// What is read at once, for the log.
    fn title(&self, source: Source) -> String {
        match self {
            Self::Standard(_, group) => format!("statistics ({}, {})", source.name(), group.name()),
            _ => format!("statistics ({})", source.name()),
        }
    }

    /// Whether the other reads the same.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Standard(_, group), Self::Standard(_, other)) => group == other,
            _ => true,
        }
    }
}

impl Counter {
    fn new(name: String, found: Option<Found>) -> Self {
        let order = found.map_or(usize::MAX, |found| order(found.row));
        Self { name, found, order, track: Track::default(), file: None, failed: 0, skip: 0 }
    }

    /// Whether it is to be left alone this time.
    fn rests(&mut self) -> bool {
        let rests = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        rests
    }

    /// Doubles the rest after each failure in a row; true for the first one.
    fn failed(&mut self) -> bool {
        self.skip = (1u32 << self.failed.min(limits::COUNTER_REST_DOUBLINGS)) - 1;
        self.failed = self.failed.saturating_add(1);
        self.file = None;
        self.failed == 1
    }

    fn read(&mut self, folder: &Path, kept: &mut usize) -> Result<u64, Failure> {
        let mut bytes = [0; FILE_BYTES + 1];
        let length = if let Some(file) = &self.file {
            file.read_at(&mut bytes, 0)
        } else {
            let file = open(&folder.join(&self.name))?;
            let length = file.read_at(&mut bytes, 0);
            if *kept < limits::COUNTER_FILES_KEPT {
                *kept += 1;
                self.file = Some(file);
            }
            length
        };
        let length = length.map_err(|error| Failure::of(&error))?;
        parse(bytes.get(..length).unwrap_or_default())
    }
}

/// Opens a regular file; a pipe in its place does not hold anybody up.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = file.map_err(|error| Failure::of(&error))?;
    match file.metadata() {
        Ok(facts) if facts.is_file() => Ok(file),
        _ => Err(Failure::NotAFile),
    }
}

impl Block {
    /// The counters in a folder: those the catalogue knows, or all of them. None if there is no such folder.
    pub(super) fn of_folder(place: &Arc<Place>, source: Source, folder: PathBuf, driver: Driver, all: bool) -> Self {
        let mut block = Self::new(place, source, From::Files(folder.clone()), driver, all);
        let mut names = read::names(&folder);
        names.truncate(limits::COUNTERS_PER_FOLDER);
        block.add(names.into_iter().filter(|name| name != "lifespan"));
        if source == Source::Netdev {
            block.add(std::iter::once("../carrier_changes".to_owned()));
        }
        block
    }

    /// The statistics of a network device, whose names are asked for at the first reading.
    pub(super) fn of_statistics(place: &Arc<Place>, driver: Driver, all: bool) -> Self {
        Self::new(place, Source::Ethtool, From::Ethtool(place.device.clone()), driver, all)
    }

    /// The hardware counters of a port by RDMA netlink; `None` where the kernel does not answer.
    pub(super) fn of_rdma(
        place: &Arc<Place>,
        (index, port): (u32, u32),
        driver: Driver,
        all: bool,
        statistics: &dyn Statistics,
    ) -> Option<Self> {
        let found = statistics.rdma(index, port).ok()?;
        let mut block = Self::new(place, Source::RdmaNetlink, From::Rdma(index, port), driver, all);
        block.name(found.into_iter().map(|(name, _)| name).collect());
        Some(block)
    }

    /// The groups of statistics that the kernel defines for every network device, one block each, so that one that
    /// fails does so alone; and its link's.
    pub(super) fn of_standard(place: &Arc<Place>, ifindex: u32, driver: Driver, all: bool) -> Vec<Self> {
        let group =
            |group| Self::new(place, Source::Standard, From::Standard(place.device.clone(), group), driver, all);
        let mut blocks: Vec<Self> = Group::ALL.into_iter().map(group).collect();
        blocks.push(Self::new(place, Source::Rtnetlink, From::Carrier(ifindex), driver, all));
        blocks
    }

    fn new(place: &Arc<Place>, source: Source, from: From, driver: Driver, all: bool) -> Self {
        Self { place: Arc::clone(place), source, from, driver, all, counters: Vec::new(), refused: false }
    }

    fn add(&mut self, names: impl Iterator<Item = String>) {
        let (driver, source, all) = (self.driver, self.source, self.all);
        let counters = names.filter_map(|name| {
            let found = find(driver, source, name.rsplit('/').next().unwrap_or_default());
            (found.is_some() || all).then(|| Counter::new(name, found))
        });
        self.counters.extend(counters);
    }

    /// Where its numbers come from, and whose names they have.
    pub(super) fn origin(&self) -> (&From, Driver) {
        (&self.from, self.driver)
    }

    /// The names of its counters, as far as they are known.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.counters.iter().map(|counter| counter.name.as_str())
    }

    /// Whether anything may be read here at all.
    pub(super) fn is_empty(&self) -> bool {
        self.counters.is_empty() && matches!(self.from, From::Files(_))
    }

    /// Whether another block reads the same counters.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.place == other.place && self.source == other.source && self.from.is_like(&other.from)
    }

    /// Takes over what another block remembers of counters of the same names, and their files.
    pub(super) fn inherit(&mut self, old: &mut Self) {
        self.remember(std::mem::take(&mut old.counters));
    }

    fn remember(&mut self, mut old: Vec<Counter>) {
        for counter in &mut self.counters {
            if let Some(known) = old.iter_mut().find(|known| known.name == counter.name) {
                counter.track = known.track;
                counter.file = known.file.take();
                (counter.failed, counter.skip) = (known.failed, known.skip);
            }
        }
    }

    /// Files that are open.
    pub(super) fn kept(&self) -> usize {
        self.counters.iter().filter(|counter| counter.file.is_some()).count()
    }

    /// Reads all counters. `identity` tells one device from another of the same name.
    pub(super) fn read(&mut self, identity: u64, statistics: &dyn Statistics, gathered: &mut Gathered) {
        let outcomes: Vec<Option<Result<u64, Failure>>> = match &self.from {
            From::Files(folder) => self
                .counters
                .iter_mut()
                .map(|counter| if counter.rests() { None } else { Some(counter.read(folder, &mut gathered.kept)) })
                .collect(),
            _ => match self.ask(statistics) {
                Ok(values) => {
                    self.refused = false;
                    values.into_iter().map(|value| Some(Ok(value))).collect()
                }
                // A device without statistics is an ordinary one.
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return,
                Err(error) => {
                    let (name, failure) = (self.from.title(self.source), Failure::of(&error));
                    let first = !std::mem::replace(&mut self.refused, true);
                    gathered.asked += 1;
                    gathered.failures.push(Failed { name, failure, first });
                    return;
                }
            },
        };
        self.take(identity, &outcomes, gathered, Instant::now());
    }

    /// All values at once, in the order of the counters.
    fn ask(&mut self, statistics: &dyn Statistics) -> io::Result<Vec<u64>> {
        match &self.from {
            From::Files(_) => Ok(Vec::new()),
            From::Rdma(index, port) => Ok(self.named(statistics.rdma(*index, *port)?)),
            From::Standard(netdev, group) => {
                let found = statistics.standard(netdev, *group)?;
                Ok(self.named(found.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
            }
            From::Carrier(ifindex) => {
                let Carrier { ups, downs, .. } = statistics.carrier(*ifindex)?;
                let found = [(CARRIER_UPS, ups), (CARRIER_DOWNS, downs)];
                Ok(self.named(found.map(|(name, count)| (name.to_owned(), u64::from(count))).into()))
            }
            From::Ethtool(netdev) => {
                let values = statistics.values(netdev)?;
                if values.len() != self.counters.len() || values.is_empty() {
                    // Rings came or went, and with them names.
                    let names = statistics.names(netdev)?;
                    self.name(names);
                    if values.len() != self.counters.len() {
                        return Err(io::Error::from_raw_os_error(libc::EAGAIN));
                    }
                }
                Ok(values)
            }
        }
    }

    /// The values of an answer that names them. Names change where optional counters are turned on or off.
    fn named(&mut self, found: Vec<(String, u64)>) -> Vec<u64> {
        let known = self.counters.iter().map(|counter| counter.name.as_str());
        if !known.eq(found.iter().map(|(name, _)| name.as_str())) {
            self.name(found.iter().map(|(name, _)| name.clone()).collect());
        }
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// Has these counters from now on; what is known of those that stay goes on.
    fn name(&mut self, names: Vec<String>) {
        let old = std::mem::take(&mut self.counters);
        let (driver, source) = (self.driver, self.source);
        let counter = |name: String| {
            let found = find(driver, source, &name);
            Counter::new(name, found)
        };
        self.counters = names.into_iter().map(counter).collect();
        self.remember(old);
    }

    fn take(&mut self, identity: u64, outcomes: &[Option<Result<u64, Failure>>], gathered: &mut Gathered, at: Instant) {
        let numbers = || self.counters.iter().zip(outcomes);
        // One counter that was set back says that a smaller one beside it has not wrapped either.
        let reset = numbers().any(|(counter, outcome)| match (counter.found, outcome) {
            (Some(found), Some(Ok(raw))) => counter.track.tells_reset(*raw, found.name.width),
            _ => false,
        });
        let parts = gathered.parts.entry(Arc::clone(&self.place)).or_default();
        for (counter, outcome) in self.counters.iter_mut().zip(outcomes) {
            let Some(outcome) = outcome else { continue };
            gathered.asked += 1;
            if self.all {
                gathered.shown.push(Shown {
                    place: Arc::clone(&self.place),
                    source: self.source,
                    name: counter.name.rsplit('/').next().unwrap_or_default().to_owned(),
                    outcome: outcome.clone(),
                    row: counter.found.map(|found| found.row),
                });
            }
            match outcome {
                Ok(raw) => {
                    counter.failed = 0;
                    let Some(found) = counter.found else { continue };
                    let count = counter.track.take(*raw, found.name.width, reset);
                    parts.push(Part {
                        order: counter.order,
                        found,
                        value: scaled(count.value, &found),
                        saturated: count.saturated,
                        epoch: identity.wrapping_add(u64::from(counter.track.restarts)),
                        source: self.source,
                        at,
                    });
                }
                Err(failure) => {
                    let (name, first) = (counter.name.clone(), counter.failed());
                    gathered.failures.push(Failed { name, failure: failure.clone(), first });
                }
            }
        }
    }
}

/// In the row's unit; seconds as microseconds.
pub(super) fn scaled(value: u64, found: &Found) -> u64 {
    match found.name.scale {
        Scale::Words => value.saturating_mul(4),
        Scale::One if found.row.unit == super::catalogue::Unit::Seconds => value.saturating_mul(1_000_000),
        Scale::One | Scale::Micros | Scale::Unknown => value,
    }
}
