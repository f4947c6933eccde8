//! A thread of its own samples all devices that are wanted: follows them as they come and go, drains their rings in
//! time, and hands on what it read over a bounded queue.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agent_common::bucket::{SLOTS, SLOTS_MANY, Totals};
use analysis::series::{BitsPerSecond, DurationNs, Series};
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::clock::{Clocks, HostClocks, Placing};
use super::device::{Attached, Device, Origin};
use super::follow::{Chosen, Glob, Verdict, choose, line_rate};
use super::runs::Runs;
use crate::config::limits;
use crate::host::links::{Bell, Link, links};
use crate::kernel::sampler::{Clock, Marks, Means, Options, Prefix, Sampler};

/// What is sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Devices by name; all physical ones if none is taken in by name.
    pub(crate) netdevs: Vec<Glob>,
    /// The length of a bucket.
    pub(crate) interval: DurationNs,
    /// What tells buckets apart.
    pub(crate) clock: Clock,
    /// Line rates that go before what devices state.
    pub(crate) line_rates: Vec<(Glob, BitsPerSecond)>,
    /// The prefixes of the host's own region.
    pub(crate) regions: Vec<Prefix>,
    /// Whether received retransmissions are looked for.
    pub(crate) suspected: bool,
    /// What is done about the mark of segments that are sent again.
    pub(crate) marks: Marks,
}

/// How a device that is wanted fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceState {
    /// Its name.
    pub(crate) netdev: String,
    /// Its line rate, if it is known.
    pub(crate) line_rate: Option<BitsPerSecond>,
    /// How it fares.
    pub(crate) state: State,
}

/// How a device that is wanted fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is sampled.
    Sampled {
        /// At which layer of the host's stack of devices.
        layer: String,
        /// How the programs for receiving and sending are attached.
        means: [Means; 2],
    },
    /// It is not, for a reason that is no fault.
    Left(String),
    /// It is not, though it should be.
    Failed(String),
}

/// What was read of one device.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The buckets. After a step of the wall clock its times may lie before those of the series before.
    pub(crate) series: Series,
    /// What was received and sent since the device was attached, each second or so.
    pub(crate) totals: Option<[Totals; 2]>,
    /// The programs have gone: totals of this device that come later begin at 0.
    pub(crate) last: bool,
}

/// What the thread hands on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Update {
    /// All devices that are wanted, if anything about them has changed.
    pub(crate) devices: Option<Vec<DeviceState>>,
    /// What was read of each device.
    pub(crate) reads: Vec<Read>,
    /// What the programs of all devices came to, those that are gone too; each second or so.
    pub(crate) runs: Option<Runs>,
    /// How long reading took.
    pub(crate) took: Duration,
    /// By how much the wall clock was set since the last time, in nanoseconds.
    pub(crate) step_ns: Option<i64>,
    /// Updates that found the queue full since the start; their buckets are counted as lost.
    pub(crate) updates_lost: u64,
}

/// What the thread needs of the host.
pub(crate) trait Host: Send {
    /// All devices.
    fn links(&self) -> io::Result<Vec<Link>>;

    /// Attaches to one.
    fn attach(&self, options: &Options) -> anyhow::Result<Box<dyn Attached>>;
}

/// This host, as its kernel shows it.
#[derive(Clone, Debug)]
pub(crate) struct KernelHost {
    /// Where sysfs is mounted.
    pub(crate) sysfs: PathBuf,
}

impl Host for KernelHost {
    fn links(&self) -> io::Result<Vec<Link>> {
        links(&self.sysfs)
    }

    fn attach(&self, options: &Options) -> anyhow::Result<Box<dyn Attached>> {
        Ok(Box::new(Sampler::attach(options)?))
    }
}

/// The running thread. Dropping it ends the thread and detaches everything.
#[derive(Debug)]
pub(crate) struct Sessions {
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Sessions {
    /// Starts the thread; what it reads comes out of the queue.
    ///
    /// # Errors
    ///
    /// If the kernel refuses a socket or the thread.
    pub(crate) fn start(
        wish: Wish,
        origin: Origin,
        host: Box<dyn Host>,
    ) -> anyhow::Result<(Self, mpsc::Receiver<Update>)> {
        let (updates, receiver) = mpsc::channel(limits::BURST_UPDATES);
        let (stop, stopped) = UnixStream::pair().context("starting the burst sampler")?;
        let bell = Bell::new().context("listening for network devices")?;
        let worker = Worker::new(wish, origin, host, HostClocks, updates);
        let thread = std::thread::Builder::new().name("bursts".to_owned()).spawn(move || worker.run(&bell, &stopped));
        Ok((Self { stop, thread: Some(thread.context("starting the burst sampler's thread")?) }, receiver))
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // If it does not take the byte, it has ended.
        let _ = self.stop.write(&[0]);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the burst sampler's thread has panicked");
        }
    }
}

