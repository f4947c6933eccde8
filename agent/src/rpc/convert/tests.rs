//! What goes to the wire comes back as it was; what cannot be is refused by name.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proto::v1;

use super::*;
use crate::daemon::handle::{Filter, Info, Loss, Status};
use crate::event::Event;
use crate::host::rdma::{RdmaDevice, RdmaPort};
use crate::kernel::state::{HookState, How, State};
use crate::probes::{Hook, Subject};
use crate::rpc::seen::AgentStatus;
use crate::verbs::request::types::{MrKind, Request};
use crate::verbs::samples;

pub(in crate::rpc) fn info() -> Info {
    Info {
        version: "0.1.0",
        started: samples::time(),
        host: Some("node17".to_owned()),
        kernel: None,
        boot_id: Some("b00t".to_owned()),
        metrics: Some(([127, 0, 0, 1], 17317).into()),
    }
}

/// Over the wire for real.
fn sent<M: prost::Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

#[test]
fn events_come_back_as_they_were() {
    for event in samples::all() {
        let wire = sent(&event_to_wire(&event, &info()));
        assert_eq!((wire.host.as_deref(), wire.boot_id.as_deref()), (Some("node17"), Some("b00t")));
        let back = Event::try_from(wire).unwrap();
        assert_eq!(format!("{back:?}"), format!("{event:?}"));
    }
}

#[test]
fn requests_come_back_with_every_field_and_with_none() {
    for kind in [MrKind::Host, MrKind::DmaBuf, MrKind::OnDemand, MrKind::Dm] {
        let mut request = samples::full_request();
        request.mr.as_mut().unwrap().kind = Some(kind);
        assert_eq!(Request::try_from(sent(&v1::Request::from(&request))), Ok(request));
    }
    assert_eq!(Request::try_from(v1::Request::from(&Request::default())), Ok(Request::default()));
}

#[test]
fn filters_come_back_as_they_were() {
    for filter in [
        Filter::default(),
        Filter {
            kinds: vec![Subject::Verbs, Subject::Cm, Subject::Device],
            pid: Some(1),
            comm: Some("trainer".to_owned()),
            device: Some("mlx5_0".to_owned()),
            verb: Some("reg_mr".to_owned()),
            errno: Some(22),
            cgroup_id: Some(u64::MAX),
            include_probes: true,
        },
    ] {
        assert_eq!(Filter::try_from(sent(&v1::WatchEventsRequest::from(&filter))), Ok(filter));
    }
}

#[test]
fn a_filter_that_cannot_be_is_refused_by_name() {
    type Request = v1::WatchEventsRequest;
    for (request, expected) in [
        (Request { kinds: vec![9], ..Request::default() }, WireError::Unknown("kinds", 9)),
        (Request { kinds: vec![0], ..Request::default() }, WireError::Unknown("kinds", 0)),
        (Request { kinds: vec![1; 17], ..Request::default() }, WireError::TooLong("kinds", 16)),
        (Request { comm: Some("x".repeat(16)), ..Request::default() }, WireError::TooLong("comm", 15)),
        (Request { device: Some("x".repeat(64)), ..Request::default() }, WireError::TooLong("device", 63)),
        (Request { verb: Some("x".repeat(65)), ..Request::default() }, WireError::TooLong("verb", 64)),
        (Request { errno: Some(u32::MAX), ..Request::default() }, WireError::OutOfRange("errno")),
    ] {
        assert_eq!(Filter::try_from(request), Err(expected));
    }
}

#[test]
fn an_event_that_cannot_be_is_refused_by_name() {
    let wire = || match event_to_wire(&samples::modify_qp(), &info()).kind {
        Some(v1::event::Kind::Verbs(failure)) => failure,
        other => panic!("{other:?}"),
    };
    type Change = fn(&mut v1::VerbsFailure);
    let rows: [(Change, WireError); 5] = [
        (|failure| failure.answer = None, WireError::Missing("answer")),
        (|failure| failure.chain[0].layer = 77, WireError::Unknown("layer", 77)),
        (|failure| failure.verb_id.as_mut().unwrap().method = 0x1_0000, WireError::OutOfRange("method")),
        (
            |failure| failure.request.as_mut().unwrap().qp.as_mut().unwrap().remote_gid = Some("here".to_owned()),
            WireError::Text("remote_gid", "here".to_owned()),
        ),
        (
            |failure| failure.request.as_mut().unwrap().qp.as_mut().unwrap().port = Some(256),
            WireError::OutOfRange("port"),
        ),
    ];
    for (change, expected) in rows {
        let mut failure = wire();
        change(&mut failure);
        let event = v1::Event { kind: Some(v1::event::Kind::Verbs(failure)), ..v1::Event::default() };
        assert_eq!(Event::try_from(event).unwrap_err(), expected);
    }
    assert_eq!(Event::try_from(v1::Event::default()).unwrap_err(), WireError::Missing("kind"));
}

