//! Links of TCX: made by a device's number, and asked whether the device is still there.
//!
//! A link goes with its descriptor, so that nothing stays of a process that is killed.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::super::sys::{self, LinkCreate};

// enum bpf_attach_type and the flags of BPF_LINK_CREATE in include/uapi/linux/bpf.h.
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_F_BEFORE: u32 = 1 << 3;

/// Bytes of `struct bpf_link_info` up to `tcx.attach_type`; `tcx.ifindex` comes before it.
const LINK_INFO: usize = 24;
const IFINDEX: usize = 16;

/// One program on one direction of a device.
#[derive(Debug)]
pub(super) struct TcxLink(OwnedFd);

impl TcxLink {
    /// Attaches a program before all others that are there.
    ///
    /// # Errors
    ///
    /// The kernel's error: `EINVAL` from one before 6.6, which does not know the kind of link.
    pub(super) fn new(program: BorrowedFd<'_>, ifindex: u32, egress: bool) -> io::Result<Self> {
        // Before no one in particular: before everyone.
        let attach_type = if egress { BPF_TCX_EGRESS } else { BPF_TCX_INGRESS };
        let mut attr = LinkCreate::new(program, ifindex, attach_type, BPF_F_BEFORE);
        sys::create_link(&mut attr).map(Self)
    }

    /// Whether the program stands on a device still. A device that is removed, or moved to another network namespace,
    /// takes its programs off, and so may whoever has the right to; a new one under the same number has them not.
    ///
    /// One that does not tell counts as standing.
    pub(super) fn stands(&self) -> bool {
        let info: io::Result<[u8; LINK_INFO]> = sys::object_info(self.0.as_fd());
        // The kernel tells of a link without a device the number 0 (`tcx_link_fill_info`).
        info.map_or(true, |info| info.get(IFINDEX..IFINDEX + 4) != Some(&[0; 4]))
    }
}
