//! The recorder's thread: packs pieces, writes files, and tries again where the disk does not take them.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use analysis::series::UtcNs;
use bytes::Bytes;

use super::disk::Store;
use super::loss::Cause;
use super::memory::{Form, Run};
use super::{Shared, State};
use crate::bursts::file::{self, FileError};
use crate::bursts::kept::Kept;
use crate::config::limits;

/// The thread's own.
pub(super) struct Worker<S> {
    shared: Arc<Shared>,
    store: Option<S>,
    /// The disk refused: it is not asked before this time.
    retry: Option<Instant>,
    /// How long it is left alone the next time.
    pause: Duration,
}

/// What to do next.
enum Job {
    Pack(u64, Arc<Kept>),
    Write(Run),
    /// Nothing before this time.
    Wait(Option<Instant>),
    End,
}

impl<S: Store> Worker<S> {
    pub(super) fn new(shared: Arc<Shared>, store: Option<S>) -> Self {
        Self { shared, store, retry: None, pause: limits::DISK_PAUSE }
    }

    pub(super) fn run(mut self) {
        if let Some(store) = &mut self.store {
            let opened = store.open(wall_clock());
            self.note(opened, 0);
        }
        loop {
            match self.next() {
                Job::Pack(number, kept) => self.pack(number, &kept),
                Job::Write(run) => self.write(&run),
                Job::Wait(until) => self.wait(until),
                Job::End => break,
            }
        }
        // The folder is free for another agent when this is told.
        drop(self.store.take());
        self.shared.lock().ended = true;
        self.shared.ended.notify_all();
    }

    fn next(&self) -> Job {
        let now = Instant::now();
        let mut inner = self.shared.lock();
        let stop = inner.stop;
        let close = inner.memory.close_old(now, stop);
        if let Some((number, kept)) = inner.memory.to_pack() {
            return Job::Pack(number, kept);
        }
        let write = match (&self.store, self.retry) {
            (None, _) => None,
            // At the end the disk has had its chances.
            (Some(_), Some(_)) if stop => None,
            (Some(_), Some(retry)) if retry > now => Some(retry),
            (Some(_), _) => match inner.memory.due(now, stop) {
                Ok(run) => return Job::Write(run),
                Err(next) => next,
            },
        };
        if stop { Job::End } else { Job::Wait(close.into_iter().chain(write).min()) }
    }

    fn wait(&self, until: Option<Instant>) {
        let inner = self.shared.lock();
        // What came in between has told nobody: it is seen at the next look.
        if inner.stop || inner.memory.to_pack().is_some() {
            return;
        }
        let limit = until.map_or(limits::PIECE_TIME, |until| until.saturating_duration_since(Instant::now()));
        drop(self.shared.work.wait_timeout(inner, limit).unwrap_or_else(PoisonError::into_inner));
    }

    fn pack(&self, number: u64, kept: &Kept) {
        let packed = file::pack(kept);
        let mut inner = self.shared.lock();
        match packed {
            Ok(bytes) => inner.memory.packed(number, Bytes::from(bytes)),
            Err(_) => inner.memory.forget(number),
        }
    }

    fn write(&mut self, run: &Run) {
        let numbers: Vec<u64> = run.pieces.iter().map(|(number, _)| *number).collect();
        let Some((kept, bytes)) = joined(run) else {
            let mut inner = self.shared.lock();
            numbers.iter().for_each(|number| inner.memory.forget(*number));
            return;
        };
        let (Some(store), Some(span)) = (&mut self.store, kept.span()) else { return };
        let put = store.put(&run.stem, span.start, &bytes, wall_clock());
        if put.is_ok() {
            self.shared.lock().memory.done(&numbers);
        }
        self.note(put, kept.samples() as u64);
    }

    /// Tells what came of using the disk.
    fn note(&mut self, outcome: Result<(), FileError>, samples: u64) {
        let (state, cause) = match outcome {
            Ok(()) => (State::Recording, Cause::DiskSlow),
            Err(error @ FileError::Full { .. }) => (State::DiskFull(error.to_string()), Cause::DiskFull),
            Err(error) => (State::DiskRefuses(error.to_string()), Cause::DiskRefused),
        };
        if state == State::Recording {
            (self.retry, self.pause) = (None, limits::DISK_PAUSE);
        } else {
            self.retry = Some(Instant::now() + self.pause);
            self.pause = (self.pause * 2).min(limits::DISK_PAUSE_MAX);
        }
        let usage = self.store.as_ref().map(Store::usage).unwrap_or_default();
        let mut inner = self.shared.lock();
        inner.status.written += if state == State::Recording { samples } else { 0 };
        (inner.status.files, inner.status.file_bytes) = usage;
        inner.status.state = state;
        inner.memory.cause = cause;
    }
}

/// The pieces as one and its file. `None` if they cannot be.
fn joined(run: &Run) -> Option<(Kept, Vec<u8>)> {
    let mut joined: Option<Kept> = None;
    for (_, form) in &run.pieces {
        let piece = match form {
            Form::Plain(kept) => Kept::clone(kept),
            Form::Packed(bytes) => file::unpack(bytes.clone()).ok()?,
        };
        match &mut joined {
            Some(kept) => kept.continue_with(&piece).then_some(())?,
            None => joined = Some(piece),
        }
    }
    let kept = joined?;
    let bytes = file::pack(&kept).ok()?;
    Some((kept, bytes))
}

fn wall_clock() -> UtcNs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UtcNs(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
