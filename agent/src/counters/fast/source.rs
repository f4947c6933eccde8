//! One source of fast samples: the counters that are wanted of one place, read together.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::choice::Choice;
use crate::config::limits;
use crate::counters::Statistics;
use crate::counters::block::{Block, From, open, scaled};
use crate::counters::catalogue::{Driver, Found, Row, Source, find, rows};
use crate::counters::readout::Place;
use crate::counters::track::Track;
use crate::counters::value::{FILE_BYTES, Failure, parse};
use crate::host::read;

/// How long drivers keep what they show before they ask the device again; those that stand nowhere ask each time.
///
/// mlx4: `STATS_DELAY`, a quarter of a second (`mlx4_en_do_get_stats`, drivers/net/ethernet/mellanox/mlx4/en_netdev.c).
/// bnxt: `bnxt_timer`, once a second (drivers/net/ethernet/broadcom/bnxt/bnxt.c).
const KEPT: [(Driver, Duration); 2] =
    [(Driver::Mlx4, Duration::from_millis(250)), (Driver::Bnxt, Duration::from_secs(1))];

/// A counter of a source.
#[derive(Debug)]
struct Pick {
    /// Where among the source's values it stands.
    at: usize,
    name: String,
    found: Found,
    /// Which column it is a part of.
    column: usize,
    track: Track,
    /// What it stood at, and how often it had begun again.
    last: Option<(u64, u32)>,
    /// Its file, of a source of files.
    file: Option<File>,
}

/// What a reading told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// By how much each column grew since the last one, where that is known.
    Grown(Vec<Option<u64>>),
    /// There is nothing yet to compare with.
    First,
}

/// A source.
#[derive(Debug)]
pub(super) struct Fast {
    pub(super) place: Arc<Place>,
    pub(super) source: Source,
    /// For how long it shows the same; zero for one that asks each time.
    pub(super) keeps: Duration,
    from: From,
    driver: Driver,
    picks: Vec<Pick>,
    /// Row and priority of each column, in the catalogue's order.
    pub(super) columns: Vec<(&'static Row, Option<u8>)>,
    /// How many names the source has, those that are not wanted too.
    names: usize,
    /// Counters that are one too many.
    pub(super) left_out: usize,
}

impl Fast {
    /// What is wanted of a block; `None` if that is nothing, or the block cannot be read.
    pub(super) fn of(block: &Block, choice: &Choice, statistics: &dyn Statistics) -> Option<Self> {
        let (from, driver) = block.origin();
        let keeps = match (block.source, from) {
            (Source::HwCounters, From::Files(folder)) => lifespan(folder),
            (Source::Ethtool | Source::Netdev, _) => {
                KEPT.iter().find(|(kept, _)| *kept == driver).map_or(Duration::ZERO, |(_, keeps)| *keeps)
            }
            _ => Duration::ZERO,
        };
        let (place, source, from) = (Arc::clone(&block.place), block.source, from.clone());
        let (picks, columns) = (Vec::new(), Vec::new());
        let mut fast = Self { place, source, keeps, from, driver, picks, columns, names: 0, left_out: 0 };
        let names = match &fast.from {
            From::Files(_) => block.names().map(str::to_owned).collect(),
            From::Ethtool(netdev) => statistics.names(netdev).ok()?,
            From::Rdma(index, port) => names_of(statistics.rdma(*index, *port).ok()?),
            // Read at the slow pace alone: the driver's own statistics tell the same.
            From::Standard(..) | From::Carrier(_) => return None,
        };
        fast.name(names, choice);
        (!fast.picks.is_empty()).then_some(fast)
    }

