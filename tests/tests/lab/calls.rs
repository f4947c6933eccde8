//! The known calls: with nothing watching they end as the table says, and traced each refused one is named.

use std::time::Duration;

use tests::facts::{Expected, FAILURES, LAYERS, expected};
use tests::scenario::{Run, Scenario, Traced};
use tests::truth::{compare_calls, compare_events};
use tests::workload::Row;

/// The workload alone: what everything else is compared with.
pub(crate) const FACTS: Scenario = Scenario {
    name: "facts",
    script: r"$workload truth $device $gid > $out/truth.rows &&
$workload probe $device > $out/probe.rows &&
$workload decoy $device 5 > $out/decoy.rows &&
$workload hang $device 2 > $out/hang.rows &&
$workload mix $device 100 1 > $out/mix.rows &&
$workload storm $device 16 100 > $out/storm.gang &&
$workload block $device $gid 32 1 > $out/block.gang
",
    modules: false,
    processors: 1,
    limit: Duration::from_secs(240),
};

/// The workload traced.
pub(crate) const CALLS: Scenario = Scenario {
    name: "calls",
    script: r#"echo $gid > $out/gid
trace truth -- sh -c "$workload truth $device $gid > $out/truth.rows"
trace probes --probes -- sh -c "$workload truth $device $gid > $out/probes.rows"
trace probing -- sh -c "$workload probe $device > $out/probing.rows"
trace decoy -- sh -c "$workload decoy $device 20 > $out/decoy.rows"
# Fails all the time while another command is traced.
while :; do $workload storm $device 1 50 > /dev/null; done & bystander=$!
trace bystander -- sh -c "$workload decoy $device 5 > $out/bystander.rows"
kill $bystander
trace status -- sh -c 'exit 7'
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(420),
};

fn table(run: &Run) -> Vec<Expected> {
    expected(FAILURES, LAYERS, run.kernel()).unwrap()
}

/// A session with soft-RoCE that agrees with the table, and with its own rows.
#[track_caller]
pub(crate) fn agree(run: &Run, name: &str, probes: bool) {
    agree_with(run, name, probes, &table(run), "rxe0");
}

/// The same with any table and device.
#[track_caller]
pub(crate) fn agree_with(run: &Run, name: &str, probes: bool, table: &[Expected], device: &str) {
    let rows: Vec<Row> = run.lines(&format!("{name}.rows")).unwrap();
    let report = compare_calls(table, &rows);
    assert!(report.is_empty(), "the program itself, traced:\n{report}");
    let traced = run.traced(name).unwrap();
    let report = compare_events(table, &rows, &traced.events, probes);
    assert!(report.is_empty(), "{report}\n{}", traced.show());
    assert_eq!(traced.status, 0, "{}", traced.show());
    let elsewhere = traced.events.iter().find(|event| event.device.as_deref() != Some(device));
    assert_eq!(elsewhere, None, "{}", traced.show());
    let numbers = traced.summary().unwrap();
    let failures = traced.events.iter().filter(|event| event.refused() && !event.probe).count();
    assert_eq!((numbers.failures, numbers.lost), (failures as u64, 0), "{}", traced.show());
}

#[track_caller]
fn silent(traced: &Traced) {
    let refused = traced.events.iter().filter(|event| event.refused() || event.probe).count();
    assert_eq!(refused, 0, "{}", traced.show());
    assert_eq!(traced.status, 0, "{}", traced.show());
}

#[track_caller]
pub(crate) fn facts(run: &Run) {
    let table = table(run);
    let report = compare_calls(&table, &run.lines::<Row>("truth.rows").unwrap());
    assert!(report.is_empty(), "{report}");
    let probes: Vec<Row> = run.lines("probe.rows").unwrap();
    for row in &probes {
        let call = table.iter().find(|call| call.recipe == row.recipe).unwrap();
        assert_eq!(row.errno, call.errno, "{}", row.recipe);
    }
    assert_eq!(probes.len(), 4);
}

#[track_caller]
pub(crate) fn failures(run: &Run) {
    agree(run, "truth", false);
}

#[track_caller]
pub(crate) fn probes(run: &Run) {
    agree(run, "probes", true);
}

#[track_caller]
pub(crate) fn probing(run: &Run) {
    silent(&run.traced("probing").unwrap());
    assert_eq!(run.lines::<Row>("probing.rows").unwrap().len(), 4);
}

#[track_caller]
pub(crate) fn decoy(run: &Run) {
    let traced = run.traced("decoy").unwrap();
    silent(&traced);
    let numbers = traced.summary().unwrap();
    // 20 rounds of nine calls; what the kernel is asked for beside them (open, queries, mmap) comes on top.
    assert!(numbers.calls >= 180 && numbers.failures == 0, "{numbers:?}");
    assert!(run.output().unwrap().file("decoy.rows").unwrap().contains(r#""reg_mr":20,"#));
}

#[track_caller]
pub(crate) fn bystander(run: &Run) {
    silent(&run.traced("bystander").unwrap());
    assert!(run.output().unwrap().file("bystander.rows").unwrap().contains(r#""reg_mr":5,"#));
}

#[track_caller]
pub(crate) fn status(run: &Run) {
    let traced = run.traced("status").unwrap();
    assert_eq!(traced.status, 7, "{}", traced.show());
}
