//! The numbers of rtnetlink's messages about network devices: linux/rtnetlink.h, linux/if_link.h and linux/if.h, all
//! part of the kernel's stable interface.

/// A device is there or has changed.
pub(crate) const RTM_NEWLINK: u16 = 16;
/// A device is gone.
pub(crate) const RTM_DELLINK: u16 = 17;
/// Asks for one device, or for all.
pub(crate) const RTM_GETLINK: u16 = 18;
/// The group that hears of each change of a device.
pub(crate) const RTNLGRP_LINK: u32 = 1;

/// Bytes of `struct ifinfomsg`, before the attributes: the address family with padding 2, the device's type 2, its index
/// 4, its flags 4, which of them change 4.
pub(crate) const IFINFO: usize = 16;
/// Where the index begins in it.
pub(crate) const IFINFO_INDEX: usize = 4;
/// The flag of a device that leads back to its host.
pub(crate) const IFF_LOOPBACK: u32 = 0x8;

/// The device's name, with a zero at its end.
pub(crate) const IFLA_IFNAME: u16 = 3;
/// The index of the device below it, or of its peer.
pub(crate) const IFLA_LINK: u16 = 5;
/// The index of the bond, bridge or team that it is a port of.
pub(crate) const IFLA_MASTER: u16 = 10;
/// Attributes about the software that makes it.
pub(crate) const IFLA_LINKINFO: u16 = 18;
/// Of these: the name of that software.
pub(crate) const IFLA_INFO_KIND: u16 = 1;
/// There is a link: one byte.
pub(crate) const IFLA_CARRIER: u16 = 33;
/// The network namespace that [`IFLA_LINK`] is an index of, where it is another one.
pub(crate) const IFLA_LINK_NETNSID: u16 = 37;
/// How often the link came: 32 bits.
pub(crate) const IFLA_CARRIER_UP_COUNT: u16 = 47;
/// How often it went: 32 bits.
pub(crate) const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
