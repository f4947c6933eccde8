//! What no call returns: events of devices and of the connection manager, calls that hang, refusals by firmware.

use std::time::Duration;

use serde_json::json;
use tests::event::{Notice, Stuck};
use tests::scenario::{Run, Scenario};
use tests::workload::Row;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "notices",
    script: r#"state() { grep -q "$1" /sys/class/infiniband/$device/ports/1/state; }
seen() { grep "\"device\":\"$device\"" $out/$2.events | grep -q "\"event\":\"$1\""; }
declare -f state seen >> $BASH_ENV
# Ends when the events are there: the kernel tells them from a work queue, some time after the state.
trace_of device link -- bash -c 'ip link set $netdev down; until_true "seen port_err link"
ip link set $netdev up; until_true "seen port_active link"; until_true "state ACTIVE"'
trace_of device gid -- bash -c 'ip addr add 10.78.0.1/24 dev $netdev; until_true "seen gid_change gid"
ip addr del 10.78.0.1/24 dev $netdev'
until_true "ss -Hltn > /dev/null; grep -qs :ffff: /sys/class/infiniband/$device/ports/1/gids/$gid"

trace stuck --stuck -- bash -c '$workload hang $device 4 > $out/hang.rows'
hang() { $workload hang $device 4 > /dev/null; }
declare -f hang >> $BASH_ENV
trace right --stuck --device $device --verb modify_qp --comm workload --count 1 -- bash -c hang
trace peer --stuck --device $peer -- bash -c hang
trace outside --stuck -- bash -c 'echo $$ > /sys/fs/cgroup/cgroup.procs; hang'

trace_of cm nobody -- timeout 60 rping -c -a $peer_address -I $address -p 9999 -C 1
trace_of cm dead -- timeout 60 rping -c -a ${peer_address%.*}.222 -I $address -C 1
trace ucma -- strace -f -y -e trace=write -o $out/ucma.strace timeout 60 rping -s -a 198.51.100.7 -C 1