#[test]
fn hooks_come_back_in_every_state() {
    let why = || "because".to_owned();
    let attached = |how, module: &str, instead| State::Attached {
        how,
        function: "f.part.0".to_owned(),
        module: module.to_owned(),
        instead,
    };
    let states = [
        attached(How::Tracepoint, "", None),
        attached(How::Fexit, "m", None),
        attached(How::Kprobe, "m", Some(why())),
        State::Unsupported(why()),
        State::Waiting(why()),
        State::Failed(why()),
        State::Disabled(why()),
        State::Quarantined(why()),
    ];
    for ((number, _), state) in Hook::all().zip(states.into_iter().cycle()) {
        let hook = HookState { number, state, transitions: 1, run_count: 2, run_time_ns: 3, missed: 4 };
        let back = HookState::try_from(sent(&hook_to_wire(&hook).unwrap())).unwrap();
        assert_eq!(format!("{back:?}"), format!("{hook:?}"));
    }
    let unknown = v1::Hook { name: "of_tomorrow".to_owned(), ..v1::Hook::default() };
    assert_eq!(HookState::try_from(unknown).unwrap_err(), WireError::UnknownName("name", "of_tomorrow".to_owned()));
}

pub(in crate::rpc) fn status() -> Status {
    let port = RdmaPort { number: 1, state: Some("ACTIVE".to_owned()), ..RdmaPort::default() };
    Status {
        notes: vec!["packets are changed".to_owned()],
        netdevs: Vec::new(),
        info: info(),
        uptime: Duration::from_millis(1_500),
        hooks_attached: 3,
        hooks_wanted: 4,
        degraded: vec!["one".to_owned()],
        idle: vec!["two".to_owned()],
        calls: 10,
        failures: 2,
        probes: 1,
        lost: vec![Loss { program: "verbs", stage: "ring", reason: "no_space", count: 5 }],
        last_failures: vec![Arc::new(samples::modify_qp())],
        devices: vec![RdmaDevice { name: "mlx5_0".to_owned(), ports: vec![port], ..RdmaDevice::default() }],
    }
}

#[test]
fn a_status_tells_everything() {
    let status = status();
    let seen = AgentStatus::try_from(sent(&status_to_wire(&status))).unwrap();
    assert_eq!((seen.info.version.as_str(), seen.info.started), (status.info.version, status.info.started));
    assert_eq!((seen.info.host, seen.info.kernel), (status.info.host, status.info.kernel));
    assert_eq!(seen.info.metrics.as_deref(), Some("127.0.0.1:17317"));
    assert_eq!((seen.uptime, seen.hooks_attached, seen.hooks_wanted), (status.uptime, 3, 4));
    assert_eq!((seen.calls, seen.failures, seen.probes, seen.degraded), (10, 2, 1, status.degraded));
    assert_eq!(seen.idle, status.idle);
    assert_eq!((seen.losses[0].stage.as_str(), seen.losses[0].count), ("ring", 5));
    assert_eq!(seen.last_failures.len(), 1);
    assert_eq!(seen.devices, status.devices);
}

#[test]
fn every_moment_has_a_number_and_most_come_back() {
    let epoch = SystemTime::UNIX_EPOCH;
    for (time, ns) in [
        (epoch, 0),
        (epoch + Duration::from_nanos(1), 1),
        (epoch - Duration::from_nanos(1), -1),
        (samples::time(), 1_772_368_496_789_000_123),
    ] {
        assert_eq!(event::time_to_wire(time), ns);
        assert_eq!(event::time_from_wire("time_ns", ns), Ok(time));
    }
    assert_eq!(event::time_to_wire(epoch + Duration::from_secs(1 << 40)), i64::MAX);
    assert!(event::time_from_wire("time_ns", i64::MIN).is_ok());
}
