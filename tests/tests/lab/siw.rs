//! The kernel's soft-iWARP between two network namespaces: what it counts, what it carries, what it refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tests::facts::{SIW_FAILURES, SIW_LAYERS, expected};
use tests::scenario::{Run, Scenario};

use crate::calls::agree_with;

/// What `ib_write_bw` writes, in bytes: 100 times 64 KiB.
const WRITTEN: u64 = 100 * 65_536;

/// The network devices carry nothing but what the commands send: no IPv6, and neighbours that are known.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "siw",
    script: r#"modprobe -q -a iw_cm libcrc32c
insmod $out/siw.ko || exit 1
in_0() { ip netns exec s0 "$@"; }
in_1() { ip netns exec s1 "$@"; }
for end in 0 1; do
    ip netns add s$end
    ip netns exec s$end sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
# Listening for any address, siw binds each of its devices to the number of the network device below, in the name space
# of the listener: with the same number twice that is one address for two.
ip link add sw0 index 70 address 02:00:00:00:00:70 netns s0 type veth peer \
    name sw1 index 71 address 02:00:00:00:00:71 netns s1
for end in 0 1; do
    ip -n s$end link set lo up
    ip -n s$end addr add 10.79.0.1$end/24 dev sw$end
    ip -n s$end link set sw$end up
    ip -n s$end neigh add 10.79.0.1$((1 - end)) lladdr 02:00:00:00:00:7$((1 - end)) dev sw$end
done
for end in 0 1; do
    ip netns exec s$end rdma link add siw$end type siw netdev sw$end || exit 1
    until_true "grep -q ACTIVE /sys/class/infiniband/siw$end/ports/1/state" || { echo "siw$end is down" >&2; exit 1; }
