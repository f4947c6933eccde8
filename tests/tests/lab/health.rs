//! NICs that are not well and a host that does not keep up: each trouble is made, told, counted, and not told when it
//! was not asked for.

use std::time::Duration;

use tests::event::Notice;
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};

const EVENTS: &str = "fabricscope_health_events_total";
const NAPI: &str = "fabricscope_napi_budget_exhausted_total";
const RESOURCES: &str = "fabricscope_rdma_resources";
const LIMITS: &str = "fabricscope_rdma_resource_limit";
const DROPS: &str = "fabricscope_dropped_packets_total";

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "health",
    script: r#"seen() { grep -q "\"event\":\"$1\"" $out/$2.events; }
send() { python3 -c 'import socket, sys
to = (sys.argv[1], int(sys.argv[2])); s = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(int(sys.argv[3])): s.sendto(b"x", to)' "$@"; }
stall() { nic 0 link 'stuck 1'; send 10.99.0.2 9 1; until_true "$1" 60; nic 0 link 'stuck 0'; }
declare -f seen send stall >> $BASH_ENV
nic_load && nic_apart || exit 1
ping -q -c 1 -W 10 10.99.0.2 > $out/before.ping

trace_of health told -- bash -c "nic_health 0 'firmware is unwell'; nic_health 1 '!firmware is gone'; stall 'seen tx_timeout told'"
trace_of health filtered --device fsnic0 -- bash -c "nic_health 0 'firmware is unwell'; stall 'seen tx_timeout filtered'"
# Traffic, calls that fail and a link that changes are not this.
trace_of health quiet -- bash -c '{ ping -q -c 3 -i 0.2 10.99.0.2; $workload few $device; } > $out/quiet.stdout; ip link set $netdev down; ip link set $netdev up'
insmod $out/mlx5_core.ko || exit 1
trace_of health driver -- bash -c 'for count in 1 2; do echo 1 > /sys/module/mlx5_core/parameters/unwell; done'
rmmod mlx5_core; echo $? > $out/driver.unloaded
trace_of device other -- bash -c "nic_health 0 'firmware is unwell'"

sysctl -q -w kernel.bpf_stats_enabled=1
start_agent 'health.napi = true' 'counters.every = "1s"' || exit 1
scrape /metrics > $out/start.metrics
for count in 1 2 3; do nic_health 0 'firmware is unwell'; done
stall "holds 'fabricscope_health_events_total{device=\"mlx5_0\",netdev=\"fsnic0\",event=\"tx_timeout\"' '>= 1'" || echo 'no timeout' >&2
# An open port takes them, a closed one does not.
python3 -c 'import socket, time
s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("127.0.0.1", 7009)); open("/run/bound", "w"); time.sleep(600)' & open=$!
until_true '[ -e /run/bound ]'
# Those of the open port come first: a page that has the last of the closed one's has had time for them.
dropped='fabricscope_dropped_packets_total{netdev="lo",reason="no_socket"}'
scrape /metrics > $out/open.metrics; send 127.0.0.1 7009 30; send 127.0.0.1 9 50
before=$(awk -v name="$dropped" 'index($0, name) == 1 { print $NF }' $out/open.metrics)
until_true "holds '$dropped' '>= $((before + 50))'" || echo 'too few dropped' >&2
that_page closed.metrics
kill $open
# 200 packets wait for a receiver that takes 64 at a time.
nic 1 link 'hold 1'; send 10.99.0.2 9 200; nic 1 link 'hold 0'
until_true "holds 'fabricscope_napi_budget_exhausted_total{netdev=\"fsnic1\"}' '>= 3'" || echo 'no exhaustion' >&2
ping -q -c 20 -i 0.1 10.99.0.2 > /dev/null
scrape /metrics > $out/end.metrics
until_true 'fabricscope hooks --json > $out/agent.hooks'
# A server that nobody calls holds one of each.
count() { rdma -j resource show | python3 -c 'import json, sys
for device in json.load(sys.stdin):
    for kind, count in device.items():
        if kind not in ("ifindex", "ifname"): print(device["ifname"], kind, count)'; }
until_true "holds 'fabricscope_rdma_resources{device=\"$device\",type=\"qp\"}' '>= 0'" || echo 'no resources' >&2
that_page free.metrics
ibv_rc_pingpong -d $device -g $gid > /dev/null & held=$!
until_true "ss -Htln 'sport = :18515' | grep -q ." || echo 'no server' >&2
more=$(count | awk -v device=$device '$1 == device && $2 == "qp" { print $3 }')
until_true "holds 'fabricscope_rdma_resources{device=\"$device\",type=\"qp\"}' '== $more'" || echo 'not held' >&2
that_page held.metrics; count > $out/held.resources
kill $held
echo "$gid $netdev $address" > $out/gid
end_agent
nic_health 0 'nobody listens'; send 127.0.0.1 9 10
# The kernel frees some of them a little later.
until_true '! bpftool prog list | grep -q "name fs_"'; bpftool prog list | grep -c 'name fs_' > $out/left

start_agent 'health.drops = false' || exit 1
send 127.0.0.1 9 50; nic_health 0 'firmware is unwell'
until_true 'fabricscope hooks --json > $out/few.hooks'; scrape /metrics > $out/few.metrics
end_agent
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(420),
};

