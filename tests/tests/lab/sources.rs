//! Counters beside `ethtool -S` and sysfs, on real kernels: the kernel's standard statistics, optional counters, health
//! reporters, links that come and go, bonds, and RDMA devices of other network namespaces.

use std::time::Duration;

use serde_json::Value;
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};

/// How often the link goes.
const FLAPS: u64 = 5;

/// In exclusive mode last: it needs a host without other namespaces, and hides what the rest looks at.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "sources",
    script: r#"nic_load || exit 1
ours() { fabricscope counters --device 'mlx5_* fsnic*' --interval 100ms --all -o json > $out/$1.json 2> $out/$1.log; }
nic 0 pause 'tx_pause_frames 21' 'rx_pause_frames 22'
nic 0 fec 'corrected_blocks 31' 'uncorrectable_blocks 32' 'corrected_bits 33'
nic 0 phy 'SymbolErrorDuringCarrier 41'
nic 0 link 'link_down_events 51'
nic 0 ethtool 'rx_pause_ctrl_phy 7' 'rx_symbol_err_phy 8' 'rx_crc_errors_phy 9' 'rx_prio3_pause 10'
nic 0 hw_counters 'cc_rx_ce_pkts 63'
ours standard
rdma statistic set link mlx5_0/1 optional-counters cc_rx_ce_pkts && ours optional
fabricscope counters --device mlx5_0 --raw -o json > $out/raw.json
ours unbound
for pair in 17 18; do rdma statistic qp bind link mlx5_0/1 lqpn $pair || exit 1; done
nic 0 hw_counters 'out_of_sequence 7'; nic 0 qp_counters 'out_of_sequence 5' 'duplicate_request 3'
ours bound; rdma -j statistic qp show link mlx5_0/1 > $out/rdma.json
fabricscope counters --device mlx5_0 --interval 100ms --all > $out/bound.text
rdma statistic qp unbind link mlx5_0/1 cntn 17 lqpn 17 && ours unbound_again
nic 0 fec 'fail * EIO'; ours failing; nic 0 fec 'fail * 0'
nic 0 pause 'hide rx_pause_frames'; nic 0 phy 'hide SymbolErrorDuringCarrier'; ours hidden
nic 0 pause 'show rx_pause_frames'; nic 0 phy 'show SymbolErrorDuringCarrier'

for count in 1 2 3; do nic_health 0 'firmware is unwell'; done
nic_health 1 '!firmware is gone'
ours reporters; devlink -j health show > $out/devlink.json
fabricscope counters --interval 100ms > $out/reporters.text; fabricscope status > $out/status.text; fabricscope status -o json > $out/status.json

start_agent 'counters.every = "1s"' || exit 1
flap() {
    for count in $(seq $1); do
        nic 0 link 'carrier 0'; until_true '[ "$(cat /sys/class/net/fsnic0/carrier)" = 0 ]'
        nic 0 link 'carrier 1'; until_true '[ "$(cat /sys/class/net/fsnic0/carrier)" = 1 ]'
    done
}
changes() { echo $(($(cat /sys/class/net/fsnic0/carrier_$1_count) + $2)); }
told() { holds "fabricscope_nic_carrier_$1_events_total{netdev=\"fsnic0\"}" "== $2"; }
downs=$(changes down 0) ups=$(changes up 0)
until_true 'told down $downs && told up $ups' || echo 'no link' >&2
that_page before.metrics
# The adapter has no count of its own, which would come first.
nic 0 ethtool 'hide link_down_events_phy'; nic 0 link 'hide link_down_events'
fabricscope counters --device fsnic0 --watch --interval 200ms --all -o json > /run/links.json 2> $out/links.log & reader=$!
until_true '[ -s /run/links.json ]'
downs=$(changes down 5) ups=$(changes up 5)
flap 5
# A reading may fall between the last two.
until_true 'told down $downs && told up $ups' || echo 'links missed' >&2
that_page after.metrics
lines=$(($(wc -l < /run/links.json) + 8)); until_true '[ $(wc -l < /run/links.json) -ge $lines ]'
kill $reader; wait $reader; cp /run/links.json $out
fabricscope counters --device fsnic0 --interval 100ms > $out/links.text
# More messages than there is room for, while nobody takes them.
fabricscope counters --device fsnic0 --watch --interval 200ms --all -o json > /run/flood.json 2> $out/flood.log & reader=$!
until_true '[ -s /run/flood.json ]'
kill -STOP $reader
ip link add d0 type dummy; for count in $(seq 400); do echo "link set d0 mtu $((1000 + count))"; done | ip -batch -; ip link del d0
flap 3
kill -CONT $reader
lines=$(($(wc -l < /run/flood.json) + 4)); until_true '[ $(wc -l < /run/flood.json) -ge $lines ]'
kill $reader; wait $reader; cp /run/flood.json $out

