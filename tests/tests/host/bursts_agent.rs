//! The agent's burst sampler on devices of namespaces of its own: what it counts, follows, keeps, and leaves behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tests::command::{Finished, fabricscope};
use tests::network::Pair;

use crate::program::{LIMIT, Scratch, end, is_root, start, text_of, until};
use crate::sampling::{Agent, send, sent};

#[test]
fn what_a_device_sends_is_counted_shown_kept_and_nothing_is_left() {
    if !is_root() {
        return;
    }
    assert!((0..3).any(|_| sent_and_kept()), "buckets were lost each time");
}

/// False if this host held the agent up for longer than its ring lasts.
#[track_caller]
fn sent_and_kept() -> bool {
    let pair = Pair::new(false).unwrap();
    let before = sent(&pair);
    let agent = Agent::start(&pair, "");
    // As many at once as the other end's queue takes.
    (0..5).for_each(|_| send(&pair, 200));
    let after = sent(&pair);
    let (bytes, packets) = (after.0 - before.0, after.1 - before.1);
    // The other end refuses some, for which the sender sends fewer.
    assert!(packets > 900.0, "{packets}");
    until("all is counted", || (agent.value("fabricscope_netdev_bytes_total", "tx") >= bytes).then_some(()));
    assert_eq!(agent.value("fabricscope_netdev_bytes_total", "tx"), bytes, "the device's own counter");
    assert_eq!(agent.value("fabricscope_netdev_packets_total", "tx"), packets);
    until("a burst is counted", || (agent.value("fabricscope_bursts_total", "tx") >= 1.0).then_some(()));
    assert!(agent.value("fabricscope_netdev_peak_utilisation_ratio", "tx") > 0.5);
    // Totals are those of now, samples those of some milliseconds ago.
    let all = |shown: &Value| shown["tx"]["bytes"].as_f64() >= Some(bytes) || agent.lost() > 0.0;
    let shown = until("all is in memory", || agent.try_last().ok().filter(all));
    if agent.lost() > 0.0 {
        return false;
    }
    let bursts = shown["bursts"].as_array().unwrap();
    let volume: u64 = bursts.iter().map(|burst| burst["bytes"].as_u64().unwrap()).sum();
    assert!(!bursts.is_empty() && volume as f64 <= bytes && volume as f64 > bytes / 2.0, "{shown}");
    let folder = agent.scratch.path().to_owned();
    let files = || -> Vec<String> {
        let entries = fs::read_dir(folder.join("samples")).unwrap();
        let names = entries.map(|entry| text_of(&entry.unwrap().path()));
        names.filter(|name| name.contains("-va-") && name.ends_with(".parquet")).collect()
    };
    // SIGTERM: what is in memory is written first.
    agent.signal(Signal::TERM);
    let mut agent = agent;
    until("it ends", || agent.child.try_wait().unwrap());
    let written = files();
    assert!(!written.is_empty(), "{}", agent.log());
    let names: Vec<&str> = written.iter().map(String::as_str).collect();
    let seen = start(&[&["bursts", "show", "-o", "json"], &names[..]].concat());
    let kept: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{}", seen.stderr));
    assert_eq!(kept["bursts"].as_array().unwrap().len(), bursts.len(), "the files hold what memory held");
    assert!(!pair.left.tc("qdisc show dev va").unwrap().contains("clsact"));
    assert_eq!(pair.left.tc("filter show dev va egress").unwrap(), "");
    true
}

#[test]
fn devices_are_followed_as_they_vanish_come_back_and_move() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let agent = Agent::start(&pair, "");
    send(&pair, 100);
    let counted = sent(&pair).1;
    pair.left.ip("link del va").unwrap();
    agent.until_sampled("va", None);
    pair.connect(false).unwrap();
    agent.until_sampled("va", Some(1.0));
    let before = agent.value("fabricscope_netdev_packets_total", "tx");
    assert!(counted > 50.0 && before >= counted, "{before} is less than {counted}: what was counted stays counted");
    let device = sent(&pair).1;
    send(&pair, 50);
    let more = sent(&pair).1 - device;
    until("the new one counts", || {
        (agent.value("fabricscope_netdev_packets_total", "tx") >= before + more).then_some(())
    });
    // A second one, under another name and then under a third.
    pair.left.ip("link add vx type veth peer name vy").unwrap();
    agent.until_sampled("vx", Some(1.0));
    pair.left.ip("link set vx name vz").unwrap();
    agent.until_sampled("vz", Some(1.0));
    agent.until_sampled("vx", None);
    // To where the agent is not.
    pair.left.ip(&format!("link set va netns {}", pair.right.name())).unwrap();
    agent.until_sampled("va", None);
    assert!(!pair.right.tc("qdisc show dev va").unwrap().contains("clsact"));
    pair.right.ip(&format!("link set va netns {}", pair.left.name())).unwrap();
    agent.until_sampled("va", Some(1.0));
    let log = agent.end();
    assert!(log.contains("va has gone") && log.contains("vz"), "{log}");
}

