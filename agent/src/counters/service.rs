//! Reads the counters at a slow pace from a thread of its own: firmware may take its time, and nobody waits for it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::collector::Collector;
use super::readout::Readout;
use crate::config::limits;

/// The last reading.
#[derive(Clone, Debug)]
pub(crate) struct Latest {
    /// What was read.
    pub(crate) readout: Readout,
    /// The time from one reading to the next as it is now.
    pub(crate) pace: Duration,
}

/// The thread's other end. It ends with the thread once this is dropped, unless a driver holds it up for longer: nobody
/// waits for that.
#[derive(Debug)]
pub(crate) struct Service {
    latest: Arc<Mutex<Option<Arc<Latest>>>>,
    /// Closed, it ends the thread.
    _alive: Sender<()>,
}

impl Service {
    /// Starts to read, at once and then at this pace.
    ///
    /// # Errors
    ///
    /// If the thread cannot be made.
    pub(crate) fn start(collector: Collector, every: Duration) -> io::Result<Self> {
        let latest = Arc::new(Mutex::new(None));
        let (alive, ended) = channel();
        let to = Arc::clone(&latest);
        std::thread::Builder::new()
            .name("fabricscope-nic".to_owned())
            .spawn(move || read_on(collector, every, &to, &ended))?;
        Ok(Self { latest, _alive: alive })
    }

    /// The last reading, unless it is so old that its numbers say nothing about now.
    pub(crate) fn latest(&self) -> Option<Arc<Latest>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let old = latest.pace.saturating_mul(limits::COUNTER_PACES_UNTIL_OLD);
        (latest.readout.at.elapsed() < old).then_some(latest)
    }
}

fn read_on(mut collector: Collector, every: Duration, to: &Mutex<Option<Arc<Latest>>>, ended: &Receiver<()>) {
    let mut slow = false;
    loop {
        let began = Instant::now();
        let readout = collector.read(began);
        let took = began.elapsed();
        let pace = pace(every, took);
        if slow != (pace > every) {
            slow = pace > every;
            let (took, pace) = (took.as_secs_f64(), pace.as_secs_f64());
            tracing::warn!("reading the counters took {took:.1} s: the pace is {pace:.0} s now");
        }
        *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Latest { readout, pace }));
        match ended.recv_timeout(pace.saturating_sub(took)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Reading takes at most a tenth of the time: where it is slower, it is done more seldom.
fn pace(every: Duration, took: Duration) -> Duration {
    every.max(took.saturating_mul(limits::COUNTER_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_sources_are_read_more_seldom() {
        let second = Duration::from_secs(1);
        let rows = [(0, 10), (1, 10), (2, 20), (60, 600)];
        for (took, expected) in rows {
            assert_eq!(pace(10 * second, took * second), expected * second, "{took}");
        }
    }
}
