//! NIC and RDMA counters of trees that stand for hosts: the command line, the agent's metrics, odd files, wrong words.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use serde_json::Value;
use tests::command::Finished;
use tests::fixture::{Expected, Fixture, all};

use crate::daemon::{Agent, promtool_takes};
use crate::program::{Scratch, USAGE, end, program, refused, start, text_of, until};

/// Far longer than reading a small tree takes on a busy host.
const QUICK: Duration = Duration::from_secs(10);

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The fixtures that hold for this user.
fn fixtures() -> Vec<Fixture> {
    let (all, root) = (all().unwrap(), is_root());
    for left_out in all.iter().filter(|fixture| fixture.root && !root) {
        println!("{}: only holds for root", left_out.name);
    }
    all.into_iter().filter(|fixture| root || !fixture.root).collect()
}

fn counters(sysfs: &Path, words: &[&str]) -> Finished {
    end(program().args(["counters", "--path.sysfs", &text_of(sysfs)]).args(words))
}

/// All counters as JSON.
#[track_caller]
fn json(sysfs: &Path, words: &[&str]) -> Value {
    let seen = counters(sysfs, &[&["--all", "--interval", "10ms", "--output", "json"], words].concat());
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
    serde_json::from_str(&seen.stdout).unwrap()
}

fn device<'a>(record: &'a Value, name: &str) -> &'a Value {
    let devices = record["devices"].as_array().unwrap();
    devices.iter().find(|device| device["name"] == name).unwrap_or_else(|| panic!("no {name} in {record:#}"))
}

fn counter<'a>(record: &'a Value, name: &str, port: Option<u32>, counter: &str) -> Option<&'a Value> {
    let port = port.map_or(Value::Null, Value::from);
    let counters = device(record, name)["counters"].as_array().unwrap();
    counters.iter().find(|found| found["name"] == counter && found["port"] == port)
}

#[track_caller]
fn holds(fixture: &Fixture, record: &Value) {
    let context = || format!("{}: {record:#}", fixture.name);
    for expected in &fixture.expected {
        match expected {
            Expected::Value(name, port, of, value) => {
                let found = counter(record, name, *port, of).and_then(|found| found["value"].as_f64());
                assert_eq!(found, Some(*value), "{name} {of} in {}", context());
            }
            Expected::Saturated(name, port, of) => {
                let found = counter(record, name, *port, of).unwrap();
                assert_eq!((&found["saturated"], &found["per_second"]), (&Value::Bool(true), &Value::Null), "{of}");
            }
            Expected::Lacks(name, of) => {
                let counters = device(record, name)["counters"].as_array().unwrap();
                assert!(!counters.iter().any(|found| found["name"] == **of), "{name} has {of} in {}", context());
            }
            Expected::Fails(name, reason) => {
                let failures = device(record, name)["failures"].as_array().unwrap();
                assert!(failures.iter().any(|failure| failure["reason"] == **reason), "{reason} in {}", context());
            }
            Expected::Quarantined(name) => {
                assert!(device(record, name)["quarantined"].is_string(), "{name} in {}", context());
            }
            Expected::Belongs(name, key, value) => {
                let found = match &device(record, name)[key] {
                    Value::String(text) => text.clone(),
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                    other => other.to_string(),
                };
                assert_eq!(found, *value, "{name} {key} in {}", context());
            }
        }
    }
}

#[test]
fn every_driver_s_counters_come_out_by_meaning() {
    for fixture in fixtures() {
        let scratch = Scratch::new();
        fixture.write(scratch.path()).unwrap();
        let began = Instant::now();
        let record = json(scratch.path(), &[]);
        assert!(began.elapsed() < QUICK, "{} took {:?}", fixture.name, began.elapsed());
        assert_eq!(record["schema"], "fabricscope.counters.v1");
        holds(&fixture, &record);
    }
}

/// The series of a counter on the page, if it is a metric.
fn metric(page: &str, name: &str, port: Option<u32>, of: &str) -> Option<f64> {
    let port = port.map(|port| port.to_string());
    let labels = match &port {
        Some(port) => vec![("device", name), ("port", port.as_str())],
        None if of.starts_with("nic_") => vec![("netdev", name)],
        None => vec![("device", name)],
    };
    tests::metrics::sum(page, &format!("fabricscope_{of}_total"), &labels)
}

