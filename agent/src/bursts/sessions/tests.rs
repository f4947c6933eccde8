//! The thread's state on a host that the test plays.

use super::*;
use crate::bursts::fake::{FakeHost, link};
use crate::kernel::clock::{monotonic_ns, realtime_ns};

fn wish(netdevs: &[&str]) -> Wish {
    Wish {
        clock: crate::kernel::sampler::Clock::Read,
        netdevs: netdevs.iter().map(|glob| glob.parse().unwrap()).collect(),
        interval: DurationNs(1_000_000),
        line_rates: Vec::new(),
        regions: Vec::new(),
        suspected: false,
        marks: Marks::Ignored,
    }
}

/// A worker whose clock the test moves.
struct Clock(std::cell::Cell<u64>);

impl Clocks for Clock {
    fn monotonic(&self) -> u64 {
        self.0.get()
    }

    fn realtime(&self) -> i64 {
        i64::try_from(self.0.get()).unwrap() + 1_700_000_000_000_000_000
    }

    fn error(&self) -> Option<DurationNs> {
        None
    }
}

fn worker(host: &FakeHost, netdevs: &[&str]) -> (Worker<Clock>, mpsc::Receiver<Update>) {
    let (updates, receiver) = mpsc::channel(2);
    let clock = Clock(std::cell::Cell::new(1_000_000_000_000));
    (Worker::new(wish(netdevs), Origin::default(), Box::new(host.clone()), clock, updates), receiver)
}

fn pass(worker: &Worker<Clock>, ms: u64) {
    worker.clocks.0.set(worker.clocks.0.get() + ms * 1_000_000);
}

fn shown(update: &Update) -> Vec<String> {
    let shown = |device: &DeviceState| match &device.state {
        State::Sampled { layer, .. } => format!("{} {layer}", device.netdev),
        State::Left(why) | State::Failed(why) => format!("{}: {why}", device.netdev),
    };
    update.devices.iter().flatten().map(shown).collect()
}

#[test]
fn devices_are_followed_as_they_come_and_go_and_change_their_name() {
    let host = FakeHost::default();
    let (mut worker, mut updates) = worker(&host, &[]);
    let mut step = |change: &dyn Fn(&mut crate::bursts::fake::Given), expected: &[&str], attached: &[&str]| {
        host.with(change);
        worker.look(Instant::now());
        assert!(worker.drain(Instant::now()));
        let update = updates.try_recv().unwrap();
        assert_eq!(shown(&update), expected);
        assert_eq!(host.with(|given| given.attached.clone()), attached);
    };
    step(&|_| {}, &[], &[]);
    step(&|given| given.links = vec![link(2, "eth0")], &["eth0 device"], &["eth0"]);
    step(&|given| given.links.push(link(3, "eth1")), &["eth0 device", "eth1 device"], &["eth0", "eth1"]);
    // A rename ends one series and begins another.
    step(&|given| given.links[0].name = "lan0".into(), &["lan0 device", "eth1 device"], &["eth1", "lan0"]);
    step(&|given| drop(given.links.remove(0)), &["eth1 device"], &["eth1"]);
}

#[test]
fn a_device_that_is_made_anew_between_two_looks_is_attached_to_again() {
    let host = FakeHost::default();
    host.with(|given| given.links = vec![link(2, "eth0"), link(3, "eth1")]);
    let (mut worker, mut updates) = worker(&host, &[]);
    worker.look(Instant::now());
    worker.drain(Instant::now());
    drop(updates.try_recv().unwrap());
    host.with(|given| given.remade.insert("eth0".into()));
    pass(&worker, 100);
    worker.look(Instant::now());
    assert_eq!(host.with(|given| given.attached.clone()), ["eth1", "eth0"], "the other one is left alone");
    pass(&worker, 100);
    worker.drain(Instant::now());
    let reads = updates.try_recv().unwrap().reads;
    let told: Vec<_> = reads.iter().map(|read| (read.series.netdev.as_str(), read.last)).collect();
    assert_eq!(told, [("eth0", true), ("eth0", false), ("eth1", false)]);
    // What the programs that are gone did not count is not told as idle.
    let last = &reads[0].series;
    assert_eq!((last.samples.len(), last.covered.len(), last.lost > 80), (0, 0, true), "{last:?}");
}

#[test]
fn a_device_that_refuses_is_named_and_tried_again() {
    let host = FakeHost::default();
    host.with(|given| {
        given.links = vec![link(2, "eth0")];
        given.refusing.insert("eth0".into());
    });
    let (mut worker, mut updates) = worker(&host, &["eth*"]);
    worker.look(Instant::now());
    worker.drain(Instant::now());
    assert_eq!(shown(&updates.try_recv().unwrap()), ["eth0: it refuses"]);
    worker.look(Instant::now());
    worker.drain(Instant::now());
    assert_eq!(updates.try_recv().unwrap().devices, None, "what was told is not told again");
    host.with(|given| given.refusing.clear());
    worker.look(Instant::now());
    worker.drain(Instant::now());
    assert_eq!(shown(&updates.try_recv().unwrap()), ["eth0 device"]);
}

#[test]
fn what_finds_the_queue_full_is_counted_as_lost() {
    let host = FakeHost::default();
    host.with(|given| given.links = vec![link(2, "eth0")]);
    let (mut worker, mut updates) = worker(&host, &[]);
    worker.look(Instant::now());
    let mut buckets = 0;
    // Two find room.
    for _ in 0..6 {
        pass(&worker, 100);
        assert!(worker.drain(Instant::now()));
    }
    let mut lost = 0;
    while let Ok(update) = updates.try_recv() {
        buckets += update.reads.iter().map(|read| read.series.samples.len() as u64).sum::<u64>();
    }
    pass(&worker, 100);
    worker.drain(Instant::now());
    let update = updates.try_recv().unwrap();
    for read in &update.reads {
        buckets += read.series.samples.len() as u64;
        lost += read.series.lost;
    }
    assert_eq!((update.updates_lost, lost), (4, 400));
    // The first is the one after the attach, the last is behind the guard.
    assert_eq!(buckets + lost, 700 - 11);
    drop(updates);
    pass(&worker, 100);
    assert!(!worker.drain(Instant::now()), "nobody wants it any more");
}

#[test]
fn the_thread_reads_and_ends_when_it_is_told() {
    let host = FakeHost::default();
    host.with(|given| given.links = vec![link(2, "eth0")]);
    let begin = (monotonic_ns(), realtime_ns());
    let (sessions, mut updates) = Sessions::start(wish(&[]), Origin::default(), Box::new(host.clone())).unwrap();
    let first = loop {
        let update = updates.blocking_recv().unwrap();
        if let Some(read) = update.reads.into_iter().find(|read| !read.series.samples.is_empty()) {
            break read.series;
        }
    };
    assert!(monotonic_ns() - begin.0 < 20_000_000_000);
    let start = first.covered[0].start.0;
    assert!(start >= begin.1 && start <= realtime_ns(), "{start} lies in this test's time");
    assert_eq!((first.netdev.as_str(), first.samples[0].rx.bytes), ("eth0", 100));
    drop(sessions);
    assert!(host.with(|given| given.attached.is_empty()), "nothing is left attached");
}