/// A device that is wanted and cannot be sampled, and why.
type Fault = (String, String);

/// The thread's state.
struct Worker<C> {
    wish: Wish,
    origin: Origin,
    host: Box<dyn Host>,
    clocks: C,
    placing: Placing,
    updates: mpsc::Sender<Update>,
    devices: BTreeMap<u32, (Device, String)>,
    states: Vec<DeviceState>,
    /// The states have changed since they were told.
    untold: bool,
    /// Buckets that were read and found the queue full, by device.
    undelivered: BTreeMap<u32, u64>,
    updates_lost: u64,
    /// What the programs of devices that are gone came to.
    gone: Runs,
    /// The last readings of devices that are gone, not handed on yet.
    farewells: Vec<Read>,
    /// By how much the wall clock was set, not handed on yet.
    steps: Option<i64>,
    looked: Option<Instant>,
    totalled: Option<Instant>,
}

impl<C: Clocks> Worker<C> {
    fn new(wish: Wish, origin: Origin, host: Box<dyn Host>, clocks: C, updates: mpsc::Sender<Update>) -> Self {
        let placing = Placing::new(&clocks);
        Self {
            wish,
            origin,
            host,
            clocks,
            placing,
            updates,
            devices: BTreeMap::new(),
            states: Vec::new(),
            untold: true,
            undelivered: BTreeMap::new(),
            updates_lost: 0,
            gone: Runs::default(),
            farewells: Vec::new(),
            steps: None,
            looked: None,
            totalled: None,
        }
    }

    fn run(mut self, bell: &Bell, stopped: &UnixStream) {
        let mut rung = true;
        let mut drained = Instant::now();
        loop {
            let now = Instant::now();
            if self.look_due(rung, now) {
                rung = false;
                self.look(now);
            }
            if now >= drained + self.pace() || self.untold {
                drained = now;
                if !self.drain(now) {
                    return;
                }
            }
            let wait = (drained + self.pace()).saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(stopped, PollFlags::IN), PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
            // An interrupted wait is one that ends early.
            let _ = poll(&mut fds, Some(&timespec(wait)));
            let [stop, ring] = fds.map(|fd| !fd.revents().is_empty());
            if stop {
                // The last reading tells the totals too.
                self.totalled = None;
                self.drain(Instant::now());
                return;
            }
            rung |= ring && bell.has_rung();
        }
    }

    /// Devices are looked at when they have changed, though not without pause, and now and then in any case.
    fn look_due(&self, rung: bool, now: Instant) -> bool {
        let age = self.looked.map(|looked| now.saturating_duration_since(looked));
        age.is_none_or(|age| age >= limits::LINKS_EVERY || rung && age >= limits::LINKS_PAUSE)
    }

    /// The time from one drain to the next: a quarter of the shortest ring.
    fn pace(&self) -> Duration {
        let pace = self.devices.values().map(|(device, _)| Duration::from_nanos(device.pace().0)).min();
        pace.map_or(limits::LINKS_PAUSE, |pace| pace.min(limits::DRAIN_PAUSE))
    }

    /// Attaches to devices that have come, lets go of those that have gone.
    fn look(&mut self, now: Instant) {
        self.looked = Some(now);
        let links = match self.host.links() {
            Ok(links) => links,
            Err(error) => return tracing::warn!("cannot look at the network devices: {error}"),
        };
        let chosen = choose(&links, &self.wish.netdevs, limits::BURST_DEVICES);
        let sampled = |chosen: &&Chosen| matches!(chosen.verdict, Verdict::Sample(_));
        let kept: BTreeMap<u32, &str> =
            chosen.iter().filter(sampled).map(|chosen| (chosen.link.ifindex, &*chosen.link.name)).collect();
        self.part(&kept);
        let slots = if kept.len() >= limits::BURST_DEVICES_MANY { SLOTS_MANY } else { SLOTS };
        let faults: Vec<Fault> = chosen
            .iter()
            .filter_map(|chosen| match &chosen.verdict {
                Verdict::Sample(layer) => self.attach(&chosen.link, layer.to_string(), slots).err(),
                Verdict::CountedOn(_) | Verdict::TooMany => None,
            })
            .collect();
        let states: Vec<_> = chosen.iter().map(|chosen| self.state(chosen, &faults)).collect();
        if states != self.states {
            self.states = states;
            self.untold = true;
        }
    }

