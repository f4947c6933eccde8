//! What was being built, in the events of the known calls: the numbers that the workload put into them.

use serde_json::{Value, json};
use tests::event::Event;
use tests::scenario::Run;
use tests::workload::Row;

/// The event of each call that `rows` names.
#[track_caller]
fn check(run: &Run, name: &str, expected: &[(&str, &str, Value)]) {
    let rows: Vec<Row> = run.lines(&format!("{name}.rows")).unwrap();
    let events = run.traced(name).unwrap().events;
    let mut wrong = Vec::new();
    for (recipe, path, value) in expected {
        let row = rows.iter().find(|row| row.recipe == *recipe).unwrap();
        let own = |event: &&Event| {
            event.tid == row.tid && (row.before_ns..=row.after_ns).contains(&event.monotonic_ns) && !event.probe
        };
        let seen = events.iter().find(own).map(|event| event.at(path));
        if seen != Some(value) {
            wrong.push(format!("{recipe}: {path} is {seen:?}, not {value}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Memory: address and length, access, kind.
#[track_caller]
pub(crate) fn memory(run: &Run, name: &str) {
    check(
        run,
        name,
        &[
            ("reg_mr(len=0)", "mr.length", json!(0)),
            ("reg_mr(len=0)", "mr.access", json!(["LOCAL_WRITE"])),
            ("reg_mr(len=0)", "mr.kind", json!("host")),
            ("reg_mr(REMOTE_WRITE no LOCAL)", "mr.length", json!(4096)),
            ("reg_mr(REMOTE_WRITE no LOCAL)", "mr.access", json!(["REMOTE_WRITE"])),
            ("reg_mr(4M, memlock 1M, nobody)", "mr.length", json!(4 << 20)),
        ],
    );
    let rows: Vec<Row> = run.lines(&format!("{name}.rows")).unwrap();
    let events = run.traced(name).unwrap().events;
    let registered: Vec<_> = events.iter().filter(|event| event.verb == "reg_mr").collect();
    assert!(!registered.is_empty());
    for event in &registered {
        let address = event.at("mr.address").as_str().unwrap_or_default();
        assert!(address.len() > 2 && address.starts_with("0x"), "{event:?}");
    }
    // The one whose address in the device does not fit its address in memory.
    let iova: Vec<_> = registered.iter().filter(|event| event.at("mr.iova") != event.at("mr.address")).collect();
    assert_eq!(iova.len(), 1, "{iova:?}");
    let nobody = rows.iter().find(|row| row.recipe.ends_with("nobody)")).unwrap();
    let uids: Vec<_> = registered.iter().filter(|event| event.pid == nobody.pid).map(|event| event.uid).collect();
    assert_eq!(uids, [Some(65534)]);
}

/// Queue pairs: number, type, states, GIDs; the address of an address handle.
#[track_caller]
pub(crate) fn queue_pairs(run: &Run, name: &str) {
    let gid = run.output().unwrap().file("gid").unwrap().trim().parse::<u8>().unwrap();
    let dead = json!("::ffff:10.77.0.222");
    check(
        run,
        name,
        &[
            ("create_qp(max_sge too large)", "qp.type", json!("RC")),
            ("create_qp(max_sge too large)", "qp.caps.max_recv_wr", json!(4)),
            ("create_qp(RAW_PACKET)", "qp.type", json!("RAW_PACKET")),
            ("modify_qp(RESET->RTS)", "qp.type", json!("RC")),
            ("modify_qp(RESET->RTS)", "qp.state_from", json!("RESET")),
            ("modify_qp(RESET->RTS)", "qp.state_to", json!("RTS")),
            ("modify_qp(RESET->RTS)", "qp.attr_mask", json!(["STATE"])),
            ("modify_qp(RTR sgid_index=200)", "qp.gid_index", json!(200)),
            ("modify_qp(RTR sgid_index=200)", "qp.state_from", json!("INIT")),
            ("modify_qp(RTR sgid_index=200)", "qp.state_to", json!("RTR")),
            ("modify_qp(RTR sgid_index=200)", "qp.dest_qpn", json!(17)),
            ("modify_qp(RTR dead neighbour)", "qp.gid_index", json!(gid)),
            ("modify_qp(RTR dead neighbour)", "qp.remote_gid", dead.clone()),
            ("modify_qp(RTR no route)", "qp.remote_gid", json!("::ffff:203.0.113.9")),
            ("create_ah(dead neighbour)", "ah.remote_gid", dead),
            ("create_ah(dead neighbour)", "ah.gid_index", json!(gid)),
            ("create_ah(dead neighbour)", "port", json!(1)),
        ],
    );
    let events = run.traced(name).unwrap().events;
    let numbers: Vec<_> = events.iter().filter(|e| e.verb == "modify_qp").map(|e| e.at("qp.qpn").clone()).collect();
    assert!(numbers.len() > 2 && numbers.iter().all(|number| number.as_u64() > Some(0)), "{numbers:?}");
    // The workload has one.
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
}

/// Completion queues: how many entries were asked for.
#[track_caller]
pub(crate) fn completion_queues(run: &Run, name: &str) {
    check(
        run,
        name,
        &[("create_cq(cqe=0)", "cq.cqe", json!(0)), ("create_cq(cqe=INT_MAX)", "cq.cqe", json!(i32::MAX))],
    );
}
