//! The GID table of an RDMA port, read from sysfs: index to address, type and network device.

use std::net::Ipv6Addr;
use std::path::Path;

use super::rdma::is_iwarp;
use super::read::{self, Folder};

/// GID table entries looked at per port. RoCE tables have 16 to 256 entries; an InfiniBand port a few.
const GIDS_MAX: usize = 1024;

/// Which protocol a GID stands for, from `gid_attrs/types/N`
/// (names in `gid_type_str` of drivers/infiniband/core/cache.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GidType {
    /// `IB/RoCE v1`
    IbOrRoceV1,
    /// `RoCE v2`
    RoceV2,
    /// iWARP has no GIDs: its one entry is the MAC address, which the kernel files under `IB/RoCE v1`.
    Iwarp,
}

impl GidType {
    /// From the attribute's text. Absent for a name that is not known.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "IB/RoCE v1" => Some(Self::IbOrRoceV1),
            "RoCE v2" => Some(Self::RoceV2),
            _ => None,
        }
    }

    /// The kernel's own name, but for iWARP.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IbOrRoceV1 => "IB/RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Iwarp => "iWARP",
        }
    }
}

/// One GID that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gid {
    /// Index in the port's table, as `sgid_index` of an address handle names it.
    pub(crate) index: u32,
    /// The 16 bytes of the GID.
    pub(crate) gid: Ipv6Addr,
    /// Absent if unreadable or unknown.
    pub(crate) kind: Option<GidType>,
    /// The network device the address belongs to; absent on InfiniBand.
    pub(crate) netdev: Option<String>,
}

impl Gid {
    /// Whether the GID carries an IPv4 address: with [`GidType::RoceV2`] the one that most jobs should use.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.gid.to_ipv4_mapped().is_some()
    }
}

/// The GIDs in use on one port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GidTable {
    gids: Vec<Gid>,
}

impl GidTable {
    /// Reads the table of the port directory `…/infiniband/DEV/ports/N`. Empty entries read as zero or fail
    /// with EINVAL, depending on the kernel; both are left out.
    pub(crate) fn read(port: &Path) -> Self {
        let path = port.join("gids");
        let Some(gids) = Folder::open(&path) else { return Self::default() };
        let attrs = port.join("gid_attrs");
        let iwarp = port.ancestors().nth(2).is_some_and(is_iwarp);
        let kind_of = |text: String| if iwarp { Some(GidType::Iwarp) } else { GidType::parse(&text) };
        let read_one = |index: u32| {
            let name = index.to_string();
            let gid: Ipv6Addr = gids.attribute(&name)?.parse().ok()?;
            (!gid.is_unspecified()).then(|| Gid {
                index,
                gid,
                kind: read::attribute(&attrs.join("types").join(&name)).and_then(kind_of),
                netdev: read::attribute(&attrs.join("ndevs").join(&name)),
            })
        };
        let indices = read::numbers(&path).into_iter().take(GIDS_MAX);
        Self { gids: indices.filter_map(read_one).collect() }
    }

    #[cfg(test)]
    /// A table of these.
    pub(crate) fn of(gids: Vec<Gid>) -> Self {
        Self { gids }
    }

    #[cfg(test)]
    /// The entry at an index. Absent if the index is empty or past the table: using it gives ENODATA or EINVAL.
    pub(crate) fn at(&self, index: u32) -> Option<&Gid> {
        self.gids.iter().find(|gid| gid.index == index)
    }

    #[cfg(test)]
    /// The entries with this address; RoCE lists one address under several types.
    pub(crate) fn with_address(&self, address: Ipv6Addr) -> impl Iterator<Item = &Gid> {
        self.gids.iter().filter(move |gid| gid.gid == address)
    }

    /// All entries in use, by rising index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Gid> {
        self.gids.iter()
    }

    /// How many entries are in use.
    pub(crate) fn len(&self) -> usize {
        self.gids.len()
    }

    /// The network devices that the entries name, each once, in order of appearance.
    pub(crate) fn netdevs(&self) -> Vec<String> {
        let mut netdevs: Vec<String> = Vec::new();
        for name in self.gids.iter().filter_map(|gid| gid.netdev.as_ref()) {
            if !netdevs.contains(name) {
                netdevs.push(name.clone());
            }
        }
        netdevs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_the_kernels_names() {
        for kind in [GidType::IbOrRoceV1, GidType::RoceV2] {
            assert_eq!(GidType::parse(kind.name()), Some(kind));
        }
        assert_eq!(GidType::parse("RoCE v3"), None);
    }
}