    /// Lets go of the devices that are not kept, with a last reading of each, and of those that have been made anew.
    fn part(&mut self, kept: &BTreeMap<u32, &str>) {
        let window = self.placing.window(&self.clocks);
        let is_kept = |index: &u32, device: &Device| kept.get(index) == Some(&device.netdev());
        let gone = self.devices.extract_if(.., |index, (device, _)| !is_kept(index, device) || !device.stands());
        for (index, (mut device, _)) in gone {
            let mut piece = device.read(|| self.clocks.monotonic());
            if is_kept(&index, &device) {
                tracing::info!(
                    "bursts: {} has lost its programs and gets new ones: was it made anew?",
                    device.netdev()
                );
                // Since when is not known: what is empty here may be what nobody counted.
                piece.lose_all();
            }
            let mut series = device.series(&piece, &window);
            series.lost = series.lost.saturating_add(self.undelivered.remove(&index).unwrap_or_default());
            self.gone.add(&device);
            self.farewells.push(Read { series, totals: Some(device.totals()), last: true });
        }
        self.steps = window.step_ns.or(self.steps);
    }

    /// Attaches to a device, unless that was done before, and keeps its line rate up to date.
    fn attach(&mut self, link: &Link, layer: String, slots: u32) -> Result<(), Fault> {
        let rate = line_rate(link, &self.wish.line_rates);
        if let Some((device, _)) = self.devices.get_mut(&link.ifindex) {
            device.set_line_rate(rate);
            return Ok(());
        }
        let options = Options {
            ifindex: link.ifindex,
            netdev: link.name.clone(),
            interval: self.wish.interval,
            clock: self.wish.clock,
            slots,
            clsact: false,
            suspected: self.wish.suspected,
            sketch: true,
            marks: self.wish.marks,
            regions: self.wish.regions.clone(),
        };
        let attached = self.host.attach(&options).map_err(|error| (link.name.clone(), format!("{error:#}")))?;
        let mut device = Device::new(attached, &options, &self.origin, self.clocks.monotonic());
        device.set_line_rate(rate);
        self.devices.insert(link.ifindex, (device, layer));
        Ok(())
    }

    fn state(&self, chosen: &Chosen, faults: &[Fault]) -> DeviceState {
        let fault = faults.iter().find(|(name, _)| *name == chosen.link.name).map(|(_, why)| why.clone());
        let state = match (&chosen.verdict, self.devices.get(&chosen.link.ifindex)) {
            (Verdict::CountedOn(below), _) => State::Left(format!("its packets are counted on {below}")),
            (Verdict::TooMany, _) => {
                State::Failed(format!("no more than {} devices are sampled", limits::BURST_DEVICES))
            }
            (Verdict::Sample(_), Some((device, layer))) => {
                State::Sampled { layer: layer.clone(), means: device.means() }
            }
            (Verdict::Sample(_), None) => State::Failed(fault.unwrap_or_else(|| "it could not be attached".into())),
        };
        let line_rate = line_rate(&chosen.link, &self.wish.line_rates);
        DeviceState { netdev: chosen.link.name.clone(), line_rate, state }
    }

    /// Reads all rings and hands on what there is; whether anybody still wants it.
    fn drain(&mut self, now: Instant) -> bool {
        let clocks = &self.clocks;
        let pieces: Vec<_> =
            self.devices.iter_mut().map(|(index, (device, _))| (*index, device.read(|| clocks.monotonic()))).collect();
        let window = self.placing.window(&self.clocks);
        let totals_due = self.totalled.is_none_or(|at| now.saturating_duration_since(at) >= limits::TICK);
        if totals_due {
            self.totalled = Some(now);
        }
        let mut reads = std::mem::take(&mut self.farewells);
        let step_ns = self.steps.take().or(window.step_ns);
        let mut counts = Vec::with_capacity(pieces.len());
        for (index, piece) in pieces.into_iter().filter(|(_, piece)| !piece.range.is_empty()) {
            let Some((device, _)) = self.devices.get(&index) else { continue };
            let mut series = device.series(&piece, &window);
            let undelivered = self.undelivered.remove(&index).unwrap_or_default();
            series.lost = series.lost.saturating_add(undelivered);
            reads.push(Read { series, totals: totals_due.then(|| device.totals()), last: false });
            counts.push((index, undelivered.saturating_add(piece.range.end - piece.range.start)));
        }
        let runs = totals_due.then(|| {
            let mut runs = self.gone;
            self.devices.values().for_each(|(device, _)| runs.add(device));
            runs
        });
        let devices = self.untold.then(|| self.states.clone());
        let update = Update { devices, reads, runs, took: now.elapsed(), step_ns, updates_lost: self.updates_lost };
        match self.updates.try_send(update) {
            Ok(()) => self.untold = false,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(_)) => {
                self.updates_lost += 1;
                // All that was read is lost now, and so stays what was lost before.
                self.undelivered.extend(counts);
            }
        }
        true
    }
}

fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: wait.subsec_nanos().into() }
}

#[cfg(test)]
mod tests;
