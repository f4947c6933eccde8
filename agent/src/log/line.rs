//! One line of the log as JSON: the events' own keys, with the folding's. What is not known is absent.

use std::time::SystemTime;

use serde::Serialize;

use super::fold::Folded;
use crate::event::Event;
use crate::host::device_number::DeviceNumber;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::InFlight;
use crate::verbs::json::{Origin, Record, time_text};
use crate::verbs::names::verb_name;

/// A number of failures.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct FailureLine<'a> {
    /// How many failures alike this line stands for; the rest tells the last of them.
    count: u64,
    /// The seconds they were gathered over; absent for the first, which is told at once.
    window_seconds: Option<f64>,
    #[serde(flatten)]
    event: Record<'a>,
}

/// A call that hangs.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct StuckLine<'a> {
    kind: &'static str,
    time: Option<String>,
    host: Option<&'a str>,
    boot_id: Option<&'a str>,
    device: Option<&'a str>,
    verb: &'a str,
    pid: u32,
    tid: u32,
    /// How long it has been under way.
    age_ns: u64,
}

/// The line of a number of failures.
pub(super) fn failure(origin: Origin<'_>, folded: &Folded) -> serde_json::Result<String> {
    let event: &Event = &folded.event;
    serde_json::to_string(&FailureLine {
        count: folded.count,
        window_seconds: folded.window.map(|window| window.as_secs_f64()),
        event: Record::of(event, origin),
    })
}

/// The line of a call that hangs.
pub(super) fn stuck(
    origin: Origin<'_>,
    now_ns: u64,
    call: &InFlight,
    devices: &RdmaFacts,
) -> serde_json::Result<String> {
    let InFlight { pid, tid, key, rdev, start_ns } = *call;
    serde_json::to_string(&StuckLine {
        kind: "stuck",
        time: time_text(SystemTime::now()),
        host: origin.host,
        boot_id: origin.boot_id,
        device: if rdev == 0 { None } else { devices.device_of(DeviceNumber::from_kernel(rdev)) },
        verb: &verb_name(key),
        pid,
        tid,
        age_ns: now_ns.saturating_sub(start_ns),
    })
}
