//! The comparison finds each kind of difference, and nothing where there is none.

use super::*;
use crate::event::Link;
use crate::facts::{FAILURES, LAYERS, expected};

const KERNELS: [&str; 3] = ["6.1", "6.12", "7.3"];

/// What a workload that made each call once would print: one after the other, in thread 8 of process 7.
fn all_rows(calls: &[Expected]) -> Vec<Row> {
    let row = |(at, call): (usize, &Expected)| Row {
        recipe: call.recipe.clone(),
        errno: call.errno.clone(),
        pid: 7,
        tid: 8,
        before_ns: at as u64 * 100,
        after_ns: at as u64 * 100 + 50,
    };
    calls.iter().enumerate().map(row).collect()
}

/// What an agent that sees all would print for these rows.
fn all_events(calls: &[Expected], rows: &[Row]) -> Vec<Event> {
    let mut events = Vec::new();
    for (call, row) in calls.iter().zip(rows) {
        let Some(innermost) = &call.innermost else { continue };
        let layer = innermost.layers[0].clone();
        events.push(Event {
            monotonic_ns: row.before_ns + 20,
            verb: call.verb.clone(),
            errno: call.refused_with.clone(),
            error: Some(innermost.error),
            layer: Some(layer.clone()),
            function: Some(innermost.function.clone()),
            chain: vec![Link {
                layer,
                function: innermost.function.clone(),
                errno: call.refused_with.clone().unwrap_or_default(),
                error: innermost.error,
            }],
            pid: 7,
            tid: 8,
            probe: call.class != Class::Failure,
            unsupported: call.errno == "EOPNOTSUPP",
            ..Event::default()
        });
    }
    events
}

#[test]
fn what_an_agent_that_sees_all_prints_agrees_on_every_kernel() {
    for kernel in KERNELS {
        let calls = expected(FAILURES, LAYERS, kernel).unwrap();
        let rows = all_rows(&calls);
        let mut events = all_events(&calls, &rows);
        assert_eq!(compare_calls(&calls, &rows), Report::default());
        assert_eq!(compare_events(&calls, &rows, &events, true), Report::default());
        // Without probes their events are too many, and the others agree.
        let report = compare_events(&calls, &rows, &events, false);
        assert_eq!(report.0.len(), 4, "{report}");
        assert!(report.0.iter().all(|row| (row.what, &*row.expected) == ("events", "0")), "{report}");
        events.retain(|event| !event.probe);
        assert_eq!(compare_events(&calls, &rows, &events, false), Report::default());
    }
}

/// The differences after one change to the event of `reg_mr(len=0)` on 6.12, which is thread 8's ninth call.
#[track_caller]
fn check(change: impl Fn(&mut Event), differences: &[(&str, &str, &str)]) {
    let calls = expected(FAILURES, LAYERS, "6.12").unwrap();
    let rows = all_rows(&calls);
    let mut events = all_events(&calls, &rows);
    let at = rows.iter().find(|row| row.recipe == "reg_mr(len=0)").unwrap().before_ns + 20;
    change(events.iter_mut().find(|event| event.monotonic_ns == at).unwrap());
    let report = compare_events(&calls, &rows, &events, true);
    let seen: Vec<_> = report.0.iter().map(|row| (row.what, &*row.expected, &*row.seen)).collect();
    assert_eq!(seen, differences);
}

#[test]
fn each_wrong_part_of_an_event_is_one_difference() {
    check(|event| event.verb = "reg_dmabuf_mr".into(), &[("verb", "reg_mr", "reg_dmabuf_mr")]);
    check(|event| event.errno = Some("EFAULT".into()), &[("errno", "EINVAL", "EFAULT")]);
    check(|event| event.error = Some(14), &[("error", "22", "14")]);
    check(|event| event.pid = 9, &[("pid", "7", "9")]);
    check(|event| event.probe = true, &[("probe", "false", "true")]);
    check(|event| event.unsupported = true, &[("unsupported", "false", "true")]);
    check(|event| event.chain.clear(), &[("chain holds the answer", "true", "false")]);
    let holds = ("chain holds the answer", "true", "false");
    check(|event| event.layer = Some("driver".into()), &[("layer", "core", "driver"), holds]);
    check(
        |event| event.function = Some("ib_uverbs_reg_mr".into()),
        &[("function", "ib_umem_get", "ib_uverbs_reg_mr"), holds],
    );
}

#[test]
fn what_a_compiler_adds_to_a_functions_name_is_no_difference() {
    check(|event| event.function = Some("ib_umem_get.part.0".into()), &[]);
}

#[test]
fn an_event_of_another_thread_or_time_leaves_its_call_without_and_belongs_to_none() {
    let differences = [("events", "1", "0"), ("events of no call", "none", "one")];
    check(|event| event.tid = 9, &differences);
    check(|event| event.monotonic_ns += 40, &differences);
}

#[test]
fn the_ends_of_a_calls_time_belong_to_it() {
    check(|event| event.monotonic_ns -= 20, &[]);
    check(|event| event.monotonic_ns += 30, &[]);
}

#[test]
fn a_success_is_no_event_of_a_refused_call() {
    check(|event| (event.error, event.errno) = (None, None), &[("events", "1", "0")]);
}

#[test]
fn invented_and_doubled_events_are_differences() {
    let calls = expected(FAILURES, LAYERS, "7.3").unwrap();
    let rows = all_rows(&calls);
    let mut events = all_events(&calls, &rows);
    let good = rows.iter().find(|row| row.recipe == "reg_mr(ON_DEMAND)").unwrap();
    let mut invented = events[1].clone();
    invented.monotonic_ns = good.before_ns + 1;
    events.push(invented);
    events.push(events[2].clone());
    let report = compare_events(&calls, &rows, &events, true);
    let seen: Vec<_> = report.0.iter().map(|row| (&*row.recipe, row.what, &*row.expected)).collect();
    assert_eq!(seen, [("reg_mr(unknown flag 1<<18)", "events", "1"), ("reg_mr(ON_DEMAND)", "events", "0")]);
    assert!(report.0[0].seen.starts_with("2: reg_mr EINVAL in ib_uverbs_reg_mr, pid 7; "), "{report}");
}

#[test]
fn calls_that_were_not_made_made_twice_or_ended_otherwise_are_differences() {
    let calls = expected(FAILURES, LAYERS, "6.1").unwrap();
    let mut rows = all_rows(&calls);
    rows[1].errno = "EIO".into();
    rows[2].recipe = "another".into();
    rows.push(rows[3].clone());
    let report = compare_calls(&calls, &rows);
    let seen: Vec<_> = report.0.iter().map(|row| (&*row.recipe, &*row.expected, &*row.seen)).collect();
    assert_eq!(
        seen,
        [
            ("query_device(ok)", "ok", "EIO"),
            ("alloc_pd(ok)", "ok", ""),
            ("reg_mr(ok)", "ok", "ok, ok"),
            ("another", "yes", "no"),
        ]
    );
}

#[test]
fn the_report_is_a_table() {
    let row = |recipe: &str, expected: &str| Mismatch {
        recipe: recipe.into(),
        what: "verb",
        expected: expected.into(),
        seen: "reg_mr".into(),
    };
    let report = Report(vec![row("a", "create_qp"), row("longer", "x")]);
    let lines = "call    what  expected   seen\na       verb  create_qp  reg_mr\nlonger  verb  x          reg_mr\n";
    assert_eq!(report.to_string(), lines);
}
