//! NIC and RDMA counters by meaning: the catalogue, where they are read, and what their numbers say.
//!
//! Each counter stands alone: one that cannot be read costs its own series, is counted by device and reason, and is
//! named once. A device that answers with errors is left alone, for longer each time.

mod block;
pub(crate) mod catalogue;
pub(crate) mod collector;
mod device;
mod discover;
pub(crate) mod fast;
pub(crate) mod filter;
pub(crate) mod findings;
pub(crate) mod kernel;
mod meanings;
pub(crate) mod netlink;
pub(crate) mod rates;
pub(crate) mod readout;
pub(crate) mod recorded;
pub(crate) mod service;
#[cfg(test)]
mod tests;
mod track;
pub(crate) mod value;

use std::io;

use crate::health::resources::Used;

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
}
