//! The agent as it runs on this host: metrics, health, its socket, its end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::command::workspace;

use crate::program::{FAILED, LIMIT, Scratch, is_root, program, refused, start, text_of, until};

/// SIGTERM is answered within this.
const END: Duration = Duration::from_secs(2);

/// An agent that runs on a port and a socket of its own; ended when dropped.
pub(crate) struct Agent {
    child: Child,
    pub(crate) scratch: Scratch,
    socket: PathBuf,
    /// `127.0.0.1:PORT`
    address: String,
}

impl Agent {
    /// `None` where it may not run.
    fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// With these lines of configuration besides.
    pub(crate) fn start_with(more: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let scratch = Scratch::new();
        let socket = scratch.inside("agent.sock");
        let config = format!(
            "metrics.listen = '127.0.0.1:0'\nrpc.socket = '{}'\nbursts.enabled = false\n{more}",
            socket.display()
        );
        let config = scratch.file("agent.toml", &config);
        let file = |name| fs::File::create(scratch.inside(name)).unwrap();
        let (events, log) = (file("stdout"), file("stderr"));
        let mut command = program();
        command.args(["agent", "--config", &config]).stdin(Stdio::null()).stdout(events).stderr(log);
        let mut agent = Self { child: command.spawn().unwrap(), scratch, socket, address: String::new() };
        agent.address = until("the agent says where its metrics are", || {
            assert!(agent.child.try_wait().unwrap().is_none(), "it ended:\n{}", agent.log());
            let status = agent.status()?;
            status["agent"]["metrics"].as_str().map(str::to_owned)
        });
        Some(agent)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.inside("stderr")).unwrap()
    }

    /// The lines of its event log.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.scratch.inside("stdout")).unwrap();
        // The last line may not be whole yet.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What `status` prints for people.
    pub(crate) fn screen(&self) -> String {
        start(&["status", "--socket", &text_of(&self.socket)]).stdout
    }

    /// What `status` says; `None` while no agent answers.
    pub(crate) fn status(&self) -> Option<Value> {
        let seen = start(&["status", "--socket", &text_of(&self.socket), "--output", "json"]);
        match seen.status.code() {
            Some(0 | 1) => Some(serde_json::from_str(&seen.stdout).unwrap()),
            Some(3) => None,
            _ => panic!("{}", seen.stderr),
        }
    }

    /// Status line and body.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Sends the signal, and says how and how soon it ended.
    fn end(&mut self, signal: Signal) -> (ExitStatus, Duration) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        let begin = Instant::now();
        kill_process(pid, signal).unwrap();
        let status = until("it ends", || self.child.try_wait().unwrap());
        (status, begin.elapsed())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn metrics_are_text_that_prometheus_takes() {
    let Some(agent) = Agent::start() else { return };
    let (status, page) = agent.get("/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert_eq!(tests::metrics::sum(&page, "fabricscope_build_info", &[]), Some(1.0), "{page}");
    assert_eq!(tests::metrics::sum(&page, "fabricscope_host_info", &[]), Some(1.0), "{page}");
    let lost = tests::metrics::sum(&page, "fabricscope_events_lost_total", &[]);
    assert_eq!(lost, Some(0.0), "nothing is lost where nothing happens:\n{page}");
    promtool_takes(&page, &agent.scratch);
}

/// Hands a page to promtool, which must have nothing to say.
#[track_caller]
pub(crate) fn promtool_takes(page: &str, scratch: &Scratch) {
    if let Err(error) = tests::promtool::check_metrics(scratch.file("page", page).as_ref()) {
        panic!("{error:#}\n{page}");
    }
}

#[test]
fn promtool_takes_one_of_each_metric_and_not_one_that_is_wrong() {
    let each = workspace().join("agent/src/metrics/tests/each.prom");
    tests::promtool::check_metrics(&each).unwrap();
    let scratch = Scratch::new();
    for (part, odd) in [("_total counter", "_total gauge"), ("_seconds", "_milliseconds"), ("# HELP", "#")] {
        let page = fs::read_to_string(&each).unwrap().replace(part, odd);
        let found = tests::promtool::check_metrics(scratch.file("page", &page).as_ref());
        assert!(found.is_err(), "{odd}");
    }
}

#[test]
fn health_has_a_reason_and_other_paths_are_not_found() {
    let Some(agent) = Agent::start() else { return };
    let (status, reasons) = agent.get("/healthz");
    assert!(["HTTP/1.1 200 OK", "HTTP/1.1 503 Service Unavailable"].contains(&&*status), "{status}");
    assert!(!reasons.trim().is_empty());
    assert_eq!(agent.get("/else").0, "HTTP/1.1 404 Not Found");
}

#[test]
fn the_socket_answers_and_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(agent) = Agent::start() else { return };
    let status = agent.status().unwrap();
    assert_eq!(status["running"], true, "{status}");
    let mode = fs::metadata(&agent.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o007, 0, "{mode:o}");
}

