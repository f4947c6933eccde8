//! The packaged service under systemd: as shipped it does all that it does as root without systemd, is refused when its
//! configuration is broken, comes back when it was killed, and leaves nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use tests::command::workspace;
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};

/// What is shipped.
const FILES: [&str; 2] = ["fabricscope.service", "agent.toml"];

/// How much `systemd-analyze security` may find exposed, of 10, in tenths.
const EXPOSURE_MAX: u32 = 33;

/// How wrong the clock of the machine is said to be.
const CLOCK_ERROR_US: u64 = 2_000_000;

/// Its share of a processor is little under emulation, hence the long waits.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "unit",
    script: r#"programs() { bpftool -j prog list | jq -r '.[] | .type + " " + (.name // "")' | grep -v cgroup | sort; }
probes() { sort /sys/kernel/tracing/kprobe_events /sys/kernel/tracing/uprobe_events; }
pins() { find /sys/fs/bpf /run/fabricscope; }
filters() { for netdev in $(ls /sys/class/net); do tc qdisc show dev $netdev; tc filter show dev $netdev egress; done; }
# The kernel frees some programs a little after their end.
gone() { until_true '! bpftool prog list | grep -q "name fs_"'; }
note() { for kind in programs probes pins filters; do $kind; done > $out/$1.left 2>&1; }
hooks() { fabricscope hooks --json | jq -c '[.hook, .state, .attach, .function, .module]' > $out/$1.hooks; }
journal() { journalctl --sync; journalctl -u fabricscope -o cat; }
property() { systemctl show --property $1 --value fabricscope; }
sampled() { holds "fabricscope_netdev_sampled{netdev=\"$1\"}" '== 1'; }
reads() { holds 'fabricscope_rdma_sent_packets_total{device="mlx5_1"' '>= 0'; }
works() {
    until_true 'sampled fsnic0 && sampled fsnic1 && reads && scrape /healthz | grep -q "200 OK"' 60 || { echo "$1 does not work" >&2; journal >&2; }
    hooks $1; scrape /metrics > $out/$1.metrics
}
nic_load || exit 1
# Somebody keeps the clock.
python3 -c 'import ctypes
t = (ctypes.c_long * 26)(); t[0], t[3] = 0x14, 2000000; assert ctypes.CDLL(None).adjtimex(t) >= 0' || exit 1
# As the README installs it; a link, since a copy would lie in this machine's memory.
ln -s /mnt/bin/fabricscope /usr/bin/
install -D -m 644 $out/agent.toml /etc/fabricscope/agent.toml
install -m 644 $out/fabricscope.service /etc/systemd/system/
systemctl daemon-reload
systemd-analyze verify /etc/systemd/system/fabricscope.service > $out/verify 2>&1; echo $? >> $out/verify
systemd-analyze security fabricscope > $out/security 2>&1
note before
fabricscope agent --config /etc/fabricscope/agent.toml > $out/root.stdout 2> $out/root.words & agent=$!
works root
kill $agent; wait $agent

systemctl start fabricscope; echo $? > $out/started
hooks started
works unit
property ActiveState >> $out/started
note works
fabricscope status -o json > $out/status.json
$workload storm $device 1 20 > $out/storm
until_true "holds 'fabricscope_verbs_failures_total{device=\"$device\",verb=\"reg_mr\"}' '>= 20'" 60 || echo 'not counted' >&2
until_true "journal | grep '^{' > $out/failures" 60 || echo 'not in the journal' >&2
ibv_rc_pingpong -d $peer -g $peer_gid -n 20 > $out/server 2>&1 & server=$!
until_true "ss -Htln 'sport = :18515' | grep -q ." || echo "no server" >&2
ibv_rc_pingpong -d $device -g $gid -n 20 127.0.0.1 > $out/client 2>&1
wait $server
until_true "holds 'fabricscope_rdma_sent_packets_total{device=\"$device\"' '> 20'" 60 || echo 'no rxe counters' >&2
fabricscope bursts show --last 60s --netdev fsnic0 -o json > $out/samples.json
rdma system set netns exclusive && ip netns add green && rdma dev set mlx5_1 netns green || exit 1
nic 1 hw_counters 'np_cnp_sent 72'
until_true "holds 'fabricscope_rdma_cnp_sent_packets_total{device=\"mlx5_1\",port=\"1\"}' '== 72'" 40 || echo 'not read elsewhere' >&2
that_page used.metrics
for name in MemoryCurrent CPUUsageNSec NRestarts; do echo $name $(property $name); done > $out/cost
ip netns del green; until_true '[ -d /sys/class/infiniband/mlx5_1 ]'; rdma system set netns shared

# By its number: `systemctl kill` ends the whole cgroup by a way after which 6.1 starts nothing in it.
kill -9 $(property MainPID)
until_true '[ "$(property NRestarts)" = 1 ]' 60 || echo 'not restarted' >&2
journal > $out/killed.journal
works again
systemctl stop fabricscope; property Result > $out/stopped; property ActiveState >> $out/stopped
gone; note stopped

