//! Events as JSON, one object a line. What is not known is absent.

mod request;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

use serde::Serialize;

use self::request::{AhRecord, CmCommandRecord, CqRecord, MrRecord, QpRecord, SrqRecord};
use crate::event::{CmEvent, DeviceEvent, Event, Failure, Firmware, Link};
use crate::health::HealthEvent;
use crate::host::errno::{errno_meaning, errno_name};

pub(super) use request::qp_known;

/// Names the layout of the objects. Keys are only ever added to it.
const SCHEMA: &str = "fabricscope.event.v1";

/// Where events come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin<'a> {
    /// The host's name.
    pub(crate) host: Option<&'a str>,
    /// Names this boot of the host.
    pub(crate) boot_id: Option<&'a str>,
}

/// Writes the event as one line.
///
/// # Errors
///
/// Only if `out` cannot be written.
pub(crate) fn write_line(event: &Event, origin: Origin<'_>, out: &mut impl Write) -> io::Result<()> {
    // In one piece: a traced command may write to the same pipe in between.
    let mut line = serde_json::to_vec(&Record::of(event, origin))?;
    line.push(b'\n');
    out.write_all(&line)
}

/// The moment as RFC 3339 with nanoseconds, in UTC; `None` for one beyond the year 9999.
pub(crate) fn time_text(time: SystemTime) -> Option<String> {
    jiff::Timestamp::try_from(time).ok().map(|time| format!("{time:.9}"))
}

/// An event in the form that is written; others may put it into objects of their own.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Record<'a> {
    /// A failed call.
    Verbs(Box<VerbsRecord<'a>>),
    /// The connection manager.
    Cm(CmRecord<'a>),
    /// A device.
    Device(DeviceRecord<'a>),
    /// A NIC that is not well.
    Health(HealthRecord<'a>),
}

impl<'a> Record<'a> {
    /// The event's record.
    pub(crate) fn of(event: &'a Event, origin: Origin<'a>) -> Self {
        match event {
            Event::Verbs(failure) => Self::Verbs(Box::new(VerbsRecord::of(failure, origin))),
            Event::Cm(event) => Self::Cm(CmRecord::of(event, origin)),
            Event::Device(event) => Self::Device(DeviceRecord::of(event, origin)),
            Event::Health(event) => Self::Health(HealthRecord::of(event, origin)),
        }
    }
}

/// What all records have.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
struct Head<'a> {
    schema: &'static str,
    time: Option<String>,
    time_ns: Option<i64>,
    monotonic_ns: Option<u64>,
    host: Option<&'a str>,
    boot_id: Option<&'a str>,
    kind: &'static str,
}

impl<'a> Head<'a> {
    fn of(kind: &'static str, time: SystemTime, monotonic_ns: Option<u64>, origin: Origin<'a>) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok();
        Self {
            schema: SCHEMA,
            time: time_text(time),
            time_ns: since.and_then(|since| i64::try_from(since.as_nanos()).ok()),
            monotonic_ns,
            host: origin.host,
            boot_id: origin.boot_id,
            kind,
        }
    }
}

/// A failed call.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct VerbsRecord<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    device: Option<&'a str>,
    port: Option<u8>,
    verb: &'a str,
    errno: Cow<'static, str>,
    error: i32,
    message: Option<&'static str>,
    cause: Option<&'a str>,
    layer: &'static str,
    function: &'a str,
    chain: Vec<LinkRecord<'a>>,
    #[serde(skip_serializing_if = "is_false")]
    chain_cut: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<LinkRecord<'a>>,
    firmware: Option<FirmwareRecord>,
    pid: u32,
    tid: u32,
    comm: &'a str,
    uid: u32,
    cgroup_id: u64,
    cgroup: Option<&'a str>,
    process_start_ns: Option<u64>,
    duration_ns: Option<u64>,
    qp: Option<QpRecord>,
    mr: Option<MrRecord>,
    cq: Option<CqRecord>,
    srq: Option<SrqRecord>,
    ah: Option<AhRecord>,
    cm: Option<CmCommandRecord>,
    pd_handle: Option<u32>,
    handle: Option<u32>,
    gid_index: Option<u32>,
    devx_opcode: Option<String>,
    probe: bool,
    unsupported: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> VerbsRecord<'a> {
    fn of(failure: &'a Failure, origin: Origin<'a>) -> Self {
        let request = &failure.request;
        Self {
            head: Head::of("verbs", failure.time, Some(failure.monotonic_ns), origin),
            device: failure.device.as_deref(),
            port: port(failure),
            verb: &failure.verb,
            errno: errno_name(failure.errno),
            error: failure.errno,
            message: errno_meaning(failure.errno),
            layer: failure.answer.layer.name(),
            function: &failure.answer.function,
            chain: failure.chain.iter().map(LinkRecord::of).collect(),
            chain_cut: failure.chain_cut,
            also: also(failure).map(LinkRecord::of).collect(),
            firmware: failure.firmware.map(FirmwareRecord::of),
            pid: failure.pid,
            tid: failure.tid,
            comm: &failure.comm,
            uid: failure.uid,
            cause: failure.cause.as_deref(),
            cgroup_id: failure.cgroup_id,
            cgroup: failure.process.cgroup.as_deref(),
            process_start_ns: failure.process.start_ns,
            duration_ns: failure.duration_ns,
            qp: QpRecord::of(request.qp.as_ref(), failure.qp.as_ref()),
            mr: request.mr.as_ref().map(MrRecord::of),
            cq: request.cq.as_ref().map(CqRecord::of),
            srq: request.srq.as_ref().map(SrqRecord::of),
            ah: request.ah.as_ref().map(AhRecord::of),
            cm: request.cm.as_ref().map(CmCommandRecord::of),
            pd_handle: request.pd_handle,
            handle: request.handle,
            gid_index: request.gid_index,
            devx_opcode: request.devx_opcode.map(|opcode| format!("{opcode:#06x}")),
            probe: failure.probe,
            unsupported: failure.unsupported,
        }
    }
}

