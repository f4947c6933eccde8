//! `bursts show --last` against a living agent: a known pattern comes back out of its memory, printed in every way.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tests::network::{Pair, RIGHT};

use crate::bursts_pattern::{ATTEMPTS, PATTERNS, Pattern, Sent, Shown, same, send, why_held_up};
use crate::program::{FAILED, Scratch, USAGE, is_root, refused, says_why, text_of, until};
use crate::sampling::Agent;

/// The one of a millisecond, which is what an agent samples by default.
const PATTERN: &Pattern = &PATTERNS[0];

/// How far ahead the first burst is planned.
const AHEAD: Duration = Duration::from_millis(200);

/// A file is not asked for: the pattern is on `va`, and nothing on the other device.
const VA: &[&str] = &["--last", "60s", "--netdev", "va", "--line-rate", PATTERN.line_rate];

#[test]
fn a_pattern_comes_back_out_of_the_memory_of_an_agent() {
    if !is_root() {
        return;
    }
    let pair = Pair::alone().unwrap();
    pair.left.ip("link add vx type veth peer name vy").unwrap();
    let server = pair.right.start(&["serve-udp", RIGHT, "5001"]).unwrap();
    let agent = Agent::start(&pair, "");
    agent.until_sampled("vx", Some(1.0));
    let (sent, shown) = send_and_ask(&pair, &agent);
    same(PATTERN, &sent, &shown);
    server.end().unwrap();
    printed_in_every_way(&agent);
    others_are_told_apart(&agent);
}

/// Sends the pattern until neither its sender nor the agent was held up.
#[track_caller]
fn send_and_ask(pair: &Pair, agent: &Agent<'_>) -> (Vec<Sent>, Shown) {
    let mut held_up = Vec::new();
    while held_up.len() < ATTEMPTS {
        let first = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + AHEAD).as_nanos();
        let sent = send(PATTERN, pair, &first.to_string());
        let since = i64::try_from(first).unwrap() - 1_000_000;
        // Those that there are when the agent has read on.
        let end = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        let shown = until("the agent has read on", || {
            // What was lost before is none of this attempt.
            let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
            let last = format!("{}ms", (now - since) / 1_000_000 + 1_000);
            let [_, _, device @ ..] = VA else { panic!("no device") };
            let seen = agent.show(&[&["--last", &last], device, &["-o", "json"]].concat());
            let shown = Shown::of(&seen, since);
            let read_to = serde_json::from_str::<Value>(&seen.stdout).ok()?["end_ns"].as_i64()?;
            (read_to > end).then_some(shown)
        });
        match why_held_up(PATTERN, &sent, &shown) {
            Some(why) => held_up.push(why),
            None => {
                let said = format!("agent: sent {} times; held up: {held_up:?}\n", held_up.len() + 1);
                std::io::stderr().write_all(said.as_bytes()).unwrap();
                return (sent, shown);
            }
        }
    }
    panic!("this host is too busy to send the pattern in time: {held_up:?}");
}

#[track_caller]
fn printed_in_every_way(agent: &Agent<'_>) {
    let scratch = Scratch::new();
    let svg = text_of(&scratch.inside("x.svg"));
    let drawn = || {
        let text = fs::read_to_string(&svg).unwrap();
        fs::remove_file(&svg).unwrap();
        assert!(text.contains("va on") && text.ends_with("</svg>\n"), "{text}");
    };
    // JSON and a picture: both.
    let seen = agent.show(&[VA, &["-o", "json", "--svg", &svg]].concat());
    let told: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{}", seen.stderr));
    assert_eq!(told["netdev"], "va");
    let lost = if told["lost_buckets"] == 0 { "no bucket lost" } else { " lost" };
    drawn();
    // A table, with the plot below it, and a picture.
    let seen = agent.show(&[VA, &["--plot", "--svg", &svg]].concat());
    assert_eq!((seen.status.code(), &*seen.stderr), (Some(0), ""));
    for part in ["va on", lost, "line rate  20 Mbit/s", "tx ", "\u{2588}"] {
        assert!(seen.stdout.contains(part), "no {part}:\n{}", seen.stdout);
    }
    drawn();
    // A plot is no JSON: neither is printed, and no picture is drawn.
    let seen = agent.show(&[VA, &["-o", "json", "--plot", "--svg", &svg]].concat());
    assert_eq!(seen.stdout, "");
    says_why(&seen, USAGE, &["--plot", "-o json", "--svg"]);
    assert!(!fs::exists(&svg).unwrap());
    // The same of a file, which is not even looked for.
    refused(&["bursts", "show", "/no/such/file", "--plot", "-o", "json"], USAGE, &["--plot", "-o json"]);
}

#[track_caller]
fn others_are_told_apart(agent: &Agent<'_>) {
    let lines = |words: &[&str]| -> Vec<Value> {
        let seen = agent.show(words);
        seen.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(&["--last", "60s", "-o", "json"]);
    let names: Vec<_> = all.iter().map(|told| told["netdev"].as_str().unwrap()).collect();
    assert_eq!(names, ["va", "vx", "vy"]);
    let [other] = &lines(&["--last", "60s", "--netdev", "vx", "-o", "json"])[..] else { panic!("not one device") };
    assert_eq!((&other["tx"]["bytes"], &other["tx"]["bursts"]), (&0.into(), &0.into()), "{other}");
    // Its last second only, once there is more than that.
    let length_of = |last: &str| {
        let [told] = &lines(&["--last", last, "--netdev", "va", "-o", "json"])[..] else { panic!("not one device") };
        told["end_ns"].as_i64().unwrap() - told["start_ns"].as_i64().unwrap()
    };
    until("it has sampled for two seconds", || (length_of("60s") > 2_000_000_000).then_some(()));
    until("a whole second", || (length_of("1s") == 1_000_000_000).then_some(()));
    says_why(&agent.show(&["--last", "60s", "--netdev", "none0"]), FAILED, &["none0"]);
}
