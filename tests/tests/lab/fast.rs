//! Counters sampled down to a millisecond, from a NIC whose pause grows on the kernel's clock: what is measured is what
//! was set, and it is finer than what sysfs shows.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use tests::duckdb;
use tests::scenario::{Run, Scenario};

/// Pause for 990 us of each millisecond, then a source that is slow, then one that goes and comes back.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "fast",
    script: r#"give_up() { echo "$1" >&2; tail -n 5 $out/agent.words >&2; scrape /metrics | grep nic_sample >&2; exit 1; }
# Few, so that a reading is cheap on a slow machine too.
nic_load hw_names=rp_cnp_ignored,rp_cnp_handled,np_ecn_marked_roce_packets,np_cnp_sent || give_up 'no device'
dcb pfc set dev fsnic0 prio-pfc all:off 3:on || give_up 'no flow control'
readings() { scrape /metrics | awk -v name="fabricscope_nic_sample_readings_total{device=\"$1\"" 'index($0, name) == 1 { print $NF }'; }
# So many readings more of both sources.
more() {
    netdev_until=$(($(readings fsnic0) + $1)) port_until=$(($(readings mlx5_0) + $1))
    until_true '[ $(readings fsnic0) -ge $netdev_until ] && [ $(readings mlx5_0) -ge $port_until ]' 60
}
# What sysfs shows: as many values as are different in two seconds. By itself: readings by netlink refresh what it keeps.
nic 0 hw_counters 'ramp np_cnp_sent 100'
python3 -c 'import time
end = time.monotonic() + 2; seen = set()
while time.monotonic() < end:
    seen.add(open("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent").read())
print(len(seen) / 2)' > $out/sysfs.per_second
start_agent 'verbs.enabled = false' '[bursts]' 'netdevs = ["fsnic0"]' 'directory = "/run/samples"' \
    '[counters]' 'devices = "fsnic0 mlx5_0"' 'fast = ["pause", "congestion"]' 'fast_interval = "1ms"' || give_up 'no agent'
