//! The counters of real devices when packets are lost and links go down, and beside node_exporter on the same devices.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};

/// How often the link goes down.
const DOWNS: u64 = 3;

/// Soft-RoCE under loss, then a link that goes; then readings of the same devices and of a copy of one.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "exporter",
    script: r#"kept() {
    for file in /sys/class/infiniband/$device/ports/1/hw_counters/*; do
        [ "${file##*/}" = lifespan ] || echo "${file##*/} $(cat $file)"
    done > $out/$1.sysfs
    fabricscope counters --device $device --all --interval 10ms -o json > $out/$1.json
}
troubles() { (cd /sys/class/infiniband/$device/ports/1/hw_counters && cat out_of_seq_request rcvd_seq_err completer_retry_err duplicate_request) | awk '{ n += $1 } END { print n }'; }
kept before
enough=$(($(troubles) + 5))
tc qdisc add dev $netdev root netem loss 5% || exit 1
ibv_rc_pingpong -d $peer -g $peer_gid -n 400 > $out/server 2>&1 & server=$!
until_true "ss -Htln 'sport = :18515' | grep -q ." || echo "no server" >&2
ibv_rc_pingpong -d $device -g $gid -n 400 127.0.0.1 > $out/client 2>&1 & client=$!
# The last acknowledgement must not be lost: soft-RoCE would send again for ever.
until_true '[ $(troubles) -ge $enough ]' 60
tc qdisc change dev $netdev root netem loss 0%
wait $client && wait $server || { echo "it gave up" >&2; exit 1; }
tc qdisc del dev $netdev root
kept lost
for time in 1 2 3; do
    ip link set $netdev down; until_true 'grep -q DOWN /sys/class/infiniband/$device/ports/1/state'
    ip link set $netdev up; until_true 'grep -q ACTIVE /sys/class/infiniband/$device/ports/1/state'
done
kept down

nic_load || exit 1
nic 0 counters 'port_xmit_data 123456789012' 'port_rcv_data 23456789' 'port_xmit_packets 345' 'port_rcv_packets 456' \
    'link_downed 300'
page() ( exec 2> /dev/null 3<>/dev/tcp/127.0.0.1/9100 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3 )
theirs() {
    $out/prometheus-node-exporter --collector.disable-defaults --collector.infiniband --log.level=error \
        --web.listen-address=127.0.0.1:9100 --path.sysfs=$1 > $out/$2.words 2>&1 & exporter=$!
    until_true "page > $out/$2.metrics && grep -q collector_success $out/$2.metrics" || echo 'no exporter' >&2
    kill $exporter; wait $exporter
}
theirs /sys theirs
# What it looks for and these drivers do not have is added.
copy=/run/copy/class/infiniband/mlx5_0; port=/sys/class/infiniband/mlx5_0/ports/1; mkdir -p $copy/ports/1/counters
for file in board_id fw_ver hca_type; do echo lab > $copy/$file; done
for file in state phys_state rate link_layer; do cat $port/$file > $copy/ports/1/$file; done
for file in $port/counters/*; do cat $file > $copy/ports/1/counters/${file##*/}; done
theirs /run/copy copied
start_agent 'verbs.enabled = false' '[bursts]' 'enabled = false' || exit 1
until_true "holds 'fabricscope_rdma_sent_bytes_total{device=\"mlx5_0\"' '> 0'"
that_page ours.metrics
end_agent
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(300),
};

/// A soft-RoCE counter by the driver's name and by its meaning.
const LOSS: [(&str, &str); 4] = [
    ("out_of_seq_request", "rdma_out_of_sequence_packets"),
    ("rcvd_seq_err", "rdma_sequence_error_packets"),
    ("completer_retry_err", "rdma_retransmitted_packets"),
    ("duplicate_request", "rdma_duplicate_request_packets"),
];

