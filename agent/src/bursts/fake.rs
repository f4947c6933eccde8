//! Plays the kernel for tests: devices that come and go, rings that fill by themselves.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_common::bucket::{Bucket, SLOTS, Totals, direction};
use agent_common::retransmission::Traced;
use analysis::burst::Share;
use analysis::series::{BitsPerSecond, DurationNs, Fields, Measured, Sample, Series, Span, Traffic, UtcNs};
use anyhow::bail;

use super::device::Attached;
use super::drain::Buckets;
use super::recorder::{DiskSettings, Recorder, Settings};
use super::runs::Runs;
use super::sessions::{DeviceState, Host, Read, State, Update};
use super::state::{Bursts, Retraced};
use crate::host::links::Link;
use crate::kernel::ProgramAccount;
use crate::kernel::sampler::{Marks, Means, Options, Slot, Traces};

/// What the test gives.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Devices that are there.
    pub(crate) links: Vec<Link>,
    /// Devices that refuse to be attached to.
    pub(crate) refusing: BTreeSet<String>,
    /// Devices that are attached to at this moment.
    pub(crate) attached: Vec<String>,
    /// Devices that were made anew: their programs have gone.
    pub(crate) remade: BTreeSet<String>,
}

/// A host.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeHost(pub(crate) Arc<Mutex<Given>>);

impl FakeHost {
    /// Changes what is given.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Given) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }
}

impl Host for FakeHost {
    fn links(&self) -> io::Result<Vec<Link>> {
        Ok(self.with(|given| given.links.clone()))
    }

    fn attach(&self, options: &Options) -> anyhow::Result<Box<dyn Attached>> {
        if self.with(|given| given.refusing.contains(&options.netdev)) {
            bail!("it refuses");
        }
        self.with(|given| {
            given.attached.push(options.netdev.clone());
            given.remade.remove(&options.netdev);
        });
        let (netdev, interval) = (options.netdev.clone(), options.interval);
        Ok(Box::new(FakeAttached { host: self.clone(), netdev, interval }))
    }
}

/// Programs on a device that receives 100 bytes in each bucket.
#[derive(Debug)]
struct FakeAttached {
    host: FakeHost,
    netdev: String,
    interval: DurationNs,
}

impl Attached for FakeAttached {
    fn rings(&self) -> &dyn Buckets {
        self
    }

    fn totals(&self) -> [Totals; 2] {
        [Totals { skbs: 1, ..Totals::default() }, Totals::default()]
    }

    fn means(&self) -> [Means; 2] {
        [Means::Tcx, Means::Clsact("it has none".into())]
    }

    fn napi(&self) -> bool {
        false
    }

    fn account(&self) -> ProgramAccount {
        ProgramAccount { run_count: 5, run_time_ns: 100, recursion_misses: 0 }
    }

    fn stands(&self) -> bool {
        self.host.with(|given| !given.remade.contains(&self.netdev))
    }
}

impl Buckets for FakeAttached {
    fn count(&self) -> u32 {
        1
    }

    fn slots(&self) -> u32 {
        SLOTS
    }

    fn interval(&self) -> DurationNs {
        self.interval
    }

    fn read(&self, way: u32, _ring: u32, sequence: u64) -> Slot {
        if way == direction::TX {
            return Slot::Empty;
        }
        Slot::Read(Bucket { sequence, bytes: 100, packets: 1, ..Bucket::default() })
    }
}

impl Drop for FakeAttached {
    fn drop(&mut self) {
        self.host.with(|given| given.attached.retain(|netdev| *netdev != self.netdev));
    }
}

/// Three segments were sent again at once, once more in vain.
#[derive(Debug)]
struct FakeTrace;

impl Retraced for FakeTrace {
    fn traces(&self) -> anyhow::Result<Traces> {
        let host = Traced { events: 1, segments: 3, data_segments: 3, bytes: 3000, failures: 1 };
        Ok(Traces { own: None, host, sizes: true, failures: true })
    }

    fn account(&self) -> ProgramAccount {
        ProgramAccount { run_count: 2, run_time_ns: 100, recursion_misses: 0 }
    }
}

/// A device with hardware behind it.
pub(crate) fn link(ifindex: u32, name: &str) -> Link {
    let speed = Some(BitsPerSecond(1_000_000_000));
    Link { ifindex, name: name.to_owned(), physical: true, speed, ..Link::default() }
}

/// One update: each device was read for two milliseconds, of which the first was a burst received.
pub(crate) fn update(netdevs: &[String], now: UtcNs) -> Update {
    let line_rate = Some(BitsPerSecond(1_000_000_000));
    let means = [Means::Tcx, Means::Tcx];
    let state = |netdev: &String| DeviceState {
        netdev: netdev.clone(),
        line_rate,
        state: State::Sampled { layer: "device".into(), means: means.clone() },
    };
    let interval = DurationNs(1_000_000);
    let read = |netdev: &String| {
        let rx = Traffic { bytes: 100_000, packets: 70, ce_bytes: 1_500, ..Traffic::default() };
        let sample = Sample { start: now, length: interval, rx, ..Sample::default() };
        let series = Series {
            netdev: netdev.clone(),
            interval,
            line_rate,
            fields: Fields::both(Measured { packets: true, ce: true, retransmits: true, ..Measured::BYTES }),
            samples: vec![sample],
            covered: vec![Span { start: now, end: now.after(DurationNs(2_000_000)) }],
            lost: 3,
            ..Series::default()
        };
        let totals = Totals { skbs: 10, segments: 70, wire_bytes: 100_000, ..Totals::default() };
        Read { series, totals: Some([totals, Totals::default()]), last: false }
    };
    Update {
        devices: Some(netdevs.iter().map(state).collect()),
        reads: netdevs.iter().map(read).collect(),
        runs: Some(Runs {
            programs: ProgramAccount { run_count: 10, run_time_ns: 1_000, recursion_misses: 0 },
            ticks: 2000,
            missed: 3,
        }),
        took: Duration::from_micros(50),
        ..Update::default()
    }
}

/// The loop's part after one such update, with a recorder that may write to this folder.
pub(crate) fn state(netdevs: &[String], now: UtcNs, folder: &Path) -> Bursts {
    let disk = DiskSettings { folder: folder.to_owned(), age: Duration::from_secs(60), bytes: 1 << 20 };
    let recorder = Recorder::start(Settings { memory: 1 << 20, disk: Some(disk) }).unwrap();
    let mut bursts = Bursts::new(Share::DEFAULT, Some(recorder));
    bursts.marks = Marks::Set;
    bursts.retransmissions = Some(Box::new(FakeTrace));
    bursts.take(update(netdevs, now));
    bursts
}
