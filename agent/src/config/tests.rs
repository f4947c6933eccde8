//! What the configuration takes, what it refuses, and that the packaged file says the same.

use std::time::Duration;

use super::checked::{HookSet, keys};
use super::*;
use crate::kernel::sampler::Clock;

const PACKAGED: &str = include_str!("../../../deploy/agent.toml");

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = Config::parse(text).expect_err("it should be refused");
    let found: Vec<_> =
        found.iter().map(|problem| format!("{}: {}", problem.line.unwrap_or_default(), problem.text)).collect();
    assert_eq!(found, expected);
}

/// The packaged file with the `#` before each key taken away.
fn uncommented() -> String {
    let is_key = |line: &str| line.starts_with('#') && !line.starts_with("# ") && line.contains(" = ");
    PACKAGED.lines().map(|line| if is_key(line) { &line[1..] } else { line }.to_owned() + "\n").collect()
}

#[test]
fn an_empty_file_is_the_default() {
    let config = Config::parse("").expect("nothing is wrong");
    assert!(config.verbs && config.latency && config.cm && config.device && config.log_failures && !config.probes);
    assert_eq!(config.hooks, HookSet::Default);
    assert_eq!(config.metrics, Some("127.0.0.1:17317".parse().unwrap()));
    assert_eq!(config.socket.as_deref(), Some(Path::new("/run/fabricscope/agent.sock")));
    assert_eq!(config.fold_window, Duration::from_secs(60));
}

#[test]
fn the_packaged_file_is_the_default_but_for_the_open_port() {
    let default = Config::parse("").unwrap();
    for text in [PACKAGED.to_owned(), uncommented()] {
        let packaged = Config::parse(&text).expect("the packaged file is right");
        assert_eq!(packaged.metrics, Some("0.0.0.0:17317".parse().unwrap()));
        assert_eq!(Config { metrics: default.metrics, ..packaged }, default);
    }
}

#[test]
fn the_packaged_file_has_every_key_each_with_a_comment() {
    let text = uncommented();
    let mut found: Vec<_> = raw::Raw::parse(&text).entries.into_keys().collect();
    found.sort();
    assert_eq!(found, keys());
    let lines: Vec<_> = text.lines().collect();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('#') && line.contains(" = ")) {
        assert!(lines[index - 1].starts_with("# "), "no comment above {line}");
    }
}

#[test]
fn values_are_taken() {
    let config = Config::parse(
        "verbs = { hooks = 'all', latency = false, stuck_after = '1m 30s' }\n\
         metrics.listen = '[::1]:80'\nrpc.enabled = false\nquarantine.transitions = 0x10\nstatistics.window = '0s'",
    )
    .expect("nothing is wrong");
    assert_eq!((config.hooks, config.latency), (HookSet::All, false));
    assert_eq!(config.stuck_after, Duration::from_secs(90));
    assert_eq!(config.metrics, Some("[::1]:80".parse().unwrap()));
    assert_eq!(config.socket, None);
    assert_eq!(config.quarantine.transitions, 16);
    assert_eq!(config.statistics_window, Duration::ZERO);
}

#[test]
fn every_problem_is_told_at_once_with_its_line() {
    check(
        "[verbs]\nenabled = 'yes'\nlatncy = true\nhooks = 'some'\nstuck_after = 5\n[vebs]\n[metrics]\n\
         listen = 'localhost'\n[rpc]\nsocket = 'agent.sock'\n[quarantine]\ntransitions = 1\nwindow = '60'\n",
        &[
            "2: verbs.enabled is \"yes\": write true or false, without quotes",
            "3: verbs.latncy is no known key: did you mean verbs.latency? Else remove it",
            "4: verbs.hooks is \"some\": write \"default\" or \"all\"",
            "5: verbs.stuck_after is 5: write a time with its unit, such as \"1s\", from 1s to 24h",
            "6: vebs is no known key: remove it",
            "8: metrics.listen is \"localhost\": write an IP address and a port, such as \"127.0.0.1:17317\" or \
             \"[::]:17317\"",
            "10: rpc.socket is \"agent.sock\": write an absolute path, such as \"/run/fabricscope/agent.sock\"",
            "12: quarantine.transitions is 1: write a number from 2 to 10000, without quotes",
            "13: quarantine.window is \"60\": write a time with its unit, such as \"1m\", from 1s to 24h",
        ],
    );
}

