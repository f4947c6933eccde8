//! Counters of soft-RoCE on real kernels: the same as sysfs and `rdma statistic` show, and what known traffic adds.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tests::scenario::{Run, Scenario};

/// Messages each way.
const MESSAGES: u64 = 200;

/// The readings before and after have nothing going on beside them; the one in between runs over the traffic.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "counters",
    script: r#"sysfs() {
    for file in /sys/class/infiniband/$device/ports/1/hw_counters/*; do
        [ "${file##*/}" = lifespan ] || echo "${file##*/} $(cat $file)"
    done > $out/$1.sysfs
    fabricscope counters --device $device --raw -o json > $out/$1.raw
    rdma -j statistic show link $device/1 > $out/$1.rdma
}
pingpong() {
    ibv_rc_pingpong -d $peer -g $peer_gid -n 200 > $out/$1.server 2>&1 & server=$!
    until_true "ss -Htln 'sport = :18515' | grep -q ." || echo "$1: no server" >&2
    ibv_rc_pingpong -d $device -g $gid -n 200 127.0.0.1 > $out/$1.client 2>&1 || echo "$1 failed" >&2
    wait $server
}
pingpong warm
sysfs before
fabricscope counters --device $device --watch --interval 1s --all -o json > /run/moving.json & reader=$!
until_true '[ -s /run/moving.json ]'
pingpong moved
# The interval in which it ended is over one line later.
lines=$(($(wc -l < /run/moving.json) + 2))
until_true '[ $(wc -l < /run/moving.json) -ge $lines ]'
kill $reader; wait $reader; cp /run/moving.json $out
sysfs after
fabricscope counters --all --interval 10ms -o json > $out/everything.json
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(300),
};

fn raw(run: &Run, when: &str) -> Vec<Value> {
    run.lines(&format!("{when}.raw")).unwrap()
}

/// What is read by netlink is what the files say.
#[track_caller]
pub(crate) fn same_as_sysfs(run: &Run) {
    for when in ["before", "after"] {
        let files = run.output().unwrap().file(&format!("{when}.sysfs")).unwrap();
        let files: BTreeMap<&str, u64> =
            files.lines().filter_map(|line| line.split_once(' ')).map(|(n, v)| (n, v.parse().unwrap())).collect();
        assert!(files.len() >= 15, "{files:?}");
        let found = raw(run, when);
        let found: BTreeMap<&str, u64> = found
            .iter()
            .filter(|shown| shown["source"] == "rdma_netlink")
            .map(|shown| (shown["name"].as_str().unwrap(), shown["value"].as_u64().unwrap()))
            .collect();
        assert_eq!(found, files, "{when} on {}", run.kernel());
        // Nothing the driver shows is unknown here.
        let unknown: Vec<Value> = raw(run, when)
            .into_iter()
            .filter(|shown| shown["source"] == "rdma_netlink" && shown["counter"].is_null())
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

/// The increases of all intervals are the difference of the readings around them, and what the program says it sent.
#[track_caller]
pub(crate) fn known_traffic(run: &Run) {
    let records: Vec<Value> = run.lines("moving.json").unwrap();
    let increase = |name: &str| -> u64 {
        let of = |record: &Value| {
            let counters = record["devices"][0]["counters"].as_array().unwrap();
            let found = counters.iter().find(|counter| counter["name"] == name);
            found.and_then(|counter| counter["increase"].as_u64()).expect(name)
        };
        records.iter().map(of).sum()
    };
    let of = |when: &str, name: &str| {
        let found = raw(run, when).into_iter().find(|shown| shown["name"] == name).unwrap();
        found["value"].as_u64().unwrap()
    };
    for (ours, theirs) in [("rdma_sent_packets", "sent_pkts"), ("rdma_received_packets", "rcvd_pkts")] {
        assert_eq!(increase(ours), of("after", theirs) - of("before", theirs), "{ours} on {}", run.kernel());
        assert!(increase(ours) >= MESSAGES, "{ours}: {}", increase(ours));
    }
}

/// Network devices of this kernel are read beside the RDMA devices, and none of them answers with errors.
#[track_caller]
pub(crate) fn network_devices(run: &Run) {
    let record: Value = serde_json::from_str(&run.output().unwrap().file("everything.json").unwrap()).unwrap();
    let devices = record["devices"].as_array().unwrap();
    let of = |kind: &str| devices.iter().filter(|device| device["kind"] == kind).count();
    assert!(of("rdma") >= 2 && of("netdev") >= 1, "{record:#}");
    for device in devices {
        assert!(device["failures"].is_null() && device["quarantined"].is_null(), "{device:#}");
    }
}
