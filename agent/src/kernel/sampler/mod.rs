//! The burst sampler's kernel side on one network device: attached, read, detached.
//!
//! Each sampled device has its own instance of the programs and maps, so that its memory goes with it. Everything goes
//! when the [`Sampler`] is dropped.

mod attach;
mod clsact;
#[cfg(test)]
mod crafted;
mod interface;
mod mapping;
mod napi;
mod netlink;
mod object;
mod retransmissions;
mod rings;
mod tcx;
mod tick;
mod totals;
mod trial;

use std::fmt;
use std::io;
use std::net::IpAddr;

use agent_common::bucket::Bucket;
use analysis::series::DurationNs;

pub(crate) use attach::Sampler;
pub(crate) use interface::Interface;
pub(crate) use netlink::Counters;
pub(crate) use retransmissions::{Retransmissions, Traces};
pub(crate) use rings::Rings;
pub(crate) use trial::{trial, trial_tick};

use crate::host::roots::Roots;

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
    /// What tells buckets apart.
    pub(crate) clock: Clock,
    /// Buckets of a ring: a power of two.
    pub(crate) slots: u32,
    /// Use a clsact filter even if the kernel has TCX.
    pub(crate) clsact: bool,
    /// Whether received segments are looked up in their socket, to tell which may have been sent again.
    pub(crate) suspected: bool,
    /// Whether flows are sketched: always, but where its cost is measured.
    pub(crate) sketch: bool,
    /// What is done about the mark of TCP segments that are sent again.
    pub(crate) marks: Marks,
    /// The prefixes of the host's own region. Without any, bytes across regions are not measured.
    pub(crate) regions: Vec<Prefix>,
}

/// What tells buckets apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The clock, which is read for each packet.
    #[default]
    Read,
    /// A timer of the kernel, which costs nothing for a packet and something for each bucket.
    Tick,
}

impl Clock {
    /// The shortest bucket that it can tell: a timer takes a CPU too often else.
    pub(crate) const fn shortest(self) -> DurationNs {
        match self {
            Self::Read => DurationNs(0),
            Self::Tick => DurationNs(1_000_000),
        }
    }
}

/// What is done about the mark of TCP segments that are sent again
/// ([`RETRANSMIT_MARK`](agent_common::bucket::RETRANSMIT_MARK)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Marks {
    /// Nothing.
    #[default]
    Ignored,
    /// Received ones are counted.
    Counted,
    /// The same, and it is set in what this host sends again: the only thing by which packets are changed.
    Set,
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

/// Attaches to the tracepoint of what TCP sends again, and detaches; whether it tells of attempts that failed.
///
/// # Errors
///
/// If the kernel has no such tracepoint, or refuses.
pub(crate) fn try_retransmissions(roots: &Roots) -> anyhow::Result<bool> {
    Ok(Retransmissions::attach(roots)?.read()?.failures)
}

/// How many programs on this host mark what TCP sends again, whoever loaded them.
///
/// # Errors
///
/// If the kernel does not tell its programs: that needs CAP_SYS_ADMIN.
pub(crate) fn marking_programs() -> anyhow::Result<usize> {
    let mut found = 0;
    for program in aya::programs::loaded_programs() {
        match program {
            Ok(program) => found += usize::from(program.name_as_str() == Some(object::MARKING)),
            // One that went meanwhile.
            Err(aya::programs::ProgramError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
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
