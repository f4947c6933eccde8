//! Sources that follow a script: what becomes samples, what is passed over, and what a slow or failing one does.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use analysis::counter_samples::CounterSamples;
use analysis::series::DurationNs;
use tempfile::TempDir;

use super::service::Service;
use super::*;
use crate::bursts::clock::{Clocks, HostClocks};
use crate::bursts::device::Origin;
use crate::counters::Statistics;
use crate::counters::filter::Filter;
use crate::health::resources::Used;
use crate::host::roots::Roots;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const START: u64 = 5_000_000_000;

/// A clock that the script moves.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clocks for Clock {
    fn monotonic(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn realtime(&self) -> i64 {
        1_700_000_000_000_000_000 + i64::try_from(self.monotonic()).unwrap()
    }

    fn error(&self) -> Option<DurationNs> {
        Some(DurationNs(1_000))
    }
}

/// What the network device answers.
#[derive(Clone, Copy, Default)]
struct Answer {
    /// It adds so many microseconds of sent pause on priority 3 each millisecond.
    ramp: u64,
    /// What stands there besides.
    base: u64,
    /// The device is asked again only after so long.
    keeps: u64,
    /// How long an answer takes.
    takes: u64,
    fails: i32,
    /// It is another driver's.
    bnxt: bool,
}

#[derive(Clone)]
struct Script {
    clock: Clock,
    answer: Arc<Mutex<Answer>>,
}

impl Script {
    fn values(&self) -> io::Result<Vec<u64>> {
        let answer = *self.answer.lock().unwrap();
        self.clock.0.fetch_add(answer.takes, Ordering::Relaxed);
        if answer.fails != 0 {
            return Err(io::Error::from_raw_os_error(answer.fails));
        }
        let now = self.clock.monotonic() - answer.takes / 2;
        let elapsed = (now - START) / answer.keeps.max(1) * answer.keeps.max(1);
        Ok(vec![77, answer.base + elapsed * answer.ramp / MS, 0])
    }
}

impl Statistics for Script {
    fn index(&self, _: &str) -> Option<u32> {
        Some(7)
    }

    fn driver(&self, _: &str) -> Option<String> {
        Some(if self.answer.lock().unwrap().bnxt { "bnxt_en" } else { "mlx5_core" }.to_owned())
    }

    fn priorities(&self, _: &str) -> Option<u8> {
        None
    }

    fn resources(&self) -> Vec<Used> {
        Vec::new()
    }

    fn names(&self, _: &str) -> io::Result<Vec<String>> {
        let bnxt = self.answer.lock().unwrap().bnxt;
        let pause = if bnxt { "pfc_pri3_tx_duration_us" } else { "tx_prio3_pause_duration" };
        Ok(["rx_bytes_phy", pause, "rx_prio3_pause_duration"].map(str::to_owned).to_vec())
    }

    fn values(&self, _: &str) -> io::Result<Vec<u64>> {
        Script::values(self)
    }

    fn rdma_index(&self, _: &str, _: u64) -> Option<u32> {
        None
    }

    fn rdma(&self, _: u32, _: u32) -> io::Result<Vec<(String, u64)>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A host with the network device eth0, or without.
struct Host {
    folder: TempDir,
    script: Script,
}

impl Host {
    fn new(answer: Answer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock(Arc::new(AtomicU64::new(START)));
        let host = Self { folder, script: Script { clock, answer: Arc::new(Mutex::new(answer)) } };
        host.write("class/net/eth0/ifindex", "7\n");
        host.write("class/net/eth0/speed", "100000\n");
        fs::create_dir_all(host.folder.path().join("class/net/eth0/device")).unwrap();
        host
    }

