//! A source for tests that plays the kernel side: it has what it is given.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agent_common::verb::VerbKey;

use super::handle::Info;
use super::source::Source;
use crate::event::{Event, Failure, Link};
use crate::host::device_number::DeviceNumber;
use crate::host::rdma::{RdmaDevice, RdmaFacts, RdmaPort, UverbsNode};
use crate::kernel::state::{HookState, How, Snapshot, State};
use crate::probes::{Hook, Layer};
use crate::verbs::request::Request;

/// What the test gives.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) events: VecDeque<anyhow::Result<Event>>,
    /// Events that never end: each drain is given as many of these as it takes.
    pub(crate) endless: Option<Event>,
    /// Turns that attaching takes, and those that were taken.
    pub(crate) attaching: usize,
    pub(crate) attached: usize,
    pub(crate) snapshot: Snapshot,
    pub(crate) hooks: Vec<HookState>,
    /// How often the counters were read.
    pub(crate) snapshots_taken: usize,
    bell: UnixStream,
}

/// The source's end.
#[derive(Debug)]
pub(crate) struct Fake {
    given: Arc<Mutex<Given>>,
    ring: UnixStream,
    devices: RdmaFacts,
}

/// The test's end.
#[derive(Clone, Debug)]
pub(crate) struct Giver(Arc<Mutex<Given>>);

impl Giver {
    /// Gives something without waking the loop.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Given) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Lets an event wait in the ring, and wakes the loop.
    pub(crate) fn event(&self, event: anyhow::Result<Event>) {
        let mut given = self.0.lock().unwrap();
        given.events.push_back(event);
        // Full means that it is awake already.
        let _ = given.bell.write(&[0]);
    }
}

impl Fake {
    /// A source with all hooks attached, two devices and no calls.
    pub(crate) fn new() -> (Self, Giver) {
        let (bell, ring) = UnixStream::pair().unwrap();
        bell.set_nonblocking(true).unwrap();
        ring.set_nonblocking(true).unwrap();
        let given = Arc::new(Mutex::new(Given {
            events: VecDeque::new(),
            endless: None,
            attaching: 0,
            attached: 0,
            snapshot: Snapshot { lost: vec![0; agent_common::counter::TABLE.len()], ..Snapshot::default() },
            hooks: hooks(),
            snapshots_taken: 0,
            bell,
        }));
        (Self { given: Arc::clone(&given), ring, devices: devices(2) }, Giver(given))
    }
}

impl Source for Fake {
    fn hooks(&self) -> Vec<HookState> {
        self.given.lock().unwrap().hooks.clone()
    }

    fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut given = self.given.lock().unwrap();
        given.snapshots_taken += 1;
        Ok(given.snapshot.clone())
    }

    fn events_fd(&self) -> io::Result<OwnedFd> {
        self.ring.try_clone().map(OwnedFd::from)
    }

    fn drain(&mut self, most: usize, sink: &mut dyn FnMut(anyhow::Result<Event>)) -> usize {
        let mut given = self.given.lock().unwrap();
        while matches!(self.ring.read(&mut [0; 4096]), Ok(1..)) {}
        let mut count = 0;
        while count < most {
            let Some(event) = given.events.pop_front().or_else(|| given.endless.clone().map(Ok)) else { break };
            sink(event);
            count += 1;
        }
        count
    }

    fn refresh(&mut self) -> anyhow::Result<bool> {
        Ok(self.given.lock().unwrap().attaching > 0)
    }

    fn attach(&mut self) -> bool {
        let mut given = self.given.lock().unwrap();
        if given.attaching > 0 {
            given.attaching -= 1;
            given.attached += 1;
        }
        given.attaching > 0
    }

    fn refresh_devices(&mut self) {}

    fn devices(&self) -> &RdmaFacts {
        &self.devices
    }

    fn measure(&mut self, _on: bool) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The default set on a host with mlx5: every hook attached whose module is there, with all accounts in use.
pub(crate) fn hooks() -> Vec<HookState> {
    let here = |hook: &Hook| hook.layer < Layer::Driver || hook.modules.iter().any(|module| module.starts_with("mlx5"));
    let attached = |(number, hook): (u16, &Hook)| HookState {
        number,
        state: match (hook.default, here(hook)) {
            (false, _) => State::Disabled("attached for sessions only".to_owned()),
            (true, false) => State::Waiting("not loaded".to_owned()),
            (true, true) => State::Attached {
                how: How::Kprobe,
                function: hook.functions[0].to_owned(),
                module: String::new(),
                instead: None,
            },
        },
        transitions: if hook.default && here(hook) { 2 } else { 0 },
        run_count: 10,
        run_time_ns: 2_000,
        missed: 0,
    };
    Hook::all().map(attached).collect()
}

/// The kernel's number of the device file of `mlx5_<index>`.
pub(crate) fn rdev(index: u32) -> u32 {
    DeviceNumber { major: 231, minor: 192 + index }.to_kernel()
}

/// Devices `mlx5_0` and so on, of two ports each.
pub(crate) fn devices(count: u32) -> RdmaFacts {
    let port = |number| RdmaPort {
        number,
        netdevs: vec![format!("eth{number}")],
        link_layer: Some("Ethernet".into()),
        ..RdmaPort::default()
    };
    let device = |index| RdmaDevice {
        name: format!("mlx5_{index}"),
        driver: Some("mlx5_ib".into()),
        pci: Some(format!("0000:3b:00.{index}")),
        firmware: Some("28.39.1002".into()),
        ports: vec![port(1), port(2)],
        ..RdmaDevice::default()
    };
    let node = |index| UverbsNode {
        name: format!("uverbs{index}"),
        number: DeviceNumber::from_kernel(rdev(index)),
        device: format!("mlx5_{index}"),
    };
    RdmaFacts {
        devices: (0..count).map(device).collect(),
        uverbs: (0..count).map(node).collect(),
        rdma_cm: DeviceNumber::new(10, 58),
    }
}

/// A failed reg_mr on mlx5_0.
pub(crate) fn failure(comm: &str) -> Failure {
    let answer = Link { layer: Layer::Core, function: "ib_umem_get".into(), errno: libc::EFAULT };
    let outer = Link { layer: Layer::Syscall, function: "ib_uverbs_ioctl".into(), errno: libc::EFAULT };
    Failure {
        time: SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789),
        monotonic_ns: 5_000_000_000,
        duration_ns: Some(12_345),
        key: VerbKey::ioctl(7, 5, 0),
        verb: "reg_mr".into(),
        device: Some("mlx5_0".into()),
        errno: libc::EFAULT,
        answer: answer.clone(),
        chain: vec![answer, outer],
        chain_cut: false,
        firmware: None,
        pid: 4711,
        tid: 4712,
        uid: 1000,
        comm: comm.to_owned(),
        cgroup_id: 99,
        process: crate::host::process::Process::default(),
        cause: None,
        probe: false,
        unsupported: false,
        qp: None,
        request: Request::default(),
    }
}

/// The same as an event.
pub(crate) fn event(comm: &str) -> Event {
    Event::Verbs(Box::new(failure(comm)))
}

/// Somebody.
pub(crate) fn info() -> Info {
    Info {
        version: "1.2.3",
        started: SystemTime::UNIX_EPOCH,
        host: Some("gpu-17".into()),
        kernel: Some("6.12.48".into()),
        boot_id: Some("b00t".into()),
        metrics: None,
    }
}
