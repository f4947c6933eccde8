//! An RDMA device and its ports as the JSON of several commands. What is not known is absent.

use serde::Serialize;

use crate::host::rdma::{RdmaDevice, RdmaPort};

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct DeviceRecord<'a> {
    device: &'a str,
    driver: Option<&'a str>,
    software: bool,
    pci: Option<&'a str>,
    fw: Option<&'a str>,
    node_guid: Option<&'a str>,
    ports: Vec<PortRecord<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct PortRecord<'a> {
    port: u32,
    state: Option<&'a str>,
    phys_state: Option<&'a str>,
    rate: Option<&'a str>,
    link_layer: Option<&'a str>,
    netdevs: &'a [String],
    /// How many addresses its table holds.
    gids: usize,
}

impl<'a> DeviceRecord<'a> {
    pub(super) fn of(device: &'a RdmaDevice) -> Self {
        Self {
            device: &device.name,
            driver: device.driver.as_deref(),
            software: device.software,
            pci: device.pci.as_deref(),
            fw: device.firmware.as_deref(),
            node_guid: device.node_guid.as_deref(),
            ports: device.ports.iter().map(PortRecord::of).collect(),
        }
    }
}

impl<'a> PortRecord<'a> {
    fn of(port: &'a RdmaPort) -> Self {
        Self {
            port: port.number,
            state: port.state.as_deref(),
            phys_state: port.phys_state.as_deref(),
            rate: port.rate.as_deref(),
            link_layer: port.link_layer.as_deref(),
            netdevs: &port.netdevs,
            gids: port.gids.len(),
        }
    }
}
