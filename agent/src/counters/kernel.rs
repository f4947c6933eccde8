//! This host's kernel as the one that is asked about devices by name.

use std::io;

use super::Statistics;
use super::carrier::{Carrier, Change, Links};
use super::netlink::devlink::{Devlink, Reporter};
use super::netlink::ethtool::{Group, Standard};
use super::netlink::rdma::Bound;
use super::netlink::{self, Rdma};
use crate::health::resources::{self, Used};
use crate::kernel::Ethtool;

/// The kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    ethtool: Ethtool,
    /// Absent where there is no RDMA.
    rdma: Option<Rdma>,
    standard: Option<Standard>,
    devlink: Option<Devlink>,
    links: Option<Links>,
}

impl Kernel {
    /// Opens what it is asked by.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        let links =
            Links::listen().inspect_err(|error| tracing::info!("changes of links are not listened to: {error}"));
        Ok(Self {
            ethtool: Ethtool::new()?,
            rdma: Rdma::new().ok(),
            standard: Standard::open().ok(),
            devlink: Devlink::open().ok(),
            links: links.ok(),
        })
    }
}

impl Statistics for Kernel {
    fn index(&self, netdev: &str) -> Option<u32> {
        self.ethtool.index(netdev)
    }

    fn driver(&self, netdev: &str) -> Option<String> {
        self.ethtool.driver(netdev)
    }

    fn priorities(&self, netdev: &str) -> Option<u8> {
        netlink::priorities(netdev)
    }

    fn resources(&self) -> Vec<Used> {
        // A kernel that does not answer has none to tell.
        self.rdma.as_ref().and_then(|rdma| resources::read(rdma).ok()).unwrap_or_default()
    }

    fn names(&self, netdev: &str) -> io::Result<Vec<String>> {
        self.ethtool.names(netdev)
    }

    fn values(&self, netdev: &str) -> io::Result<Vec<u64>> {
        self.ethtool.values(netdev)
    }

    fn latest<'a>(&self, netdev: &str, buffer: &'a mut Vec<u64>) -> io::Result<&'a [u64]> {
        self.ethtool.latest(netdev, buffer)
    }

    fn rdma_index(&self, device: &str, node_guid: u64) -> Option<u32> {
        let devices = self.rdma.as_ref()?.devices().ok()?;
        let same = devices.into_iter().find(|found| found.name == device && found.node_guid == node_guid);
        same.map(|found| found.index)
    }

    fn rdma(&self, index: u32, port: u32) -> io::Result<Vec<(String, u64)>> {
        match &self.rdma {
            Some(rdma) => rdma.statistics(index, port),
            None => Err(unsupported()),
        }
    }

    fn is_exclusive(&self) -> bool {
        self.rdma.as_ref().is_some_and(|rdma| rdma.is_exclusive().unwrap_or_default())
    }

    fn bound(&self, index: u32) -> Vec<Bound> {
        self.rdma.as_ref().and_then(|rdma| rdma.bound(index).ok()).unwrap_or_default()
    }

    fn standard(&self, netdev: &str, group: Group) -> io::Result<Vec<(&'static str, u64)>> {
        self.standard.as_ref().ok_or_else(unsupported)?.read(netdev, group)
    }

    fn carrier(&self, ifindex: u32) -> io::Result<Carrier> {
        self.links.as_ref().ok_or_else(unsupported)?.read(ifindex)
    }

    fn changes(&self, ifindex: u32) -> Option<Vec<Change>> {
        self.links.as_ref()?.changes(ifindex)
    }

    fn reporters(&self) -> Vec<Reporter> {
        // The module that has devlink may be loaded later than the agent.
        let devlink = if self.devlink.is_some() { None } else { Devlink::open().ok() };
        self.devlink.as_ref().or(devlink.as_ref()).and_then(|devlink| devlink.reporters().ok()).unwrap_or_default()
    }
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::EOPNOTSUPP)
}