/// The device's port that the call is about, by whichever part names it.
pub(super) fn port(failure: &Failure) -> Option<u8> {
    let request = &failure.request;
    let of_qp = || request.qp.as_ref().and_then(|qp| qp.port);
    let of_ah = || request.ah.as_ref().and_then(|ah| ah.port);
    request.port.or_else(of_qp).or_else(of_ah)
}

/// Layers deeper than the answer, whose error the call did not return.
pub(super) fn also(failure: &Failure) -> impl Iterator<Item = &Link> {
    let answer = failure.chain.iter().position(|link| *link == failure.answer).unwrap_or(0);
    failure.chain.iter().take(answer).filter(|link| link.errno != failure.errno)
}

/// A layer that failed.
#[derive(Debug, Serialize)]
struct LinkRecord<'a> {
    layer: &'static str,
    function: &'a str,
    /// The error's name.
    errno: Cow<'static, str>,
    /// Its number, positive.
    error: i32,
}

impl<'a> LinkRecord<'a> {
    fn of(link: &'a Link) -> Self {
        Self { layer: link.layer.name(), function: &link.function, errno: errno_name(link.errno), error: link.errno }
    }
}

/// What a firmware command said, in the notation of vendors' documents.
#[derive(Debug, Serialize)]
struct FirmwareRecord {
    opcode: String,
    op_mod: String,
    status: String,
    syndrome: String,
}

impl FirmwareRecord {
    fn of(firmware: Firmware) -> Self {
        Self {
            opcode: format!("{:#06x}", firmware.opcode),
            op_mod: format!("{:#06x}", firmware.op_mod),
            status: format!("{:#04x}", firmware.status),
            syndrome: format!("{:#010x}", firmware.syndrome),
        }
    }
}

/// An event of the connection manager. It has an error only if its status is one.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct CmRecord<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    event: &'a str,
    status: i32,
    errno: Option<Cow<'static, str>>,
    error: Option<i32>,
    reason: Option<&'a str>,
    cm_id: u32,
    source: Option<String>,
    destination: Option<String>,
}

impl<'a> CmRecord<'a> {
    fn of(event: &'a CmEvent, origin: Origin<'a>) -> Self {
        let error = cm_error(event);
        let address = |address: Option<_>| address.map(|address| std::net::SocketAddr::from(address).to_string());
        Self {
            head: Head::of("cm", event.time, None, origin),
            event: &event.name,
            status: event.status,
            errno: error.map(errno_name),
            error,
            reason: event.reason.as_deref(),
            cm_id: event.cm_id,
            source: address(event.source),
            destination: address(event.destination),
        }
    }
}

/// The error of an event of the connection manager, positive; rejections carry a reason instead.
pub(super) fn cm_error(event: &CmEvent) -> Option<i32> {
    event.status.checked_neg().filter(|error| *error > 0)
}

/// An event of a device.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct DeviceRecord<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    device: Option<&'a str>,
    port: Option<u32>,
    event: &'a str,
    qpn: Option<u32>,
}

impl<'a> DeviceRecord<'a> {
    fn of(event: &'a DeviceEvent, origin: Origin<'a>) -> Self {
        Self {
            head: Head::of("device", event.time, None, origin),
            device: event.device.as_deref(),
            port: event.port,
            event: &event.name,
            qpn: event.qp,
        }
    }
}

/// A NIC that is not well.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct HealthRecord<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    device: Option<&'a str>,
    netdev: Option<&'a str>,
    pci: Option<&'a str>,
    event: &'a str,
    reporter: Option<&'a str>,
    message: Option<&'a str>,
    values: Option<BTreeMap<&'a str, i64>>,
    meaning: Option<&'static str>,
}

impl<'a> HealthRecord<'a> {
    fn of(event: &'a HealthEvent, origin: Origin<'a>) -> Self {
        let values: BTreeMap<_, _> = event.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        Self {
            head: Head::of("health", event.time, None, origin),
            device: event.place.device.as_deref(),
            netdev: event.place.netdev.as_deref(),
            pci: event.place.pci.as_deref(),
            event: &event.event,
            reporter: event.part.as_deref(),
            message: event.message.as_deref(),
            values: Some(values).filter(|values| !values.is_empty()),
            meaning: event.meaning(),
        }
    }
}
