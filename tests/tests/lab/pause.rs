//! Pause, wraps, resets and failures on the kernel's own interfaces, from a NIC whose counters are set by the script.

use std::time::Duration;

use serde_json::Value;
use tests::scenario::{Run, Scenario};

/// Every step waits until the reader has written whole intervals over it.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "pause",
    script: r#"nic_load || exit 1
dcb pfc set dev fsnic0 prio-pfc all:off 3:on || exit 1
intervals() { lines=$(($(wc -l < /run/watch.json) + $1)); until_true '[ $(wc -l < /run/watch.json) -ge $lines ]'; }
nic 0 hw_counters 'out_of_sequence 4294967290' 'rp_cnp_handled 500' 'np_cnp_sent 5'
nic 0 ethtool 'rx_prio3_pause 7' 'tx_prio3_pause 8' 'rx_discards_phy 9'
fabricscope counters --device 'mlx5_0 fsnic0' --watch --interval 500ms --all -o json > /run/watch.json 2> $out/watch.log & reader=$!
until_true '[ -s /run/watch.json ]'
# This host stops the network for nearly all of the time, and is stopped for a quarter of it.
nic 0 ethtool 'ramp tx_prio3_pause_duration 990' 'ramp tx_prio3_pause 2' 'ramp rx_prio3_pause_duration 250' 'ramp rx_discards_phy 1'
intervals 4
fabricscope counters --device 'mlx5_0 fsnic0' --interval 1s > $out/storm.text
nic 0 ethtool 'ramp tx_prio3_pause_duration 0' 'ramp tx_prio3_pause 0' 'ramp rx_prio3_pause_duration 0' 'ramp rx_discards_phy 0'
intervals 2
nic 0 hw_counters 'out_of_sequence 10'
intervals 2
nic 0 hw_counters 'rp_cnp_handled 3'
intervals 2
nic 0 hw_counters 'fail * EIO'
intervals 2
nic 0 hw_counters 'fail * 0'; nic 0 counters 'link_downed 255'
intervals 2
cp /run/watch.json $out/healed.json
nic 0 hw_counters 'fail * EIO'; nic 0 counters 'fail * EINVAL'
intervals 2
kill $reader; wait $reader; cp /run/watch.json $out
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(300),
};

fn records(run: &Run) -> Vec<Value> {
    run.lines("watch.json").unwrap()
}

fn device<'a>(record: &'a Value, name: &str) -> &'a Value {
    let mut devices = record["devices"].as_array().unwrap().iter();
    devices.find(|device| device["name"] == name).expect(name)
}

fn counter<'a>(record: &'a Value, name: &str, of: &str) -> Option<&'a Value> {
    device(record, name)["counters"].as_array().unwrap().iter().find(|counter| counter["name"] == of)
}

/// The share of an interval's time, of the intervals with pause the one in the middle: one that was read late makes the
/// next too short.
fn share(run: &Run, of: &str) -> f64 {
    let share = |record: &Value| counter(record, "fsnic0", of)?["per_second"].as_f64();
    let mut shares: Vec<f64> = records(run).iter().filter_map(share).filter(|share| *share > 0.0).collect();
    shares.sort_by(f64::total_cmp);
    shares[shares.len() / 2]
}

/// Pause is a share of the measured time, by direction, of the priority that it is on for.
#[track_caller]
pub(crate) fn by_direction(run: &Run) {
    let (tx, rx) = (share(run, "pfc_sent_pause_seconds"), share(run, "pfc_received_pause_seconds"));
    assert!((0.9..=1.08).contains(&tx), "tx pause for {tx} of the time on {}", run.kernel());
    assert!((0.2..=0.3).contains(&rx), "rx pause for {rx} of the time on {}", run.kernel());
    let records = records(run);
    for record in &records {
        let netdev = device(record, "fsnic0");
        assert_eq!(netdev["pfc_priorities"], serde_json::json!([3]), "{netdev:#}");
        assert_eq!((&netdev["device"], &netdev["port"]), (&Value::from("mlx5_0"), &Value::from(1)), "{netdev:#}");
        let frames = counter(record, "fsnic0", "pfc_received_pause_frames").unwrap();
        assert_eq!((&frames["priority"], &frames["value"]), (&Value::from(3), &Value::from(7)));
    }
}