printf '%s\n' 'colour = "blue"' 'bursts.interval = "1s"' > /etc/fabricscope/agent.toml
systemctl start fabricscope 2> $out/broken.words; echo $? > $out/broken
journal > $out/broken.journal
systemctl stop fabricscope
gone; note broken
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(900),
};

/// The files of the package, for a machine of the lab.
pub(crate) fn files(_kernel: &str) -> Result<Vec<PathBuf>> {
    Ok(FILES.map(|file| workspace().join("deploy").join(file)).into())
}

fn file(run: &Run, name: &str) -> String {
    run.output().unwrap().file(name).unwrap()
}

/// The unit is well-formed, and takes away what it takes away.
#[track_caller]
pub(crate) fn form(run: &Run) {
    assert_eq!(file(run, "verify"), "0\n");
    let security = file(run, "security");
    let score = security.split("exposure level for fabricscope.service: ").nth(1).unwrap();
    let score = score.split(' ').next().unwrap().replace('.', "");
    assert!(score.parse::<u32>().unwrap() <= EXPOSURE_MAX, "{security}");
}

/// Hooks attach as they do for root without systemd, all of them by the time when the service counts as started, and
/// come back the same after a kill.
#[track_caller]
pub(crate) fn hooks(run: &Run) {
    assert_eq!(file(run, "started"), "0\nactive\n");
    let root = file(run, "root.hooks");
    assert!(root.lines().filter(|hook| hook.contains("\"attached\"")).count() > 50, "{root}");
    for when in ["started", "unit", "again"] {
        assert_eq!(root, file(run, &format!("{when}.hooks")), "{when}");
    }
    let status: Value = serde_json::from_str(&file(run, "status.json")).unwrap();
    assert_eq!((&status["running"], &status["agent"]["degraded"]), (&true.into(), &Value::Array(vec![])), "{status}");
}

/// What is measured as root is measured by the service.
#[track_caller]
pub(crate) fn measured(run: &Run) {
    let names = |when: &str| -> BTreeSet<String> {
        let page = file(run, &format!("{when}.metrics"));
        let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let (root, unit) = (names("root"), names("used"));
    assert!(root.len() > 30, "{root:?}");
    assert_eq!(root.difference(&unit).collect::<Vec<_>>(), Vec::<&String>::new());
    let page = file(run, "used.metrics");
    let of = |name: &str, labels: &[(&str, &str)]| sum(&page, name, labels);
    assert_eq!(of("fabricscope_verbs_failures_total", &[("device", "rxe0"), ("verb", "reg_mr")]), Some(20.0));
    assert!(of("fabricscope_rdma_sent_packets_total", &[("device", "rxe0")]) > Some(20.0));
    // In a network namespace of its own by then.
    let labels = [("device", "mlx5_1"), ("namespace", "green")];
    assert_eq!(of("fabricscope_nic_info", &labels), Some(1.0), "{page}");
    let samples: Value = serde_json::from_str(&file(run, "samples.json")).unwrap();
    assert!(samples["clock_error_ns"].as_u64() >= Some(CLOCK_ERROR_US * 1_000), "{samples}");
}

/// A failure is one line of JSON in the journal.
#[track_caller]
pub(crate) fn failures(run: &Run) {
    let failures: Vec<Value> = run.lines("failures").unwrap();
    let expected = (&"reg_mr".into(), &"rxe0".into(), &"workload".into());
    assert_eq!((&failures[0]["verb"], &failures[0]["device"], &failures[0]["comm"]), expected, "{failures:?}");
}

/// What a killed agent leaves goes at once and not at the next start; at the end there is nothing.
#[track_caller]
pub(crate) fn left(run: &Run) {
    let before = file(run, "before.left");
    assert_ne!(before, file(run, "works.left"), "nothing was there to be left");
    assert_eq!(file(run, "stopped"), "success\ninactive\n");
    for when in ["stopped", "broken"] {
        assert_eq!(before, file(run, &format!("{when}.left")), "{when}");
    }
    let journal = file(run, "killed.journal");
    let removed = |what: &str| {
        let line = journal.lines().find_map(|line| line.strip_suffix(what)).unwrap_or_else(|| panic!("{journal}"));
        line.trim().parse::<u32>().unwrap()
    };
    assert!(removed(" kprobe events of dead agents removed") > 0, "{journal}");
    // Links go with their process; filters, which older kernels have in their place, do not.
    let filters = removed(" clsact filters of dead samplers removed");
    assert_eq!(filters > 0, run.kernel() == "6.1", "{journal}");
}

/// A broken configuration is refused before anything is attached, with all that is wrong with it.
#[track_caller]
pub(crate) fn refused(run: &Run) {
    assert_eq!(file(run, "broken"), "1\n", "{}", file(run, "broken.words"));
    let journal = file(run, "broken.journal");
    for problem in ["agent.toml:1: colour is no known key", "agent.toml:2: bursts.interval"] {
        assert!(journal.contains(problem), "{journal}");
    }
}