#[test]
fn a_device_made_anew_under_its_number_and_name_is_sampled_on() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let agent = Agent::start(&pair, "");
    send(&pair, 100);
    let before = sent(&pair).1;
    let counted = || agent.value("fabricscope_netdev_packets_total", "tx");
    until("the first is counted", || (counted() >= before).then_some(()));
    // The agent has seen the first device, and the next time it looks it sees the second.
    agent.signal(Signal::STOP);
    pair.remake().unwrap();
    agent.signal(Signal::CONT);
    until("the new one is noticed", || agent.log().contains("va has lost its programs").then_some(()));
    // What passes before the programs are loaded is not seen.
    let seen = until("the new one is sampled", || {
        send(&pair, 1);
        Some(counted()).filter(|packets| *packets > before)
    });
    let device = sent(&pair).1;
    (0..3).for_each(|_| send(&pair, 100));
    let after = sent(&pair).1;
    assert!(after - device > 200.0, "{device} to {after}");
    until("all of it is counted", || (counted() >= seen + after - device).then_some(()));
    assert!(counted() <= before + after, "{} of {before} and {after}", counted());
}

/// Stopped for longer than its ring lasts, which is half a second.
#[test]
fn a_stopped_agent_loses_buckets_and_says_so_and_takes_nothing_old_for_new() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let agent = Agent::start(&pair, "");
    // So that the time that is lost lies between others.
    until("it samples", || agent.try_last().ok()?["measured_ns"].as_u64().filter(|ns| *ns > 200_000_000));
    let lost_before = agent.lost();
    agent.signal(Signal::STOP);
    let stopping = Instant::now();
    send(&pair, 200);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let stopped = begin.elapsed();
    agent.signal(Signal::CONT);
    let resumed = Instant::now();
    let lost = until("what was lost is told", || Some(agent.lost()).filter(|lost| *lost > lost_before));
    // All but what the ring still held, and no more than the time it stood still: 1 ms each.
    let lost = lost - lost_before;
    assert!(lost >= 1_400.0, "{lost} of {stopped:?}");
    assert!(lost <= stopping.elapsed().as_millis() as f64, "{lost} of {stopped:?}");
    // Totals are kept by the kernel: nothing is missing there. The bucket of the packets is lost, not shown as new.
    let device = sent(&pair);
    until("all is counted", || (agent.value("fabricscope_netdev_bytes_total", "tx") >= device.0).then_some(()));
    assert_eq!(agent.value("fabricscope_netdev_bytes_total", "tx"), device.0);
    let (told, lost) = until("both tell the same", || {
        let (told, lost) = (agent.last(), agent.lost());
        (told["lost_buckets"].as_f64() == Some(lost)).then_some((told, lost))
    });
    assert_eq!(told["bursts"].as_array().map_or(0, Vec::len), 0, "{told}");
    // A window that begins in the middle of the gap has the part of it that lies within.
    let told = agent.try_last_of(&format!("{}ms", resumed.elapsed().as_millis() + 1_200)).unwrap();
    let within = told["lost_buckets"].as_f64().unwrap();
    assert!(within > 0.0 && within < lost, "{within} of {lost}: {told}");
    until("it goes on", || {
        send(&pair, 200);
        (!agent.last()["bursts"].as_array().unwrap().is_empty()).then_some(())
    });
}

/// Runs `bursts record` in the left namespace.
fn record(pair: &Pair, words: &[&str]) -> Finished {
    let mut command: Command = pair.left.command(&fabricscope());
    end(command.args(["bursts", "record"]).args(words))
}