/// A person reads which way it goes and what to do.
#[track_caller]
pub(crate) fn in_words(run: &Run) {
    let text = run.output().unwrap().file("storm.text").unwrap();
    let words = [
        "tx pause: this host cannot take what the network sends.",
        "rx pause: the network cannot take what this host sends.",
        "pfc_sent_pause_seconds priority 3",
        "% of time",
        "nic_receive_discarded_packets",
    ];
    for words in words {
        assert!(text.contains(words), "it does not say {words}:\n{text}");
    }
}

/// A 32-bit counter that wraps goes on; one that is set back begins again without a jump.
#[track_caller]
pub(crate) fn wraps_and_resets(run: &Run) {
    let records = records(run);
    let increases = |of: &str| -> Vec<Option<u64>> {
        let all = records.iter().filter_map(|record| counter(record, "mlx5_0", of));
        all.map(|counter| counter["increase"].as_u64()).collect()
    };
    let wrapped: u64 = increases("rdma_out_of_sequence_packets").into_iter().flatten().sum();
    assert_eq!(wrapped, 16, "on {}", run.kernel());
    // The other time without one is after the failure, when there was no reading before.
    let handled = increases("rdma_cnp_handled_packets");
    let values: Vec<_> = records
        .iter()
        .filter_map(|record| counter(record, "mlx5_0", "rdma_cnp_handled_packets")?["value"].as_u64())
        .collect();
    let reset = values.iter().position(|value| *value == 3).unwrap();
    assert!(reset > 0 && handled[reset].is_none(), "{handled:?}");
    assert!(handled.iter().flatten().all(|increase| *increase == 0), "{handled:?}");
}

/// What fails costs itself and comes back; what stands at its end says so.
#[track_caller]
pub(crate) fn fails_alone(run: &Run) {
    let records = records(run);
    let failing = |record: &&Value| {
        counter(record, "mlx5_0", "rdma_cnp_sent_packets").is_none()
            && counter(record, "mlx5_0", "rdma_received_bytes").is_some()
    };
    let during: Vec<&Value> = records.iter().filter(failing).collect();
    assert!(!during.is_empty(), "hw_counters never failed on {}", run.kernel());
    for record in during {
        assert!(device(record, "mlx5_0")["failures"].is_array(), "{record:#}");
        assert!(counter(record, "fsnic0", "pfc_sent_pause_frames").is_some(), "{record:#}");
    }
    let healed: Vec<Value> = run.lines("healed.json").unwrap();
    let last = healed.last().unwrap();
    assert!(counter(last, "mlx5_0", "rdma_cnp_sent_packets").is_some(), "it does not come back: {last:#}");
    assert_eq!(counter(last, "mlx5_0", "rdma_link_down_events").unwrap()["saturated"], true, "{last:#}");
}

/// A device that answers with nothing but errors is left alone, and said to be.
#[track_caller]
pub(crate) fn left_alone(run: &Run) {
    let records = records(run);
    let last = records.last().unwrap();
    let why = device(last, "mlx5_0")["quarantined"].as_str().unwrap_or_default();
    assert!(why.contains("answered with errors"), "{last:#}");
    assert_eq!(device(last, "mlx5_0")["counters"], serde_json::json!([]), "{last:#}");
    assert!(counter(last, "fsnic0", "pfc_sent_pause_frames").is_some(), "{last:#}");
    let log = run.output().unwrap().file("watch.log").unwrap();
    assert!(!log.contains("panicked"), "{log}");
}
