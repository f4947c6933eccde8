//! The keys and values of each record.

use serde_json::{Value, json};

use super::{Origin, write_line};
use crate::event::Event;
use crate::verbs::samples;

const ORIGIN: Origin<'_> = Origin { host: Some("node17"), boot_id: Some("b00t") };

fn written(event: &Event, origin: Origin<'_>) -> Value {
    let mut line = Vec::new();
    write_line(event, origin, &mut line).unwrap();
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    serde_json::from_slice(&line).unwrap()
}

#[track_caller]
fn check(event: &Event, expected: &Value) {
    assert_eq!(&written(event, ORIGIN), expected);
}

#[test]
fn a_failed_modify_qp() {
    check(
        &samples::modify_qp(),
        &json!({
            "schema": "fabricscope.event.v1",
            "time": "2026-03-01T12:34:56.789000123Z",
            "time_ns": 1_772_368_496_789_000_123_i64,
            "monotonic_ns": 123_456_789,
            "host": "node17",
            "boot_id": "b00t",
            "kind": "verbs",
            "device": "mlx5_0",
            "port": 1,
            "verb": "modify_qp",
            "errno": "ETIMEDOUT",
            "error": 110,
            "message": "timed out",
            "layer": "core",
            "function": "ib_resolve_eth_dmac",
            "chain": [
                {"layer": "core", "function": "rdma_addr_find_l2_eth_by_grh", "errno": "ENODATA", "error": 61},
                {"layer": "core", "function": "ib_resolve_eth_dmac", "errno": "ETIMEDOUT", "error": 110},
                {"layer": "syscall", "function": "ib_uverbs_ioctl", "errno": "ETIMEDOUT", "error": 110},
            ],
            "also": [{"layer": "core", "function": "rdma_addr_find_l2_eth_by_grh", "errno": "ENODATA", "error": 61}],
            "pid": 4711,
            "tid": 4712,
            "comm": "trainer",
            "uid": 1000,
            "cgroup_id": 9001,
            "cgroup": "/jobs/job_42",
            "process_start_ns": 47_110_000_000_u64,
            "duration_ns": 4_096_000_000_u64,
            "qp": {
                "qpn": 291,
                "type": "RC",
                "state_from": "INIT",
                "state_to": "RTR",
                "gid_index": 3,
                "remote_gid": "::ffff:10.0.0.2",
                "dest_qpn": 17,
                "port": 1,
            },
            "probe": false,
            "unsupported": false,
        }),
    );
}

#[test]
fn a_registration_that_the_firmware_refuses() {
    let record = written(&samples::reg_mr(), Origin::default());
    for (key, expected) in [
        ("firmware", json!({"opcode": "0x0200", "op_mod": "0x0001", "status": "0x05", "syndrome": "0x001c4f3a"})),
        (
            "mr",
            json!({
                "address": "0x7f0000001000",
                "length": 4096,
                "access": ["LOCAL_WRITE", "REMOTE_READ"],
                "kind": "host",
            }),
        ),
        ("chain_cut", json!(true)),
        ("probe", json!(true)),
        ("unsupported", json!(true)),
    ] {
        assert_eq!(record[key], expected, "{key}");
    }
    for absent in ["host", "boot_id", "device", "port", "also", "duration_ns", "qp", "cq", "cm"] {
        assert_eq!(record.get(absent), None, "{absent}");
    }
}

#[test]
fn every_part_of_a_request_is_there() {
    let record = written(&samples::full(), ORIGIN);
    for (part, keys) in [("qp", 23), ("mr", 9), ("cq", 3), ("srq", 3), ("ah", 4), ("cm", 8)] {
        assert_eq!(record[part].as_object().map(serde_json::Map::len), Some(keys), "{part}");
    }
    assert_eq!(record["qp"]["state_from"], "INIT", "what was seen counts for more than what is claimed");
    assert_eq!(record["qp"]["path_mtu"], "4096");
    assert_eq!(record["port"], 3);
    assert_eq!(record["devx_opcode"], "0x0500");
    assert_eq!(record["cm"]["source"], "10.0.0.1:4000");
}

#[test]
fn the_connection_manager_and_devices() {
    check(
        &samples::cm_unreachable(),
        &json!({
            "schema": "fabricscope.event.v1",
            "time": "2026-03-01T12:34:56.789000123Z",
            "time_ns": 1_772_368_496_789_000_123_i64,
            "host": "node17",
            "boot_id": "b00t",
            "kind": "cm",
            "event": "unreachable",
            "status": -110,
            "errno": "ETIMEDOUT",
            "error": 110,
            "reason": "timed out",
            "cm_id": 3,
            "source": "10.0.0.1:4000",
            "destination": "[fd00::2]:18515",
        }),
    );
    check(
        &samples::port_error(),
        &json!({
            "schema": "fabricscope.event.v1",
            "time": "2026-03-01T12:34:56.789000123Z",
            "time_ns": 1_772_368_496_789_000_123_i64,
            "host": "node17",
            "boot_id": "b00t",
            "kind": "device",
            "device": "mlx5_0",
            "port": 1,
            "event": "port_err",
        }),
    );
}

#[test]
fn a_nic_that_is_not_well_has_all_its_names() {
    let record = written(&samples::firmware_fatal(), ORIGIN);
    for (key, expected) in [
        ("kind", "health"),
        ("device", "mlx5_0"),
        ("netdev", "eth0"),
        ("pci", "0000:3b:00.0"),
        ("event", "devlink_health"),
        ("reporter", "fw_fatal"),
        ("message", "FW fatal error reported"),
    ] {
        assert_eq!(record[key], expected, "{key}");
    }
    assert!(record["meaning"].as_str().is_some_and(|meaning| meaning.contains("devlink health")));
    assert_eq!(record.get("values"), None);
    let record = written(&samples::transmit_timeout(), ORIGIN);
    assert_eq!((record.get("device"), record.get("pci"), &record["values"]["queue"]), (None, None, &json!(3)));
}

#[test]
fn a_rejection_has_a_status_and_no_error() {
    let Event::Cm(mut event) = samples::cm_unreachable() else { panic!("of the connection manager") };
    event.status = 28;
    let record = written(&Event::Cm(event), ORIGIN);
    assert_eq!((record.get("errno"), record.get("error")), (None, None));
    assert_eq!(record["status"], 28);
}

#[test]
fn text_of_any_kind_stays_on_its_line() {
    let Event::Verbs(mut failure) = samples::modify_qp() else { panic!("of verbs") };
    failure.comm = "a\nb\"\u{1b}".to_owned();
    assert_eq!(written(&Event::Verbs(failure), ORIGIN)["comm"], "a\nb\"\u{1b}");
}
