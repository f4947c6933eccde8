//! NIC and RDMA counters by meaning: the catalogue, where they are read, and what their numbers say.
//!
//! Each counter stands alone: one that cannot be read costs its own series, is counted by device and reason, and is
//! named once. A device that answers with errors is left alone, for longer each time.

mod block;
pub(crate) mod carrier;
pub(crate) mod catalogue;
pub(crate) mod collector;
mod device;
mod discover;
pub(crate) mod fast;
pub(crate) mod filter;
pub(crate) mod findings;
pub(crate) mod kernel;
mod meanings;
mod namespaces;
pub(crate) mod netlink;
pub(crate) mod rates;
pub(crate) mod readout;
pub(crate) mod recorded;
pub(crate) mod relations;
pub(crate) mod service;
#[cfg(test)]
mod tests;
mod track;
pub(crate) mod value;

use std::io;

use crate::health::resources::Used;
use carrier::{Carrier, Change};
use netlink::devlink::Reporter;
use netlink::ethtool::Group;
use netlink::rdma::Bound;

/// How the kernel is asked about a network device by its name.
pub(crate) trait Statistics: Send {
    /// Its index; `None` if there is no such device here.
    fn index(&self, netdev: &str) -> Option<u32>;

    /// Its driver's name, where sysfs does not tell.
    fn driver(&self, netdev: &str) -> Option<String>;

    /// Priorities with flow control, one bit each; `None` where the device does not say.
    fn priorities(&self, netdev: &str) -> Option<u8>;

    /// Objects that RDMA devices hold; none where the kernel does not tell.
    fn resources(&self) -> Vec<Used>;

    /// The names of the driver's own statistics.
    ///
    /// # Errors
    ///
    /// The kernel's; `EOPNOTSUPP` for a device that has none.
    fn names(&self, netdev: &str) -> io::Result<Vec<String>>;

    /// Their values.
    ///
    /// # Errors
    ///
    /// As for the names.
    fn values(&self, netdev: &str) -> io::Result<Vec<u64>>;

    /// Their values, in a buffer that is used again and again.
    ///
    /// # Errors
    ///
    /// As for the names.
    fn latest<'a>(&self, netdev: &str, buffer: &'a mut Vec<u64>) -> io::Result<&'a [u64]> {
        *buffer = self.values(netdev)?;
        Ok(buffer)
    }

    /// The number of the RDMA device of this name, if it is the one with this GUID.
    fn rdma_index(&self, device: &str, node_guid: u64) -> Option<u32>;

    /// The hardware counters of a port of the RDMA device of this number, names and values.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn rdma(&self, index: u32, port: u32) -> io::Result<Vec<(String, u64)>>;

    /// Whether RDMA devices of other network namespaces are hidden from this one.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// What is bound to queue pairs of the RDMA device of this number; none where the kernel does not tell.
    fn bound(&self, _index: u32) -> Vec<Bound> {
        Vec::new()
    }

    /// A group of the statistics that the kernel defines for every network device.
    ///
    /// # Errors
    ///
    /// The kernel's; `EOPNOTSUPP` for a device that has none.
    fn standard(&self, _netdev: &str, _group: Group) -> io::Result<Vec<(&'static str, u64)>> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }

    /// The link of the network device of this index.
    ///
    /// # Errors
    ///
    /// The kernel's; `EOPNOTSUPP` where it does not count.
    fn carrier(&self, _ifindex: u32) -> io::Result<Carrier> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }

    /// How the link of that device changed in the last ten minutes; `None` where nobody listens.
    fn changes(&self, _ifindex: u32) -> Option<Vec<Change>> {
        None
    }

    /// Health reporters of adapters; none where the kernel does not tell.
    fn reporters(&self) -> Vec<Reporter> {
        Vec::new()
    }
}
