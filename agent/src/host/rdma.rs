//! RDMA devices, their ports and their character devices, from sysfs. An odd attribute costs only itself.

use std::path::{Path, PathBuf};

use super::device_number::DeviceNumber;
use super::drivers;
use super::gid::{GidTable, GidType};
use super::read;
use super::roots::Roots;
use super::sriov::VirtualFunction;

/// RDMA devices looked at on one host. A host with many virtual functions has a few hundred.
const DEVICES_MAX: usize = 1024;

/// Ports looked at per device: hardware has 1 or 2, a switch up to 255.
const PORTS_MAX: usize = 256;

/// What the node description of a siw device starts with (SIW_NODE_DESC_COMMON in include/uapi/rdma/siw-abi.h).
const SIW_NODE_DESCRIPTION: &str = "Software iWARP stack";

/// What the node type of an iWARP adapter ends with (`node_type_show` of drivers/infiniband/core/sysfs.c).
const RNIC: &str = "RNIC";

/// Everything sysfs says about RDMA on this host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RdmaFacts {
    /// By name.
    pub(crate) devices: Vec<RdmaDevice>,
    /// The uverbs character devices.
    pub(crate) uverbs: Vec<UverbsNode>,
    /// The character device of the connection manager, `/dev/infiniband/rdma_cm`.
    pub(crate) rdma_cm: Option<DeviceNumber>,
}

/// One RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RdmaDevice {
    /// Such as `mlx5_0`.
    pub(crate) name: String,
    /// The module that serves the verbs (`mlx5_ib`), else the bus driver's name. Absent if neither is known.
    pub(crate) driver: Option<String>,
    /// Whether the device is software on top of a network device (soft-RoCE, soft-iWARP).
    pub(crate) software: bool,
    /// Such as `0000:3b:00.0`.
    pub(crate) pci: Option<String>,
    /// It is a virtual function.
    pub(crate) function: Option<VirtualFunction>,
    /// Firmware version; software devices have none.
    pub(crate) firmware: Option<String>,
    /// Such as `b8ce:f603:00ab:cdef`.
    pub(crate) node_guid: Option<String>,
    /// Such as `1: CA` or `4: RNIC`.
    pub(crate) node_type: Option<String>,
    /// By rising number.
    pub(crate) ports: Vec<RdmaPort>,
}

/// One port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RdmaPort {
    /// From 1.
    pub(crate) number: u32,
    /// `DOWN`, `INIT`, `ARMED`, `ACTIVE`, …
    pub(crate) state: Option<String>,
    /// `LinkUp`, `Disabled`, `Polling`, …
    pub(crate) phys_state: Option<String>,
    /// As printed: `400 Gb/sec (4X NDR)`.
    pub(crate) rate: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub(crate) link_layer: Option<String>,
    /// Network devices of the port, the best known first.
    pub(crate) netdevs: Vec<String>,
    /// The GIDs in use.
    pub(crate) gids: GidTable,
}

/// A `/dev/infiniband/uverbsN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UverbsNode {
    /// Such as `uverbs0`.
    pub(crate) name: String,
    /// The number by which an open file names the device.
    pub(crate) number: DeviceNumber,
    /// The RDMA device behind it, such as `mlx5_0`.
    pub(crate) device: String,
}

impl RdmaFacts {
    /// Reads the state of this moment. Nothing found is no error: there may be no RDMA on the host.
    pub(crate) fn read(roots: &Roots) -> Self {
        let class = roots.sysfs.join("class");
        let infiniband = class.join("infiniband");
        let devices = read::names(&infiniband).into_iter().take(DEVICES_MAX);
        let verbs = class.join("infiniband_verbs");
        Self {
            devices: devices.map(|name| RdmaDevice::read(&infiniband, name)).collect(),
            uverbs: read::names(&verbs).into_iter().filter_map(|name| UverbsNode::read(&verbs, name)).collect(),
            rdma_cm: read::parsed(&class.join("misc/rdma_cm/dev")),
        }
    }

