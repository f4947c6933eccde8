//! The burst sampler's kernel side on one network device: attached, read, detached.
//!
//! Each sampled device has its own instance of the programs and maps, so that its memory goes with it. Everything goes
//! when the [`Sampler`] is dropped.

mod attach;
mod clsact;
#[cfg(test)]
mod crafted;
mod interface;
mod napi;
mod netlink;
mod object;
mod rings;
mod tcx;
mod trial;

use std::fmt;
use std::io;
use std::net::IpAddr;

use agent_common::bucket::Bucket;
use analysis::series::DurationNs;

pub(crate) use attach::Sampler;
pub(crate) use interface::Interface;
pub(crate) use netlink::Counters;
pub(crate) use rings::Rings;
pub(crate) use trial::trial;

/// The lengths of a bucket that can be sampled.
pub(crate) const INTERVALS: [DurationNs; 3] = [DurationNs(100_000), DurationNs(1_000_000), DurationNs(10_000_000)];

/// What is sampled, and where.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The device's index in the network namespace of the calling thread.
    pub(crate) ifindex: u32,
    /// The device's name, which must still be that of the index.
    pub(crate) netdev: String,
    /// The length of a bucket: one of [`INTERVALS`].
    pub(crate) interval: DurationNs,
    /// Buckets of a ring: a power of two.
    pub(crate) slots: u32,
    /// Use a clsact filter even if the kernel has TCX.
    pub(crate) clsact: bool,
    /// Whether received segments are looked up in their socket, to tell which may have been sent again.
    pub(crate) suspected: bool,
    /// Whether flows are sketched: always, but where its cost is measured.
    pub(crate) sketch: bool,
    /// The prefixes of the host's own region. Without any, bytes across regions are not measured.
    pub(crate) regions: Vec<Prefix>,
}

/// A network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Its address; bits beyond the length do not count.
    pub(crate) address: IpAddr,
    /// Its length in bits.
    pub(crate) length: u8,
}

impl Prefix {
    /// As a prefix of IPv6 addresses, in which those of IPv4 are mapped.
    fn of_version_6(self) -> (u32, [u8; 16]) {
        match self.address {
            IpAddr::V4(address) => (96 + u32::from(self.length), address.to_ipv6_mapped().octets()),
            IpAddr::V6(address) => (u32::from(self.length), address.octets()),
        }
    }
}

/// How a direction's program is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// By a TCX link, which goes with this process.
    Tcx,
    /// By a clsact filter, which a process that is killed leaves behind, and why not by TCX.
    Clsact(String),
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcx => f.write_str("tcx"),
            Self::Clsact(why) => write!(f, "clsact (no tcx: {why})"),
        }
    }
}

/// What was found where a bucket should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nothing passed in that bucket on that CPU.
    Empty,
    /// The bucket.
    Read(Bucket),
    /// It was overwritten, or is being.
    Lost,
}

/// Removes the clsact filters that samplers whose process is dead have left on devices of the network namespace of the
/// calling thread; says how many.
///
/// # Errors
///
/// If the kernel does not tell its filters, or does not let one be removed.
pub(crate) fn remove_leftovers() -> io::Result<usize> {
    clsact::remove_leftovers(&netlink::Netlink::open()?, None)
}