#[test]
fn both_signals_end_it_at_once_and_leave_no_socket() {
    for signal in [Signal::TERM, Signal::INT] {
        let once = |_| {
            let mut agent = Agent::start()?;
            assert!(agent.socket.exists());
            let (status, took) = agent.end(signal);
            assert_eq!(status.code(), Some(0), "{}", agent.log());
            assert!(!agent.socket.exists(), "the socket is left");
            Some(took)
        };
        // A busy host may be slow at it, but not each time.
        if let Some(quickest) = (0..3).filter_map(once).min() {
            assert!(quickest < END, "it took {} ms", quickest.as_millis());
        }
    }
}

#[test]
fn a_killed_agent_s_socket_does_not_stand_in_the_way_of_the_next() {
    let Some(mut agent) = Agent::start() else { return };
    agent.end(Signal::KILL);
    assert!(agent.socket.exists(), "SIGKILL leaves it");
    refused(&["status", "--socket", &text_of(&agent.socket)], 3, &["agent.sock"]);
    let config =
        format!("metrics.enabled = false\nrpc.socket = '{}'\nbursts.enabled = false\n", agent.socket.display());
    let config = agent.scratch.file("next.toml", &config);
    let seen = start(&["agent", "--config", &config, "--for", "100ms"]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
    assert!(!agent.socket.exists(), "the socket is left");
}

#[test]
fn a_second_agent_is_told_who_is_in_its_way() {
    let Some(agent) = Agent::start() else { return };
    let port = agent.scratch.file("port.toml", &format!("metrics.listen = '{}'\nrpc.enabled = false\n", agent.address));
    refused(&["agent", "--config", &port], FAILED, &[&agent.address, "metrics.listen"]);
    let socket = format!("metrics.enabled = false\nrpc.socket = '{}'\n", agent.socket.display());
    let socket = agent.scratch.file("socket.toml", &socket);
    refused(&["agent", "--config", &socket], FAILED, &[&text_of(&agent.socket), "agent"]);
    // The first was not harmed.
    assert!(agent.status().is_some());
}

#[test]
fn it_ends_by_itself_after_its_time_with_a_summary_of_it() {
    let scratch = Scratch::new();
    let files = text_of(&scratch.inside("samples"));
    let config = format!("metrics.listen = '127.0.0.1:0'\nrpc.enabled = false\nbursts.directory = '{files}'\n");
    let config = scratch.file("agent.toml", &config);
    if !is_root() {
        return;
    }
    let begin = Instant::now();
    let seen = start(&["agent", "--config", &config, "--summary", "--for", "3s"]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
    assert!(begin.elapsed() >= Duration::from_secs(3));
    // What comes after an empty line is of the network devices that were sampled, if this host has any.
    let lines: Vec<&str> = seen.stdout.lines().take_while(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 3, "one line each second:\n{}", seen.stdout);
    for part in ["hooks", "calls", "failures", "lost", "/metrics"] {
        assert!(lines.iter().all(|line| line.contains(part)), "no {part}:\n{}", seen.stdout);
    }
}
