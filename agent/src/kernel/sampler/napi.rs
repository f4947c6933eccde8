//! The optional program on `napi:napi_poll`: which polls are the device's, and attaching to the tracepoint.

use std::os::unix::fs::MetadataExt as _;

use agent_common::settings::UNKNOWN;
use anyhow::Context as _;
use aya::Ebpf;
use aya::programs::RawTracePoint;

use super::super::btf::Btf;
use super::object::short;
use crate::host::roots::Roots;

/// The program.
const PROGRAM: &str = "fs_sampler_napi";

/// The tracepoint (include/trace/events/napi.h).
const TRACEPOINT: &str = "napi_poll";

/// What tells polls of a device from others: constants of the kernel side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// The inode number of the calling thread's network namespace.
    pub(super) netns: u32,
    /// Bytes from a `struct napi_struct` to its device.
    pub(super) napi_device: u32,
    /// Bytes from a `struct net_device` to its index.
    pub(super) device_index: u32,
    /// Bytes from a `struct net_device` to its network namespace.
    pub(super) device_netns: u32,
    /// Bytes from a `struct net` to its inode number.
    pub(super) netns_number: u32,
}

impl Own {
    /// No poll is told.
    pub(super) const UNKNOWN: Self =
        Self { netns: 0, napi_device: UNKNOWN, device_index: UNKNOWN, device_netns: UNKNOWN, netns_number: UNKNOWN };

    /// Of the calling thread, on this kernel.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell its types, or which namespace this is.
    pub(super) fn find(roots: &Roots) -> anyhow::Result<Self> {
        let vmlinux = Btf::vmlinux(&roots.sysfs).context("no type information")?;
        let offset = |of: &str, member: &str| {
            vmlinux.offset(None, of, member).with_context(|| format!("struct {of} has no {member}"))
        };
        let netns = std::fs::metadata(roots.procfs.join("thread-self/ns/net")).context("no network namespace")?;
        Ok(Self {
            netns: u32::try_from(netns.ino()).context("a namespace's number")?,
            napi_device: offset("napi_struct", "dev")?,
            device_index: offset("net_device", "ifindex")?,
            // The only member of a `possible_net_t` is the pointer.
            device_netns: offset("net_device", "nd_net")?,
            netns_number: offset("net", "ns")? + offset("ns_common", "inum")?,
        })
    }
}

/// Loads the program and attaches it, until the object is dropped.
///
/// # Errors
///
/// If the kernel refuses, or has no such tracepoint.
pub(super) fn attach(ebpf: &mut Ebpf) -> anyhow::Result<()> {
    let program = ebpf.program_mut(PROGRAM).context("the kernel side has no such program")?;
    let program: &mut RawTracePoint = program.try_into()?;
    program.load().map_err(short)?;
    program.attach(TRACEPOINT)?;
    Ok(())
}
