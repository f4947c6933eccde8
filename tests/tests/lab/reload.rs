//! Drivers that come and go, and devices that go while in use, under a running agent.

use std::time::Duration;

use serde_json::Value;
use tests::facts::{FAILURES, LAYERS, expected};
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};
use tests::truth::{compare_calls, compare_events};
use tests::workload::Row;

/// A hook in the driver that is reloaded.
const HOOK: &str = "rxe_set_srq_attr";

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "reload",
    script: r#"hook=rxe_set_srq_attr
attached() { holds "fabricscope_hook_attached{hook=\"$hook\"}" "== $1"; }
quarantined() { fabricscope status -o json > $out/flapping.status; jq -e --arg hook $hook '.agent.degraded | any(contains($hook) and contains("quarantined"))' $out/flapping.status > /dev/null; }
start_agent 'quarantine.transitions = 6' "quarantine.window = '5m'" || exit 1
until_true 'attached 1' || exit 1
scrape /metrics > $out/first.metrics

remove_links; rmmod rdma_rxe || exit 1
until_true 'attached 0'
scrape /metrics > $out/without.metrics
modprobe rdma_rxe; add_links
until_true 'attached 1' || exit 1
scrape /metrics > $out/second.metrics
trace again -- bash -c '$workload truth $device $gid > $out/again.rows'

# The device goes while a program has it open: at once, or when the program ends.
mkfifo /run/go
trace held -- bash -c '$workload hold $device < /run/go > $out/held.rows & exec 9> /run/go
until_true "grep -q open_device $out/held.rows"
{ rdma link delete $device; echo $? > $out/held.deleted; } &
until_true "[ -s $out/held.deleted ]" 10 && cp $out/held.deleted $out/held.early
echo >&9; wait'
until_true 'scrape /healthz | grep -q "200 OK"' || exit 1
rdma link delete $peer
rmmod rdma_rxe

# In and out until the agent has enough of it.
for round in 1 2 3 4 5 6 7 8; do
    modprobe rdma_rxe; until_true 'attached 1 || quarantined'
    quarantined && break
    began=$SECONDS
    rmmod rdma_rxe; until_true 'attached 0'
    quarantined && break
done
[ -d /sys/module/rdma_rxe ] || modprobe rdma_rxe
scrape /metrics > $out/flapping.metrics
add_links
trace meanwhile -- bash -c '$workload storm $device 1 5 > $out/meanwhile.gang'
until_true 'attached 1' 90
echo $((SECONDS - began)) > $out/quarantine.seconds
fabricscope status -o json > $out/released.status
scrape /metrics > $out/released.metrics
end_agent
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(360),
};

#[track_caller]
fn number(run: &Run, when: &str, name: &str) -> Option<f64> {
    sum(&run.output().unwrap().file(&format!("{when}.metrics")).unwrap(), name, &[("hook", HOOK)])
}

/// The hooks in a driver follow it, and see its calls again.
#[track_caller]
pub(crate) fn reloaded(run: &Run) {
    // Changes are told from the second on.
    let steps = [("first", 1.0, None), ("without", 0.0, Some(2.0)), ("second", 1.0, Some(3.0))];
    for (when, attached, transitions) in steps {
        let seen =
            ["fabricscope_hook_attached", "fabricscope_hook_transitions_total"].map(|name| number(run, when, name));
        assert_eq!(seen, [Some(attached), transitions], "{when}");
    }
    let table = expected(FAILURES, LAYERS, run.kernel()).unwrap();
    let rows: Vec<Row> = run.lines("again.rows").unwrap();
    let report = compare_calls(&table, &rows);
    assert!(report.is_empty(), "{report}");
    let traced = run.traced("again").unwrap();
    let report = compare_events(&table, &rows, &traced.events, false);
    assert!(report.is_empty(), "{report}\n{}", traced.show());
    assert!(traced.events.iter().all(|event| event.device.as_deref() == Some("rxe0")), "{}", traced.show());
    assert_eq!(run.output().unwrap().file("agent.status").unwrap().trim(), "0");
}

/// Kernels that let a device go at once fail what comes after with EIO; the others wait for the program. (The event of
/// it is told to the open file alone, without ib_dispatch_event.)
#[track_caller]
pub(crate) fn held(run: &Run) {
    let output = run.output().unwrap();
    assert_eq!(output.file("held.deleted").unwrap().trim(), "0");
    let early = output.file("held.early").is_ok();
    let rows: Vec<Row> = run.lines("held.rows").unwrap();
    let errno = if early { "EIO" } else { "EINVAL" };
    assert_eq!(rows[1].errno, errno, "{rows:?}");
    let traced = run.traced("held").unwrap();
    let own: Vec<_> = traced.events.iter().filter(|event| event.verb == "reg_mr").collect();
    assert_eq!(own.len(), 1, "{}", traced.show());
    assert_eq!((own[0].errno.as_deref(), own[0].device.as_deref()), (Some(errno), Some("rxe0")), "{}", traced.show());
}

/// A hook whose driver comes and goes too often is left alone for a while, by name; the others are not.
#[track_caller]
pub(crate) fn quarantined(run: &Run) {
    let output = run.output().unwrap();
    let degraded = |when: &str| -> Vec<String> {
        let status: Value = serde_json::from_str(&output.file(&format!("{when}.status")).unwrap()).unwrap();
        serde_json::from_value(status["agent"]["degraded"].clone()).unwrap()
    };
    let named = degraded("flapping");
    assert!(named.iter().any(|text| text.contains(HOOK) && text.contains("quarantined")), "{named:?}");
    assert!(!named.iter().any(|text| text.contains("uverbs_ioctl")), "{named:?}");
    let metrics = ["fabricscope_hook_attached", "fabricscope_hook_quarantined"];
    assert_eq!(metrics.map(|name| number(run, "flapping", name)), [Some(0.0), Some(1.0)]);
    assert_eq!(number(run, "released", "fabricscope_hook_quarantined"), Some(0.0));
    let traced = run.traced("meanwhile").unwrap();
    assert_eq!(traced.events.iter().filter(|event| event.verb == "reg_mr").count(), 5, "{}", traced.show());
    let seconds: u64 = output.file("quarantine.seconds").unwrap().trim().parse().unwrap();
    assert!((29..120).contains(&seconds), "{seconds}");
    assert!(!degraded("released").iter().any(|text| text.contains(HOOK)), "{:?}", degraded("released"));
}
