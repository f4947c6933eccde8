//! One line of the log as JSON. What is not known is absent.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use super::fold::Folded;
use crate::event::{Event, Link};
use crate::host::device_number::DeviceNumber;
use crate::host::errno::{errno_meaning, errno_name};
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::InFlight;
use crate::verbs::names::verb_name;

/// Keys are those of the events' own JSON, with the folding's before them.
#[derive(Serialize)]
struct FailureLine<'a> {
    kind: &'static str,
    /// RFC 3339 with nanoseconds, UTC: when the last of them failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// How many failures alike this line stands for.
    count: u64,
    /// The seconds they were gathered over; absent for the first, which is told at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    verb: &'a str,
    errno: String,
    error: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    layer: &'static str,
    function: &'a str,
    chain: Vec<LinkLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syndrome: Option<String>,
    pid: u32,
    tid: u32,
    comm: &'a str,
    uid: u32,
    cgroup_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    probe: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unsupported: bool,
}

#[derive(Serialize)]
struct LinkLine<'a> {
    layer: &'static str,
    function: &'a str,
    error: String,
}

/// A call that hangs.
#[derive(Serialize)]
struct StuckLine<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    verb: &'a str,
    pid: u32,
    tid: u32,
    /// How long it has been under way.
    age_ns: u64,
}

/// The line of a number of failures; `None` for events of other kinds.
pub(super) fn failure(
    host: Option<&str>,
    boot_id: Option<&str>,
    folded: &Folded,
) -> Option<serde_json::Result<String>> {
    let Event::Verbs(failure) = &*folded.event else {
        return None;
    };
    let link = |link: &Link| (link.layer.name(), errno_name(link.errno).into_owned());
    let chain = failure.chain.iter().map(|found| {
        let (layer, error) = link(found);
        LinkLine { layer, function: &found.function, error }
    });
    Some(serde_json::to_string(&FailureLine {
        kind: "verbs",
        time: rfc3339(failure.time),
        count: folded.count,
        window_seconds: folded.window.map(|window| window.as_secs_f64()),
        host,
        boot_id,
        device: failure.device.as_deref(),
        verb: &failure.verb,
        errno: errno_name(failure.errno).into_owned(),
        error: failure.errno,
        message: errno_meaning(failure.errno),
        layer: failure.answer.layer.name(),
        function: &failure.answer.function,
        chain: chain.collect(),
        syndrome: failure.firmware.map(|firmware| format!("{:#x}", firmware.syndrome)),
        pid: failure.pid,
        tid: failure.tid,
        comm: &failure.comm,
        uid: failure.uid,
        cgroup_id: failure.cgroup_id,
        duration_ns: failure.duration_ns,
        probe: failure.probe,
        unsupported: failure.unsupported,
    }))
}

/// The line of a call that hangs.
pub(super) fn stuck(
    host: Option<&str>,
    boot_id: Option<&str>,
    now_ns: u64,
    call: &InFlight,
    devices: &RdmaFacts,
) -> serde_json::Result<String> {
    let InFlight { pid, tid, key, rdev, start_ns } = *call;
    serde_json::to_string(&StuckLine {
        kind: "stuck",
        time: rfc3339(SystemTime::now()),
        host,
        boot_id,
        device: device_of(rdev, devices),
        verb: &verb_name(key),
        pid,
        tid,
        age_ns: now_ns.saturating_sub(start_ns),
    })
}

fn device_of(rdev: u32, devices: &RdmaFacts) -> Option<&str> {
    if rdev == 0 { None } else { devices.device_of(DeviceNumber::from_kernel(rdev)) }
}

/// Absent for times that no calendar has.
fn rfc3339(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| format!("{time:.9}"))
}
