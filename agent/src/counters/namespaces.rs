//! RDMA devices of other network namespaces. Where the kernel gives each device to one namespace alone
//! (`rdma system set netns exclusive`), those of containers are not seen from the agent's: neither in sysfs nor by
//! netlink. Their hardware counters are read from inside by RDMA netlink; counters that only sysfs has (`counters`) and
//! their network devices are not.
//!
//! Found are namespaces that have a name, and those of processes that this one may look at; a namespace without a name
//! whose processes it may not look at is not.
//!
//! Nothing stays inside: a namespace that somebody holds does not end with its container, and its device would not come
//! back. So a thread of its own goes in for each reading and ends with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::Statistics;
use super::block::{Block, Gathered};
use super::catalogue::{Driver, Source};
use super::device::{Device, Facts};
use super::filter::Filter;
use super::netlink::Rdma;
use super::readout::{Kind, Place, Subject};
use super::relations::Relations;
use crate::config::limits;
use crate::health::resources::Used;
use crate::host::read;
use crate::host::roots::Roots;

/// Where programs that make namespaces keep them by name.
const FOLDERS: [&str; 2] = ["/run/netns", "/run/docker/netns"];

/// Drivers by the number that user space knows them by (`enum rdma_driver_id`, include/uapi/rdma/ib_user_ioctl_verbs.h).
const DRIVERS: &[(u32, &str)] = &[
    (1, "mlx5_ib"),
    (2, "mlx4_ib"),
    (4, "iw_cxgb4"),
    (6, "bnxt_re"),
    (9, "irdma"),
    (12, "hns_roce_hw_v2"),
    (14, "rdma_rxe"),
    (15, "hfi1"),
    (17, "efa"),
    (18, "siw"),
    (19, "erdma"),
    (20, "mana_ib"),
];

/// A namespace that holds RDMA devices.
#[derive(Debug)]
struct Namespace {
    /// A file by which it is entered.
    file: PathBuf,
    devices: Vec<Device>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    held: BTreeMap<u64, Namespace>,
    looked: Option<Instant>,
    /// Namespaces that could not be entered.
    pub(super) closed: usize,
}

impl Namespaces {
    /// Reads all devices, and from time to time looks where there are any.
    pub(super) fn read(
        &mut self,
        now: Instant,
        (roots, filter, all): (&Roots, &Filter, bool),
        durations: &mut BTreeMap<Source, Duration>,
        gathered: &mut Gathered,
    ) {
        let recent = |looked: Instant| now.saturating_duration_since(looked) < limits::COUNTER_LOOK;
        if !self.looked.is_some_and(recent) {
            self.looked = Some(now);
            self.look(roots, filter, all);
        }
        for namespace in self.held.values_mut() {
            let Namespace { file, devices } = namespace;
            let read = inside(file, |statistics| {
                let mut gone = false;
                for device in devices {
                    gone |= device.read(now, statistics, durations, gathered).gone;
                }
                gone
            });
            if read.unwrap_or(true) {
                // The namespace or a device of it has gone.
                self.looked = None;
            }
        }
    }

    /// Every device as it is doing.
    pub(super) fn subjects(&self, now: Instant) -> impl Iterator<Item = Subject> + '_ {
        self.held.values().flat_map(|namespace| &namespace.devices).map(move |device| device.subject(now))
    }

    /// Looks again at the next reading.
    pub(super) fn look_soon(&mut self) {
        self.looked = None;
    }

    fn look(&mut self, roots: &Roots, filter: &Filter, all: bool) {
        let mut old = std::mem::take(&mut self.held);
        let closed = std::mem::take(&mut self.closed);
        for (inode, file) in others(roots) {
            let name = name(&file, inode);
            match inside(&file, |inside| inside.devices((inode, &name), filter, all)) {
                Ok(devices) => {
                    let mut known = old.remove(&inode).map(|namespace| namespace.devices).unwrap_or_default();
                    let devices: Vec<Device> = devices.into_iter().map(|facts| taken_over(facts, &mut known)).collect();
                    if !devices.is_empty() {
                        self.held.insert(inode, Namespace { file, devices });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.closed += 1;
                    if closed == 0 && self.closed == 1 {
                        tracing::info!("network namespace {name} cannot be entered to look for RDMA devices: {error}");
                    }
                }
            }
        }
    }
}

/// What is known of a device of this name goes on.
fn taken_over(facts: Facts, known: &mut Vec<Device>) -> Device {
    let mut device = Device::new(facts);
    if let Some(at) = known.iter().position(|old| old.name == device.name) {
        device.inherit(known.swap_remove(at));
    }
    device
}

