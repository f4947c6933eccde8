//! Real programs: what the agent says of them is what strace saw in the same run.

use std::collections::BTreeMap;
use std::time::Duration;

use tests::metrics::sum;
use tests::scenario::{Run, Scenario, Traced};
use tests::strace::{calls, refused};

/// Each program's client is traced, and its server runs outside; but for the wrong index. strace runs inside the traced command.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "programs",
    script: r#"observe() { # NAME PORT SERVER -- CLIENT...
    name=$1 port=$2 server=$3; shift 4
    $server > $out/$name.server 2>&1 & pid=$!
    until_true "ss -Htln 'sport = :$port' | grep -q ." 60 || echo "$name: no server" >&2
    trace $name --probes -- sh -c 'log=$1; shift; strace -f -y -e trace=ioctl,write,mmap -o $log "$@" > $log.client 2>&1' \
        - $out/$name.strace "$@"
    kill $pid 2> /dev/null
    wait $pid
}
observe pingpong 18515 "ibv_rc_pingpong -d $peer -g $peer_gid -n 50" -- \
    ibv_rc_pingpong -d $device -g $gid -n 50 127.0.0.1
observe perftest 18515 "ib_write_bw -d $peer -x $peer_gid -n 50 -s 4096 -F" -- \
    ib_write_bw -d $device -x $gid -n 50 -s 4096 -F 127.0.0.1
# An index inside the table with nothing in it: the kernel refuses, not the library. The server connects first.
trace wrong-gid --probes -- sh -c 'log=$1; shift; strace -f -y -e trace=ioctl,write,mmap -o $log "$@" > $log.client 2>&1' \
    - $out/wrong-gid.strace ibv_rc_pingpong -d $device -g 77 -n 50 & pid=$!
until_true "ss -Htln 'sport = :18515' | grep -q ." 60 || echo 'wrong-gid: no server' >&2
ibv_rc_pingpong -d $peer -g $peer_gid -n 50 127.0.0.1 > $out/wrong-gid.peer 2>&1
wait $pid
# rping's server listens through the connection manager: there is no TCP port to wait for.
rping -s -a $peer_address -C 5 > $out/rping.server 2>&1 & pid=$!
until_true "rdma resource show cm_id | grep -q LISTEN" || echo 'rping: no server' >&2
trace rping --probes -- sh -c 'log=$1; shift; strace -f -y -e trace=ioctl,write,mmap -o $log "$@" > $log.client 2>&1' \
    - $out/rping.strace rping -c -a $peer_address -I $address -C 5
kill $pid 2> /dev/null
wait $pid
# What the agent has counted of a device that nobody else uses.
start_agent || exit 1
scrape /metrics > $out/before.metrics
ibv_rc_pingpong -d $peer -g $peer_gid -n 50 > $out/counted.server 2>&1 & pid=$!
until_true "ss -Htln 'sport = :18515' | grep -q ." 60 || echo 'counted: no server' >&2
strace -f -y -e trace=openat,ioctl,write,mmap -o $out/counted.strace \
    ibv_rc_pingpong -d $device -g $gid -n 50 127.0.0.1 > $out/counted.client 2>&1
wait $pid
until_true "holds 'fabricscope_verbs_calls_total{device=\"$device\",verb=\"dealloc_pd\"}' '> 0'" || echo 'not counted' >&2
that_page after.metrics
end_agent
grep -lx $device /sys/class/infiniband_verbs/*/ibdev > $out/counted.node
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(300),
};

/// The events by error, which strace has to have seen too.
#[track_caller]
fn same_as_strace(run: &Run, name: &str) -> (Traced, BTreeMap<String, usize>) {
    let traced = run.traced(name).unwrap();
    let log = run.output().unwrap().file(&format!("{name}.strace")).unwrap();
    assert!(log.contains("</dev/infiniband/"), "strace saw no RDMA call:\n{log}");
    let mut seen = BTreeMap::new();
    for event in traced.events.iter().filter(|event| event.refused()) {
        *seen.entry(event.errno.clone().unwrap_or_default()).or_default() += 1;
    }
    assert_eq!(seen, refused(&log), "{name}: agent and strace\n{}", traced.show());
    (traced, seen)
}

#[track_caller]
pub(crate) fn good(run: &Run) {
    for name in ["pingpong", "perftest", "rping"] {
        let (traced, _) = same_as_strace(run, name);
        let client = run.output().unwrap().file(&format!("{name}.strace.client")).unwrap();
        assert_eq!(traced.status, 0, "{name}: {client}\n{}", traced.show());
        let failures = traced.events.iter().filter(|event| event.refused() && !event.probe && !event.unsupported);
        assert_eq!(failures.count(), 0, "{name}: {}", traced.show());
    }
}

/// The agent counts as many calls of a device as strace sees on its file.
#[track_caller]
pub(crate) fn counted(run: &Run) {
    let output = run.output().unwrap();
    let calls_of = |when: &str| {
        let page = output.file(&format!("{when}.metrics")).unwrap();
        sum(&page, "fabricscope_verbs_calls_total", &[("device", "rxe0")]).unwrap_or_default()
    };
    let node = output.file("counted.node").unwrap();
    let node = node.trim().rsplit('/').nth(1).unwrap();
    let log = output.file("counted.strace").unwrap();
    let expected = calls(&log, &format!("/dev/infiniband/{node}"));
    assert!(expected > 20, "{log}");
    assert_eq!(calls_of("after") - calls_of("before"), f64::from(u32::try_from(expected).unwrap()), "{log}");
}

/// Asking for the index is refused as well, before the change of state is.
#[track_caller]
pub(crate) fn wrong_gid(run: &Run) {
    let (traced, seen) = same_as_strace(run, "wrong-gid");
    assert_ne!(traced.status, 0, "{}", traced.show());
    assert_eq!(seen.get("ENODATA"), Some(&2), "{}", traced.show());
    let events: Vec<_> = traced.events.iter().filter(|event| event.verb == "modify_qp" && event.refused()).collect();
    assert_eq!(events.len(), 1, "{}", traced.show());
    let event = events[0];
    let seen = [event.errno.as_deref(), event.device.as_deref(), event.layer.as_deref(), event.function.as_deref()];
    assert_eq!(seen, ["ENODATA", "rxe0", "core", "rdma_get_gid_attr"].map(Some));
}
