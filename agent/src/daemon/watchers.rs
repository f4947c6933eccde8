//! Clients that watch events: each has a bounded queue of its own, and is told what it was too slow for.

use std::sync::Arc;

use tokio::sync::mpsc::{self, error::TrySendError};

use super::handle::{Filter, Refused, Watch, Watched};
use crate::config::limits;
use crate::event::Event;

#[derive(Debug)]
struct Watcher {
    filter: Filter,
    events: mpsc::Sender<Watched>,
    lost: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    all: Vec<Watcher>,
}

impl Watchers {
    /// Takes one more, if there is room.
    pub(super) fn add(&mut self, watch: Watch) {
        self.remove_gone();
        let has_room = self.all.len() < limits::WATCHERS;
        let answer = if has_room { Ok(()) } else { Err(Refused::TooManyWatchers) };
        // A client that is gone already needs no answer and gets no events.
        if watch.accepted.send(answer).is_ok() && has_room {
            self.all.push(Watcher { filter: watch.filter, events: watch.events, lost: 0 });
        }
    }

    /// Hands an event to all who want it, and says to how many of them it was lost.
    pub(super) fn send(&mut self, event: &Arc<Event>) -> u64 {
        let mut lost = 0;
        self.all.retain_mut(|watcher| {
            if !watcher.filter.matches(event) {
                return true;
            }
            let watched = Watched { event: Arc::clone(event), lost_before: watcher.lost };
            match watcher.events.try_send(watched) {
                Ok(()) => watcher.lost = 0,
                Err(TrySendError::Full(_)) => {
                    watcher.lost += 1;
                    lost += 1;
                }
                Err(TrySendError::Closed(_)) => return false,
            }
            true
        });
        lost
    }

    /// Forgets clients that are gone.
    pub(super) fn remove_gone(&mut self) {
        self.all.retain(|watcher| !watcher.events.is_closed());
    }
}