    /// The name of the RDMA device behind a uverbs character device.
    pub(crate) fn device_of(&self, number: DeviceNumber) -> Option<&str> {
        let node = self.uverbs.iter().find(|node| node.number == number)?;
        Some(&node.device)
    }

    /// A device by name.
    pub(crate) fn device(&self, name: &str) -> Option<&RdmaDevice> {
        self.devices.iter().find(|device| device.name == name)
    }
}

impl UverbsNode {
    fn read(verbs: &Path, name: String) -> Option<Self> {
        let path = verbs.join(&name);
        Some(Self { number: read::parsed(&path.join("dev"))?, device: read::attribute(&path.join("ibdev"))?, name })
    }
}

impl RdmaDevice {
    fn read(infiniband: &Path, name: String) -> Self {
        let path = infiniband.join(&name);
        let software = software_driver(&path);
        let ports = read::numbers(&path.join("ports")).into_iter().take(PORTS_MAX);
        Self {
            driver: software.map(str::to_owned).or_else(|| hardware_driver(&path)),
            software: software.is_some(),
            pci: pci_address(&path).filter(|_| software.is_none()),
            function: VirtualFunction::of(&path, "infiniband").filter(|_| software.is_none()),
            firmware: read::attribute(&path.join("fw_ver")),
            node_guid: read::attribute(&path.join("node_guid")),
            node_type: read::attribute(&path.join("node_type")),
            ports: ports.map(|number| RdmaPort::read(&path, number)).collect(),
            name,
        }
    }

    /// What the port speaks, by what `rdma_protocol_ib` and its sisters of include/rdma/ib_verbs.h stand on. Absent for
    /// what is none of the three (EFA, usNIC).
    pub(crate) fn protocol(&self, port: &RdmaPort) -> Option<&'static str> {
        let node = self.node_type.as_deref().unwrap_or_default();
        match port.link_layer.as_deref() {
            _ if node.ends_with(RNIC) => Some("iWARP"),
            Some("Ethernet") if node.ends_with("CA") => Some("RoCE"),
            Some("InfiniBand") => Some("InfiniBand"),
            _ => None,
        }
    }

    /// A port by number.
    pub(crate) fn port(&self, number: u32) -> Option<&RdmaPort> {
        self.ports.iter().find(|port| port.number == number)
    }
}

impl RdmaPort {
    fn read(device: &Path, number: u32) -> Self {
        let path = device.join("ports").join(number.to_string());
        let gids = GidTable::read(&path);
        Self {
            number,
            state: read::attribute(&path.join("state")).map(without_number),
            phys_state: read::attribute(&path.join("phys_state")).map(without_number),
            rate: read::attribute(&path.join("rate")),
            link_layer: read::attribute(&path.join("link_layer")),
            netdevs: port_netdevs(device, number, &gids),
            gids,
        }
    }

    /// Whether the port can carry traffic. Absent if its state is not known.
    pub(crate) fn is_active(&self) -> Option<bool> {
        self.state.as_deref().map(|state| state == "ACTIVE")
    }
}

/// The module that serves a device's verbs, else its bus driver. A hardware device is told by its links alone, without
/// opening anything of it.
pub(crate) fn driver_of(device: &Path) -> Option<String> {
    // rxe's own attribute; what stands in it need not be read.
    if device.join("parent").exists() {
        return Some("rdma_rxe".to_owned());
    }
    hardware_driver(device).or_else(|| software_driver(device).map(str::to_owned))
}

/// The network devices of a port, the best known first.
pub(crate) fn netdevs_of(device: &Path, number: u32) -> Vec<String> {
    let gids = GidTable::read(&device.join("ports").join(number.to_string()));
    port_netdevs(device, number, &gids)
}

/// `4: ACTIVE` without its number, since the word says the same.
fn without_number(text: String) -> String {
    match text.split_once(": ") {
        Some((number, word)) if number.parse::<u32>().is_ok() => word.to_owned(),
        _ => text,
    }
}