/// The other network namespaces, each with a file to enter it by: those that have a name, and those of processes that
/// this one may look at.
fn others(roots: &Roots) -> Vec<(u64, PathBuf)> {
    let own = |path: &Path| fs::metadata(path).map(|facts| facts.ino()).ok();
    let mut seen: BTreeSet<u64> = own(&roots.procfs.join("self/ns/net")).into_iter().collect();
    let named = FOLDERS.iter().flat_map(|folder| {
        let folder = Path::new(folder);
        read::names(folder).into_iter().map(move |name| folder.join(name))
    });
    let processes = read::numbers(&roots.procfs).into_iter();
    let of_process = processes.map(|pid| roots.procfs.join(pid.to_string()).join("ns/net"));
    let found = named.chain(of_process).filter_map(|file| Some((own(&file)?, file)));
    found.filter(|(inode, _)| seen.insert(*inode)).take(limits::NAMESPACES).collect()
}

/// The name that it was given, or its number.
fn name(file: &Path, inode: u64) -> String {
    let named = FOLDERS.iter().any(|folder| file.starts_with(folder));
    let given = file.file_name().and_then(|name| name.to_str()).filter(|_| named);
    given.map_or_else(|| format!("net:[{inode}]"), str::to_owned)
}

/// Does something in a network namespace, in a thread that ends with it.
fn inside<T: Send>(file: &Path, work: impl FnOnce(&Inside) -> T + Send) -> io::Result<T> {
    let namespace = File::open(file)?;
    let thread = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work(&Inside(Rdma::new()?)))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("fabricscope-net".to_owned()).spawn_scoped(scope, thread)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace ended early")))
    })
}

/// The kernel as it is seen from inside of a namespace: RDMA devices alone.
struct Inside(Rdma);

impl Inside {
    fn devices(&self, (inode, namespace): (u64, &str), filter: &Filter, all: bool) -> Vec<Facts> {
        let mut devices = self.0.devices().unwrap_or_default();
        devices.retain(|device| filter.devices.wants(&device.name));
        let facts = devices.into_iter().filter_map(|found| {
            let number = self.0.driver_number(found.index);
            let driver = number.and_then(|number| DRIVERS.iter().find(|row| row.0 == number)).map(|row| row.1);
            if !filter.drivers.is_all() && !filter.drivers.wants(driver.unwrap_or_default()) {
                return None;
            }
            let ports = (1..=found.ports.min(limits::NAMESPACE_PORTS)).filter(|port| filter.wants_port(*port));
            let block = |port| {
                let place = Place { kind: Kind::Rdma, device: found.name.clone(), port: Some(port) };
                Block::of_rdma(&Arc::new(place), (found.index, port), Driver::of_module(driver), all, self)
            };
            Some(Facts {
                kind: Kind::Rdma,
                driver: driver.map(str::to_owned),
                identity: found.node_guid ^ inode ^ u64::from(found.index) << 32,
                port_of: None,
                relations: Relations { namespace: Some(namespace.to_owned()), ..Relations::default() },
                index: Some(found.index),
                blocks: ports.filter_map(block).collect(),
                name: found.name,
            })
        });
        facts.take(limits::COUNTER_DEVICES).collect()
    }
}

impl Statistics for Inside {
    fn index(&self, _: &str) -> Option<u32> {
        None
    }

    fn driver(&self, _: &str) -> Option<String> {
        None
    }

    fn priorities(&self, _: &str) -> Option<u8> {
        None
    }

    fn resources(&self) -> Vec<Used> {
        Vec::new()
    }

    fn names(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn values(&self, _: &str) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }

    fn rdma_index(&self, _: &str, _: u64) -> Option<u32> {
        None
    }

    fn rdma(&self, index: u32, port: u32) -> io::Result<Vec<(String, u64)>> {
        self.0.statistics(index, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_none_of_the_others() {
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        let others = others(&Roots::default());
        assert!(others.iter().all(|(inode, _)| *inode != own), "{others:?}");
        let inodes: BTreeSet<u64> = others.iter().map(|(inode, _)| *inode).collect();
        assert_eq!(inodes.len(), others.len(), "each stands once");
    }

    #[test]
    fn a_namespace_is_called_by_its_name_or_its_number() {
        assert_eq!(name(Path::new("/run/netns/blue"), 7), "blue");
        assert_eq!(name(Path::new("/proc/12/ns/net"), 7), "net:[7]");
    }

    #[test]
    fn what_is_no_namespace_is_an_error() {
        assert!(inside(Path::new("/no/such/file"), |_| ()).is_err());
        assert!(inside(Path::new("/proc/self/status"), |_| ()).is_err());
    }
}
