//! The daemon from its edges: events in, metrics, log, watches and summary out, and how it ends.

use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_common::record::VerbCounters;
use agent_common::verb::VerbKey;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::fake::{self, Fake, Giver};
use super::handle::{Filter, Handle, Refused};
use super::http;
use super::run::{Daemon, Setup, ending_signals};
use super::summary::Summary;
use crate::config::{Config, limits};
use crate::event::{CmEvent, DeviceEvent, Event};
use crate::kernel::state::{InFlight, State};
use crate::log::Log;
use crate::probes::Subject;

const DEADLINE: Duration = Duration::from_secs(20);

/// Somewhere to write that can be looked at.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that takes nothing before the gate's other end is gone.
#[derive(Debug)]
struct Stalled {
    gate: std::sync::mpsc::Receiver<()>,
    written: Arc<AtomicU64>,
}

impl Write for Stalled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.gate.recv();
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A daemon that runs.
struct Running {
    giver: Giver,
    handle: Handle,
    address: SocketAddr,
    signals: mpsc::Sender<&'static str>,
    task: JoinHandle<anyhow::Result<Fake>>,
}

async fn start(log: impl Write + Send + 'static, summary: Option<Summary>, run_for: Option<Duration>) -> Running {
    let (source, giver) = Fake::new();
    let config = Config::parse("").unwrap();
    let info = fake::info();
    let log = Log::new(config.fold_window, &info, log).unwrap();
    let ((ender, signals), bursts, counters, fast) = (mpsc::channel(1), None, None, None);
    let setup = Setup { source, config, bursts, info, log, summary, counters, fast, run_for, signals };
    let (daemon, handle, asker) = Daemon::new(setup);
    let listener = http::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(http::serve(listener, asker));
    Running { giver, handle, address, signals: ender, task: tokio::spawn(daemon.run()) }
}

impl Running {
    async fn get(&self, path: &str) -> (u16, String) {
        self.request(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await
    }

    async fn request(&self, request: String) -> (u16, String) {
        let address = self.address;
        let answer = spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        });
        let answer = answer.await.unwrap().unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    async fn stop(self) {
        self.signals.send("SIGTERM").await.unwrap();
        tokio::time::timeout(DEADLINE, self.task).await.unwrap().unwrap().unwrap();
    }
}

/// Waits until it holds; other tasks run meanwhile.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen");
        pause().await;
    }
}