    fn write(&self, inside: &str, text: &str) {
        let path = self.folder.path().join(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn wish(&self, choice: &str, interval: u64) -> Wish {
        Wish {
            roots: Roots::at(self.folder.path(), Path::new("/proc")),
            filter: Filter::default(),
            choice: choice.parse().unwrap(),
            interval: Duration::from_nanos(interval),
            origin: Origin { host: "gpu-17".to_owned(), boot_id: "b00t".to_owned() },
        }
    }

    fn sampler(&self, interval: u64) -> Sampler<Clock> {
        Sampler::new(self.wish("pause congestion", interval), Box::new(self.script.clone()), self.script.clock.clone())
    }

    fn change(&self, change: impl FnOnce(&mut Answer)) {
        change(&mut self.script.answer.lock().unwrap());
    }

    /// Lets so many milliseconds pass, the sampler taking its turns; `every` is called before each.
    fn pass(&self, sampler: &mut Sampler<Clock>, ms: u64, mut every: impl FnMut(u64)) {
        let end = self.script.clock.monotonic() + ms * MS;
        while self.script.clock.monotonic() < end {
            every((self.script.clock.monotonic() - START) / MS);
            let next = sampler.turn().unwrap_or(u64::MAX).min(self.script.clock.monotonic() + MS).min(end);
            self.script.clock.0.fetch_max(next, Ordering::Relaxed);
        }
    }
}

/// The growth of the first counter that moved, sample by sample.
fn growth(samples: &CounterSamples) -> Vec<Option<u64>> {
    let column = samples.columns.iter().find(|column| column.total() > 0).unwrap();
    (0..samples.when.len()).map(|at| column.growth(at)).collect()
}

#[track_caller]
fn one(mut pieces: Vec<CounterSamples>) -> CounterSamples {
    assert_eq!(pieces.len(), 1, "{pieces:?}");
    pieces.remove(0)
}

#[test]
fn every_reading_of_a_source_that_asks_is_a_sample_of_its_measured_length() {
    let host = Host::new(Answer { ramp: 990, takes: 100 * US, ..Answer::default() });
    let mut sampler = host.sampler(MS);
    host.pass(&mut sampler, 200, |_| {});
    let piece = one(sampler.flush());
    let names: Vec<_> = piece.columns.iter().map(|column| (&*column.counter, column.priority)).collect();
    assert_eq!(names, [("pfc_received_pause_seconds", Some(3)), ("pfc_sent_pause_seconds", Some(3))]);
    assert_eq!((&*piece.host, &*piece.netdev, &*piece.source), ("gpu-17", "eth0", "ethtool"));
    assert_eq!((piece.interval, piece.line_rate.map(|rate| rate.0)), (DurationNs(MS), Some(100_000_000_000)));
    assert!(piece.when.len() >= 198, "{}", piece.when.len());
    assert!(piece.when.iter().all(|when| when.length == DurationNs(MS)), "{:?}", piece.when);
    assert!(growth(&piece).iter().all(|growth| *growth == Some(990)), "{:?}", growth(&piece));
    assert_eq!(piece.clock_error, Some(DurationNs(1_000 + 50 * US)), "half a reading is not known");
    let offset = 1_700_000_000_000_000_000_i64;
    assert_eq!(piece.when[0].start.0, offset + i64::try_from(START + 50 * US).unwrap(), "in the middle of a reading");
    // The next piece goes on where this one ends.
    host.pass(&mut sampler, 50, |_| {});
    let mut whole = piece;
    assert!(whole.continue_with(&one(sampler.flush())) && whole.covered.len() == 1, "{:?}", whole.covered);
}

#[test]
fn idle_time_is_covered_and_takes_no_samples() {
    let host = Host::new(Answer::default());
    let mut sampler = host.sampler(MS);
    host.pass(&mut sampler, 100, |_| {});
    let piece = one(sampler.flush());
    assert_eq!((piece.when.len(), piece.measured()), (0, DurationNs(99 * MS)));
}

#[test]
fn what_a_driver_keeps_for_a_second_is_a_sample_of_a_second() {
    let host = Host::new(Answer { ramp: 250, keeps: 1000 * MS, bnxt: true, ..Answer::default() });
    let mut sampler = host.sampler(MS);
    assert_eq!(sampler.status()[0].asked, Duration::from_secs(1), "it is not asked more often");
    host.pass(&mut sampler, 5_000, |_| {});
    let piece = one(sampler.flush());
    assert!(piece.when.iter().all(|when| when.length.0 >= 1000 * MS), "{:?}", piece.when);
    assert_eq!(growth(&piece).iter().map(|growth| growth.unwrap()).sum::<u64>(), 1_000_000, "{:?}", growth(&piece));
}

#[test]
fn what_sysfs_keeps_is_never_finer_than_its_lifespan_and_nothing_is_lost() {
    let host = Host::new(Answer::default());
    let file = "class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent";
    host.write(file, "0\n");
    host.write("class/infiniband/mlx5_0/ports/1/hw_counters/lifespan", "10\n");
    fs::create_dir_all(host.folder.path().join("class/infiniband/mlx5_0/device")).unwrap();
    let mut sampler = host.sampler(MS);
    // The kernel asks the driver again after 16 ms: readings in between see the same.
    host.pass(&mut sampler, 1_000, |ms| {
        if ms % 16 == 0 {
            host.write(file, &format!("{}\n", ms * 7));
        }
    });
    let pieces = sampler.flush();
    let piece = pieces.iter().find(|piece| piece.device == "mlx5_0").unwrap();
    assert_eq!((&*piece.source, piece.port, piece.interval), ("hw_counters", Some(1), DurationNs(10 * MS)));
    assert!(piece.when.iter().all(|when| when.length.0 >= 10 * MS), "{:?}", piece.when);
    let zero = growth(piece).iter().filter(|growth| **growth == Some(0)).count();
    assert_eq!(zero, 0, "repeats are no samples: {:?}", growth(piece));
    // The last reading is at 990 ms, before the last change.
    assert_eq!(growth(piece).iter().map(|growth| growth.unwrap()).sum::<u64>(), 976 * 7);
}

#[test]
fn a_slow_source_is_read_more_seldom_says_so_and_comes_back() {
    let host = Host::new(Answer { ramp: 500, takes: 2 * MS, ..Answer::default() });
    let mut sampler = host.sampler(MS);
    host.pass(&mut sampler, 200, |_| {});
    let status = &sampler.status()[0];
    assert_eq!(status.pace, Duration::from_millis(8), "a quarter of the time: {status:?}");
    let told = status.stepped_down().unwrap();
    assert!(told.contains("eth0 (ethtool) are read each 8 ms, not each 1 ms"), "{told}");
    let piece = one(sampler.flush());
    assert_eq!(growth(&piece).iter().map(|growth| growth.unwrap()).sum::<u64>(), piece.measured().0 / MS * 500);
    host.change(|answer| answer.takes = 10 * US);
    host.pass(&mut sampler, 60_000, |_| {});
    let status = &sampler.status()[0];
    assert_eq!((status.pace, status.stepped_down()), (Duration::from_millis(1), None));
}

#[test]
fn a_reading_that_was_held_up_ends_no_sample() {
    let host = Host::new(Answer { ramp: 500, takes: 10 * US, ..Answer::default() });
    let mut sampler = host.sampler(MS);
    host.pass(&mut sampler, 50, |_| {});
    host.change(|answer| answer.takes = 5 * MS);
    sampler.turn();
    host.change(|answer| answer.takes = 10 * US);
    host.pass(&mut sampler, 50, |_| {});
    let piece = one(sampler.flush());
    let odd: Vec<_> = piece.when.iter().filter(|when| when.length.0 != MS).collect();
    assert!(odd.len() == 1 && odd[0].length.0 > 5 * MS, "{odd:?}");
    let share = |at: usize| growth(&piece)[at].unwrap() as f64 / (piece.when[at].length.0 as f64 / MS as f64);
    assert!((0..piece.when.len()).all(|at| (share(at) - 500.0).abs() < 2.0), "{piece:?}");
}

#[test]
fn a_reset_makes_one_sample_unknown() {
    let host = Host::new(Answer { ramp: 100, base: 1_000_000, ..Answer::default() });
    let mut sampler = host.sampler(10 * MS);
    host.pass(&mut sampler, 100, |_| {});
    host.change(|answer| answer.base = 0);
    host.pass(&mut sampler, 100, |_| {});
    let found = growth(&one(sampler.flush()));
    assert_eq!(found.iter().filter(|growth| growth.is_none()).count(), 1, "{found:?}");
    assert!(found.iter().flatten().all(|growth| *growth == 1_000), "{found:?}");
}

#[test]
fn what_fails_rests_and_what_vanished_is_looked_for() {
    let host = Host::new(Answer { ramp: 100, ..Answer::default() });
    let mut sampler = host.sampler(MS);
    host.pass(&mut sampler, 50, |_| {});
    host.change(|answer| answer.fails = libc::EIO);
    host.pass(&mut sampler, 10_000, |_| {});
    let status = &sampler.status()[0];
    assert!(status.readings < 60, "it is left alone: {status:?}");
    assert!(status.degraded().unwrap().contains("cannot be sampled"), "{status:?}");
    host.change(|answer| answer.fails = 0);
    host.pass(&mut sampler, 20_000, |_| {});
    let piece = one(sampler.flush());
    assert_eq!(piece.covered.len(), 2, "the time in between was not measured");
    host.change(|answer| answer.fails = libc::ENODEV);
    host.pass(&mut sampler, 10, |_| {});
    fs::remove_dir_all(host.folder.path().join("class/net/eth0")).unwrap();
    sampler.flush();
    assert_eq!((sampler.status(), sampler.turn()), (vec![], None));
    host.write("class/net/eth0/ifindex", "7\n");
    fs::create_dir_all(host.folder.path().join("class/net/eth0/device")).unwrap();
    host.change(|answer| answer.fails = 0);
    sampler.flush();
    host.pass(&mut sampler, 10, |_| {});
    assert!(!one(sampler.flush()).when.is_empty(), "it is sampled again");
}

#[test]
fn what_is_said_to_be_gone_whenever_it_is_found_rests_too() {
    let host = Host::new(Answer { ramp: 1, ..Answer::default() });
    let mut sampler = host.sampler(MS);
    host.pass(&mut sampler, 3, |_| ());
    host.change(|answer| answer.fails = libc::ENODEV);
    let mut readings = Vec::new();
    for _ in 0..10 {
        host.pass(&mut sampler, 200, |_| ());
        sampler.flush();
        readings.push(sampler.status()[0].readings);
    }
    // Found once more, it fails at once, and is then asked after one second and after two more.
    assert_eq!(readings, [0, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert!(sampler.status()[0].degraded().is_some_and(|words| words.contains("No such device")));
    host.change(|answer| answer.fails = 0);
    host.pass(&mut sampler, 2_000, |_| ());
    assert!(sampler.status()[0].readings > 100 && sampler.status()[0].degraded().is_none());
}

#[test]
fn the_thread_gives_away_what_it_has_when_it_ends() {
    let host = Host::new(Answer::default());
    let file = "class/net/eth0/statistics/rx_bytes";
    host.write(file, "1\n");
    let wish = host.wish("traffic", MS);
    let sampler = Sampler::new(wish, Box::new(host.script.clone()), HostClocks);
    let pieces = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&pieces);
    let service = Service::start(sampler, move |piece| to.lock().unwrap().push(piece)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut bytes = 1u64;
    while service.status().iter().all(|status| status.readings < 20) {
        assert!(Instant::now() < deadline, "{:?}", service.status());
        bytes += 1000;
        host.write(&format!("{file}.new"), &format!("{bytes}\n"));
        std::thread::park_timeout(Duration::from_millis(1));
    }
    drop(service);
    let pieces = pieces.lock().unwrap();
    assert!(pieces.iter().map(CounterSamples::measured).any(|measured| measured.0 > 0), "{pieces:?}");
}