done
chmod 666 /dev/infiniband/*

ls /sys/class/infiniband/siw1 /sys/class/infiniband/siw1/ports/1 > $out/folders
rdma statistic show link siw1/1 > $out/statistic 2>&1; echo $? > $out/statistic.status
in_1 fabricscope counters --device siw1 --interval 10ms > $out/words
reading() {
    in_1 fabricscope counters --device siw1 --interval 10ms --all -o json > $out/$1.counters
    ip -n s1 -s -j link show sw1 > $out/$1.link
}
reading before
in_0 ib_write_bw -R -d siw0 -s 65536 -n 100 > $out/server 2>&1 & server=$!
until_true "in_0 ss -Htln 'sport = :18515' | grep -q ."
in_1 ib_write_bw -R -d siw1 -s 65536 -n 100 10.79.0.10 > $out/client 2>&1; echo $? > $out/client.status
wait $server; echo $? > $out/server.status
# The connections end some time after the programs.
until_true '[ -z "$(in_0 ss -Htn state connected exclude time-wait; in_1 ss -Htn state connected exclude time-wait)" ]'
reading after

trace truth -- sh -c "$workload truth siw0 0 > $out/truth.rows"
in_0 iperf3 -s -p 7175 > /dev/null 2>&1 & taken=$!
until_true "in_0 ss -Htln 'sport = :7175' | grep -q ."
trace deep --all -- bash -c '$workload truth siw0 0 > $out/deep.rows
ip netns exec s0 timeout 60 rping -s -a 10.79.0.10 -p 7175 -C 1
ip netns exec s1 timeout 60 rping -c -a 10.79.0.10 -p 9999 -C 1'
kill $taken
in_1 fabricscope trace verbs -- true 2> $out/inside

start_agent || exit 1
until_true 'holds "fabricscope_rdma_resources{device=\"siw0\"" ">= 0"'
that_page page
end_agent
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(420),
};

/// The kernel files the one address of iWARP under RoCE v1, and names Ethernet as the link layer of both.
#[track_caller]
pub(crate) fn told(run: &Run) {
    let page = run.output().unwrap().file("page").unwrap();
    let has = |series: &str, labels: &[&str]| {
        let found =
            page.lines().find(|line| line.starts_with(series) && labels.iter().all(|label| line.contains(label)));
        assert!(found.is_some(), "no {series} with {labels:?} on {}:\n{page}", run.kernel());
    };
    let info = "fabricscope_rdma_port_info{";
    has(info, &[r#"device="siw0""#, r#"driver="siw""#, r#"link_layer="Ethernet""#, r#"protocol="iWARP""#]);
    has(info, &[r#"device="rxe0""#, r#"link_layer="Ethernet""#, r#"protocol="RoCE""#]);
    has("fabricscope_rdma_gid_info{", &[r#"device="siw0""#, r#"type="iWARP""#, r#"gid="200:0:70::""#]);
    has("fabricscope_rdma_resources{", &[r#"device="siw0""#, r#"type="qp""#]);
}

/// siw has no counters, neither in sysfs nor by netlink: said in words, and its network device is read.
#[track_caller]
pub(crate) fn counters(run: &Run) {
    let output = run.output().unwrap();
    let folders = output.file("folders").unwrap();
    assert!(folders.contains("gid_attrs") && !folders.contains("counters"), "{folders}");
    assert_ne!(output.file("statistic.status").unwrap().trim(), "0", "{}", output.file("statistic").unwrap());
    let words = output.file("words").unwrap();
    assert!(words.contains("siw1: siw offers no counter that is known"), "{words}");
    let record = reading(run, "before");
    let devices = record["devices"].as_array().unwrap();
    let own = devices.iter().find(|device| device["name"] == "siw1").unwrap();
    assert_eq!((&own["kind"], &own["counters"]), (&"rdma".into(), &Value::Array(vec![])), "{record:#}");
    let below = devices.iter().find(|device| device["name"] == "sw1").unwrap();
    assert_eq!((&below["device"], &below["port"]), (&"siw1".into(), &1.into()), "{record:#}");
}

fn reading(run: &Run, when: &str) -> Value {
    serde_json::from_str(&run.output().unwrap().file(&format!("{when}.counters")).unwrap()).unwrap()
}

/// What the agent says of the network device below, by the counter's name.
#[track_caller]
fn carried(run: &Run, when: &str) -> BTreeMap<String, u64> {
    let record = reading(run, when);
    let below = record["devices"].as_array().unwrap().iter().find(|device| device["name"] == "sw1").unwrap();
    let number = |counter: &Value| Some((counter["name"].as_str()?.to_owned(), counter["value"].as_u64()?));
    below["counters"].as_array().unwrap().iter().filter_map(number).collect()
}

/// Every byte written goes out once, with the headers of Ethernet, TCP and DDP, and what comes back is acknowledgements.
#[track_caller]
pub(crate) fn traffic(run: &Run) {
    let output = run.output().unwrap();
    for end in ["client", "server"] {
        assert_eq!(output.file(&format!("{end}.status")).unwrap().trim(), "0", "{}", output.file(end).unwrap());
    }
    let names = [
        ("nic_sent_bytes", "/0/stats64/tx/bytes"),
        ("nic_sent_packets", "/0/stats64/tx/packets"),
        ("nic_received_bytes", "/0/stats64/rx/bytes"),
        ("nic_received_packets", "/0/stats64/rx/packets"),
    ];
    for when in ["before", "after"] {
        let ours = carried(run, when);
        let theirs: Value = serde_json::from_str(&output.file(&format!("{when}.link")).unwrap()).unwrap();
        for (name, path) in names {
            assert_eq!(
                Some(ours[name]),
                theirs.pointer(path).and_then(Value::as_u64),
                "{name} {when} on {}",
                run.kernel()
            );
        }
    }
    let (before, after) = (carried(run, "before"), carried(run, "after"));
    let grown = |name: &str| after[name] - before[name];
    let (sent, received) = (grown("nic_sent_bytes"), grown("nic_received_bytes"));
    eprintln!("{}: {WRITTEN} bytes written, {sent} sent, {received} received", run.kernel());
    assert!((WRITTEN..WRITTEN * 6 / 5).contains(&sent), "{sent} of {WRITTEN} on {}", run.kernel());
    assert!((1..WRITTEN / 5).contains(&received), "{received} of {WRITTEN} on {}", run.kernel());
}

/// The known calls, each refused one with the function of siw or of the core that refused it.
#[track_caller]
pub(crate) fn failures(run: &Run) {
    agree_with(run, "truth", false, &expected(SIW_FAILURES, SIW_LAYERS, run.kernel()).unwrap(), "siw0");
}

/// With every hook attached, the chain goes on inside the driver, also for what the connection manager asks of it.
#[track_caller]
pub(crate) fn connections(run: &Run) {
    let traced = run.traced("deep").unwrap();
    let check = |verb: &str, errno: &str, function: &str| {
        let wanted = |event: &&tests::event::Event| event.verb == verb && event.errno.as_deref() == Some(errno);
        let holds = |event: &tests::event::Event| {
            event.chain.iter().any(|link| link.layer == "driver" && link.function == function)
        };
        let found: Vec<_> = traced.events.iter().filter(wanted).collect();
        assert!(
            found.iter().any(|event| holds(event)),
            "no {function} on {}: {found:?}\n{}",
            run.kernel(),
            traced.show()
        );
    };
    check("reg_mr", "EFAULT", "siw_umem_get");
    check("modify_qp", "EINVAL", "siw_verbs_modify_qp");
    check("rdma_listen", "EADDRINUSE", "siw_create_listen");
    check("rdma_connect", "ECONNREFUSED", "siw_connect");
    // Under the sysfs that `ip netns exec` mounts there is no cgroup file system.
    let inside = run.output().unwrap().file("inside").unwrap();
    assert!(inside.contains("`ip netns exec` hides it"), "{inside}");
}
