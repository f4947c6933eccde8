//! Which devices there are and where their counters stand. Filters act before anything of a device is opened.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use super::Statistics;
use super::block::Block;
use super::catalogue::{Driver, Source};
use super::device::Facts;
use super::filter::Filter;
use super::readout::{Kind, Place};
use super::relations::Relations;
use crate::config::limits;
use crate::host::rdma::{driver_of, netdevs_of};
use crate::host::read;
use crate::host::roots::Roots;

/// Names and numbers by which a change of the devices is noticed.
pub(super) fn fingerprint(roots: &Roots) -> Vec<(String, u64)> {
    ["infiniband", "net"]
        .iter()
        .flat_map(|class| {
            let class = roots.sysfs.join("class").join(class);
            read::names(&class).into_iter().map(move |name| {
                let identity = identity(&class.join(&name));
                (name, identity)
            })
        })
        .collect()
}

/// A number that another device under the same name does not have: sysfs numbers its entries and gives no number twice.
fn identity(device: &Path) -> u64 {
    device.metadata().map_or(0, |facts| facts.ino())
}

/// The number in `node_guid`, which the kernel shows without asking the device.
fn guid(device: &Path) -> Option<u64> {
    let text = read::attribute(&device.join("node_guid"))?;
    u64::from_str_radix(&text.replace(':', ""), 16).ok()
}

/// What devices are looked for with.
pub(super) struct Search<'a> {
    pub(super) roots: &'a Roots,
    pub(super) filter: &'a Filter,
    /// Names the catalogue does not know are wanted too.
    pub(super) all: bool,
    pub(super) statistics: &'a dyn Statistics,
}

impl Search<'_> {
    /// Every device that is wanted, RDMA devices first.
    pub(super) fn devices(&self) -> Vec<Facts> {
        let class = self.roots.sysfs.join("class/infiniband");
        let mut found = Vec::new();
        let mut netdevs: Vec<(String, Option<(String, u32)>)> = Vec::new();
        for name in read::names(&class) {
            if found.len() >= limits::COUNTER_DEVICES || !self.filter.devices.wants(&name) {
                continue;
            }
            let path = class.join(&name);
            let driver = driver_of(&path);
            if !self.filter.drivers.is_all() && !self.filter.drivers.wants(driver.as_deref().unwrap_or_default()) {
                continue;
            }
            let ports = read::numbers(&path.join("ports"));
            let ports: Vec<u32> = ports.into_iter().filter(|port| self.filter.wants_port(*port)).collect();
            for port in &ports {
                let of_port = netdevs_of(&path, *port).into_iter().map(|netdev| (netdev, Some((name.clone(), *port))));
                netdevs.extend(of_port);
            }
            found.push(self.rdma(&path, name, driver, &ports));
        }
        let net = self.roots.sysfs.join("class/net");
        // Adapters that no RDMA device stands on; what has no hardware (bridges, tunnels) is not asked.
        let others = read::names(&net).into_iter().filter(|name| {
            net.join(name).join("device").exists() && self.filter.devices.wants(name) && self.filter.ports.is_empty()
        });
        netdevs.extend(others.map(|name| (name, None)));
        let mut seen = Vec::new();
        for (name, port_of) in netdevs {
            if found.len() < limits::COUNTER_DEVICES && !seen.contains(&name) && net.join(&name).exists() {
                seen.push(name.clone());
                found.extend(self.netdev(&net.join(&name), name, port_of));
            }
        }
        found
    }

    fn rdma(&self, path: &Path, name: String, driver: Option<String>, ports: &[u32]) -> Facts {
        let family = Driver::of_module(driver.as_deref());
        let place = |port| Arc::new(Place { kind: Kind::Rdma, device: name.clone(), port });
        let folder = |place: &Arc<Place>, source, folder| Block::of_folder(place, source, folder, family, self.all);
        let mut blocks = vec![folder(&place(None), Source::HwCounters, path.join("hw_counters"))];
        let index = guid(path).and_then(|guid| self.statistics.rdma_index(&name, guid));
        for port in ports {
            let (place, path) = (place(Some(*port)), path.join("ports").join(port.to_string()));
            blocks.push(folder(&place, Source::Counters, path.join("counters")));
            let asked =
                index.and_then(|index| Block::of_rdma(&place, (index, *port), family, self.all, self.statistics));
            blocks.push(asked.unwrap_or_else(|| folder(&place, Source::HwCounters, path.join("hw_counters"))));
        }
        blocks.retain(|block| !block.is_empty());
        let (kind, relations) = (Kind::Rdma, Relations::read(path, Kind::Rdma));
        Facts { kind, identity: identity(path), name, driver, port_of: None, relations, index, blocks }
    }

    fn netdev(&self, path: &Path, name: String, port_of: Option<(String, u32)>) -> Option<Facts> {
        let driver = read::link_name(&path.join("device/driver"));
        if port_of.is_none() && !self.filter.drivers.is_all() {
            let driver = driver.as_deref().unwrap_or_default();
            if !self.filter.drivers.wants(driver) {
                return None;
            }
        }
        let family = Driver::of_module(driver.as_deref());
        let place = Arc::new(Place { kind: Kind::Netdev, device: name.clone(), port: None });
        let mut blocks = vec![Block::of_folder(&place, Source::Netdev, path.join("statistics"), family, self.all)];
        // The kernel is asked by name, in this process's network namespace: only if that is the same device.
        let index: Option<u32> = read::parsed(&path.join("ifindex"));
        let index = index.filter(|index| self.statistics.index(&name) == Some(*index));
        if let Some(index) = index {
            let driver = driver.clone().or_else(|| self.statistics.driver(&name));
            let family = Driver::of_module(driver.as_deref());
            blocks.push(Block::of_statistics(&place, family, self.all));
            blocks.extend(Block::of_standard(&place, index, family, self.all));
        }
        blocks.retain(|block| !block.is_empty());
        let (kind, relations) = (Kind::Netdev, Relations::read(path, Kind::Netdev));
        Some(Facts { kind, identity: identity(path), name, driver, port_of, relations, index, blocks })
    }
}
