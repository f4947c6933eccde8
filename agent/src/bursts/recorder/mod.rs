//! Keeps what was measured: the last minutes in memory, the last days on disk.
//!
//! Whoever measures pushes pieces and is never held up: a thread of the recorder's own packs and writes. A disk that is
//! full or refuses is a named state; what waits for it stays in memory as long as the budget lasts, so that nothing is
//! missing if it comes back in time. An agent that dies loses what was not written yet: [`limits::FILE_TIME`] and a
//! piece at most.

#[cfg(test)]
mod day;
mod disk;
mod loss;
mod memory;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use analysis::counter_samples::CounterSamples;
use analysis::series::{DurationNs, Series};
use anyhow::Context as _;

use crate::bursts::file;
use crate::bursts::kept::{self, Kept};
use crate::config::limits;
use disk::{Disk, Store};
use memory::{Form, Memory};
use worker::Worker;

pub(crate) use disk::DiskSettings;
pub(crate) use loss::Losses;

/// What to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes in memory, of all devices together.
    pub(crate) memory: usize,
    /// Where files go; `None` for memory only.
    pub(crate) disk: Option<DiskSettings>,
}

/// What the recorder is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Files are not asked for.
    #[default]
    MemoryOnly,
    /// Files are written as they become due.
    Recording,
    /// There is no room for files; it is tried again and again.
    DiskFull(String),
    /// Files cannot be written, for the reason given; it is tried again and again.
    DiskRefuses(String),
}

/// The recorder's state with its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// What it is doing.
    pub(crate) state: State,
    /// Bytes of samples in memory.
    pub(crate) memory_bytes: u64,
    /// Samples of closed pieces that are not on the disk yet.
    pub(crate) waiting: u64,
    /// Files on the disk, of agents before too.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) file_bytes: u64,
    /// Samples written since the start.
    pub(crate) written: u64,
    /// Samples lost since the start.
    pub(crate) losses: Losses,
}

/// What the recorder's owner and its thread share.
#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// There is something to do, or nothing more to come.
    work: Condvar,
    /// The thread has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct Inner {
    memory: Memory,
    /// As far as the thread knows it.
    status: Status,
    stop: bool,
    ended: bool,
}

impl Shared {
    /// The lock is held for moments only, and nothing that holds it can panic half-way through a change.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The recorder. Dropping it writes what waits, for which it has [`limits::RECORDER_END`].
#[derive(Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Starts the thread. A folder that cannot be used is a state, not an error.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub(crate) fn start(settings: Settings) -> anyhow::Result<Self> {
        let disk = settings.disk.map(Disk::new);
        Self::with_store(settings.memory, disk)
    }

    fn with_store<S: Store>(memory: usize, store: Option<S>) -> anyhow::Result<Self> {
        let state = if store.is_some() { State::Recording } else { State::MemoryOnly };
        let inner = Inner {
            memory: Memory::new(memory, store.is_some()),
            status: Status { state, ..Status::default() },
            stop: false,
            ended: false,
        };
        let shared = Arc::new(Shared { inner: Mutex::new(inner), work: Condvar::new(), ended: Condvar::new() });
        let worker = Worker::new(shared.clone(), store);
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || worker.run());
        Ok(Self { shared, thread: Some(thread.context("cannot start the recorder's thread")?) })
    }

    /// Adds what was measured of a source since the last time. Takes microseconds, whatever the disk does.
    pub(crate) fn push(&self, piece: impl Into<Kept>) {
        if self.shared.lock().memory.push(piece.into(), Instant::now()) {
            self.shared.work.notify_one();
        }
    }

    /// The devices of which samples of traffic are in memory.
    pub(crate) fn netdevs(&self) -> Vec<String> {
        self.of(kept::TRAFFIC)
    }

    /// The sources of one kind.
    fn of(&self, kind: &str) -> Vec<String> {
        let stems = self.shared.lock().memory.stems();
        stems.iter().filter_map(|stem| Some(stem.strip_prefix(kind)?.strip_prefix('-')?.to_owned())).collect()
    }

    /// The last of a device's traffic, as much of `span` as is in memory and fits into one series: where the wall clock
    /// was set or the device's settings changed, it begins after that. `None` if there is nothing of this device.
    pub(crate) fn last(&self, netdev: &str, span: DurationNs) -> Option<Series> {
        match self.last_of(&format!("{}-{netdev}", kept::TRAFFIC), span)? {
            Kept::Traffic(series) => Some(series),
            Kept::Counters(_) => None,
        }
    }

    /// The same of counters: of those of a network device and its RDMA port, or of all.
    pub(crate) fn counters(&self, netdev: Option<&str>, span: DurationNs) -> Vec<CounterSamples> {
        let last = |name: String| match self.last_of(&format!("{}-{name}", kept::COUNTERS), span)? {
            Kept::Counters(samples) => Some(samples),
            Kept::Traffic(_) => None,
        };
        let found = self.of(kept::COUNTERS).into_iter().filter_map(last);
        found.filter(|samples| netdev.is_none_or(|netdev| samples.netdev == netdev)).collect()
    }

    fn last_of(&self, stem: &str, span: DurationNs) -> Option<Kept> {
        let (forms, span) = self.shared.lock().memory.last(stem, span)?;
        let mut last: Option<Kept> = None;
        for form in forms {
            let piece = match form {
                Form::Plain(kept) => Arc::unwrap_or_clone(kept),
                // It was packed here.
                Form::Packed(bytes) => file::unpack(bytes).ok()?,
            };
            let appended = last.as_mut().is_some_and(|kept| kept.continue_with(&piece));
            if !appended {
                last = Some(piece);
            }
        }
        last.map(|kept| kept.clipped(span))
    }

    /// What it is doing.
    pub(crate) fn status(&self) -> Status {
        let inner = self.shared.lock();
        Status {
            memory_bytes: inner.memory.bytes() as u64,
            waiting: inner.memory.waiting() as u64,
            losses: inner.memory.losses,
            ..inner.status.clone()
        }
    }

    /// Writes what waits, as far as there is time for it.
    fn end_within(&mut self, limit: Duration) {
        let mut inner = self.shared.lock();
        inner.stop = true;
        self.shared.work.notify_one();
        let waited = self.shared.ended.wait_timeout_while(inner, limit, |inner| !inner.ended);
        let has_ended = waited.map_or_else(|poison| poison.into_inner().0.ended, |(inner, _)| inner.ended);
        // A thread that a hanging disk holds ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| has_ended) {
            let _ = thread.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end_within(limits::RECORDER_END);
    }
}
