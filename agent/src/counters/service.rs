//! Reads the counters at a slow pace from a thread of its own: firmware may take its time, and nobody waits for it. What
//! the detectors say of each reading waits for the loop.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use analysis::series::UtcNs;

use super::collector::Collector;
use super::findings::{Judged, Windows};
use super::readout::Readout;
use crate::config::limits;
use crate::host::roots::Roots;

/// The last reading.
#[derive(Clone, Debug)]
pub(crate) struct Latest {
    /// What was read.
    pub(crate) readout: Readout,
    /// The time from one reading to the next as it is now.
    pub(crate) pace: Duration,
}

/// What the detectors say of one reading.
#[derive(Debug)]
pub(crate) struct Verdicts {
    /// When the reading was over.
    pub(crate) at: UtcNs,
    /// Every answer.
    pub(crate) judged: Vec<Judged>,
    /// Ports that are one too many to be judged.
    pub(crate) ports_left_out: usize,
}

/// What the thread leaves for others.
#[derive(Debug, Default)]
struct Shared {
    latest: Option<Arc<Latest>>,
    verdicts: VecDeque<Verdicts>,
}

/// The thread's other end. It ends with the thread once this is dropped, unless a driver holds it up for longer: nobody
/// waits for that.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Mutex<Shared>>,
    /// Closed, it ends the thread.
    _alive: Sender<()>,
}

impl Service {
    /// Starts to read, at once and then at this pace.
    ///
    /// # Errors
    ///
    /// If the thread cannot be made.
    pub(crate) fn start(collector: Collector, roots: &Roots, every: Duration) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (alive, ended) = channel();
        let to = Arc::clone(&shared);
        let windows = Windows::new(roots, every);
        std::thread::Builder::new()
            .name("fabricscope-nic".to_owned())
            .spawn(move || read_on(collector, windows, every, &to, &ended))?;
        Ok(Self { shared, _alive: alive })
    }

    /// What the detectors say of the readings since the last call, the oldest first.
    pub(crate) fn verdicts(&self) -> VecDeque<Verdicts> {
        std::mem::take(&mut lock(&self.shared).verdicts)
    }

    /// The last reading, unless it is so old that its numbers say nothing about now.
    pub(crate) fn latest(&self) -> Option<Arc<Latest>> {
        let latest = lock(&self.shared).latest.clone()?;
        let old = latest.pace.saturating_mul(limits::COUNTER_PACES_UNTIL_OLD);
        (latest.readout.at.elapsed() < old).then_some(latest)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_on(mut collector: Collector, mut windows: Windows, every: Duration, to: &Mutex<Shared>, ended: &Receiver<()>) {
    let mut slow = false;
    loop {
        let began = Instant::now();
        let readout = collector.read(began);
        let at = readout.utc();
        windows.take(&readout, at);
        let verdicts = Verdicts { at, judged: windows.findings(), ports_left_out: windows.left_out() };
        // What the devices took: looking for them is done once a minute.
        let took = readout.durations.iter().map(|(_, duration)| *duration).sum();
        let pace = pace(every, took);
        if slow != (pace > every) {
            slow = pace > every;
            let (took, pace) = (took.as_secs_f64(), pace.as_secs_f64());
            tracing::warn!("reading the counters took {took:.1} s: the pace is {pace:.0} s now");
        }
        {
            let mut shared = lock(to);
            shared.latest = Some(Arc::new(Latest { readout, pace }));
            // The newest say how things stand; a loop that does not come for them has other troubles.
            if shared.verdicts.len() >= limits::FINDING_READINGS {
                shared.verdicts.pop_front();
            }
            shared.verdicts.push_back(verdicts);
        }
        match ended.recv_timeout(pace.saturating_sub(began.elapsed())) {
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
