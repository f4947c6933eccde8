//! Health events, to the wire and back.

use proto::v1;

use super::event::{time_from_wire, time_to_wire};
use super::{Result, WireError};
use crate::health::{HealthEvent, Place};

impl From<&HealthEvent> for v1::HealthEvent {
    fn from(event: &HealthEvent) -> Self {
        let Place { device, netdev, pci } = event.place.clone();
        let number = |(name, value): &(String, i64)| v1::NamedNumber { name: name.clone(), value: *value };
        Self {
            time_ns: time_to_wire(event.time),
            event: event.event.clone(),
            device,
            netdev,
            pci,
            part: event.part.clone(),
            message: event.message.clone(),
            values: event.values.iter().map(number).collect(),
        }
    }
}

impl TryFrom<v1::HealthEvent> for HealthEvent {
    type Error = WireError;

    fn try_from(wire: v1::HealthEvent) -> Result<Self> {
        Ok(Self {
            time: time_from_wire("time_ns", wire.time_ns)?,
            event: wire.event,
            place: Place { device: wire.device, netdev: wire.netdev, pci: wire.pci },
            part: wire.part,
            message: wire.message,
            values: wire.values.into_iter().map(|number| (number.name, number.value)).collect(),
        })
    }
}
