//! The thread that samples, from its start to its end.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use analysis::counter_samples::CounterSamples;

use super::sampler::{Sampler, Status};
use crate::bursts::clock::Clocks;
use crate::config::limits;

/// The thread's other end. Dropping it ends the thread, which gives away what it has first: it is waited for, but not
/// for long, since a driver may hold it up.
#[derive(Debug)]
pub(crate) struct Service {
    status: Arc<Mutex<Vec<Status>>>,
    /// Closed, it ends the thread.
    alive: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Service {
    /// Starts to sample; pieces go to `sink`.
    ///
    /// # Errors
    ///
    /// If the thread cannot be made.
    pub(crate) fn start<C: Clocks + Send + 'static>(
        sampler: Sampler<C>,
        sink: impl FnMut(CounterSamples) + Send + 'static,
    ) -> io::Result<Self> {
        let status = Arc::new(Mutex::new(sampler.status()));
        let (alive, stop) = channel();
        let (end, ended) = channel();
        let to = Arc::clone(&status);
        std::thread::Builder::new().name("fabricscope-ctr".to_owned()).spawn(move || {
            run(sampler, sink, &to, &stop);
            // Nobody may wait any more.
            let _ = end.send(());
        })?;
        Ok(Self { status, alive: Some(alive), ended })
    }

    /// How the sources fare.
    pub(crate) fn status(&self) -> Vec<Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.alive.take());
        if self.ended.recv_timeout(limits::FAST_END) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("a reading of counters does not end: its last samples are lost");
        }
    }
}

fn run<C: Clocks>(
    mut sampler: Sampler<C>,
    mut sink: impl FnMut(CounterSamples),
    status: &Mutex<Vec<Status>>,
    stop: &Receiver<()>,
) {
    let pause = u64::try_from(limits::FAST_FLUSH.as_nanos()).unwrap_or(u64::MAX);
    let mut flush_at = sampler.now().saturating_add(pause);
    loop {
        let next = sampler.turn();
        let ended = stop.try_recv() == Err(TryRecvError::Disconnected);
        if ended || sampler.now() >= flush_at {
            sampler.flush().into_iter().for_each(&mut sink);
            *status.lock().unwrap_or_else(PoisonError::into_inner) = sampler.status();
            flush_at = sampler.now().saturating_add(pause);
        }
        if ended {
            return;
        }
        let until = next.map_or(flush_at, |next| next.min(flush_at));
        std::thread::sleep(Duration::from_nanos(until.saturating_sub(sampler.now())));
    }
}