modprobe bonding max_bonds=0 && ip link add bond0 type bond && ip link set fsnic0 down && ip link set fsnic0 master bond0 && ip link set bond0 up
ours bond
until_true "scrape /metrics > /run/page; grep -q 'nic_info.*netdev=\"fsnic0\".*bond=\"bond0\"' /run/page" 90 || echo 'no bond' >&2
that_page bond.metrics
ip link set fsnic0 nomaster; ip link del bond0; ip link set fsnic0 up
nic 0 hw_counters 'np_cnp_sent 1000'
nic_reload 0; until_true '[ -d /sys/class/infiniband/mlx5_0 ]'; nic 0 hw_counters 'np_cnp_sent 3'
until_true "holds 'fabricscope_rdma_cnp_sent_packets_total{device=\"mlx5_0\",port=\"1\"}' '== 3'" || echo 'not read again' >&2
that_page reloaded.metrics

rdma system set netns exclusive || exit 1
ip netns add blue && ip netns add green && rdma dev set mlx5_0 netns blue && rdma dev set mlx5_1 netns green || exit 1
ls /sys/class/infiniband > $out/own
nic 0 hw_counters 'np_cnp_sent 71'; nic 1 hw_counters 'np_cnp_sent 72' 'ramp out_of_sequence 1'
ours namespaces
fabricscope counters --interval 100ms > $out/namespaces.text
until_true "holds 'fabricscope_rdma_cnp_sent_packets_total{device=\"mlx5_0\",port=\"1\"}' '== 71'" 90 || echo 'not read elsewhere' >&2
until_true "holds 'fabricscope_rdma_cnp_sent_packets_total{device=\"mlx5_1\",port=\"1\"}' '== 72'" 90 || echo 'not read elsewhere' >&2
that_page namespaces.metrics
# Nobody holds the namespaces: their devices come back.
ip netns del blue; ip netns del green
until_true '[ -d /sys/class/infiniband/mlx5_0 -a -d /sys/class/infiniband/mlx5_1 ]'; echo $? > $out/back
ours back
end_agent
dmesg > $out/dmesg
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(420),
};

fn record(run: &Run, when: &str) -> Value {
    run.lines(&format!("{when}.json")).unwrap().remove(0)
}

fn device<'a>(record: &'a Value, name: &str) -> &'a Value {
    let mut devices = record["devices"].as_array().unwrap().iter();
    devices.find(|device| device["name"] == name).expect(name)
}

/// The value and source of a counter.
fn counter<'a>(record: &'a Value, name: &str, of: &str) -> Option<(u64, &'a str)> {
    let counters = device(record, name)["counters"].as_array().unwrap();
    let found = counters.iter().find(|counter| counter["name"] == of)?;
    Some((found["value"].as_u64().unwrap(), found["source"].as_str().unwrap()))
}

fn metric(run: &Run, when: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    sum(&run.output().unwrap().file(&format!("{when}.metrics")).unwrap(), name, labels)
}