#[test]
fn odd_files_are_refused_in_words() {
    check("verbs = 3", &["1: verbs is 3: it is a section, write [verbs]"]);
    check("listen = 'x'", &["1: listen is no known key: did you mean metrics.listen? Else remove it"]);
    check("verbs.probes = [true]", &["1: verbs.probes is of type array: write true or false, without quotes"]);
    check(
        "log.fold_window = '2d'",
        &["1: log.fold_window is \"2d\": write a time with its unit, such as \"1m\", from 1s to 24h"],
    );
    check(
        "quarantine.transitions = 99999999999999999999",
        &["1: quarantine.transitions is a number that is too large: write a number from 2 to 10000, without quotes"],
    );
    let broken = Config::parse("[verbs\nenabled = \n\nlatency = maybe").expect_err("this is no TOML");
    assert!(broken.iter().all(|problem| problem.line.is_some()), "{broken:?}");
    assert!(broken.iter().any(|problem| problem.text.starts_with("not TOML: ")), "{broken:?}");
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let error = Config::read(&file).expect_err("it is not there").to_string();
    assert!(error.starts_with(&format!("{}: cannot be read: ", file.display())), "{error}");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(Config::read(&file).expect_err("not text").to_string().contains("is not UTF-8"));
    std::fs::write(&file, vec![b'#'; 1 + (1 << 20)]).unwrap();
    assert!(Config::read(&file).expect_err("too large").to_string().contains("is larger than"));
    std::fs::write(&file, "a = 1\nb = 2").unwrap();
    let error = Config::read(&file).expect_err("unknown keys").to_string();
    assert_eq!(error.lines().count(), 2);
    assert!(error.lines().all(|line| line.starts_with(&file.display().to_string())), "{error}");
}

#[test]
fn counters_to_sample_fast_are_chosen_by_group_and_name() {
    let config = Config::parse("[counters]\nfast = ['pause', 'rdma_cnp_sent_packets']\nfast_interval = '1ms'").unwrap();
    let (choice, every) = config.counters_fast;
    assert_eq!((choice, every), ("pause rdma_cnp_sent_packets".parse().unwrap(), Duration::from_millis(1)));
    let (choice, every) = Config::parse("").unwrap().counters_fast;
    assert!(choice.is_empty() && every == Duration::from_millis(10), "off by default");
    let found = Config::parse("[counters]\nfast = ['pauses']\nfast_interval = '100us'").unwrap_err();
    let texts: Vec<_> = found.iter().map(|problem| (problem.line, problem.text.as_str())).collect();
    assert_eq!(texts.len(), 2, "all at once: {texts:?}");
    assert!(texts[0].1.contains("\"pauses\" is not understood; write groups (traffic, pause"), "{texts:?}");
    assert!(texts[1].1.contains("from 1ms to 1s"), "{texts:?}");
    let found = Config::parse("bursts.enabled = false\ncounters.fast = ['pause']").unwrap_err();
    assert!(found.len() == 1 && found[0].line == Some(2) && found[0].text.contains("bursts.enabled"), "{found:?}");
}

#[test]
fn a_tick_tells_buckets_apart_where_they_are_long_enough() {
    let clock = |text: &str| Config::parse(text).map(|config| config.bursts.unwrap().wish.clock);
    assert_eq!(clock(""), Ok(Clock::Read), "the clock is read by default");
    assert_eq!(clock("[bursts]\nclock = 'tick'"), Ok(Clock::Tick));
    assert_eq!(clock("[bursts]\nclock = 'tick'\ninterval = '10ms'"), Ok(Clock::Tick));
    check(
        "[bursts]\ninterval = '100us'\nclock = 'tick'",
        &[
            "3: bursts.clock is \"tick\": a tick is too dear for an interval below 1ms: make that 1ms or 10ms, or let the \
           clock be \"read\"",
        ],
    );
    check("[bursts]\nclock = 'jiffies'", &["2: bursts.clock is \"jiffies\": write \"read\" or \"tick\""]);
}
