//! How the host takes what comes: polls out of budget by time, and completion queues by vector.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};

/// 200 packets wait for a receiver that takes 64 at a time. The sender is the decoy, and a receiver of one at a time.
/// Eight queues, six of them on the first of two vectors; the other device has none.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "receive",
    script: r#"nic_load && nic_apart || exit 1
ping -q -c 1 -W 10 10.99.0.2 > $out/before.ping
event=/sys/kernel/tracing/events/napi/napi_poll
sampled() { until_true "grep -q 'is sampled' $out/$1.words" 60 || echo "$1 is not sampled" >&2; }
record() { fabricscope bursts record --netdev $1 --interval 10ms --samples 60000 -o $out/$1.parquet 2> $out/$1.words; }
declare -f record >> $BASH_ENV
record fsnic0 & near=$!
ip netns exec far bash -c 'record fsnic1' & far=$!
sampled fsnic0; sampled fsnic1
echo > /sys/kernel/tracing/trace; echo 1 > $event/enable
nic 1 link 'hold 1'
python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); [s.sendto(b"x", ("10.99.0.2", 9)) for _ in range(200)]'
nic 1 link 'hold 0'
ping -q -c 5 -i 0.2 10.99.0.2 > $out/after.ping
echo 0 > $event/enable; cp /sys/kernel/tracing/trace $out/trace
for recorder in $(pidof fabricscope); do kill -INT $recorder; done
wait $near $far
for end in fsnic0 fsnic1; do
    fabricscope bursts convert $out/$end.parquet $out/$end.csv
    fabricscope bursts show $out/$end.parquet --line-rate 1Gbit --plot --svg $out/$end.svg > $out/$end.text
    fabricscope bursts show $out/$end.parquet --line-rate 1Gbit -o json > $out/$end.json
done

start_agent 'bursts.enabled = false' || exit 1
scrape /metrics > $out/none.metrics
DEVICE=$device python3 -c '
import os
from pyverbs.device import Context
from pyverbs.cq import CQ
context = Context(name=os.environ["DEVICE"])
queues = [CQ(context, 16, None, None, vector) for vector in [0] * 6 + [1] * 2]
' 2> $out/queues.words || echo 'no queues' >&2
until_true "holds 'fabricscope_cq_vector_skew_ratio{device=\"$device\"}' '> 0'" || echo 'no ratio' >&2
that_page made.metrics
end_agent
exit 0
"#,
    modules: true,
    processors: 2,
    limit: Duration::from_secs(300),
};

/// A column of the samples.
fn column(run: &Run, netdev: &str, column: &str) -> Vec<u64> {
    let text = run.output().unwrap().file(&format!("{netdev}.csv")).unwrap();
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|name| name == column).unwrap();
    lines.map(|line| line.split(',').nth(at).unwrap().parse().expect(column)).collect()
}

/// As many as the kernel's own tracepoint tells of this device, in the few milliseconds in which they were.
#[track_caller]
pub(crate) fn polls(run: &Run) {
    let output = run.output().unwrap();
    let trace = output.file("trace").unwrap();
    let told = trace.lines().filter(|line| line.contains("for device fsnic1 work 64 budget 64")).count() as u64;
    let found = column(run, "fsnic1", "rx_napi_exhausted");
    assert!(told >= 3, "{trace}");
    assert_eq!(found.iter().sum::<u64>(), told, "on {}", run.kernel());
    assert!(found.iter().filter(|count| **count > 0).count() <= 4, "{found:?}");
    assert!(column(run, "fsnic1", "rx_packets").iter().sum::<u64>() >= 205);
    // The sender receives pings' answers, one at a time.
    assert_eq!(column(run, "fsnic0", "rx_napi_exhausted").iter().sum::<u64>(), 0);
    assert!(column(run, "fsnic0", "rx_packets").iter().sum::<u64>() >= 5);
}

/// It is told for people, in a picture of characters, in one for reports and as JSON.
#[track_caller]
pub(crate) fn polls_shown(run: &Run) {
    let output = run.output().unwrap();
    let text = output.file("fsnic1.text").unwrap();
    assert!(text.contains(" polls out of budget") && text.contains(", ! polls out of budget"), "{text}");
    assert!(text.lines().any(|line| line.trim_start_matches([' ', '│']).starts_with('!')), "{text}");
    assert!(output.file("fsnic1.svg").unwrap().contains(" polls out of budget"));
    for none in ["fsnic0.text", "fsnic0.svg"] {
        assert!(!output.file(none).unwrap().contains("out of budget"), "{none}");
    }
    let json = |netdev: &str| -> HashMap<String, Value> {
        serde_json::from_str(&output.file(&format!("{netdev}.json")).unwrap()).unwrap()
    };
    let polls = |netdev: &str| json(netdev)["rx"]["napi_exhausted"].as_u64();
    assert!(polls("fsnic1") >= Some(3) && polls("fsnic0") == Some(0), "{:?}", [polls("fsnic1"), polls("fsnic0")]);
    assert!(json("fsnic1")["tx"].get("napi_exhausted").is_none());
}

/// Six of eight queues on one of two vectors are one and a half times the mean; a device without queues tells nothing.
#[track_caller]
pub(crate) fn vectors(run: &Run) {
    let output = run.output().unwrap();
    let words = output.file("queues.words").unwrap();
    let of = |page: &str, labels: &[(&str, &str)]| {
        sum(&output.file(page).unwrap(), "fabricscope_cq_vector_skew_ratio", labels)
    };
    assert_eq!(of("none.metrics", &[]), None, "before any queue was made");
    assert_eq!(of("made.metrics", &[("device", "rxe0")]), Some(1.5), "{words}");
    assert_eq!(of("made.metrics", &[]), Some(1.5), "another device has one too");
    let skew = [("device", "rxe0"), ("finding", "vector_skew")];
    assert_eq!(sum(&output.file("made.metrics").unwrap(), "fabricscope_finding", &skew), Some(0.0));
}