/// What the kernel defines is taken before the driver's own names, group by group, and each fails alone.
#[track_caller]
pub(crate) fn standard(run: &Run) {
    let kept = record(run, "standard");
    let standard = |value| Some((value, "ethtool_standard"));
    for (name, expected) in [
        ("nic_sent_pause_frames", standard(21)),
        ("nic_received_pause_frames", standard(22)),
        ("nic_fec_block_correction_events", standard(31)),
        ("nic_fec_uncorrected_events", standard(32)),
        ("nic_fec_correction_events", standard(33)),
        ("nic_symbol_error_packets", standard(41)),
        // What 6.1 has no place for is the driver's.
        ("nic_link_down_events", if run.kernel() == "6.1" { Some((0, "ethtool")) } else { standard(51) }),
        ("nic_crc_error_packets", Some((9, "ethtool"))),
        ("pfc_received_pause_frames", Some((10, "ethtool"))),
    ] {
        assert_eq!(counter(&kept, "fsnic0", name), expected, "{name} on {}", run.kernel());
    }
    assert!(device(&kept, "fsnic0")["failures"].is_null(), "{kept:#}");
    let failing = record(run, "failing");
    let of = |name| counter(&failing, "fsnic0", name);
    assert_eq!((of("nic_fec_block_correction_events"), of("nic_fec_uncorrected_events")), (None, Some((0, "ethtool"))));
    assert_eq!((of("nic_sent_pause_frames"), of("nic_symbol_error_packets")), (standard(21), standard(41)));
    assert_eq!(device(&failing, "fsnic0")["failures"][0]["reason"], "eio", "{failing:#}");
    let hidden = record(run, "hidden");
    let of = |name| counter(&hidden, "fsnic0", name);
    assert_eq!((of("nic_received_pause_frames"), of("nic_sent_pause_frames")), (Some((7, "ethtool")), standard(21)));
    assert_eq!(of("nic_symbol_error_packets"), Some((8, "ethtool")));
    let blocks = [("netdev", "fsnic0")];
    assert_eq!(metric(run, "before", "fabricscope_nic_fec_block_correction_events_total", &blocks), Some(31.0));
    assert_eq!(metric(run, "before", "fabricscope_nic_received_pause_frames_total", &blocks), Some(22.0));
}

/// A counter that has no file is there once it is switched on, and no sooner.
#[track_caller]
pub(crate) fn optional(run: &Run) {
    let marked = "rdma_ecn_marked_packets";
    let [off, on] = ["standard", "optional"].map(|when| record(run, when));
    assert_eq!(counter(&off, "mlx5_0", marked), Some((0, "rdma_netlink")));
    let raw: Vec<Value> = run.lines("raw.json").unwrap();
    let shown = raw.iter().find(|shown| shown["name"] == "cc_rx_ce_pkts").expect("it is on");
    assert_eq!((&shown["value"], &shown["counter"]), (&Value::from(63), &Value::from(marked)), "{shown}");
    // The adapter's other count of the same comes first.
    assert_eq!(counter(&on, "mlx5_0", marked), Some((0, "rdma_netlink")));
}

/// What somebody has bound to queue pairs is told set by set, as `rdma` tells it, and counts for the port too.
#[track_caller]
pub(crate) fn bound(run: &Run) {
    let sets = |when| record(run, when)["queue_pairs"].as_array().cloned().unwrap_or_default();
    assert!(sets("unbound").is_empty());
    let theirs: Vec<Value> = serde_json::from_str(&run.output().unwrap().file("rdma.json").unwrap()).unwrap();
    let ours = sets("bound");
    assert_eq!((ours.len(), theirs.len()), (2, 2), "{theirs:#?}");
    for (our, number) in ours.iter().zip([17, 18]) {
        let their = theirs.iter().find(|their| their["cntn"] == number).expect("a set");
        assert_eq!((&our["device"], &our["port"], &our["set"]), (&"mlx5_0".into(), &1.into(), &number.into()));
        assert_eq!(our["queue_pairs"], Value::from(vec![number]), "{their:#}");
        let values = our["counters"].as_array().unwrap();
        for (name, expected) in [("out_of_sequence", 5), ("duplicate_request", 3), ("rnr_nak_retry_err", 0)] {
            let value = values.iter().find(|value| value["name"] == name).expect(name);
            assert_eq!((&value["value"], &their[name]), (&expected.into(), &expected.into()), "{name} of {number}");
        }
    }
    let of_port = |when| counter(&record(run, when), "mlx5_0", "rdma_out_of_sequence_packets").map(|(value, _)| value);
    assert_eq!(of_port("bound"), Some(7 + 5 + 5));
    let text = run.output().unwrap().file("bound.text").unwrap();
    assert!(text.contains("mlx5_0 port 1, counter set 17 of queue pairs 17"), "{text}");
    // What a set counted before it went stays with the port.
    let left: Vec<Value> = sets("unbound_again").iter().map(|set| set["set"].clone()).collect();
    assert_eq!((left, of_port("unbound_again")), (vec![18.into()], Some(17)));
}

