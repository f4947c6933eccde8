//! Folding: the first failure of its kind at once, the like of it as one number for each window. Pure but for its
//! table, which is bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::limits;
use crate::event::Event;

/// What makes failures alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Signature {
    device: Option<String>,
    verb: String,
    errno: i32,
    function: String,
    comm: String,
    uid: u32,
    cgroup_id: u64,
    probe: bool,
}

/// A number of like failures.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    /// The last of them.
    pub(super) event: Arc<Event>,
    /// How many.
    pub(super) count: u64,
    /// The time they were gathered over; `None` for the first, which is told at once.
    pub(super) window: Option<Duration>,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    count: u64,
    last: Arc<Event>,
}

/// The table of signatures.
#[derive(Debug)]
pub(super) struct Fold {
    window: Duration,
    entries: HashMap<Signature, Entry>,
    /// By the start of their windows; all windows are of one length.
    order: VecDeque<Signature>,
    evicted: u64,
}

impl Fold {
    pub(super) fn new(window: Duration) -> Self {
        Self { window, entries: HashMap::new(), order: VecDeque::new(), evicted: 0 }
    }

    /// Takes a failure; the answer is what to write now, and empty for events of other kinds.
    pub(super) fn add(&mut self, now: Instant, event: &Arc<Event>) -> Vec<Folded> {
        let Some(signature) = signature(event) else {
            return Vec::new();
        };
        // One whose window is over is told before a new one begins.
        let mut written = self.due(now);
        if let Some(entry) = self.entries.get_mut(&signature) {
            entry.count += 1;
            entry.last = Arc::clone(event);
            return written;
        }
        if self.entries.len() >= limits::LOG_SIGNATURES {
            self.evicted += 1;
            written.extend(self.take_oldest(now));
        }
        self.order.push_back(signature.clone());
        self.entries.insert(signature, Entry { since: now, count: 0, last: Arc::clone(event) });
        written.push(Folded { event: Arc::clone(event), count: 1, window: None });
        written
    }

    /// What has been folded and whose window is over. A signature of which nothing came is forgotten.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Folded> {
        let mut written = Vec::new();
        while let Some(entry) = self.order.front().and_then(|signature| self.entries.get(signature)) {
            if now.saturating_duration_since(entry.since) < self.window {
                break;
            }
            let goes_on = entry.count > 0;
            let event = Arc::clone(&entry.last);
            let signature = self.order.front().cloned();
            written.extend(self.take_oldest(now));
            if let (true, Some(signature)) = (goes_on, signature) {
                self.order.push_back(signature.clone());
                self.entries.insert(signature, Entry { since: now, count: 0, last: event });
            }
        }
        written
    }

    /// Everything that is folded, for the end.
    pub(super) fn drain(&mut self) -> Vec<Folded> {
        let now = Instant::now();
        let mut written = Vec::new();
        while !self.order.is_empty() {
            written.extend(self.take_oldest(now));
        }
        written
    }

    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    fn take_oldest(&mut self, now: Instant) -> Option<Folded> {
        let entry = self.order.pop_front().and_then(|signature| self.entries.remove(&signature))?;
        let window = Some(now.saturating_duration_since(entry.since));
        (entry.count > 0).then_some(Folded { event: entry.last, count: entry.count, window })
    }
}

fn signature(event: &Event) -> Option<Signature> {
    let Event::Verbs(failure) = event else {
        return None;
    };
    Some(Signature {
        device: failure.device.clone(),
        verb: failure.verb.to_string(),
        errno: failure.errno,
        function: failure.answer.function.clone(),
        comm: failure.comm.clone(),
        uid: failure.uid,
        cgroup_id: failure.cgroup_id,
        probe: failure.probe,
    })
}
