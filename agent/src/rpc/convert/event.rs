//! Events, to the wire and back.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use agent_common::verb::VerbKey;
use proto::v1;

use super::{Result, WireError, exact, parse, required};
use crate::daemon::handle::Info;
use crate::event::{CmEvent, DeviceEvent, Event, Failure, Firmware, KnownQp, Link};
use crate::host::process::Process;
use crate::probes::Layer;

/// The layers on both sides.
const LAYERS: [(Layer, v1::Layer); 4] = [
    (Layer::Syscall, v1::Layer::Syscall),
    (Layer::Core, v1::Layer::Core),
    (Layer::Driver, v1::Layer::Driver),
    (Layer::Firmware, v1::Layer::Firmware),
];

/// The event as it leaves the host.
pub(crate) fn event_to_wire(event: &Event, info: &Info) -> v1::Event {
    let kind = match event {
        Event::Verbs(failure) => v1::event::Kind::Verbs(failure.as_ref().into()),
        Event::Cm(event) => v1::event::Kind::Cm(event.into()),
        Event::Device(event) => v1::event::Kind::Device(event.into()),
        Event::Health(event) => v1::event::Kind::Health(event.as_ref().into()),
    };
    v1::Event { host: info.host.clone(), boot_id: info.boot_id.clone(), kind: Some(kind) }
}

impl TryFrom<v1::Event> for Event {
    type Error = WireError;

    fn try_from(wire: v1::Event) -> Result<Self> {
        match required("kind", wire.kind)? {
            v1::event::Kind::Verbs(failure) => Ok(Self::Verbs(Box::new(failure.try_into()?))),
            v1::event::Kind::Cm(event) => Ok(Self::Cm(event.try_into()?)),
            v1::event::Kind::Device(event) => Ok(Self::Device(event.try_into()?)),
            v1::event::Kind::Health(event) => Ok(Self::Health(Box::new(event.try_into()?))),
        }
    }
}

/// Nanoseconds since 1970; what does not fit becomes the nearest that does.
pub(super) fn time_to_wire(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    }
}

pub(super) fn time_from_wire(field: &'static str, ns: i64) -> Result<SystemTime> {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if ns < 0 { epoch.checked_sub(distance) } else { epoch.checked_add(distance) };
    time.ok_or(WireError::OutOfRange(field))
}

pub(super) fn layer_to_wire(layer: Layer) -> v1::Layer {
    LAYERS.iter().find(|(domain, _)| *domain == layer).map_or(v1::Layer::Unspecified, |(_, wire)| *wire)
}

/// A layer is what an answer stands on, so one that is not known is an error.
fn layer_from_wire(number: i32) -> Result<Layer> {
    let known = LAYERS.iter().find(|(_, wire)| i32::from(*wire) == number);
    known.map(|(domain, _)| *domain).ok_or(WireError::Unknown("layer", number))
}

impl From<&Link> for v1::Link {
    fn from(link: &Link) -> Self {
        Self {
            layer: layer_to_wire(link.layer).into(),
            function: link.function.clone(),
            errno: link.errno.unsigned_abs(),
        }
    }
}

impl TryFrom<v1::Link> for Link {
    type Error = WireError;

    fn try_from(wire: v1::Link) -> Result<Self> {
        Ok(Self { layer: layer_from_wire(wire.layer)?, function: wire.function, errno: exact("errno", wire.errno)? })
    }
}

impl From<Firmware> for v1::Firmware {
    fn from(firmware: Firmware) -> Self {
        let Firmware { opcode, op_mod, status, syndrome } = firmware;
        Self { opcode, op_mod, status, syndrome }
    }
}

impl From<v1::Firmware> for Firmware {
    fn from(wire: v1::Firmware) -> Self {
        let v1::Firmware { opcode, op_mod, status, syndrome } = wire;
        Self { opcode, op_mod, status, syndrome }
    }
}

fn verb_id_to_wire(key: VerbKey) -> v1::VerbId {
    v1::VerbId {
        interface: key.interface().into(),
        driver: key.driver().into(),
        object: key.object().into(),
        method: key.method().into(),
    }
}

fn verb_id_from_wire(wire: v1::VerbId) -> Result<VerbKey> {
    Ok(VerbKey::new(
        exact("interface", wire.interface)?,
        exact("driver", wire.driver)?,
        exact("object", wire.object)?,
        exact("method", wire.method)?,
    ))
}

