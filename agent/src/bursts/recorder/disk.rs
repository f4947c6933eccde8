//! The recorder's files: their names, and which of them stay.
//!
//! `bursts-NETDEV-TIME.parquet` and `counters-SOURCE-DEVICE-TIME.parquet`, where TIME is that of the first sample,
//! `20260101T000000.000000000Z`. Files of other
//! names are never touched, nor is what is no regular file. One agent at a time writes to a folder: it holds the lock of
//! `.lock` in it.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::series::{DurationNs, UtcNs};
use jiff::Timestamp;

use crate::bursts::file::{self, FileError};
use crate::bursts::kept::{COUNTERS, TRAFFIC};
use crate::config::limits;

const KINDS: [&str; 2] = [TRAFFIC, COUNTERS];
const ENDING: &str = ".parquet";
const TIME: &str = "%Y%m%dT%H%M%S.%9fZ";
const LOCK: &str = ".lock";

/// Where files go, and how long they stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskSettings {
    /// The folder; it is made if it is not there.
    pub(crate) folder: PathBuf,
    /// Older files are deleted.
    pub(crate) age: Duration,
    /// The oldest files are deleted where all take more bytes.
    pub(crate) bytes: u64,
}

/// Takes files for the recorder.
pub(super) trait Store: Send + 'static {
    /// Gets ready for [`put`](Store::put), which does so too if this has failed.
    fn open(&mut self, now: UtcNs) -> Result<(), FileError>;

    /// Keeps a file of these samples, whose name begins so.
    fn put(&mut self, stem: &str, start: UtcNs, bytes: &[u8], now: UtcNs) -> Result<(), FileError>;

    /// How many files there are, and their bytes.
    fn usage(&self) -> (u64, u64);
}

/// The folder.
#[derive(Debug)]
pub(super) struct Disk {
    settings: DiskSettings,
    opened: Option<Opened>,
}

/// The folder, as far as it is this agent's.
#[derive(Debug)]
struct Opened {
    /// Held as long as it is open.
    _lock: File,
    /// Bytes of the files by time and name.
    files: BTreeMap<(UtcNs, String), u64>,
}

impl Disk {
    pub(super) fn new(settings: DiskSettings) -> Self {
        Self { settings, opened: None }
    }
}

impl Store for Disk {
    fn open(&mut self, now: UtcNs) -> Result<(), FileError> {
        if self.opened.is_none() {
            self.opened = Some(Opened::new(&self.settings.folder)?);
        }
        self.opened.iter_mut().try_for_each(|opened| opened.expire(&self.settings, now))
    }

    fn put(&mut self, stem: &str, start: UtcNs, bytes: &[u8], now: UtcNs) -> Result<(), FileError> {
        // Who is over age may be what the disk is full of.
        self.open(now)?;
        let name = name(stem, start);
        file::put(&self.settings.folder.join(&name), bytes)?;
        if let Some(opened) = &mut self.opened {
            opened.files.insert((start, name), bytes.len() as u64);
            opened.expire(&self.settings, now)?;
        }
        Ok(())
    }

    fn usage(&self) -> (u64, u64) {
        let files = self.opened.as_ref().map(|opened| &opened.files);
        files.map_or((0, 0), |files| (files.len() as u64, files.values().sum()))
    }
}

impl Opened {
    /// Takes the folder, removes what an agent that died has left unfinished, and finds the files of those before.
    fn new(folder: &Path) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(|error| FileError::io("make the folder", folder, error))?;
        let path = folder.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| FileError::io("open", &path, error))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => FileError::io("lock", &path, error),
            TryLockError::WouldBlock => {
                let held =
                    io::Error::other("another agent records to this folder: end it, or give this one another folder");
                FileError::io("lock", &path, held)
            }
        })?;
        let mut files = BTreeMap::new();
        let list = |error| FileError::io("list", folder, error);
        for entry in fs::read_dir(folder).map_err(list)? {
            let entry = entry.map_err(list)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
            if file::is_part(&name) {
                remove(&entry.path())?;
            } else if let Some(time) = time_of(&name) {
                files.insert((time, name), metadata.len());
            }
        }
        Ok(Self { _lock: lock, files })
    }

    /// Deletes the oldest files, as many as the settings ask for.
    fn expire(&mut self, settings: &DiskSettings, now: UtcNs) -> Result<(), FileError> {
        let age = DurationNs(u64::try_from(settings.age.as_nanos()).unwrap_or(u64::MAX));
        let mut bytes: u64 = self.files.values().sum();
        while let Some((key, length)) = self.files.first_key_value() {
            let is_old = now.since(key.0) > age;
            if !is_old && bytes <= settings.bytes && self.files.len() <= limits::RECORDER_FILES {
                break;
            }
            remove(&settings.folder.join(&key.1))?;
            bytes -= length;
            self.files.pop_first();
        }
        Ok(())
    }
}

/// Removes a file; one that somebody else has removed is gone too.
fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::io("delete", path, error)),
        _ => Ok(()),
    }
}

fn name(stem: &str, start: UtcNs) -> String {
    // Every number of nanoseconds in 64 bits is a time.
    let time = Timestamp::from_nanosecond(start.0.into()).unwrap_or_default();
    format!("{stem}-{}{ENDING}", time.strftime(TIME))
}

/// The time of a file's first sample, by its name; `None` for one of another pattern.
fn time_of(name: &str) -> Option<UtcNs> {
    let (stem, time) = name.strip_suffix(ENDING)?.rsplit_once('-')?;
    stem.split_once('-').filter(|(kind, _)| KINDS.contains(kind))?;
    let time: Timestamp = time.parse().ok()?;
    let time = UtcNs(i64::try_from(time.as_nanosecond()).ok()?);
    (self::name(stem, time) == name).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_written_here_are_known() {
        let time = UtcNs(1_767_225_600_000_000_001);
        for stem in ["bursts-eth0", "bursts-a-b", "counters-ethtool-ens1f0np0.100", "bursts--"] {
            assert_eq!(time_of(&name(stem, time)), Some(time), "{stem}");
        }
        assert_eq!(name("bursts-eth0", time), "bursts-eth0-20260101T000000.000000001Z.parquet");
        let foreign = [
            "bursts-eth0-20260101T000000.000000001Z.parquet.bak",
            "bursts-eth0-20260101T000000Z.parquet",
            "bursts-eth0-2026-01-01T00:00:00.000000001Z.parquet",
            "bursts-20260101T000000.000000001Z.parquet",
            "other-eth0-20260101T000000.000000001Z.parquet",
            "bursts-eth0-.parquet",
            ".lock",
        ];
        for name in foreign {
            assert_eq!(time_of(name), None, "{name}");
        }
    }
}
