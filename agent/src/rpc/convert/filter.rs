//! Which events are wanted, to the wire and back.

use proto::v1;

use super::{Result, WireError, narrow};
use crate::daemon::handle::Filter;
use crate::probes::Subject;
use crate::rpc::limits;

/// The kinds on both sides.
const KINDS: [(Subject, v1::EventKind); 4] = [
    (Subject::Verbs, v1::EventKind::Verbs),
    (Subject::Cm, v1::EventKind::Cm),
    (Subject::Device, v1::EventKind::Device),
    (Subject::Health, v1::EventKind::Health),
];

/// What is only counted belongs to health, as in the configuration.
pub(super) fn kind_to_wire(subject: Subject) -> v1::EventKind {
    let subject = if matches!(subject, Subject::Napi | Subject::Drops) { Subject::Health } else { subject };
    KINDS.iter().find(|(domain, _)| *domain == subject).map_or(v1::EventKind::Unspecified, |(_, wire)| *wire)
}

/// An unknown kind is an error: to leave it out would ask for all kinds.
fn kind_from_wire(number: i32) -> Result<Subject> {
    let known = KINDS.iter().find(|(_, wire)| i32::from(*wire) == number);
    known.map(|(domain, _)| *domain).ok_or(WireError::Unknown("kinds", number))
}

fn short(field: &'static str, text: Option<String>, max: usize) -> Result<Option<String>> {
    if text.as_ref().is_some_and(|text| text.len() > max) { Err(WireError::TooLong(field, max)) } else { Ok(text) }
}

impl From<&Filter> for v1::WatchEventsRequest {
    fn from(filter: &Filter) -> Self {
        Self {
            kinds: filter.kinds.iter().map(|kind| kind_to_wire(*kind).into()).collect(),
            pid: filter.pid,
            comm: filter.comm.clone(),
            device: filter.device.clone(),
            verb: filter.verb.clone(),
            errno: filter.errno.map(i32::unsigned_abs),
            cgroup_id: filter.cgroup_id,
            include_probes: filter.include_probes,
        }
    }
}

impl TryFrom<v1::WatchEventsRequest> for Filter {
    type Error = WireError;

    fn try_from(wire: v1::WatchEventsRequest) -> Result<Self> {
        if wire.kinds.len() > limits::FILTER_KINDS {
            return Err(WireError::TooLong("kinds", limits::FILTER_KINDS));
        }
        Ok(Self {
            kinds: wire.kinds.into_iter().map(kind_from_wire).collect::<Result<_>>()?,
            pid: wire.pid,
            comm: short("comm", wire.comm, limits::FILTER_COMM)?,
            device: short("device", wire.device, limits::FILTER_DEVICE)?,
            verb: short("verb", wire.verb, limits::FILTER_VERB)?,
            errno: narrow("errno", wire.errno)?,
            cgroup_id: wire.cgroup_id,
            include_probes: wire.include_probes,
        })
    }
}
