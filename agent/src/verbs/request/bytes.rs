//! Checked reads at an offset, and the attributes of an ioctl.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use agent_common::verb::{ATTR_INLINE_LEN, ATTR_LEN};
use bytes::Buf;

use super::types::Endpoint;

/// Bytes of a user-space structure, read at the offsets of its header. All supported hosts are
/// little-endian; addresses and ports are in network order whatever the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    fn from(self, offset: usize) -> Option<&'a [u8]> {
        self.0.get(offset..)
    }

    /// The structure that stands at `offset`.
    pub(super) fn part(self, offset: usize) -> Self {
        Self(self.from(offset).unwrap_or_default())
    }

    pub(super) fn u8(self, offset: usize) -> Option<u8> {
        self.from(offset)?.try_get_u8().ok()
    }

    pub(super) fn u16(self, offset: usize) -> Option<u16> {
        self.from(offset)?.try_get_u16_le().ok()
    }

    pub(super) fn u32(self, offset: usize) -> Option<u32> {
        self.from(offset)?.try_get_u32_le().ok()
    }

    pub(super) fn u64(self, offset: usize) -> Option<u64> {
        self.from(offset)?.try_get_u64_le().ok()
    }

    pub(super) fn u16_network(self, offset: usize) -> Option<u16> {
        self.from(offset)?.try_get_u16().ok()
    }

    pub(super) fn u32_network(self, offset: usize) -> Option<u32> {
        self.from(offset)?.try_get_u32().ok()
    }

    /// A GID, or an IPv6 address: 16 bytes in network order.
    pub(super) fn gid(self, offset: usize) -> Option<Ipv6Addr> {
        self.from(offset)?.try_get_u128().ok().map(Ipv6Addr::from_bits)
    }

    /// A socket address: `sockaddr_in`, `sockaddr_in6` or `sockaddr_ib` (include/rdma/ib.h: family,
    /// pkey, flow information, then the GID). `None` for any other family, such as none given.
    pub(super) fn endpoint(self, offset: usize) -> Option<Endpoint> {
        const INET: u16 = 2;
        const INET6: u16 = 10;
        const IB: u16 = 27;
        let at = self.part(offset);
        match at.u16(0)? {
            INET => {
                let address = Ipv4Addr::from_bits(at.u32_network(4)?);
                Some(Endpoint::Ip(SocketAddr::V4(SocketAddrV4::new(address, at.u16_network(2)?))))
            }
            INET6 => {
                let (port, flow, scope) = (at.u16_network(2)?, at.u32_network(4)?, at.u32(24)?);
                Some(Endpoint::Ip(SocketAddr::V6(SocketAddrV6::new(at.gid(8)?, port, flow, scope))))
            }
            IB => at.gid(8).map(Endpoint::Ib),
            _ => None,
        }
    }
}

/// One `struct ib_uverbs_attr` (include/uapi/rdma/rdma_user_ioctl_cmds.h): attr_id at 0, len at 2,
/// flags at 4, attr_data at 6, data at 8.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attr {
    id: u16,
    pub(super) len: u16,
    pub(super) data: [u8; 8],
}

impl Attr {
    /// The value that stands in the attribute; `None` where the data is a pointer.
    pub(super) fn value(self) -> Option<u64> {
        let len = match self.len {
            0 => self.data.len(),
            1..=ATTR_INLINE_LEN => usize::from(self.len),
            _ => return None,
        };
        let mut value = [0; 8];
        value.get_mut(..len)?.copy_from_slice(self.data.get(..len)?);
        Some(u64::from_le_bytes(value))
    }

    /// A value of 32 bits or an object's handle.
    pub(super) fn u32(self) -> Option<u32> {
        u32::try_from(self.value()?).ok()
    }

    pub(super) fn u8(self) -> Option<u8> {
        u8::try_from(self.value()?).ok()
    }

    /// A file descriptor: a signed 64-bit value by itself, 32 bits where it is sent as a number.
    pub(super) fn fd(self) -> Option<i32> {
        match self.len {
            4 => Some(self.u32()?.cast_signed()),
            _ => i32::try_from(self.value()?.cast_signed()).ok(),
        }
    }
}

/// The attributes of an ioctl.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attrs<'a>(&'a [u8]);

impl<'a> Attrs<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Attr> + 'a {
        self.0.chunks_exact(ATTR_LEN).filter_map(|bytes| {
            let bytes = Bytes(bytes);
            let data = bytes.u64(8)?.to_le_bytes();
            Some(Attr { id: bytes.u16(0)?, len: bytes.u16(2)?, data })
        })
    }

    /// The attribute of this id; the first one, the kernel takes no second.
    pub(super) fn find(self, id: u16) -> Option<Attr> {
        self.iter().find(|attr| attr.id == id)
    }
}