#[track_caller]
fn notices(run: &Run, name: &str) -> Vec<Notice> {
    let words = run.output().unwrap().file(&format!("{name}.words")).unwrap();
    let notices: Vec<Notice> = run.lines(&format!("{name}.events")).unwrap();
    assert!(words.contains(" shown"), "{words}");
    notices
}

/// What the driver reports, in its words, by the name of its device; and a queue that stands still, by all its names.
#[track_caller]
pub(crate) fn told(run: &Run) {
    let notices = notices(run, "told");
    let of = |event: &str| notices.iter().filter(|notice| notice.event == event).collect::<Vec<_>>();
    let reports: Vec<_> = of("devlink_health")
        .into_iter()
        .map(|n| [&n.pci, &n.reporter, &n.message].map(|text| text.as_deref().unwrap_or_default()))
        .collect();
    let expected = [["fsnic.0", "fw", "firmware is unwell"], ["fsnic.1", "fw", "!firmware is gone"]];
    assert_eq!(reports, expected, "{notices:?}");
    let timeouts = of("tx_timeout");
    assert!(!timeouts.is_empty(), "{notices:?}");
    for timeout in timeouts {
        assert_eq!((timeout.device.as_deref(), timeout.netdev.as_deref()), (Some("mlx5_0"), Some("fsnic0")));
        assert_eq!(timeout.values.get("queue"), Some(&0), "{timeout:?}");
    }
    assert!(notices.iter().all(|notice| notice.kind == "health"), "{notices:?}");
}

/// A driver's own function, and the device that it is about, found by the module's type information; which the lab's
/// modules for 6.1 do not have.
#[track_caller]
pub(crate) fn driver(run: &Run) {
    let notices = notices(run, "driver");
    let device = (run.kernel() != "6.1").then_some("labmlx5");
    let of = |notice: &Notice| (notice.event.clone(), notice.pci.clone());
    let expected = ("mlx5_health".to_owned(), device.map(str::to_owned));
    assert_eq!(notices.iter().map(of).collect::<Vec<_>>(), [expected.clone(), expected]);
    assert_eq!(run.output().unwrap().file("driver.unloaded").unwrap().trim(), "0");
}

#[track_caller]
pub(crate) fn filtered(run: &Run) {
    let notices = notices(run, "filtered");
    assert!(!notices.is_empty());
    assert!(notices.iter().all(|notice| notice.event == "tx_timeout"), "{notices:?}");
}

#[track_caller]
pub(crate) fn quiet(run: &Run) {
    let words = run.output().unwrap().file("quiet.stdout").unwrap();
    assert!(words.contains(" 3 received"), "{words}");
    assert_eq!(notices(run, "quiet"), []);
    assert_eq!(notices(run, "other"), []);
}

#[track_caller]
fn number(run: &Run, when: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    sum(&run.output().unwrap().file(&format!("{when}.metrics")).unwrap(), name, labels).unwrap_or_default()
}