/// Between two looks of a poll with a deadline.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test]
async fn a_failure_reaches_the_log_the_watcher_the_status_and_the_metrics() {
    let log = Shared::default();
    let running = start(log.clone(), None, None).await;
    let mut watch = running.handle.watch(Filter::default()).await.unwrap();
    running.giver.with(|given| {
        let counters = VerbCounters { calls: 7, failures: 1, probes: 2, duration_ns: 0 };
        given.snapshot.calls.push((fake::rdev(0), VerbKey::ioctl(7, 5, 0), counters));
    });
    running.giver.event(Ok(fake::event("trainer")));
    let watched = watch.recv().await.unwrap();
    assert!(matches!(&*watched.event, Event::Verbs(failure) if failure.comm == "trainer"));
    until("the line", || log.text().ends_with('\n')).await;
    let line: serde_json::Value = serde_json::from_str(log.text().trim()).unwrap();
    assert_eq!((&line["verb"], &line["errno"], &line["count"]), (&"reg_mr".into(), &"EFAULT".into(), &1.into()));

    let (status, page) = running.get("/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "fabricscope_verbs_failures_total{device=\"mlx5_0\",verb=\"reg_mr\"} 1",
        "fabricscope_verbs_failures_total{device=\"mlx5_1\",verb=\"reg_mr\"} 0",
        "fabricscope_verbs_calls_total{device=\"mlx5_0\",verb=\"reg_mr\"} 7",
        "fabricscope_mr_registrations_total{device=\"mlx5_0\",kind=\"host\"} 4",
        "fabricscope_build_info{version=\"1.2.3\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let status = running.handle.status().await.unwrap();
    assert_eq!((status.calls, status.failures, status.probes), (7, 1, 2));
    assert_eq!(status.last_failures().next().unwrap().comm, "trainer");
    assert_eq!(status.hooks_attached, status.hooks_wanted);
    assert_eq!(status.lost, []);
    assert_eq!(running.handle.info().await.unwrap(), fake::info());
    assert_eq!(running.handle.hooks().await.unwrap().len(), fake::hooks().len());
    running.stop().await;
    assert!(watch.recv().await.is_none(), "the watch ends with the agent");
}

#[tokio::test]
async fn a_flood_loses_only_what_is_counted() {
    const SENT: u64 = 5_000;
    let written = Arc::new(AtomicU64::new(0));
    let (closed, gate) = std::sync::mpsc::channel();
    let running = start(Stalled { gate, written: Arc::clone(&written) }, None, None).await;
    let mut watch = running.handle.watch(Filter::default()).await.unwrap();
    for index in 0..SENT {
        running.giver.event(Ok(fake::event(&format!("p{index}"))));
    }
    running.giver.event(Err(anyhow::anyhow!("not a record")));
    let count = |status: &super::handle::Status, stage| {
        status.lost.iter().filter(|loss| loss.stage == stage).map(|loss| loss.count).sum::<u64>()
    };
    let end = Instant::now() + DEADLINE;
    let status = loop {
        let status = running.handle.status().await.unwrap();
        if count(&status, "decode") == 1 {
            break status;
        }
        assert!(Instant::now() < end, "the flood is not over");
        pause().await;
    };
    let room = limits::WATCH_QUEUE as u64;
    assert_eq!(count(&status, "watch"), SENT - room);
    for _ in 0..room {
        assert_eq!(watch.recv().await.unwrap().lost_before, 0);
    }
    running.giver.event(Ok(fake::event("after")));
    assert_eq!(watch.recv().await.unwrap().lost_before, SENT - room, "the client is told what it lost");
    let log_lost = count(&running.handle.status().await.unwrap(), "log");
    assert!(log_lost >= SENT - limits::LOG_QUEUE as u64 - 1, "{log_lost}");
    drop(closed);
    let (_, page) = running.get("/metrics").await;
    let line = format!(
        "fabricscope_events_lost_total{{program=\"agent\",stage=\"watch\",reason=\"queue_full\"}} {}",
        SENT - room
    );
    assert!(page.contains(&line), "{page}");
    running.stop().await;
    assert_eq!(written.load(Ordering::Relaxed) + log_lost, SENT + 1, "each line was written or counted as lost");
}

#[tokio::test]
async fn a_storm_that_never_ends_holds_up_neither_scrapes_nor_the_end() {
    let running = start(io::sink(), None, None).await;
    running.giver.with(|given| given.endless = Some(fake::event("storm")));
    running.giver.event(Ok(fake::event("first")));
    for _ in 0..5 {
        assert_eq!(running.get("/metrics").await.0, 200);
        assert_eq!(running.get("/healthz").await, (200, "ok\n".to_owned()));
    }
    running.stop().await;
}

/// It goes turn by turn until nothing waits, and then without end.
#[tokio::test]
async fn attaching_holds_up_neither_scrapes_nor_clients_nor_the_end() {
    let running = start(io::sink(), None, None).await;
    for (waiting, turns) in [(7, 7), (usize::MAX, 8)] {
        running.giver.with(|given| given.attaching = waiting);
        let began = Instant::now();
        while running.giver.with(|given| given.attached) < turns {
            assert_eq!(running.get("/healthz").await, (200, "ok\n".to_owned()));
            assert!(began.elapsed() < Duration::from_secs(20), "nothing is attached");
        }
    }
    assert!(running.handle.status().await.is_ok());
    assert_eq!(running.get("/metrics").await.0, 200);
    running.stop().await;
}

#[tokio::test]
async fn scrapes_cannot_make_the_kernel_side_be_read_more_often() {
    let running = start(io::sink(), None, None).await;
    let began = Instant::now();
    for _ in 0..30 {
        assert_eq!(running.get("/metrics").await.0, 200);
    }
    let taken = running.giver.with(|given| given.snapshots_taken) as u128;
    let most = began.elapsed().as_millis() / limits::SNAPSHOT_AGE.as_millis() + 2;
    assert!(taken >= 1 && taken <= most, "{taken} readings, {most} allowed");
    running.stop().await;
}

#[tokio::test]
async fn health_is_bad_when_a_required_hook_does_not_run() {
    let running = start(io::sink(), None, None).await;
    running.giver.with(|given| given.hooks[0].state = State::Failed("no permission".into()));
    let (status, text) = running.get("/healthz").await;
    assert_eq!((status, text.as_str()), (503, "degraded\nhook uverbs_ioctl is failed: no permission\n"));
    assert_eq!(running.handle.status().await.unwrap().degraded, ["hook uverbs_ioctl is failed: no permission"]);
    running.stop().await;
}

#[tokio::test]
async fn odd_requests_are_refused() {
    let running = start(io::sink(), None, None).await;
    assert_eq!(running.get("/nowhere").await.0, 404);
    assert_eq!(running.get("/").await.0, 200);
    assert_eq!(running.request("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".into()).await.0, 405);
    let many: String = (0..=limits::HTTP_HEADERS).map(|index| format!("X-{index}: 1\r\n")).collect();
    assert_eq!(running.request(format!("GET / HTTP/1.1\r\n{many}\r\n")).await.0, 431);
    let long = "x".repeat(limits::HTTP_HEADER_BYTES);
    assert_eq!(running.request(format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n")).await.0, 431);
    running.stop().await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let listener = http::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let error = format!("{:#}", http::bind(address).await.unwrap_err());
    assert!(error.contains(&address.to_string()) && error.contains("metrics.listen"), "{error}");
}

#[tokio::test]
async fn it_ends_by_itself_and_tells_the_summary_line_by_line() {
    let out = Shared::default();
    let summary = Summary::as_lines(Box::new(out.clone()));
    let running = start(io::sink(), Some(summary), Some(Duration::from_millis(300))).await;
    running.giver.event(Ok(fake::event("bad\x1b[2Jname")));
    tokio::time::timeout(DEADLINE, running.task).await.unwrap().unwrap().unwrap();
    assert_eq!(running.handle.status().await.unwrap_err(), Refused::Stopping);
    let text = out.text();
    let last = text.lines().last().unwrap();
    assert!(
        last.contains("failures 0") && last.contains("last reg_mr EFAULT on mlx5_0 by bad?[2Jname[4711]"),
        "{text}"
    );
    assert!(last.ends_with("(stopped)"), "{text}");
}

#[tokio::test]
async fn on_a_terminal_the_summary_is_rewritten_in_place_within_its_width() {
    let out = Shared::default();
    let summary = Summary::on_terminal(Box::new(out.clone()), Box::new(|| 20));
    let running = start(io::sink(), Some(summary), None).await;
    until("one", || out.text().contains('\n')).await;
    running.stop().await;
    let text = out.text();
    let (first, second) = text.split_once("F\x1b[0J").unwrap();
    let (first, up) = first.rsplit_once("\x1b[").unwrap();
    assert_eq!(first.lines().count(), up.parse::<usize>().unwrap(), "lines that the cursor goes back up");
    assert!(first.lines().chain(second.lines()).all(|line| line.chars().count() <= 20), "{text:?}");
}

#[tokio::test]
async fn a_call_that_hangs_is_told_once() {
    let log = Shared::default();
    let running = start(log.clone(), None, None).await;
    running.giver.with(|given| {
        let call = InFlight { pid: 1, tid: 2, key: VerbKey::ioctl(4, 1, 0), rdev: fake::rdev(1), start_ns: 1 };
        given.snapshot.in_flight.push(call);
    });
    // Reads the counters; the next ticks see the call.
    let (_, page) = running.get("/metrics").await;
    let oldest = page.lines().find(|line| line.starts_with("fabricscope_verbs_inflight_oldest_seconds ")).unwrap();
    assert!(oldest.split(' ').nth(1).unwrap().parse::<f64>().unwrap() > 1.0, "{oldest}");
    until("the line", || !log.text().is_empty()).await;
    running.stop().await;
    assert_eq!(log.text().lines().count(), 1);
    let line: serde_json::Value = serde_json::from_str(log.text().trim()).unwrap();
    assert_eq!(
        (&line["kind"], &line["verb"], &line["device"]),
        (&"stuck".into(), &"destroy_qp".into(), &"mlx5_1".into())
    );
}

#[tokio::test]
async fn only_so_many_clients_watch() {
    let running = start(io::sink(), None, None).await;
    let mut watches = Vec::new();
    for _ in 0..limits::WATCHERS {
        watches.push(running.handle.watch(Filter::default()).await.unwrap());
    }
    assert_eq!(running.handle.watch(Filter::default()).await.unwrap_err(), Refused::TooManyWatchers);
    watches.pop();
    running.handle.watch(Filter::default()).await.expect("one has gone");
    running.stop().await;
}

#[tokio::test]
async fn sigterm_is_seen() {
    let mut signals = ending_signals().unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
    let name = tokio::time::timeout(DEADLINE, signals.recv()).await.unwrap();
    assert_eq!(name, Some("SIGTERM"));
}

#[test]
fn filters_let_through_what_they_name() {
    let verbs = fake::event("trainer");
    let time = std::time::SystemTime::UNIX_EPOCH;
    let cm = Event::Cm(CmEvent {
        time,
        event: 7,
        name: "unreachable".into(),
        status: -110,
        reason: None,
        cm_id: 1,
        source: None,
        destination: None,
    });
    let device = DeviceEvent {
        time,
        event: 10,
        name: "port_err".into(),
        device: Some("mlx5_0".into()),
        port: Some(1),
        qp: None,
    };
    let device = Event::Device(device);
    let filter = Filter::default;
    let rows = [
        (filter(), [true, true, true]),
        (Filter { kinds: vec![Subject::Cm, Subject::Device], ..filter() }, [false, true, true]),
        (Filter { pid: Some(4711), ..filter() }, [true, false, false]),
        (Filter { pid: Some(4712), ..filter() }, [false, false, false]),
        (Filter { comm: Some("trainer".into()), ..filter() }, [true, false, false]),
        (Filter { device: Some("mlx5_0".into()), ..filter() }, [true, false, true]),
        (Filter { device: Some("mlx5_1".into()), ..filter() }, [false, false, false]),
        (Filter { verb: Some("reg_mr".into()), errno: Some(libc::EFAULT), ..filter() }, [true, false, false]),
        (Filter { errno: Some(libc::EINVAL), ..filter() }, [false, false, false]),
        (Filter { cgroup_id: Some(99), ..filter() }, [true, false, false]),
    ];
    for (filter, expected) in rows {
        assert_eq!([&verbs, &cm, &device].map(|event| filter.matches(event)), expected, "{filter:?}");
    }
    let mut failure = fake::failure("trainer");
    failure.probe = true;
    let probe = Event::Verbs(Box::new(failure));
    assert!(!Filter::default().matches(&probe));
    assert!(Filter { include_probes: true, ..Filter::default() }.matches(&probe));
}