fn sysfs(run: &Run, when: &str) -> BTreeMap<String, u64> {
    let text = run.output().unwrap().file(&format!("{when}.sysfs")).unwrap();
    let values = text.lines().filter_map(|line| line.split_once(' '));
    values.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[track_caller]
fn shown(run: &Run, when: &str, counter: &str) -> u64 {
    let record: Value = run.lines(&format!("{when}.json")).unwrap().remove(0);
    let counters = record["devices"][0]["counters"].as_array().unwrap();
    let found = counters.iter().find(|found| found["name"] == counter);
    found.unwrap_or_else(|| panic!("no {counter} {when} in {record}"))["value"].as_u64().unwrap()
}

/// What was lost shows as what it made necessary, to the count.
#[track_caller]
pub(crate) fn loss(run: &Run) {
    let (before, after) = (sysfs(run, "before"), sysfs(run, "lost"));
    let mut troubles = 0;
    for (driver, meaning) in LOSS {
        assert_eq!(shown(run, "before", meaning), before[driver], "{meaning} on {}", run.kernel());
        assert_eq!(shown(run, "lost", meaning), after[driver], "{meaning} on {}", run.kernel());
        troubles += after[driver] - before[driver];
    }
    assert!(troubles >= 5, "{troubles} of 400 messages each way, 5 % of the packets lost, on {}", run.kernel());
}

/// Each time that the link goes is counted.
#[track_caller]
pub(crate) fn downs(run: &Run) {
    let of = |when| shown(run, when, "rdma_link_down_events");
    assert_eq!(of("down") - of("lost"), DOWNS, "on {}", run.kernel());
    assert_eq!(of("down"), sysfs(run, "down")["link_downed"]);
}

/// Where both have a counter it is the same; where ours differs it is for a reason.
#[track_caller]
pub(crate) fn beside(run: &Run) {
    let page = |name: &str| run.output().unwrap().file(&format!("{name}.metrics")).unwrap();
    let success = |page: &str| sum(page, "node_scrape_collector_success", &[("collector", "infiniband")]);
    let (theirs, copied, ours) = (page("theirs"), page("copied"), page("ours"));
    // One device without files that it takes for granted costs it all of them.
    assert_eq!(success(&theirs), Some(0.0), "{theirs}");
    assert_eq!(sum(&theirs, "node_infiniband_port_packets_transmitted_total", &[]), None);
    for device in ["rxe0", "rxe1", "mlx5_0", "mlx5_1"] {
        let labels = [("device", device), ("port", "1")];
        assert!(sum(&ours, "fabricscope_rdma_sent_packets_total", &labels).is_some(), "{device}:\n{ours}");
    }
    assert_eq!(success(&copied), Some(1.0), "{copied}");
    let labels = [("device", "mlx5_0"), ("port", "1")];
    for (name, of, expected) in [
        ("node_infiniband_port_data_transmitted_bytes_total", "fabricscope_rdma_sent_bytes_total", 493_827_156_048.0),
        ("node_infiniband_port_data_received_bytes_total", "fabricscope_rdma_received_bytes_total", 93_827_156.0),
        ("node_infiniband_port_packets_transmitted_total", "fabricscope_rdma_sent_packets_total", 345.0),
        ("node_infiniband_port_packets_received_total", "fabricscope_rdma_received_packets_total", 456.0),
    ] {
        assert_eq!(sum(&copied, name, &labels), Some(expected), "{name} on {}", run.kernel());
        assert_eq!(sum(&ours, of, &labels), Some(expected), "{of} on {}", run.kernel());
    }
    // A counter that stands at its end says nothing any more: theirs does not tell, ours has no value.
    assert_eq!(sum(&copied, "node_infiniband_link_downed_total", &labels), Some(255.0), "{copied}");
    let saturated = [("device", "mlx5_0"), ("counter", "rdma_link_down_events")];
    assert_eq!(sum(&ours, "fabricscope_counter_saturated", &saturated), Some(1.0), "{ours}");
    assert_eq!(sum(&ours, "fabricscope_rdma_link_down_events_total", &labels), None, "{ours}");
}