#[track_caller]
pub(crate) fn counted(run: &Run) {
    let report = [("pci", "fsnic.0"), ("event", "devlink_health"), ("reporter", "fw")];
    assert_eq!((number(run, "start", EVENTS, &[]), number(run, "end", EVENTS, &report)), (0.0, 3.0));
    assert!(number(run, "end", EVENTS, &[("device", "mlx5_0"), ("netdev", "fsnic0"), ("event", "tx_timeout")]) >= 1.0);
    let output = run.output().unwrap();
    assert_eq!(output.file("left").unwrap().trim(), "0", "programs are left");
    assert_eq!(output.file("agent.status").unwrap().trim(), "0");
}

/// As many as were sent to a port where nobody listens; none of those that somebody takes.
#[track_caller]
pub(crate) fn drops(run: &Run) {
    let no_socket = |when| number(run, when, DROPS, &[("netdev", "lo"), ("reason", "no_socket")]);
    assert_eq!(no_socket("closed") - no_socket("open"), 50.0);
}

#[track_caller]
pub(crate) fn napi(run: &Run) {
    let exhausted = |when, netdev| number(run, when, NAPI, &[("netdev", netdev)]);
    assert_eq!(exhausted("closed", "fsnic1"), 0.0);
    // 200 packets are three times 64 and some; pings one at a time use nothing up.
    let count = exhausted("end", "fsnic1");
    assert!((3.0..=6.0).contains(&count), "{count}");
    assert_eq!(exhausted("end", "fsnic0"), 0.0);
}

/// As many as the kernel's own tool shows; a program's own add to those of before; limits where the kernel tells them.
#[track_caller]
pub(crate) fn resources(run: &Run) {
    let resources = |when, kind: &str| number(run, when, RESOURCES, &[("device", "rxe0"), ("type", kind)]);
    let output = run.output().unwrap();
    let held = output.file("held.resources").unwrap();
    let mut seen = 0;
    for line in held.lines().filter_map(|line| line.strip_prefix("rxe0 ")) {
        let (kind, count) = line.split_once(' ').unwrap();
        // What has no limit is not told.
        if ["cm_id", "ctx"].contains(&kind) {
            continue;
        }
        assert_eq!(resources("held", kind), count.parse::<f64>().unwrap(), "{kind}: {held}");
        seen += 1;
    }
    assert!(seen >= 5, "{held}");
    for kind in ["qp", "cq", "mr", "pd"] {
        assert_eq!(resources("held", kind) - resources("free", kind), 1.0, "{kind}");
    }
    let page = output.file("held.metrics").unwrap();
    let limit = sum(&page, LIMITS, &[("device", "rxe0"), ("type", "qp")]);
    assert_eq!(limit.is_some_and(|limit| limit > 100.0), run.kernel() == "7.3", "{limit:?}");
}

#[track_caller]
pub(crate) fn gids(run: &Run) {
    let output = run.output().unwrap();
    let text = output.file("gid").unwrap();
    let [index, netdev, address] = text.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
    let gid = format!("::ffff:{address}");
    let labels = [("device", "rxe0"), ("port", "1"), ("index", index), ("netdev", netdev), ("gid", &gid)];
    assert_eq!(number(run, "held", "fabricscope_rdma_gid_info", &[&labels[..], &[("type", "RoCE v2")]].concat()), 1.0);
}

/// What is not wanted is not attached, and its series are absent.
#[track_caller]
pub(crate) fn switched_off(run: &Run) {
    let output = run.output().unwrap();
    let state = |file: &str, hook: &str| {
        let text = output.file(file).unwrap();
        let own = text.lines().find(|line| line.contains(&format!("\"hook\":\"{hook}\"")));
        own.map(str::to_owned).unwrap_or_default()
    };
    for hook in ["napi_poll", "packet_drop"] {
        assert!(state("agent.hooks", hook).contains("\"state\":\"attached\""), "{hook}");
        assert!(state("few.hooks", hook).contains("\"state\":\"disabled\""), "{hook}");
    }
    assert!(state("few.hooks", "devlink_health").contains("\"state\":\"attached\""));
    let page = output.file("few.metrics").unwrap();
    assert!(page.contains(EVENTS) && !page.contains(NAPI) && !page.contains(DROPS), "{page}");
}