/// A run that starts in a while, so that the programs are attached by then: when it starts, and what its file shows.
#[track_caller]
fn run_ahead(pair: &Pair, words: &[&str], file: &str) -> (i64, Value) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let start_ns = i64::try_from(now.as_nanos()).unwrap() + 5_000_000_000;
    let at = format!("@{}.{:09}", start_ns / 1_000_000_000, start_ns % 1_000_000_000);
    let date = Command::new("date").args(["-u", "-d", &at, "+%Y-%m-%dT%H:%M:%S.%NZ"]).output().unwrap();
    let date = String::from_utf8(date.stdout).unwrap();
    let seen = record(pair, &[words, &["--start-at", date.trim()]].concat());
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
    let shown = start(&["bursts", "show", file, "-o", "json"]);
    (start_ns, serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{}", shown.stderr)))
}

#[test]
fn a_run_has_as_many_samples_as_asked_for_from_the_start_on() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let scratch = Scratch::new();
    for (interval, samples, ns) in
        [("100us", "4000", 100_000i64), ("1ms", "400", 1_000_000), ("10ms", "40", 10_000_000)]
    {
        let file = text_of(&scratch.inside(&format!("{interval}.parquet")));
        let words = ["--netdev", "va", "--interval", interval, "--samples", samples, "--line-rate", "1Gbit", "-o"];
        let words = [&words[..], &[&file]].concat();
        // A ring of 100 us lasts for 51 ms, and this host may hold the reader up for as long.
        let (start_ns, shown) = (0..6)
            .map(|_| run_ahead(&pair, &words, &file))
            .find(|(_, shown)| shown["lost_buckets"] == 0)
            .expect(interval);
        let first = shown["start_ns"].as_i64().unwrap();
        let last = shown["end_ns"].as_i64().unwrap();
        assert_eq!(shown["measured_ns"].as_i64(), Some(last - first), "{shown}");
        assert!((0..ns).contains(&(first - start_ns)), "{interval}: it began {} ns late", first - start_ns);
        assert_eq!(last - first, ns * samples.parse::<i64>().unwrap(), "{interval}: {shown}");
    }
}

#[test]
fn a_run_that_cannot_be_says_why() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let rows: &[(&[&str], i32, &[&str])] = &[
        (&["--netdev", "nope"], 1, &["no network device \"nope\"", "va"]),
        (&["--netdev", "va", "--start-at", "2020-01-01T00:00:00Z"], 1, &["in the past"]),
        (&["--netdev", "va", "--start-at", "2999-01-01T00:00:00Z"], 2, &["start-at"]),
        (&["--netdev", "va", "--start-at", "tomorrow"], 2, &["start-at", "2026"]),
        (&["--netdev", "va", "--interval", "2ms"], 2, &["100us, 1ms or 10ms"]),
        (&["--netdev", "va", "--samples", "0"], 2, &["samples"]),
        (&["--netdev", "va", "--samples", "99999999999"], 2, &["samples"]),
        (&["--netdev", "va", "--line-rate", "fast"], 2, &["100Gbit"]),
        (&["--netdev", "va", "--region", "10.0.0.0"], 2, &["10.0.0.0/8"]),
        (&["--netdev", "va", "--samples", "10", "-o", "/no/such/folder/x"], 1, &["/no/such/folder/x"]),
        (&["--netdev", "va", "--samples", "10", "-o", "/dev/full"], 1, &["/dev/full"]),
        (&[], 2, &["--netdev"]),
    ];
    for (words, status, says) in rows {
        let seen = record(&pair, words);
        assert_eq!(seen.status.code(), Some(*status), "{words:?}: {}{}", seen.stdout, seen.stderr);
        for part in *says {
            assert!(seen.stderr.contains(part), "{words:?} does not say {part}:\n{}", seen.stderr);
        }
    }
}

#[test]
fn a_run_whose_device_goes_keeps_what_there_is_and_fails() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let scratch = Scratch::new();
    let file = text_of(&scratch.inside("x.parquet"));
    let mut command = pair.left.command(&fabricscope());
    command.args(["bursts", "record", "--netdev", "va", "--samples", "600000", "-o", &file]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut says = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("is sampled") {
        assert_ne!(says.read_line(&mut line).unwrap(), 0, "it ended: {line}");
    }
    // Some samples are to be there.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(500) {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    pair.left.ip("link del va").unwrap();
    let mut rest = String::new();
    says.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("the device has gone"), "{rest}");
    assert!(fs::metadata(&file).unwrap().len() > 0);
    assert!(begin.elapsed() < LIMIT);
}
