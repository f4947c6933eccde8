//! The sampler on soft-RoCE: its packets are those that the driver counts, and what is lost shows as sent again.

use std::collections::HashMap;
use std::time::Duration;

use tests::scenario::{Run, Scenario};

/// Records the first device's netdev while two programs talk, and notes the driver's counters around that.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "bursts_roce",
    script: r#"counters() { (cd /sys/class/infiniband/$device/ports/1/hw_counters && grep . *) | tr : ' ' > $out/$1; }
talk() {
    ibv_rc_pingpong -d $peer -g $peer_gid -n $1 > $out/server 2>&1 & server=$!
    until_true 'ss -Hltn | grep -q :18515'
    ibv_rc_pingpong -d $device -g $gid -n $1 127.0.0.1 > $out/client 2>&1 && wait $server
}
counted() { [ $(cat /sys/class/infiniband/$device/ports/1/hw_counters/$1) -ge 3 ]; }
# Loses packets until each kind of loss has come about, and none of the last: soft-RoCE takes the seven retries of these
# programs for endless ones, and what is sent to a queue pair that has ended is no packet to its counters. The loss is
# ended by a change, since a packet that meets a queueing discipline being removed is an error that ends its queue pair.
talk_with_losses() {
    tc qdisc add dev $netdev root netem loss 4%
    talk $1 & talk=$!
    until_true 'counted duplicate_request && counted rcvd_seq_err && counted completer_retry_err' 60
    tc qdisc change dev $netdev root netem loss 0%
    wait $talk; ended=$?
    tc qdisc del dev $netdev root
    return $ended
}
# A recording that is ended by a signal has all that was sampled until then.
observe() {
    name=$1; shift
    fabricscope bursts record --netdev $netdev --interval 10ms --samples 12000 -o $out/$name.parquet 2>> $out/words & record=$!
    until_true 'grep -qs tcx /proc/$record/fdinfo/* || tc filter show dev $netdev egress | grep -q fs_sampler' || return
    counters $name.before
    "$@" || return
    counters $name.after
    kill -INT $record; wait $record
    fabricscope bursts convert $out/$name.parquet $out/$name.csv
}
observe plain talk 500 && observe loss talk_with_losses 1000
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(300),
};

/// A column of the samples, summed.
fn sum(run: &Run, name: &str, column: &str) -> u64 {
    let text = run.output().unwrap().file(&format!("{name}.csv")).unwrap();
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|name| name == column).unwrap();
    lines.map(|line| line.split(',').nth(at).unwrap().parse::<u64>().unwrap()).sum()
}

/// How much each of the driver's counters grew.
fn grown(run: &Run, name: &str) -> HashMap<String, u64> {
    let [before, after] = ["before", "after"].map(|end| {
        let text = run.output().unwrap().file(&format!("{name}.{end}")).unwrap();
        let line = |line: &str| line.split_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap()));
        text.lines().filter_map(line).collect::<HashMap<String, u64>>()
    });
    after.into_iter().map(|(name, value)| (name.clone(), value - before[&name])).collect()
}

#[track_caller]
pub(crate) fn packets(run: &Run) {
    let grown = grown(run, "plain");
    assert!(grown["sent_pkts"] > 500, "{grown:?}");
    assert_eq!(sum(run, "plain", "tx_roce_packets"), grown["sent_pkts"]);
    assert_eq!(sum(run, "plain", "rx_roce_packets"), grown["rcvd_pkts"]);
    assert_eq!(sum(run, "plain", "rx_roce_cnps"), 0);
}

#[track_caller]
pub(crate) fn losses(run: &Run) {
    let grown = grown(run, "loss");
    // What is lost behind the sampler was sent all the same.
    assert_eq!(sum(run, "loss", "tx_roce_packets"), grown["sent_pkts"], "{grown:?}");
    assert!(sum(run, "loss", "tx_roce_retries") > 0, "{grown:?}");
    // What came again is what the driver found to be a duplicate.
    assert_eq!(sum(run, "loss", "rx_roce_retries"), grown["duplicate_request"], "{grown:?}");
    // The driver counts a refusal only if it still asks for what was refused.
    let refused = sum(run, "loss", "rx_roce_nak_sequence");
    assert!(refused >= grown["rcvd_seq_err"].max(1), "{refused} {grown:?}");
}