#[test]
fn the_agent_serves_every_driver_s_counters_under_the_same_names() {
    for fixture in fixtures() {
        let scratch = Scratch::new();
        fixture.write(scratch.path()).unwrap();
        let sysfs = scratch.path().display();
        let Some(agent) = Agent::start_with(&format!("host.path.sysfs = '{sysfs}'\n")) else { return };
        let page = until("the counters are read", || {
            let (_, page) = agent.get("/metrics");
            page.contains("fabricscope_nic_devices").then_some(page)
        });
        promtool_takes(&page, &scratch);
        for expected in &fixture.expected {
            match expected {
                Expected::Value(name, port, of, value) => {
                    // Not every counter is a metric; one that is has this value.
                    let found = metric(&page, name, *port, of);
                    assert!(found.is_none_or(|found| (found - value).abs() < 1e-9), "{name} {of} {found:?}\n{page}");
                }
                Expected::Saturated(name, _, of) => {
                    let labels = [("device", name.as_str()), ("counter", of.as_str())];
                    let said = tests::metrics::sum(&page, "fabricscope_counter_saturated", &labels);
                    // Only of counters that are metrics.
                    assert!(said == Some(1.0) || of.contains("overrun"), "{name} {of}\n{page}");
                    assert_eq!(metric(&page, name, Some(1), of), None, "{name} {of}\n{page}");
                }
                Expected::Lacks(name, of) => assert_eq!(metric(&page, name, Some(1), of), None, "{name} {of}\n{page}"),
                Expected::Fails(name, reason) => {
                    let labels = [("device", name.as_str()), ("reason", reason.as_str())];
                    let count = tests::metrics::sum(&page, "fabricscope_nic_read_failures_total", &labels);
                    assert!(count.is_some_and(|count| count >= 1.0), "{name} {reason}\n{page}");
                }
                Expected::Quarantined(name) => {
                    let labels = [("device", name.as_str())];
                    assert_eq!(tests::metrics::sum(&page, "fabricscope_nic_quarantined", &labels), Some(1.0), "{page}");
                }
                Expected::Belongs(name, key, value) => {
                    let own = if name.starts_with("mlx5_") { "device" } else { "netdev" };
                    let key = if key == "bus" { "pci" } else { key };
                    let labels = [(own, name.as_str()), (key, value.as_str())];
                    let said = tests::metrics::sum(&page, "fabricscope_nic_info", &labels);
                    // A bond has more members than a label can name.
                    assert!(said == Some(1.0) || key == "members", "{name} {key}\n{page}");
                    if own == "device" && ["pf", "vf"].contains(&key) {
                        let said = tests::metrics::sum(&page, "fabricscope_rdma_port_info", &labels);
                        assert_eq!(said, Some(1.0), "{name} {key}\n{page}");
                    }
                }
            }
        }
        let is_metric = |expected: &Expected| match expected {
            Expected::Value(name, port, of, _) => metric(&page, name, *port, of).is_some(),
            _ => false,
        };
        let metrics = fixture.expected.iter().filter(|expected| is_metric(expected)).count();
        assert!(metrics >= 1 || ["nothing", "saturated"].contains(&&*fixture.name), "{}: {page}", fixture.name);
    }
}

#[test]
fn a_host_without_hardware_is_quiet() {
    let scratch = Scratch::new();
    let seen = counters(scratch.path(), &["--interval", "10ms"]);
    assert_eq!((seen.status.code(), &*seen.stderr), (Some(0), ""));
    assert_eq!(seen.stdout.lines().count(), 1, "{}", seen.stdout);
}

#[test]
fn what_stands_out_is_said_first_and_in_words() {
    let scratch = Scratch::new();
    let fixture = all().unwrap().into_iter().find(|fixture| fixture.name == "saturated").unwrap();
    fixture.write(scratch.path()).unwrap();
    let seen = counters(scratch.path(), &["--interval", "10ms"]);
    let first: Vec<&str> = seen.stdout.lines().take(6).collect();
    assert!(first[0].starts_with("What stands out"), "{}", seen.stdout);
    assert!(first.iter().any(|line| line.contains("rdma_link_down_events stands at its end")), "{}", seen.stdout);
    // What stands still is not shown.
    assert!(!seen.stdout.contains("rdma_symbol_error_events"), "{}", seen.stdout);
    assert!(counters(scratch.path(), &["--interval", "10ms", "--all"]).stdout.contains("rdma_symbol_error_events"));
}