/// As devlink's own tool shows them, in JSON, in words and as metrics.
#[track_caller]
pub(crate) fn reporters(run: &Run) {
    let output = run.output().unwrap();
    let theirs: Value = serde_json::from_str(&output.file("devlink.json").unwrap()).unwrap();
    let record = record(run, "reporters");
    let ours = record["health_reporters"].as_array().unwrap();
    assert_eq!(ours.len(), 2, "{record:#}");
    for reporter in ours {
        let name = reporter["device"].as_str().unwrap();
        let own = &theirs["health"][format!("platform/{name}")][0];
        assert_eq!((&reporter["errors"], &reporter["recoveries"]), (&own["error"], &own["recover"]), "{own}");
        assert_eq!(reporter["healthy"], own["state"] == "healthy", "{own}");
    }
    let text = output.file("reporters.text").unwrap();
    assert!(text.contains("platform/fsnic.1: the health reporter fw is in error"), "{text}");
    assert!(text.contains("platform/fsnic.0 fw: healthy, 3 errors, 3 recoveries"), "{text}");
    let status = output.file("status.text").unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains("reporters platform/fsnic.0 fw: healthy, 3 errors, 3 recoveries"), "{status}");
    assert_eq!(self::record(run, "status")["health_reporters"], record["health_reporters"]);
    let of = |name: &str, pci: &str| metric(run, "before", name, &[("pci", pci), ("reporter", "fw")]);
    for (name, first, second) in [("errors_total", 3.0, 1.0), ("recoveries_total", 3.0, 0.0), ("healthy", 1.0, 0.0)] {
        let name = format!("fabricscope_health_reporter_{name}");
        assert_eq!((of(&name, "fsnic.0"), of(&name, "fsnic.1")), (Some(first), Some(second)), "{name}");
    }
    assert_eq!(of("fabricscope_health_reporter_dump_time_seconds", "fsnic.0"), None, "it keeps no dump");
}

/// As often as it went and came, to the one; when; and that it does so too often.
#[track_caller]
pub(crate) fn links(run: &Run) {
    for name in ["nic_carrier_down_events", "nic_carrier_up_events"] {
        let of = |when| metric(run, when, &format!("fabricscope_{name}_total"), &[("netdev", "fsnic0")]).unwrap();
        assert_eq!(of("after") - of("before"), FLAPS as f64, "{name} on {}", run.kernel());
    }
    let records: Vec<Value> = run.lines("links.json").unwrap();
    let increase = |name: &str| -> u64 {
        let of = |record: &Value| {
            let counters = device(record, "fsnic0")["counters"].as_array().unwrap();
            counters.iter().find(|counter| counter["name"] == name).and_then(|counter| counter["increase"].as_u64())
        };
        records.iter().filter_map(of).sum()
    };
    assert_eq!((increase("nic_carrier_down_events"), increase("nic_carrier_up_events")), (FLAPS, FLAPS));
    assert_eq!(increase("nic_carrier_change_events"), 2 * FLAPS);
    let last = records.last().unwrap();
    let changes = device(last, "fsnic0")["link_changes"].as_array().unwrap();
    let sum = |of: &str| -> u64 { changes.iter().map(|change| change[of].as_u64().unwrap()).sum() };
    assert_eq!((sum("downs"), sum("ups")), (FLAPS, FLAPS), "{changes:?}");
    assert!(changes.is_sorted_by_key(|change| change["time_ns"].as_i64()), "{changes:?}");
    assert_eq!(changes.last().unwrap()["up"], true, "{changes:?}");
    let flap = last["findings"].as_array().unwrap().iter().find(|finding| finding["detector"] == "link_flap");
    let flap = flap.expect("a link that flaps is found");
    assert!(flap.to_string().contains("went down 5 times"), "{flap}");
    let nothing = run.output().unwrap().file("links.text").unwrap();
    assert!(!nothing.contains("went down"), "who has just begun to listen knows of no change: {nothing}");
}