insmod $out/mlx5_core.ko && insmod $out/mlx5_ib.ko || exit 1
until_true '[ -e /sys/class/infiniband/mlx5_0 ]'
refuse() { for key in opcode=$1 status=$2 syndrome=$3; do echo ${key#*=} > /sys/module/mlx5_core/parameters/${key%=*}; done; }
refuse 0x200 0x05 0x1c4f3a
trace mkey -- bash -c '$workload few mlx5_0 > $out/mkey.rows'
refuse 0x800 0x08 0x77
trace pd -- bash -c '$workload few mlx5_0 > $out/pd.rows'
refuse 0 0 0
trace accepted -- bash -c '$workload few mlx5_0 > $out/accepted.rows'
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(420),
};

#[track_caller]
fn notices(run: &Run, name: &str) -> Vec<Notice> {
    let output = run.output().unwrap();
    let words = output.file(&format!("{name}.words")).unwrap();
    assert!(!output.file(&format!("{name}.status")).unwrap().is_empty(), "{words}");
    run.lines(&format!("{name}.events")).unwrap()
}

#[track_caller]
fn has(notices: &[Notice], event: &str) {
    let own = |notice: &&Notice| notice.device.as_deref() == Some("rxe0") && notice.event == event;
    let found = notices.iter().find(own).map(|notice| (&*notice.kind, notice.port));
    assert_eq!(found, Some(("device", Some(1))), "{event}: {notices:?}");
}

#[track_caller]
pub(crate) fn link(run: &Run) {
    let notices = notices(run, "link");
    has(&notices, "port_err");
    has(&notices, "port_active");
    let place = |event| notices.iter().position(|n| n.event == event && n.device.as_deref() == Some("rxe0"));
    assert!(place("port_err") < place("port_active"), "{notices:?}");
}

#[track_caller]
pub(crate) fn gid(run: &Run) {
    has(&notices(run, "gid"), "gid_change");
}

#[track_caller]
pub(crate) fn stuck(run: &Run) {
    let stuck: Vec<Stuck> = run.lines("stuck.events").unwrap();
    let [row] = <[Row; 1]>::try_from(run.lines("hang.rows").unwrap()).unwrap();
    assert_eq!(stuck.len(), 1, "{stuck:?}");
    let call = &stuck[0];
    assert_eq!((&*call.kind, &*call.verb, call.device.as_deref()), ("stuck", "modify_qp", Some("rxe0")));
    assert_eq!((call.pid, call.tid, call.comm.as_deref()), (row.pid, row.tid, Some("workload")));
    assert!((1_000_000_000..=row.after_ns - row.before_ns).contains(&call.waiting_ns), "{call:?} {row:?}");
}

#[track_caller]
pub(crate) fn stuck_filters(run: &Run) {
    let count = |name: &str| {
        let calls: Vec<Stuck> = run.lines(&format!("{name}.events")).unwrap();
        (calls.len(), calls.iter().all(|call| call.verb == "modify_qp"))
    };
    assert_eq!(count("right"), (1, true));
    for other in ["peer", "outside"] {
        assert_eq!(count(other), (0, true), "{other}");
    }
}

#[track_caller]
pub(crate) fn rejected(run: &Run) {
    let notices = notices(run, "nobody");
    let rejected: Vec<_> = notices.iter().filter(|notice| notice.event == "rejected").collect();
    assert!(!rejected.is_empty(), "{notices:?}");
    for notice in rejected {
        let seen = (&*notice.kind, notice.status, notice.reason.as_deref());
        assert_eq!(seen, ("cm", Some(8), Some("nobody listens on that port")));
        assert!(notice.destination.as_deref().is_some_and(|to| to.ends_with(":9999")), "{notice:?}");
    }
}

#[track_caller]
pub(crate) fn unreachable(run: &Run) {
    let notices = notices(run, "dead");
    let known = ["addr_error", "route_error", "unreachable"];
    let found: Vec<_> = notices.iter().filter(|notice| known.contains(&&*notice.event)).collect();
    assert_eq!(found.len(), 1, "{notices:?}");
    assert!(found[0].status.is_some_and(|status| status < 0) && found[0].reason.is_some(), "{found:?}");
    assert!(found[0].destination.as_deref().is_some_and(|to| to.starts_with("10.77.0.222:")), "{found:?}");
}

/// An address that this host does not have.
#[track_caller]
pub(crate) fn refused_binding(run: &Run) {
    let traced = run.traced("ucma").unwrap();
    assert_eq!(traced.events.len(), 1, "{}", traced.show());
    let event = &traced.events[0];
    let seen = (&*event.verb, event.errno.as_deref(), event.layer.as_deref(), event.function.as_deref());
    assert_eq!(seen, ("rdma_bind_addr", Some("EADDRNOTAVAIL"), Some("syscall"), Some("ucma_write")));
    let log = run.output().unwrap().file("ucma.strace").unwrap();
    assert_eq!(log.matches(" = -1 EADDRNOTAVAIL").count(), 1, "{log}");
}

#[track_caller]
pub(crate) fn firmware(run: &Run) {
    refusal(run, "mkey", "reg_mr", "EINVAL", ["0x0200", "0x05", "0x001c4f3a"]);
    refusal(run, "pd", "alloc_pd", "ENOMEM", ["0x0800", "0x08", "0x00000077"]);
    let traced = run.traced("accepted").unwrap();
    let by_firmware = traced.events.iter().filter(|event| event.layer.as_deref() == Some("firmware"));
    assert_eq!(by_firmware.count(), 0, "{}", traced.show());
}

/// The call that the firmware refuses: the chain from there to the system call, the firmware's own words.
#[track_caller]
pub(crate) fn refusal(run: &Run, name: &str, verb: &str, errno: &str, [opcode, status, syndrome]: [&str; 3]) {
    let traced = run.traced(name).unwrap();
    let rows: Vec<Row> = run.lines(&format!("{name}.rows")).unwrap();
    let row = rows.iter().find(|row| row.recipe == verb).unwrap();
    assert_eq!(row.errno, errno);
    let own: Vec<_> = traced.events.iter().filter(|event| event.verb == verb).collect();
    assert_eq!(own.len(), 1, "{}", traced.show());
    let event = own[0];
    let seen = [&event.errno, &event.device, &event.layer, &event.function].map(|text| text.as_deref());
    assert_eq!(seen, [errno, "mlx5_0", "firmware", "mlx5/mlx5_cmd"].map(Some), "{}", traced.show());
    let layers: Vec<_> = event.chain.iter().map(|link| &*link.layer).collect();
    assert_eq!((layers.first(), layers.last()), (Some(&"firmware"), Some(&"syscall")), "{}", traced.show());
    assert!(event.chain.iter().all(|link| link.errno == errno), "{}", traced.show());
    for (key, expected) in [("opcode", opcode), ("status", status), ("syndrome", syndrome)] {
        assert_eq!(*event.at(&format!("firmware.{key}")), json!(expected), "{key}");
    }
}
