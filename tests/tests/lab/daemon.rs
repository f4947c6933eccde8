//! The agent as a daemon: counters that are there from the start and exact, and a call that hangs.

use std::time::Duration;

use serde::Deserialize;
use tests::metrics::sum;
use tests::scenario::{Run, Scenario};
use tests::workload::Row;

const FAILURES: &str = "fabricscope_verbs_failures_total";
const CALLS: &str = "fabricscope_verbs_calls_total";
const OLDEST: &str = "fabricscope_verbs_inflight_oldest_seconds";

/// The agent runs with an empty configuration; its numbers are read when they have come to what the next step needs.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "daemon",
    script: r#"start_agent || exit 1
scrape /metrics > $out/start.metrics
$workload decoy $device 10 > $out/decoy.rows
$workload storm $device 8 250 > $out/storm.gang
until_true "holds 'fabricscope_verbs_failures_total{device=\"$device\",verb=\"reg_mr\"}' '>= 2000'" || echo 'storm not counted' >&2
that_page storm.metrics
$workload hang $device 8 > $out/hang.rows & hang=$!
until_true "holds fabricscope_verbs_inflight_oldest_seconds '>= 1'" || echo 'hang not seen' >&2
that_page hanging.metrics
wait $hang
until_true "! holds fabricscope_verbs_inflight_oldest_seconds '>= 1'" || echo 'hang does not end' >&2
that_page after.metrics
end_agent

# Without tracefs, which comes while the agent runs. debugfs would mount it by itself.
umount /sys/kernel/tracing && umount /sys/kernel/debug || exit 1
start_agent || exit 1
fabricscope hooks --json > $out/unmounted.hooks
mount -t tracefs tracefs /sys/kernel/tracing
until_true "holds 'fabricscope_hook_attached{hook=\"cm_event\"}' '== 1'"
fabricscope hooks --json > $out/mounted.hooks
end_agent
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(300),
};

#[track_caller]
fn number(run: &Run, when: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    sum(&run.output().unwrap().file(&format!("{when}.metrics")).unwrap(), name, labels)
}

/// `increase()` over a window sees the first failure only if there was a 0 before.
#[track_caller]
pub(crate) fn counters(run: &Run) {
    for verb in ["create_cq", "create_qp", "modify_qp", "reg_mr"] {
        let labels = [("device", "rxe0"), ("verb", verb)];
        assert_eq!(number(run, "start", FAILURES, &labels), Some(0.0), "{verb}");
    }
    let reg_mr = [("device", "rxe0"), ("verb", "reg_mr")];
    assert_eq!(number(run, "storm", FAILURES, &reg_mr), Some(2_000.0));
    assert_eq!(number(run, "storm", CALLS, &reg_mr), Some(2_010.0));
    assert_eq!(number(run, "storm", FAILURES, &[]), Some(2_000.0));
    assert_eq!(run.output().unwrap().file("agent.status").unwrap().trim(), "0");
}

/// The workload alone: the call hangs for two seconds and then succeeds.
#[track_caller]
pub(crate) fn hang_fact(run: &Run) {
    hung(run, 2_000_000_000);
}

#[track_caller]
fn hung(run: &Run, least_ns: u64) {
    let rows: Vec<Row> = run.lines("hang.rows").unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].errno, "ok");
    assert!(rows[0].after_ns - rows[0].before_ns >= least_ns, "{rows:?}");
}

#[track_caller]
pub(crate) fn hanging(run: &Run) {
    hung(run, 8_000_000_000);
    let oldest = number(run, "hanging", OLDEST, &[]);
    assert!(oldest.is_some_and(|seconds| (1.0..60.0).contains(&seconds)), "{oldest:?}");
    let after = number(run, "after", OLDEST, &[]);
    assert!(after.is_none_or(|seconds| seconds < 1.0), "{after:?}");
    // It succeeded in the end: no failure more than before.
    assert_eq!(number(run, "after", FAILURES, &[]), number(run, "storm", FAILURES, &[]));
}

#[derive(Debug, Deserialize)]
struct Hook {
    hook: String,
    state: String,
    reason: Option<String>,
}

/// What is attached by tracefs alone waits for it, says what to do, and follows when it is mounted.
#[track_caller]
pub(crate) fn mounted_later(run: &Run) {
    let [before, after] = ["unmounted.hooks", "mounted.hooks"].map(|file| run.lines::<Hook>(file).unwrap());
    let of = |hooks: &[Hook], name: &str| {
        let hook = hooks.iter().find(|hook| hook.hook == name).unwrap();
        (hook.state.clone(), hook.reason.clone().unwrap_or_default())
    };
    let (state, reason) = of(&before, "cm_event");
    assert_eq!(state, "waiting");
    assert!(reason.contains("mount -t tracefs"), "{reason}");
    assert_eq!(of(&after, "cm_event").0, "attached");
    // Drivers are traced by kprobe events only.
    assert_eq!(["rxe_check_qp_caps", "uverbs_ioctl"].map(|name| of(&after, name).0), ["attached", "attached"]);
}
