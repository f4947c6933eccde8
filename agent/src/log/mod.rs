//! The event log: each failure as one JSON line, folded by signature, and each finding that begins or ends, so that a
//! host without any collector still tells.
//!
//! Lines go through a bounded queue to a thread of their own: a reader that stalls costs lines, which are counted, and
//! never holds the loop.

mod fold;
mod line;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::config::limits;
use crate::counters::findings::board::Change;
use crate::counters::findings::record::change_line;
use crate::daemon::handle::Info;
use crate::event::Event;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::InFlight;
use crate::verbs::json::Origin;
use fold::Fold;

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    fold: Fold,
    host: Option<String>,
    boot_id: Option<String>,
    lines: SyncSender<String>,
    /// Closed by the writer's end.
    ended: Receiver<()>,
    lost: u64,
    /// Calls that were named as hanging and still hang, by thread and start.
    stuck: HashSet<(u32, u64)>,
}

impl Log {
    /// A log that writes to `out` from a thread of its own.
    ///
    /// # Errors
    ///
    /// If the thread cannot be made.
    pub(crate) fn new(window: Duration, info: &Info, mut out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel::<String>(limits::LOG_QUEUE);
        let (alive, ended) = sync_channel::<()>(0);
        std::thread::Builder::new().name("fabricscope-log".to_owned()).spawn(move || {
            let _alive = alive;
            // Ends when the log is dropped, or when nobody reads any more: what follows is lost and counted.
            while let Ok(line) = queue.recv() {
                if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self {
            fold: Fold::new(window),
            host: info.host.clone(),
            boot_id: info.boot_id.clone(),
            lines,
            ended,
            lost: 0,
            stuck: HashSet::new(),
        })
    }

    /// Writes or folds a failure; other events are not logged.
    pub(crate) fn failure(&mut self, now: Instant, event: &Arc<Event>) {
        for folded in self.fold.add(now, event) {
            self.write_folded(&folded);
        }
    }

    /// Writes what was folded and whose window is over.
    pub(crate) fn due(&mut self, now: Instant) {
        for folded in self.fold.due(now) {
            self.write_folded(&folded);
        }
    }

    /// Writes everything that is still folded, for the end.
    pub(crate) fn flush(&mut self) {
        for folded in self.fold.drain() {
            self.write_folded(&folded);
        }
    }

    /// Writes each call that hangs, once.
    pub(crate) fn stuck(&mut self, now_ns: u64, after: Duration, in_flight: &[InFlight], devices: &RdmaFacts) {
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let hanging = |call: &&InFlight| call.start_ns != 0 && now_ns.saturating_sub(call.start_ns) > after;
        let calls: Vec<_> = in_flight.iter().filter(hanging).take(limits::STUCK_CALLS).collect();
        let before = std::mem::take(&mut self.stuck);
        for call in calls {
            let identity = (call.tid, call.start_ns);
            self.stuck.insert(identity);
            if !before.contains(&identity) {
                let line = line::stuck(self.origin(), now_ns, call, devices);
                self.write(line);
            }
        }
    }

    /// Writes a finding that stands differently now.
    pub(crate) fn finding(&mut self, change: &Change) {
        let line = change_line(self.origin(), change);
        self.write(line);
    }

    /// Lines that found no room or no reader.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Signatures that had to make room for others.
    pub(crate) const fn evicted(&self) -> u64 {
        self.fold.evicted()
    }

    fn origin(&self) -> Origin<'_> {
        Origin { host: self.host.as_deref(), boot_id: self.boot_id.as_deref() }
    }

    fn write_folded(&mut self, folded: &fold::Folded) {
        let line = line::failure(self.origin(), folded);
        self.write(line);
    }

    fn write(&mut self, line: serde_json::Result<String>) {
        // Nothing in a line can fail to be JSON; if it ever does, it is a lost line.
        let sent = line.is_ok_and(|mut line| {
            line.push('\n');
            self.lines.try_send(line).is_ok()
        });
        self.lost += u64::from(!sent);
    }

    /// Ends the log when what waits has been written, or after a while if its reader stalls.
    pub(crate) fn close(self) {
        let Self { lines, ended, .. } = self;
        drop(lines);
        // Nothing is ever sent: the answer is that the writer has ended, or that it has not.
        let _ = ended.recv_timeout(limits::LOG_END);
    }
}