/// Whether the device of this folder speaks iWARP.
pub(super) fn is_iwarp(device: &Path) -> bool {
    read::attribute(&device.join("node_type")).is_some_and(|kind| kind.ends_with(RNIC))
}

/// The module of a software device. rxe alone has the attribute `parent`, and before its device lost its bus
/// parent it also showed the driver of the NIC below, so this is asked first. siw names itself in the node
/// description, which an administrator may overwrite: a virtual iWARP device is then taken for siw.
fn software_driver(device: &Path) -> Option<&'static str> {
    if read::attribute(&device.join("parent")).is_some() {
        return Some("rdma_rxe");
    }
    let description = read::attribute(&device.join("node_desc")).unwrap_or_default();
    let virtual_iwarp = !device.join("device").exists() && is_iwarp(device);
    (description.starts_with(SIW_NODE_DESCRIPTION) || virtual_iwarp).then_some("siw")
}

/// The RDMA module on top of the bus driver, else that driver's own name.
fn hardware_driver(device: &Path) -> Option<String> {
    let bus = read::link_name(&device.join("device/driver"))?;
    Some(drivers::module_of_bus(&bus).map_or(bus, str::to_owned))
}

/// The address of the nearest PCI function.
pub(crate) fn pci_address(device: &Path) -> Option<String> {
    Some(pci_folder(device)?.file_name()?.to_str()?.to_owned())
}

/// The folder of the nearest PCI function: the parent itself, or for a parent on another bus (auxiliary) the PCI
/// function above.
pub(super) fn pci_folder(device: &Path) -> Option<PathBuf> {
    let parent = device.join("device").canonicalize().ok()?;
    let is_pci = |name: &str| {
        let mut parts = name.split([':', '.']);
        let hex = |part: Option<&str>, len: usize| {
            part.is_some_and(|part| part.len() >= len && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        hex(parts.next(), 4)
            && hex(parts.next(), 2)
            && hex(parts.next(), 2)
            && hex(parts.next(), 1)
            && parts.next().is_none()
    };
    let name = |path: &&Path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_pci);
    parent.ancestors().find(name).map(Path::to_owned)
}

/// The port's network devices: those its GIDs name, the one below a software device, else those of the same
/// bus function whose `dev_port` (older drivers: `dev_id`) counts to this port, else by iWARP's address.
fn port_netdevs(device: &Path, number: u32, gids: &GidTable) -> Vec<String> {
    let mut netdevs = gids.netdevs();
    if let Some(parent) = read::attribute(&device.join("parent"))
        && !netdevs.contains(&parent)
    {
        netdevs.push(parent);
    }
    if netdevs.is_empty() {
        let net = device.join("device/net");
        netdevs = read::names(&net);
        netdevs.retain(|name| netdev_port(&net.join(name)).is_none_or(|port| port + 1 == number));
    }
    if netdevs.is_empty() {
        netdevs.extend(iwarp_netdev(device, gids));
    }
    netdevs
}

/// The one network device with an iWARP port's address: older kernels (6.1) name none for its GID.
fn iwarp_netdev(device: &Path, gids: &GidTable) -> Option<String> {
    let gid = gids.iter().find(|gid| gid.kind == Some(GidType::Iwarp))?.gid.octets();
    let address = gid.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    let net = device.ancestors().nth(2)?.join("net");
    let mut same = read::names(&net);
    same.retain(|name| read::attribute(&net.join(name).join("address")).is_some_and(|own| own == address));
    // A VLAN has the address of what it stands on: then nobody can say.
    if same.len() == 1 { same.pop() } else { None }
}

/// The zero-based port of a network device on its bus function.
fn netdev_port(netdev: &Path) -> Option<u32> {
    let port: u32 = read::parsed(&netdev.join("dev_port"))?;
    let id = read::attribute(&netdev.join("dev_id"))
        .and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    Some(if port == 0 { id.unwrap_or(0) } else { port }).filter(|port| *port < u32::MAX)
}

#[cfg(test)]
#[path = "rdma_tests.rs"]
mod tests;
