//! Pause storms on the kernel's own interfaces, from a NIC whose counters are set by the script: whose they are, what is
//! none, and how they end; as the agent serves and logs it, and as `fabricscope counters` says it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};

/// fsnic1 is the decoy: its priorities have flow control and nothing happens there.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "storms",
    script: r#"nic_load || exit 1
for end in fsnic0 fsnic1; do dcb pfc set dev $end prio-pfc all:off 3:on || exit 1; done
intervals() { lines=$(($(wc -l < /run/watch.json) + $1)); until_true '[ $(wc -l < /run/watch.json) -ge $lines ]'; }
# Whether the agent has this finding of fsnic0 with this value, quiet or not.
finding() { scrape /metrics | grep '^fabricscope_finding{' | grep 'netdev="fsnic0"' | grep -q "finding=\"$1\"} $2"; }
comes() { until_true "finding $1 $2" 60 || echo "$1 is not $2" >&2; scrape /metrics > $out/$3.metrics; }
nic 0 hw_counters 'out_of_sequence 4294967294' 'rp_cnp_handled 500'
nic 0 ethtool 'rx_prio3_packets 70' 'tx_prio3_packets 80' 'tx_prio3_pause 4000000' 'tx_prio3_pause_duration 900000000'
start_agent 'counters.every = "1s"' || exit 1
fabricscope counters --device 'mlx5_* fsnic*' --watch --interval 500ms -o json > /run/watch.json 2> $out/watch.log & reader=$!
until_true '[ -s /run/watch.json ]'
comes storm 0 before

# This host stops the network all the time and takes nothing. Meanwhile one counter wraps and others are set back.
nic 0 ethtool 'ramp tx_prio3_pause_duration 1000' 'ramp tx_prio3_pause 10'
comes storm 1 storm
nic 0 hw_counters 'out_of_sequence 2' 'rp_cnp_handled 3'
intervals 4
nic 0 ethtool 'tx_prio3_pause_duration 5' 'tx_prio3_pause 1' 'ramp tx_prio3_pause_duration 1000' 'ramp tx_prio3_pause 10'
intervals 6
scrape /metrics > $out/reset.metrics
fabricscope status > $out/storm.screen; fabricscope status -o json > $out/storm.status
fabricscope counters --device 'mlx5_0 fsnic0' --watch --interval 500ms > /run/storm.text & words=$!
until_true 'grep -q "storm: pause storm" /run/storm.text' 60; kill $words; wait $words; cp /run/storm.text $out
nic 0 ethtool 'ramp tx_prio3_pause_duration 0' 'ramp tx_prio3_pause 0'
comes storm 0 after

# The same, and something comes through: this host is slow, and that is no storm.
nic 0 ethtool 'ramp tx_prio3_pause_duration 1000' 'ramp rx_prio3_packets 5'
comes tx_pause 1 busy
intervals 8
scrape /metrics > $out/busier.metrics
nic 0 ethtool 'ramp tx_prio3_pause_duration 0' 'ramp rx_prio3_packets 0'
comes tx_pause 0 idle

# The network stops this host all the time, and it sends nothing.
nic 0 ethtool 'ramp rx_prio3_pause_duration 1000'
comes storm_victim 1 victim
fabricscope status > $out/victim.screen
nic 0 ethtool 'ramp rx_prio3_pause_duration 0'
comes storm_victim 0 freed

# The device has seen a storm that the counters are too coarse to show.
# Newer kernels have a name of their own for it.
nic 0 ethtool 'add tx_pause_storm_error_events 1'; nic 0 pause 'add tx_pause_storm_events 1'
comes storm_reported 1 reported
comes storm_reported 0 unreported
kill $reader; wait $reader; cp /run/watch.json $out
end_agent
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(420),
};

/// The changes of a finding in the agent's log, of all ports.
fn changes(run: &Run, finding: &str) -> Vec<Value> {
    let lines: Vec<Value> = run.lines("agent.stdout").unwrap();
    lines.into_iter().filter(|line| line["kind"] == "finding" && line["finding"] == finding).collect()
}