impl From<&Failure> for v1::VerbsFailure {
    fn from(failure: &Failure) -> Self {
        let qp = failure.qp.as_ref();
        Self {
            time_ns: time_to_wire(failure.time),
            monotonic_ns: failure.monotonic_ns,
            duration_ns: failure.duration_ns,
            verb: failure.verb.clone().into_owned(),
            verb_id: Some(verb_id_to_wire(failure.key)),
            device: failure.device.clone(),
            errno: failure.errno.unsigned_abs(),
            answer: Some((&failure.answer).into()),
            chain: failure.chain.iter().map(Into::into).collect(),
            chain_cut: failure.chain_cut,
            firmware: failure.firmware.map(Into::into),
            pid: failure.pid,
            tid: failure.tid,
            uid: failure.uid,
            comm: failure.comm.clone(),
            cgroup_id: failure.cgroup_id,
            probe: failure.probe,
            unsupported: failure.unsupported,
            qp: qp.map(|qp| v1::KnownQp { number: qp.number, r#type: qp.kind, state: qp.state }),
            request: Some((&failure.request).into()),
            cgroup: failure.process.cgroup.clone(),
            process_start_ns: failure.process.start_ns,
            cause: failure.cause.clone(),
        }
    }
}

impl TryFrom<v1::VerbsFailure> for Failure {
    type Error = WireError;

    fn try_from(wire: v1::VerbsFailure) -> Result<Self> {
        Ok(Self {
            time: time_from_wire("time_ns", wire.time_ns)?,
            monotonic_ns: wire.monotonic_ns,
            duration_ns: wire.duration_ns,
            key: verb_id_from_wire(required("verb_id", wire.verb_id)?)?,
            verb: Cow::Owned(wire.verb),
            device: wire.device,
            errno: exact("errno", wire.errno)?,
            answer: required("answer", wire.answer)?.try_into()?,
            chain: wire.chain.into_iter().map(TryInto::try_into).collect::<Result<_>>()?,
            chain_cut: wire.chain_cut,
            firmware: wire.firmware.map(Into::into),
            pid: wire.pid,
            tid: wire.tid,
            uid: wire.uid,
            comm: wire.comm,
            cgroup_id: wire.cgroup_id,
            probe: wire.probe,
            unsupported: wire.unsupported,
            qp: wire.qp.map(|qp| KnownQp { number: qp.number, kind: qp.r#type, state: qp.state }),
            request: wire.request.unwrap_or_default().try_into()?,
            process: Process { start_ns: wire.process_start_ns, cgroup: wire.cgroup },
            cause: wire.cause,
        })
    }
}

fn address_to_wire(address: Option<(IpAddr, u16)>) -> Option<String> {
    address.map(|address| SocketAddr::from(address).to_string())
}

fn address_from_wire(field: &'static str, text: Option<String>) -> Result<Option<(IpAddr, u16)>> {
    let address: Option<SocketAddr> = text.map(|text| parse(field, &text)).transpose()?;
    Ok(address.map(|address| (address.ip(), address.port())))
}

impl From<&CmEvent> for v1::CmEvent {
    fn from(event: &CmEvent) -> Self {
        Self {
            time_ns: time_to_wire(event.time),
            event: event.event,
            name: event.name.clone().into_owned(),
            status: event.status,
            reason: event.reason.clone(),
            cm_id: event.cm_id,
            source: address_to_wire(event.source),
            destination: address_to_wire(event.destination),
        }
    }
}

impl TryFrom<v1::CmEvent> for CmEvent {
    type Error = WireError;

    fn try_from(wire: v1::CmEvent) -> Result<Self> {
        Ok(Self {
            time: time_from_wire("time_ns", wire.time_ns)?,
            event: wire.event,
            name: Cow::Owned(wire.name),
            status: wire.status,
            reason: wire.reason,
            cm_id: wire.cm_id,
            source: address_from_wire("source", wire.source)?,
            destination: address_from_wire("destination", wire.destination)?,
        })
    }
}

impl From<&DeviceEvent> for v1::DeviceEvent {
    fn from(event: &DeviceEvent) -> Self {
        Self {
            time_ns: time_to_wire(event.time),
            event: event.event,
            name: event.name.clone().into_owned(),
            device: event.device.clone(),
            port: event.port,
            qp: event.qp,
        }
    }
}

impl TryFrom<v1::DeviceEvent> for DeviceEvent {
    type Error = WireError;

    fn try_from(wire: v1::DeviceEvent) -> Result<Self> {
        Ok(Self {
            time: time_from_wire("time_ns", wire.time_ns)?,
            event: wire.event,
            name: Cow::Owned(wire.name),
            device: wire.device,
            port: wire.port,
            qp: wire.qp,
        })
    }
}