    /// Takes what is wanted of these names. Of names that tell the same, those of the lowest rank are taken.
    fn name(&mut self, names: Vec<String>, choice: &Choice) {
        self.names = names.len();
        let found = |(at, name): (usize, String)| {
            let found = find(self.driver, self.source, name.rsplit('/').next().unwrap_or_default())?;
            choice.wants(found.row).then_some((at, name, found))
        };
        let found: Vec<(usize, String, Found)> = names.into_iter().enumerate().filter_map(found).collect();
        let key = |found: &Found| (found.row.name, found.priority);
        let is_first =
            |one: &Found| found.iter().all(|(_, _, other)| key(other) != key(one) || other.name.rank >= one.name.rank);
        let mut columns: Vec<(&'static Row, Option<u8>)> = Vec::new();
        for row in rows() {
            let mut of_row: Vec<Option<u8>> =
                found.iter().filter(|(_, _, found)| found.row.is(row)).map(|(_, _, found)| found.priority).collect();
            of_row.sort_unstable();
            of_row.dedup();
            columns.extend(of_row.into_iter().map(|priority| (row, priority)));
        }
        self.left_out = columns.len().saturating_sub(limits::COUNTER_COLUMNS);
        columns.truncate(limits::COUNTER_COLUMNS);
        let pick = |(at, name, found): &(usize, String, Found)| {
            let column = columns.iter().position(|(row, priority)| found.row.is(row) && found.priority == *priority)?;
            let (at, name, track) = (*at, name.clone(), Track::default());
            Some(Pick { at, name, found: *found, column, track, last: None, file: None })
        };
        self.picks = found.iter().filter(|(_, _, found)| is_first(found)).filter_map(pick).collect();
        self.columns = columns;
    }

    /// Reads all of it. What is known of the readings before goes on only if all of it can be read: the time of a sample
    /// is that of all its columns.
    ///
    /// # Errors
    ///
    /// The kernel's, of the first counter that cannot be read; `EAGAIN` if the source's names have changed.
    pub(super) fn read(&mut self, statistics: &dyn Statistics, buffer: &mut Vec<u64>) -> io::Result<Reading> {
        let numbers = self.numbers(statistics, buffer);
        if numbers.is_err() {
            self.picks.iter_mut().for_each(|pick| pick.last = None);
        }
        Ok(self.take(&numbers?))
    }

    /// The value of each pick.
    fn numbers(&mut self, statistics: &dyn Statistics, buffer: &mut Vec<u64>) -> io::Result<Vec<u64>> {
        let changed = || io::Error::from_raw_os_error(libc::EAGAIN);
        let names = self.names;
        match &self.from {
            From::Standard(..) | From::Carrier(_) => Err(changed()),
            From::Files(folder) => self.picks.iter_mut().map(|pick| pick.read(folder)).collect(),
            From::Ethtool(netdev) => {
                let values = statistics.latest(netdev, buffer)?;
                let picked = self.picks.iter().map(|pick| values.get(pick.at).copied());
                if values.len() == names { picked.collect::<Option<_>>().ok_or_else(changed) } else { Err(changed()) }
            }
            From::Rdma(index, port) => {
                let values = statistics.rdma(*index, *port)?;
                let value =
                    |pick: &Pick| values.get(pick.at).filter(|(name, _)| *name == pick.name).map(|(_, value)| *value);
                self.picks.iter().map(value).collect::<Option<_>>().ok_or_else(changed)
            }
        }
    }

    fn take(&mut self, numbers: &[u64]) -> Reading {
        let picks = || self.picks.iter().zip(numbers);
        // A device that is made anew begins with all its counters, also with those that do not show it.
        let reset = picks().any(|(pick, raw)| pick.track.tells_reset(*raw, pick.found.name.width));
        let mut grown = vec![Some(0u64); self.columns.len()];
        let mut first = false;
        for (pick, raw) in self.picks.iter_mut().zip(numbers) {
            let count = pick.track.take(*raw, pick.found.name.width, reset);
            let value = scaled(count.value, &pick.found);
            let last = pick.last.replace((value, pick.track.restarts));
            first |= last.is_none();
            let growth = match last {
                Some((before, restarts)) if restarts == pick.track.restarts && !reset && !count.saturated => {
                    value.checked_sub(before)
                }
                _ => None,
            };
            if let Some(sum) = grown.get_mut(pick.column) {
                *sum = sum.zip(growth).map(|(sum, growth)| sum.saturating_add(growth));
            }
        }
        if first { Reading::First } else { Reading::Grown(grown) }
    }
}

impl Pick {
    fn read(&mut self, folder: &Path) -> io::Result<u64> {
        let failed = |failure: Failure| match failure {
            Failure::Os(number) => io::Error::from_raw_os_error(number),
            other => io::Error::other(format!("{}: {other}", self.name)),
        };
        let file = match self.file.take() {
            Some(file) => file,
            None => open(&folder.join(&self.name)).map_err(failed)?,
        };
        let mut bytes = [0; FILE_BYTES + 1];
        let length = file.read_at(&mut bytes, 0)?;
        let value = parse(bytes.get(..length).unwrap_or_default()).map_err(failed)?;
        self.file = Some(file);
        Ok(value)
    }
}

fn names_of(values: Vec<(String, u64)>) -> Vec<String> {
    values.into_iter().map(|(name, _)| name).collect()
}

/// For how long sysfs shows the same numbers of a folder of hardware counters (`lifespan`, in milliseconds).
fn lifespan(folder: &Path) -> Duration {
    Duration::from_millis(read::parsed(&folder.join("lifespan")).unwrap_or(0))
}
