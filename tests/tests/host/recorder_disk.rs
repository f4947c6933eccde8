//! The recorder of an agent on a file system that is full: it says so, samples on, and writes when there is room again.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use tests::metrics::sum;
use tests::network::Pair;

use crate::program::{is_root, start, text_of, until};
use crate::sampling::Agent;

/// The file system's size, of which one file of an idle device takes a few pages.
const SIZE: &str = "256k";

/// The speed of a bridge with a virtual device as its port; without any it has none.
const SPEED: u64 = 10_000_000_000;

/// The last series in memory; none while there is none.
fn last(agent: &Agent<'_>) -> Option<Value> {
    serde_json::from_str(&agent.show(&["--last", "60s", "--netdev", "br0", "-o", "json"]).stdout).ok()
}

/// Gives the bridge a port or takes it, and waits until samples say so. A device's line rate is the same in all of one
/// file, so that what was sampled until then is due to be written when the next piece is closed as well.
#[track_caller]
fn change_speed(pair: &Pair, agent: &Agent<'_>, port: bool) {
    pair.left.ip(if port { "link set vx master br0" } else { "link set vx nomaster" }).unwrap();
    let expected = port.then_some(SPEED);
    until("the speed is noticed", || (last(agent)?["line_rate_bits_per_second"].as_u64() == expected).then_some(()));
}

fn is(agent: &Agent<'_>, state: &str) -> bool {
    sum(&agent.metrics(), "fabricscope_recorder_state", &[("state", state)]) == Some(1.0)
}

fn files(agent: &Agent<'_>) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(agent.samples()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "parquet"));
    files
}

#[test]
fn a_full_disk_is_a_state_that_ends_when_there_is_room() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    for words in ["link add br0 up type bridge", "link add vx up type veth peer name vy", "link set vy up"] {
        pair.left.ip(words).unwrap();
    }
    let agent = Agent::begin(&pair, "netdevs = ['br0']", Some(SIZE));
    agent.until_sampled("br0", Some(1.0));
    until("it records", || is(&agent, "recording").then_some(()));
    let filler = agent.samples().join("filler");
    let full = File::create(&filler).unwrap().write_all(&[1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    until("it samples", || last(&agent));
    change_speed(&pair, &agent, true);
    change_speed(&pair, &agent, false);
    until("it is said that the disk is full", || is(&agent, "disk_full").then_some(()));
    assert_eq!(files(&agent), Vec::<PathBuf>::new(), "no half of a file stands there");
    assert!(!is(&agent, "recording"));
    let status = agent.status();
    assert!(status.stdout.contains("the disk is full") && status.stdout.contains("br0"), "{}", status.stdout);
    assert_eq!(status.status.code(), Some(1), "something is missing");
    // It samples on all the while.
    let end = || last(&agent).unwrap()["end_ns"].as_i64().unwrap();
    let before = end();
    until("it samples on", || (end() > before).then_some(()));
    agent.until_sampled("br0", Some(1.0));

    fs::remove_file(&filler).unwrap();
    until("it records again", || is(&agent, "recording").then_some(()));
    // The oldest, should there be more by now.
    let file = files(&agent).into_iter().min().unwrap();
    let seen = start(&["bursts", "show", &text_of(&file), "-o", "json"]);
    let written: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{}", seen.stderr));
    // From before the disk was full: the piece that waited for room.
    assert!(written["end_ns"].as_i64().unwrap() <= before, "{written}");
    assert_eq!(written.get("line_rate_bits_per_second"), None, "{written}");
    let lost = sum(&agent.metrics(), "fabricscope_events_lost_total", &[("stage", "disk")]);
    assert_eq!(lost, Some(0.0));
    agent.end();
}
