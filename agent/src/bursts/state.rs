//! The loop's part of the burst sampler: takes what the thread read, accounts for it, and hands it to the recorder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use analysis::burst::Share;
use analysis::series::{BitsPerSecond, UtcNs};

use super::account::{Account, Sizes};
use super::recorder::{self, Recorder};
use super::runs::Runs;
use super::sessions::{DeviceState, State, Update};
use crate::config::limits;
use crate::kernel::ProgramAccount;
use crate::kernel::sampler::{Marks, Retransmissions, Traces};

/// The name under which devices are accounted for that have no account of their own.
pub(crate) const OTHER: &str = "other";

/// A device in the last second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Its name.
    pub(crate) netdev: String,
    /// Its line rate, if it is known.
    pub(crate) line_rate: Option<BitsPerSecond>,
    /// Received and sent in the last second.
    pub(crate) average: [BitsPerSecond; 2],
    /// In the fullest bucket of the last second.
    pub(crate) peak: [BitsPerSecond; 2],
    /// Bursts since the start.
    pub(crate) bursts: [u64; 2],
    /// Buckets lost since the start.
    pub(crate) lost: u64,
}

/// The kernel's own account of what TCP sends again: its tracepoint's, or in tests any.
pub(crate) trait Retraced: std::fmt::Debug + Send {
    /// What was sent again since the program was attached.
    fn traces(&self) -> anyhow::Result<Traces>;

    /// How often the program ran and how long, while that was measured.
    fn account(&self) -> ProgramAccount;
}

impl Retraced for Retransmissions {
    fn traces(&self) -> anyhow::Result<Traces> {
        self.read()
    }

    fn account(&self) -> ProgramAccount {
        self.account()
    }
}

/// All devices.
#[derive(Debug)]
pub(crate) struct Bursts {
    threshold: Share,
    /// Whether this host marks what TCP sends again.
    pub(crate) marks: Marks,
    /// The kernel's own account of what TCP sends again; `None` if it gives none.
    pub(crate) retransmissions: Option<Box<dyn Retraced>>,
    /// Keeps what was read.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// Devices that are wanted, as they fare.
    pub(crate) devices: Vec<DeviceState>,
    /// What each has come to, those that are gone too.
    pub(crate) accounts: BTreeMap<String, Account>,
    /// Lengths and volumes of bursts, received and sent.
    pub(crate) sizes: [Sizes; 2],
    /// How often rings were read.
    pub(crate) drains: u64,
    /// How long that took.
    pub(crate) drain_time: Duration,
    /// What the programs came to.
    pub(crate) runs: Runs,
    /// How often the wall clock was set.
    pub(crate) clock_steps: u64,
    /// Updates that found the queue full.
    pub(crate) updates_lost: u64,
}

impl Bursts {
    /// Nothing yet.
    pub(crate) fn new(threshold: Share, recorder: Option<Recorder>) -> Self {
        Self {
            threshold,
            marks: Marks::Ignored,
            retransmissions: None,
            recorder: recorder.map(Arc::new),
            devices: Vec::new(),
            accounts: BTreeMap::new(),
            sizes: <[Sizes; 2]>::default(),
            drains: 0,
            drain_time: Duration::ZERO,
            runs: Runs::default(),
            clock_steps: 0,
            updates_lost: 0,
        }
    }

    /// Takes one update.
    pub(crate) fn take(&mut self, update: Update) {
        self.drains += 1;
        self.drain_time += update.took;
        self.updates_lost = update.updates_lost;
        self.runs = update.runs.unwrap_or(self.runs);
        if let Some(step) = update.step_ns {
            self.clock_steps += 1;
            tracing::warn!("the wall clock was set by {step} ns: samples around this time may be misplaced by that");
        }
        if let Some(devices) = update.devices {
            self.tell(&devices);
            self.devices = devices;
        }
        for read in update.reads {
            let name = self.account_name(&read.series.netdev);
            let account = self.accounts.entry(name).or_default();
            account.take(&read.series, read.totals.as_ref(), self.threshold, &mut self.sizes);
            if read.last {
                account.end();
            }
            if let Some(recorder) = &self.recorder {
                recorder.push(read.series);
            }
        }
    }

    /// The account that a device has: its own, unless there are too many that are in use.
    fn account_name(&mut self, netdev: &str) -> String {
        if !self.accounts.contains_key(netdev) && self.accounts.len() >= limits::NETDEV_ACCOUNTS {
            let sampled = |name: &str| {
                self.devices.iter().any(|device| device.netdev == name && matches!(device.state, State::Sampled { .. }))
            };
            let Some(gone) = self.accounts.keys().find(|name| *name != OTHER && !sampled(name)).cloned() else {
                return OTHER.to_owned();
            };
            self.accounts.remove(&gone);
        }
        netdev.to_owned()
    }

    /// Says what has changed.
    fn tell(&self, devices: &[DeviceState]) {
        for device in devices.iter().filter(|device| !self.devices.contains(device)) {
            match &device.state {
                State::Sampled { layer, means: [rx, tx] } => {
                    let rate = device.line_rate.map_or("of unknown speed".to_owned(), |rate| rate.to_string());
                    tracing::info!("bursts: {} ({layer}, {rate}) is sampled: rx by {rx}, tx by {tx}", device.netdev);
                }
                State::Left(why) => tracing::info!("bursts: {} is not sampled: {why}", device.netdev),
                State::Failed(why) => tracing::warn!("bursts: {} cannot be sampled: {why}", device.netdev),
            }
        }
        let gone = self.devices.iter().filter(|old| !devices.iter().any(|new| new.netdev == old.netdev));
        gone.for_each(|device| tracing::info!("bursts: {} has gone", device.netdev));
        if devices.is_empty() {
            tracing::info!("bursts: there is no network device to sample; name some in bursts.netdevs");
        }
    }

    /// The sampled devices in the last second before `now`.
    pub(crate) fn live(&self, now: UtcNs) -> Vec<Live> {
        let sampled = self.devices.iter().filter(|device| matches!(device.state, State::Sampled { .. }));
        let live = |device: &DeviceState| {
            let account = self.accounts.get(&device.netdev)?;
            let second = account.last_second(now);
            Some(Live {
                netdev: device.netdev.clone(),
                line_rate: device.line_rate,
                average: second.bytes.map(|bytes| BitsPerSecond(bytes.saturating_mul(8))),
                peak: second.peak.map(BitsPerSecond),
                bursts: account.ways.each_ref().map(|way| way.bursts),
                lost: account.lost,
            })
        };
        sampled.filter_map(live).collect()
    }

    /// What is worth knowing and no fault, one sentence each.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let marking =
            "TCP segments that this host sends again are marked (bursts.mark_retransmits): packets are changed";
        (self.marks == Marks::Set).then(|| marking.to_owned()).into_iter()
    }

    /// What does not run as configured and why, one sentence each.
    pub(crate) fn degraded(&self) -> impl Iterator<Item = String> {
        let recorder = self.recorder.as_ref().and_then(|recorder| match recorder.status().state {
            recorder::State::MemoryOnly | recorder::State::Recording => None,
            recorder::State::DiskFull(why) => Some(format!("no files of samples, the disk is full: {why}")),
            recorder::State::DiskRefuses(why) => Some(format!("no files of samples: {why}")),
        });
        self.devices
            .iter()
            .filter_map(|device| match &device.state {
                State::Failed(why) => Some(format!("network device {} cannot be sampled: {why}", device.netdev)),
                State::Sampled { .. } | State::Left(_) => None,
            })
            .chain(recorder)
    }
}
