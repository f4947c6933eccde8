//! Checks of RDMA devices, their nodes, ports and addresses.

use super::checks::{
    Outcome::{self, Missing, Ok as Good, Unknown},
    listed,
};
use crate::host::facts::HostFacts;
use crate::host::gid::GidType;
use crate::host::rdma::{RdmaDevice, RdmaPort};

pub(super) fn verbs_functions(facts: &HostFacts) -> Outcome {
    let Some(functions) = &facts.entry_functions else {
        return Unknown("/proc/kallsyms cannot be read; ProtectKernelTunables= of a unit hides it".to_owned());
    };
    let absent = || functions.iter().filter_map(|function| function.target.as_ref().err());
    match absent().count() {
        0 => {
            let no_fexit = functions.iter().filter(|function| function.traceable == Some(false));
            let no_fexit: Vec<&str> = no_fexit.map(|function| function.name).collect();
            let all = format!("all {}", functions.len());
            Good(if no_fexit.is_empty() { all } else { format!("{all}, by kprobe only: {}", no_fexit.join(", ")) })
        }
        all if all == functions.len() => Missing("none of them is in this kernel".to_owned()),
        _ => Missing(listed(absent())),
    }
}

pub(super) fn devices(facts: &HostFacts) -> Outcome {
    if facts.rdma.devices.is_empty() {
        return Missing("there is no RDMA device on this host".to_owned());
    }
    let describe = |device: &RdmaDevice| {
        let parts = [&device.driver, &device.firmware, &device.pci];
        let known: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        format!("{} ({})", device.name, if known.is_empty() { "driver unknown".to_owned() } else { known.join(" ") })
    };
    Good(listed(facts.rdma.devices.iter().map(describe)))
}

pub(super) fn device_nodes(facts: &HostFacts) -> Outcome {
    let rdma = &facts.rdma;
    if rdma.devices.is_empty() {
        return Unknown("no RDMA device".to_owned());
    }
    let has_node = |device: &RdmaDevice| rdma.uverbs.iter().any(|node| node.device == device.name);
    let without: Vec<&str> = rdma.devices.iter().filter(|d| !has_node(d)).map(|d| d.name.as_str()).collect();
    match (without.is_empty(), rdma.rdma_cm) {
        (false, _) => Missing(format!("no uverbs node for {}", listed(without.into_iter()))),
        (true, None) => Missing("no rdma_cm node".to_owned()),
        (true, Some(cm)) => Good(format!("{} uverbs, rdma_cm {cm}", rdma.uverbs.len())),
    }
}

/// `device/port` of the ports that a condition holds for.
fn ports_where(facts: &HostFacts, holds: impl Fn(&RdmaDevice, &RdmaPort) -> bool) -> Vec<String> {
    let ports = facts.rdma.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports
        .filter(|(device, port)| holds(device, port))
        .map(|(device, port)| format!("{}/{}", device.name, port.number))
        .collect()
}

pub(super) fn ports(facts: &HostFacts) -> Outcome {
    let all = ports_where(facts, |_, _| true);
    let down = ports_where(facts, |_, port| port.is_active() == Some(false));
    let unknown = ports_where(facts, |_, port| port.is_active().is_none());
    match (all.is_empty(), down.is_empty(), unknown.is_empty()) {
        (true, ..) => Unknown("no RDMA port".to_owned()),
        (_, false, _) => Missing(format!("not active: {}", listed(down.iter()))),
        (_, _, false) => Unknown(format!("state cannot be read: {}", listed(unknown.iter()))),
        _ => Good(format!("{} active", all.len())),
    }
}

pub(super) fn gid_tables(facts: &HostFacts) -> Outcome {
    // iWARP ports are Ethernet too and need no GID; a port that is down has its own check.
    let is_roce =
        |device: &RdmaDevice, port: &RdmaPort| device.protocol(port) == Some("RoCE") && port.is_active() != Some(false);
    let usable = |port: &RdmaPort| port.gids.iter().any(|gid| gid.kind == Some(GidType::RoceV2) && gid.is_ipv4());
    let roce = ports_where(facts, is_roce);
    let without = ports_where(facts, |device, port| is_roce(device, port) && !usable(port));
    if roce.is_empty() {
        Unknown("no active RoCE port".to_owned())
    } else if without.is_empty() {
        Good(format!("a RoCE v2 address of IPv4 on each of {} ports", roce.len()))
    } else {
        Missing(format!("no RoCE v2 address of IPv4: {}", listed(without.iter())))
    }
}
