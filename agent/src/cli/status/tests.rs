//! What the report says, with an agent and without.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser as _;
use serde_json::Value;

use super::*;
use crate::event::Event;
use crate::host::rdma::{RdmaDevice, RdmaPort};
use crate::rpc::seen::{AgentInfo, AgentLoss};
use crate::verbs::samples;

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    status: StatusArgs,
}

fn device() -> RdmaDevice {
    let port = RdmaPort {
        number: 1,
        state: Some("ACTIVE".to_owned()),
        rate: Some("400 Gb/sec (4X NDR)".to_owned()),
        link_layer: Some("Ethernet".to_owned()),
        netdevs: vec!["eth0".to_owned()],
        ..RdmaPort::default()
    };
    RdmaDevice {
        name: "mlx5_0".to_owned(),
        driver: Some("mlx5_ib".to_owned()),
        firmware: Some("28.39.1002".to_owned()),
        ports: vec![port],
        ..RdmaDevice::default()
    }
}

fn status(degraded: &[&str], last_failures: Vec<Event>) -> Report {
    Report::Agent(Box::new(AgentStatus {
        info: AgentInfo {
            version: "0.1.0".to_owned(),
            started: samples::time(),
            host: Some("node17".to_owned()),
            kernel: Some("6.12.0".to_owned()),
            boot_id: Some("b00t".to_owned()),
            metrics: Some("127.0.0.1:17317".to_owned()),
        },
        uptime: Duration::from_secs(3_725),
        hooks_attached: 38,
        hooks_wanted: 40,
        degraded: degraded.iter().map(|text| (*text).to_owned()).collect(),
        idle: vec!["2 hooks: module mlx5_core is not loaded".to_owned()],
        notes: vec!["packets are changed".to_owned()],
        calls: 1000,
        failures: 12,
        probes: 3,
        losses: vec![AgentLoss {
            program: "verbs".to_owned(),
            stage: "ring".to_owned(),
            reason: "no_space".to_owned(),
            count: 7,
        }],
        last_failures,
        devices: vec![device()],
    }))
}

fn printed(report: &Report, output: Output, width: Option<usize>) -> String {
    let mut out = Vec::new();
    report.print(&[], output, Paper { width, colour: false }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn an_agent_s_screen_tells_everything_asked_of_it() {
    let report = status(&["hook rxe_check_cq is not attached: refused"], vec![samples::modify_qp()]);
    let screen = printed(&report, Output::Table, None);
    for expected in [
        "agent     version 0.1.0 on node17, up 1 h 2 min\n",
        "kernel    6.12.0\n",
        "metrics   http://127.0.0.1:17317/metrics\n",
        "hooks     38 of 40 attached\n",
        "idle      2 hooks: module mlx5_core is not loaded\n",
        "note      packets are changed\n",
        "calls     1000, of these 12 failed and 3 only probed\n",
        "degraded  hook rxe_check_cq is not attached: refused\n",
        "lost      7 at verbs/ring: no_space\n",
        "mlx5_0      modify_qp",
        "ib_resolve_eth_dmac",
        "trainer/4711",
        "400 Gb/sec (4X NDR)",
    ] {
        assert!(screen.contains(expected), "{expected:?} is not in\n{screen}");
    }
    assert_eq!(report.exit_code(), ExitCode::FAILURE);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let report = status(&["something that takes many words to tell ".repeat(9).as_str()], samples::all());
    for width in [60, 80, 100, 160, 240] {
        for line in printed(&report, Output::Table, Some(width)).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn with_many_failures_it_is_still_one_screen() {
    let failures = std::iter::repeat_with(samples::reg_mr).take(64).collect();
    let screen = printed(&status(&[], failures), Output::Table, Some(120));
    assert_eq!(screen.lines().filter(|line| line.contains("reg_mr")).count(), 8);
    assert!(screen.lines().count() <= 24, "{screen}");
}

#[test]
fn an_agent_s_object_has_the_events_records() {
    let report = status(&[], vec![samples::modify_qp()]);
    let object: Value = serde_json::from_str(&printed(&report, Output::Json, None)).unwrap();
    for (pointer, expected) in [
        ("/schema", Value::from("fabricscope.status.v1")),
        ("/running", true.into()),
        ("/host", "node17".into()),
        ("/agent/uptime_seconds", 3725.0.into()),
        ("/agent/hooks_attached", 38.into()),
        ("/agent/lost/0/count", 7.into()),
        ("/agent/last_failures/0/function", "ib_resolve_eth_dmac".into()),
        ("/agent/last_failures/0/host", "node17".into()),
        ("/devices/0/ports/0/netdevs/0", "eth0".into()),
    ] {
        assert_eq!(object.pointer(pointer), Some(&expected), "{pointer}");
    }
    assert_eq!(object.pointer("/offers"), None);
    assert_eq!(report.exit_code(), ExitCode::SUCCESS);
}

#[test]
fn without_an_agent_the_host_is_shown() {
    let mut facts = HostFacts::default();
    facts.kernel.release = Some("6.12.0".to_owned());
    facts.rdma.devices.push(device());
    let offers = doctor::offers(&facts);
    let report = Report::Alone(Box::new(facts), offers);
    let screen = printed(&report, Output::Table, None);
    for expected in ["agent     none runs on this host", "verbs tracing", "mlx5_0", "kernel    6.12.0"] {
        assert!(screen.contains(expected), "{expected:?} is not in\n{screen}");
    }
    let object: Value = serde_json::from_str(&printed(&report, Output::Json, None)).unwrap();
    assert_eq!(object["running"], false);
    assert_eq!(object["offers"][0]["feature"], "verbs tracing");
    assert_eq!(object.get("agent"), None);
    assert_eq!(report.exit_code(), ExitCode::SUCCESS);
}

#[test]
fn an_agent_that_was_asked_for_and_is_not_there_is_status_3() {
    let directory = tempfile::tempdir().unwrap();
    let dead = directory.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    for socket in [directory.path().join("none.sock"), dead, PathBuf::from("/proc/version")] {
        let args = Cli::parse_from(["status".as_ref(), "--socket".as_ref(), socket.as_os_str()]).status;
        let mut out = Vec::new();
        let error = run(&args, &mut out).unwrap_err();
        assert!(out.is_empty());
        assert_eq!(crate::cli::exit_code(&error), ExitCode::from(3));
        assert!(error.to_string().starts_with("agent unreachable on /"), "{error}");
    }
}
