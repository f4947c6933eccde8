//! Which verb a request names. The header is read from user memory, where the caller has just written it.
//!
//! A caller that changes its own request under way can only give its own call another name.

use agent_common::hook::role;
use agent_common::verb::{self, VerbKey, interface};

use crate::read;

/// `RDMA_VERBS_IOCTL` (include/uapi/rdma/rdma_user_ioctl_cmds.h): `_IOWR(0x1b, 1, 24 bytes)`.
pub(crate) const RDMA_VERBS_IOCTL: u32 = 0xc018_1b01;
/// How many attributes a carried legacy command has at the most: libibverbs sends five.
pub(crate) const COMMAND_ATTRS: u32 = 6;
/// Stands for a command that could not be read: over every number that the kernel accepts.
const NO_COMMAND: u32 = 0x7fff_ffff;

/// `struct ib_uverbs_ioctl_hdr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    length: u16,
    object: u16,
    method: u16,
    attrs: u16,
    reserved1: u64,
    driver: u32,
    reserved2: u32,
}

impl Header {
    /// How many attributes follow.
    #[inline(always)]
    pub(crate) fn attrs(&self) -> u32 {
        u32::from(self.attrs)
    }
}

/// Bytes of the header.
pub(crate) const HEADER: u64 = size_of::<Header>() as u64;

/// `struct ib_uverbs_attr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Attr {
    /// Its number within the method.
    pub(crate) id: u16,
    /// Bytes of its value; over 8, `data` is a pointer.
    pub(crate) len: u16,
    flags: u16,
    reserved: u16,
    /// The value, or a pointer to it.
    pub(crate) data: u64,
}

/// The verb a request names; `None` where its header cannot be read.
#[inline(always)]
pub(crate) fn key(role: u8, request: u64, request_len: u64) -> Option<VerbKey> {
    match role {
        role::IOCTL => ioctl(request),
        role::WRITE => Some(VerbKey::legacy(interface::LEGACY_WRITE, command(request, request_len))),
        role::UCMA => Some(VerbKey::ucma(command(request, request_len))),
        role::MMAP => Some(VerbKey::MMAP),
        role::OPEN => Some(VerbKey::OPEN),
        _ => None,
    }
}

/// A request and the attributes behind it, as many as a carried command has.
#[derive(Clone, Copy)]
#[repr(C)]
struct Request {
    header: Header,
    attrs: [Attr; COMMAND_ATTRS as usize],
}

/// Header and attributes are read at once, since each read of user memory costs as much as a map operation; one by one
/// where what follows the request cannot be read.
#[inline(always)]
fn ioctl(request: u64) -> Option<VerbKey> {
    let Some(Request { header, attrs }) = read::user(request) else { return piecewise(request) };
    if let Some(key) = native(&header) {
        return Some(key);
    }
    let mut command = NO_COMMAND;
    // What lies beyond the request's own attributes does not count; of several with this number the first does.
    for (index, attr) in (0..COMMAND_ATTRS).zip(&attrs).rev() {
        if index < header.attrs() && attr.id == verb::ATTR_WRITE_CMD {
            command = attr.data as u32;
        }
    }
    Some(VerbKey::legacy(interface::LEGACY_IOCTL, command))
}

/// See [`ioctl`].
#[inline(always)]
fn piecewise(request: u64) -> Option<VerbKey> {
    let header: Header = read::user(request)?;
    if let Some(key) = native(&header) {
        return Some(key);
    }
    let command = find::<COMMAND_ATTRS>(request, header.attrs(), verb::ATTR_WRITE_CMD);
    Some(VerbKey::legacy(interface::LEGACY_IOCTL, command.map_or(NO_COMMAND, |attr| attr.data as u32)))
}

/// The native method; `None` where a legacy command is carried.
#[inline(always)]
fn native(header: &Header) -> Option<VerbKey> {
    if header.object == verb::OBJECT_DEVICE && header.method == verb::METHOD_INVOKE_WRITE {
        return None;
    }
    Some(VerbKey::ioctl(header.object, header.method, header.driver))
}

/// The command word of a write. A write too short for a header has none; the kernel refuses it.
#[inline(always)]
fn command(request: u64, request_len: u64) -> u32 {
    if request_len < verb::COMMAND_HEADER_LEN as u64 {
        return NO_COMMAND;
    }
    read::user::<u32>(request).unwrap_or(NO_COMMAND)
}

/// The first attribute with this number among the first `SEARCHED`.
#[inline(always)]
pub(crate) fn find<const SEARCHED: u32>(request: u64, attrs: u32, id: u16) -> Option<Attr> {
    for index in 0..SEARCHED {
        if index >= attrs {
            break;
        }
        let attr: Attr = read::user(request + HEADER + u64::from(index) * size_of::<Attr>() as u64)?;
        if attr.id == id {
            return Some(attr);
        }
    }
    None
}