fn states(run: &Run, finding: &str) -> Vec<String> {
    changes(run, finding).iter().map(|line| line["state"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn number(run: &Run, when: &str, netdev: &str, finding: &str) -> Option<f64> {
    let page = run.output().unwrap().file(&format!("{when}.metrics")).unwrap();
    sum(&page, "fabricscope_finding", &[("netdev", netdev), ("priority", "3"), ("finding", finding)])
}

#[track_caller]
fn says(run: &Run, file: &str, words: &[&str]) {
    let text = run.output().unwrap().file(file).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(text.contains(words), "{file} does not say {words} on {}:\n{text}", run.kernel());
    }
}

/// The host is named as the cause, by all ways, and only while it lasts.
#[track_caller]
pub(crate) fn cause(run: &Run) {
    let of = |when| number(run, when, "fsnic0", "storm");
    let seen = ["before", "storm", "reset", "after"].map(of);
    assert_eq!(seen, [Some(0.0), Some(1.0), Some(1.0), Some(0.0)], "on {}", run.kernel());
    assert_eq!(states(run, "storm"), ["firing", "quiet"], "{:#?}", changes(run, "storm"));
    let told = changes(run, "storm");
    let of = |key: &str| (&told[0][key], &told[1][key]);
    for (key, expected) in [("device", json!("mlx5_0")), ("netdev", json!("fsnic0")), ("priority", json!(3))] {
        assert_eq!(of(key), (&expected, &expected), "{told:#?}");
    }
    let measure = &told[0]["evidence"][0]["measures"][0];
    assert_eq!((&measure["name"], &measure["unit"]), (&json!("share_min"), &json!("ratio")), "{told:#?}");
    assert_eq!(measure["counters"], json!(["pfc_sent_pause_seconds"]), "{told:#?}");
    assert!((0.99..=1.0).contains(&measure["value"].as_f64().unwrap()), "{told:#?}");
    assert_eq!(told[1]["evidence"][0]["ongoing"], json!(false), "{told:#?}");
    let words = [
        "mlx5_0 port 1 (fsnic0): storm: pause storm from this host: priority 3 paused for",
        "and nothing received on it; tx pause: this host cannot take what the network sends",
    ];
    says(run, "storm.screen", &words);
    says(run, "storm.text", &words);
    let status: Value = serde_json::from_str(&run.output().unwrap().file("storm.status").unwrap()).unwrap();
    let firing = status["agent"]["findings"].as_array().unwrap();
    let names: BTreeSet<_> = firing.iter().map(|finding| finding["finding"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["storm", "tx_pause"]), "{status:#}");
    // And without an agent.
    let records: Vec<Value> = run.lines("watch.json").unwrap();
    let found = records.iter().flat_map(|record| record["findings"].as_array().unwrap());
    let storms: Vec<_> = found.filter(|found| found["detector"] == "storm" && found["verdict"] == "firing").collect();
    assert!(!storms.is_empty() && storms.iter().all(|storm| storm["netdev"] == "fsnic0"), "{storms:#?}");
}

/// Pause for as long, with progress, is no storm, and what is paused is told all the same.
#[track_caller]
pub(crate) fn progress(run: &Run) {
    for when in ["busy", "busier"] {
        let seen = (number(run, when, "fsnic0", "tx_pause"), number(run, when, "fsnic0", "storm"));
        assert_eq!(seen, (Some(1.0), Some(0.0)), "{when} on {}", run.kernel());
    }
    assert_eq!(number(run, "idle", "fsnic0", "tx_pause"), Some(0.0));
}

#[track_caller]
pub(crate) fn victim(run: &Run) {
    let of = |when| number(run, when, "fsnic0", "storm_victim");
    assert_eq!(["storm", "victim", "freed"].map(of), [Some(0.0), Some(1.0), Some(0.0)], "on {}", run.kernel());
    assert_eq!(states(run, "storm_victim"), ["firing", "quiet"]);
    let words = [
        "storm_victim: this host is the victim of a pause storm",
        "rx pause: the network cannot take what this host sends",
    ];
    says(run, "victim.screen", &words);
}

/// The driver's own count of storms is one.
#[track_caller]
pub(crate) fn reported(run: &Run) {
    let of = |when: &str| {
        let page = run.output().unwrap().file(&format!("{when}.metrics")).unwrap();
        sum(&page, "fabricscope_finding", &[("netdev", "fsnic0"), ("finding", "storm_reported")])
    };
    assert_eq!(["storm", "reported", "unreported"].map(of), [Some(0.0), Some(1.0), Some(0.0)], "on {}", run.kernel());
    let told = changes(run, "storm_reported");
    let measures = &told[0]["evidence"][0]["measures"];
    assert_eq!((&measures[1]["name"], &measures[1]["value"]), (&json!("storm_errors"), &json!(1)), "{told:#?}");
}

/// Wraps, resets, and a device where nothing happens make no finding: what fired is what was made.
#[track_caller]
pub(crate) fn nothing_else(run: &Run) {
    let lines: Vec<Value> = run.lines("agent.stdout").unwrap();
    let fired = lines.iter().filter(|line| line["kind"] == "finding" && line["state"] == "firing");
    let fired: BTreeSet<_> = fired.map(|line| (line["netdev"].to_string(), line["finding"].to_string())).collect();
    let made = ["rx_pause", "tx_pause", "storm", "storm_victim", "storm_reported", "network_congestion"];
    let made: BTreeSet<_> = made.iter().map(|name| ("\"fsnic0\"".to_owned(), format!("\"{name}\""))).collect();
    assert_eq!(fired, made, "on {}", run.kernel());
    for when in ["before", "storm", "reset", "busier", "victim", "reported"] {
        let quiet =
            ["storm", "storm_victim", "tx_pause", "rx_pause"].map(|finding| number(run, when, "fsnic1", finding));
        assert_eq!(quiet, [Some(0.0); 4], "{when} on {}", run.kernel());
    }
    let output = run.output().unwrap();
    assert_eq!(output.file("agent.status").unwrap().trim(), "0");
    assert!(!output.file("watch.log").unwrap().contains("panicked"));
}