until_true '[ "$(readings fsnic0)" -gt 50 ] && [ "$(readings mlx5_0)" -gt 50 ]' || give_up 'not sampled'
nic 0 ethtool 'ramp tx_prio3_pause_duration 990' 'ramp rx_prio3_pause_duration 250'
nic 0 hw_counters 'ramp np_cnp_sent 100'
more 20
until_true "holds 'fabricscope_nic_sample_pace_seconds{device=\"mlx5_0\"' '<= 0.008'" 60
from=$(date -u '+%F %T.%N'); more 200 || give_up 'too slow'; to=$(date -u '+%F %T.%N')
echo "$from" > $out/from; echo "$to" > $out/to
scrape /metrics > $out/metrics
fabricscope bursts show --last 60s --netdev fsnic0 --from "$from" --to "$to" -o json > $out/live.json
fabricscope bursts show --last 60s --netdev fsnic0 --plot > $out/live.text
nic 0 ethtool 'ramp tx_prio3_pause_duration 0' 'ramp rx_prio3_pause_duration 0'; nic 0 hw_counters 'ramp np_cnp_sent 0'
fabricscope bursts record --netdev fsnic0 --interval 10ms --samples 20 --counters pause --counters-interval 5ms --output $out/run.parquet > $out/run.words 2>&1
nic 0 ethtool 'delay 20000'
until_true 'fabricscope status | tee $out/slow.status | grep -q "counters of fsnic0 (ethtool) are read each"' 60
nic 0 ethtool 'delay 0'
nic_reload 0
until_true '[ $(grep -c "counters of fsnic0 (ethtool) are sampled:" $out/agent.words) -ge 2 ]'
end_agent
cp /run/samples/*.parquet $out/; ls $out > $out/list
fabricscope bursts show $out/*fsnic0*.parquet --svg $out/pause.svg --plot > $out/files.text
fabricscope bursts show $out/*fsnic0*.parquet $out/*mlx5_0*.parquet --from "$from" --to "$to" -o json > $out/files.json
exit 0
"#,
    modules: true,
    processors: 2,
    limit: Duration::from_secs(300),
};

fn json(run: &Run, file: &str) -> Value {
    serde_json::from_str(&run.output().unwrap().file(file).unwrap()).unwrap()
}

/// The share of the time in which priority 3 was paused, and the source's samples.
fn share(found: &Value, direction: &str) -> f64 {
    let rows = found["pause"].as_array().unwrap();
    let row = rows.iter().find(|row| row["direction"] == direction && row["priority"] == 3);
    row.unwrap_or_else(|| panic!("no {direction} pause in {found}"))["share"].as_f64().unwrap()
}

/// What was set is what is measured, from memory and from files, in JSON and in the picture.
#[track_caller]
pub(crate) fn occupancy(run: &Run) {
    for file in ["live.json", "files.json"] {
        let found = json(run, file);
        let (tx, rx) = (share(&found, "tx"), share(&found, "rx"));
        println!("{}: {file}: tx {tx:.4}, rx {rx:.4}", run.kernel());
        assert!((0.98..=1.0).contains(&tx), "tx pause for {tx} of the time in {file} on {}", run.kernel());
        assert!((0.245..=0.255).contains(&rx), "rx pause for {rx} of the time in {file} on {}", run.kernel());
    }
    let output = run.output().unwrap();
    let picture = output.file("pause.svg").unwrap();
    let words = [
        "rx pause: the network cannot take what this host sends",
        "tx pause: this host cannot take what the network sends",
        "priority 3",
    ];
    for words in words {
        assert!(picture.contains(words), "the picture does not say {words}");
        assert!(output.file("live.text").unwrap().contains(words), "the plot does not say {words}");
    }
}

/// Other programs read it, and it is finer than sysfs: so many values in a second.
#[track_caller]
pub(crate) fn finer_than_sysfs(run: &Run) {
    let output = run.output().unwrap();
    let of = |start: &str| {
        let entries = fs::read_dir(&output.out).unwrap().map(|entry| entry.unwrap().path());
        let found = entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(start));
        let files: Vec<String> = found.map(|path| format!("'{}'", path.display())).collect();
        assert!(!files.is_empty(), "no file {start}");
        format!("read_parquet([{}], union_by_name = true)", files.join(", "))
    };
    let one = |select: &str, from: &str| {
        let rows = duckdb::query(&format!("select {select} from {from} where {}", within(run))).unwrap();
        rows[0][0].as_f64().unwrap()
    };
    let pause = of("counters-ethtool-fsnic0-");
    let share = one("sum(pfc_sent_pause_microseconds_prio3) * 1000.0 / sum(length_ns)", &pause);
    let (pauses, seconds) = (one("count(*)", &pause), one("sum(length_ns) / 1e9", &pause));
    let port = of("counters-rdma_netlink-mlx5_0.1-");
    let cnps = one("count(*) * 1e9 / sum(length_ns)", &port);
    let sysfs: f64 = output.file("sysfs.per_second").unwrap().trim().parse().unwrap();
    println!(
        "{}: pause {share:.4} in {:.0} samples a second, CNPs in {cnps:.0} a second; sysfs {sysfs:.0} a second",
        run.kernel(),
        pauses / seconds
    );
    assert!((0.98..=1.0).contains(&share), "{share} on {}", run.kernel());
    // sysfs keeps them for 10 ms: it can show no two values that are closer, however quick the machine is.
    assert!(sysfs <= 100.0, "{sysfs} on {}", run.kernel());
    let finest = one("min(length_ns) / 1e6", &port);
    assert!(finest < 10.0, "the finest sample took {finest} ms on {}", run.kernel());
    let step = one("median(rdma_cnp_sent_packets * 1e6 / length_ns)", &port);
    assert!((95.0..=105.0).contains(&step), "{step} a millisecond on {}", run.kernel());
}

/// The time in which the pause was the same from end to end.
fn within(run: &Run) -> String {
    let time = |file: &str| run.output().unwrap().file(file).unwrap().trim().to_owned();
    format!("time >= '{}+00'::timestamptz and time < '{}+00'::timestamptz", time("from"), time("to"))
}

/// A slow source is read more seldom, which the status says; one that went is sampled again; a run has its counters.
#[track_caller]
pub(crate) fn told(run: &Run) {
    let output = run.output().unwrap();
    let status = output.file("slow.status").unwrap();
    assert!(status.contains("counters of fsnic0 (ethtool) are read each"), "{status}");
    let metrics = output.file("metrics").unwrap();
    for name in ["pace_seconds", "readings_total", "read_seconds_total"] {
        let series = format!("fabricscope_nic_sample_{name}{{device=\"fsnic0\",source=\"ethtool\"}}");
        assert!(metrics.contains(&series), "no {series}");
    }
    let words = output.file("agent.words").unwrap();
    assert!(!words.contains("panicked"), "{words}");
    let list = output.file("list").unwrap();
    assert!(
        list.contains("run.parquet") && list.contains("run.ethtool.parquet"),
        "{list}\n{}",
        output.file("run.words").unwrap()
    );
}