/// Messages that find no room cost the times of the changes in them, and no change.
#[track_caller]
pub(crate) fn flooded(run: &Run) {
    let records: Vec<Value> = run.lines("flood.json").unwrap();
    let changes = device(records.last().unwrap(), "fsnic0")["link_changes"].as_array().unwrap();
    let sum = |of: &str| -> u64 { changes.iter().map(|change| change[of].as_u64().unwrap()).sum() };
    assert_eq!((sum("downs"), sum("ups")), (3, 3), "{changes:?} on {}", run.kernel());
    assert!(changes.len() < 6, "there was room for all messages: {changes:?}");
}

/// A member names its bond and the bond its members.
#[track_caller]
pub(crate) fn bonds(run: &Run) {
    let record = record(run, "bond");
    assert_eq!(device(&record, "fsnic0")["bond"], "bond0", "{record:#}");
    assert_eq!(device(&record, "fsnic1")["bond"], Value::Null, "{record:#}");
    let info = |netdev, bond| metric(run, "bond", "fabricscope_nic_info", &[("netdev", netdev), ("bond", bond)]);
    assert_eq!((info("fsnic0", "bond0"), info("fsnic1", "bond0")), (Some(1.0), None));
}

/// A driver that comes again is read again, from its new beginning.
#[track_caller]
pub(crate) fn reloaded(run: &Run) {
    let labels = [("device", "mlx5_0"), ("port", "1")];
    assert_eq!(metric(run, "reloaded", "fabricscope_rdma_cnp_sent_packets_total", &labels), Some(3.0));
    let info = [("device", "mlx5_0"), ("driver", "mlx5_ib"), ("pci", "fsnic.0")];
    assert_eq!(metric(run, "reloaded", "fabricscope_nic_info", &info), Some(1.0));
}

/// Devices that only other namespaces see are read, named as such, and not kept from coming back.
#[track_caller]
pub(crate) fn namespaces(run: &Run) {
    let output = run.output().unwrap();
    assert!(!output.file("own").unwrap().contains("mlx5_"), "they are hidden");
    let record = record(run, "namespaces");
    for (name, namespace, value) in [("mlx5_0", "blue", 71), ("mlx5_1", "green", 72)] {
        assert_eq!(device(&record, name)["namespace"], namespace, "{record:#}");
        assert_eq!(device(&record, name)["driver"], "mlx5_ib", "{record:#}");
        assert_eq!(counter(&record, name, "rdma_cnp_sent_packets"), Some((value, "rdma_netlink")), "{record:#}");
        let labels = [("device", name), ("port", "1")];
        let served = metric(run, "namespaces", "fabricscope_rdma_cnp_sent_packets_total", &labels);
        assert_eq!(served, Some(value as f64), "{name} on {}", run.kernel());
        let info = [("device", name), ("namespace", namespace)];
        assert_eq!(metric(run, "namespaces", "fabricscope_nic_info", &info), Some(1.0), "{name}");
    }
    assert!(record["closed_namespaces"].is_null(), "{record:#}");
    let text = output.file("namespaces.text").unwrap();
    assert!(text.contains("mlx5_1 port 1, in another network namespace (green), mlx5_ib"), "{text}");
    assert_eq!(output.file("back").unwrap().trim(), "0", "a namespace was held");
    let back = self::record(run, "back");
    assert_eq!(device(&back, "mlx5_1")["namespace"], Value::Null, "{back:#}");
    assert_eq!(output.file("agent.status").unwrap().trim(), "0");
    let words = output.file("dmesg").unwrap();
    assert!(["WARNING", "BUG", "Oops", "leak"].iter().all(|word| !words.contains(word)), "{words}");
}