#[test]
fn raw_shows_every_name_as_the_driver_does() {
    let scratch = Scratch::new();
    let fixture = all().unwrap().into_iter().find(|fixture| fixture.name == "mlx5").unwrap();
    fixture.write(scratch.path()).unwrap();
    fs::write(scratch.inside("class/infiniband/mlx5_0/ports/1/hw_counters/two\nlines"), "1\n").unwrap();
    let seen = counters(scratch.path(), &["--raw"]);
    let line = |name: &str| seen.stdout.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}"));
    assert!(line("a_name_of_next_year").contains("24"), "{}", seen.stdout);
    assert!(line("np_cnp_sent").contains("rdma_cnp_sent_packets"), "{}", seen.stdout);
    assert!(line("two?lines").contains('1'), "{}", seen.stdout);
    let seen = counters(scratch.path(), &["--raw", "--output", "json"]);
    let names: Vec<Value> = seen.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(names.iter().any(|found| found["name"] == "two\nlines" && found["value"] == 1));
}

#[test]
fn filters_act_before_anything_is_opened() {
    let scratch = Scratch::new();
    for name in ["mlx5", "others"] {
        all().unwrap().into_iter().find(|fixture| fixture.name == name).unwrap().write(scratch.path()).unwrap();
    }
    let names = |record: &Value| -> Vec<String> {
        let devices = record["devices"].as_array().unwrap();
        devices.iter().map(|device| device["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&json(scratch.path(), &["--device", "hns_*"])), ["hns_0"]);
    assert_eq!(names(&json(scratch.path(), &["--driver", "hfi1"])), ["hfi1_0"]);
    let none = counters(scratch.path(), &["--device", "mlx9_9"]);
    assert!(none.stdout.contains("none that --device"), "{}", none.stdout);
    let counters = |device: &str| scratch.inside(&format!("class/infiniband/{device}/ports/1/counters"));
    let [left_out, read] = ["mlx5_0", "hfi1_0"].map(|device| opened(&counters(device)));
    json(scratch.path(), &["--device", "!mlx5_0"]);
    let read = read();
    assert!(read.iter().any(|name| name == "port_rcv_data"), "{read:?}");
    assert_eq!(left_out(), [""; 0], "it opened what was left out");
}

/// Which files of a folder were opened since.
fn opened(folder: &Path) -> impl Fn() -> Vec<String> + use<> {
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, folder, WatchFlags::OPEN).unwrap();
    move || {
        let mut room = [MaybeUninit::uninit(); 1 << 16];
        let mut events = inotify::Reader::new(&watch, &mut room);
        let name = |event: inotify::Event<'_>| event.file_name().map(|name| name.to_str().unwrap().to_owned());
        std::iter::from_fn(|| events.next().ok().map(name)).flatten().collect()
    }
}

#[test]
fn wrong_words_are_usage_errors_that_name_them() {
    refused(&["counters", "--interval", "5"], USAGE, &["--interval", "5"]);
    refused(&["counters", "--interval", "1ms"], USAGE, &["10ms"]);
    refused(&["counters", "--device", "a/b"], USAGE, &["a/b", "mlx5_0"]);
    refused(&["counters", "--raw", "--watch"], USAGE, &["--raw", "--watch"]);
    refused(&["explain", "counter", "cnp"], USAGE, &["rdma_cnp_sent_packets"]);
    refused(&["explain", "counter", "no such thing"], USAGE, &["lists all"]);
}

#[test]
fn a_counter_is_explained_by_any_of_its_names() {
    for name in ["rx_prio3_pause", "pfc_received_pause_frames", "fabricscope_pfc_pause_frames_total"] {
        let seen = start(&["explain", "counter", name]);
        assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
        assert!(seen.stdout.contains("rx pause: the network cannot take what this host sends."), "{}", seen.stdout);
        assert!(seen.stdout.contains("look at"), "{}", seen.stdout);
    }
    assert!(start(&["explain", "counter"]).stdout.lines().count() > 100);
}
