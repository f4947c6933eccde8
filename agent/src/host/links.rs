//! Network devices of this network namespace, from rtnetlink: what there is, what lies on what, and when that changes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use analysis::series::BitsPerSecond;
use bytes::Buf as _;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NlasIterator};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::read;
use super::rtnetlink::{
    IFF_LOOPBACK, IFINFO, IFINFO_INDEX, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINK_NETNSID, IFLA_LINKINFO,
    IFLA_MASTER, RTM_GETLINK, RTM_NEWLINK, RTNLGRP_LINK,
};

/// Devices of one dump that are looked at; further ones do not exist for the agent.
const LINKS_MAX: usize = 16_384;

/// Bytes of one answer: the kernel fills at most 32 KiB into one (`netlink_dump`).
const ANSWER_BYTES: usize = 64 * 1024;

/// How long the kernel may take for the next part of an answer.
const ANSWER_WAIT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// How often a dump is begun again because devices came or went while it ran.
const DUMPS: usize = 8;

// linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;

/// A network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its index in this network namespace.
    pub(crate) ifindex: u32,
    /// Its name.
    pub(crate) name: String,
    /// The software that makes it (`vlan`, `bond`, `veth`); none for a driver's own device.
    pub(crate) kind: Option<String>,
    /// The bond, bridge or team that it is a port of.
    pub(crate) master: Option<u32>,
    /// The device of this namespace that it was made on, or its peer.
    pub(crate) link: Option<u32>,
    /// It leads back to this host.
    pub(crate) loopback: bool,
    /// Hardware, or what a hypervisor shows as such, stands behind it.
    pub(crate) physical: bool,
    /// As the driver states it.
    pub(crate) speed: Option<BitsPerSecond>,
}

/// Tells when devices come, go or change.
pub(crate) struct Bell(Socket);

impl Bell {
    /// Hears of every change from now on.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the socket.
    pub(crate) fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.add_membership(RTNLGRP_LINK)?;
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// Whether anything has changed since the last time. What exactly is not read: the devices are then looked at anew,
    /// so that a message that found no room makes no difference.
    pub(crate) fn has_rung(&self) -> bool {
        let mut buffer = Vec::with_capacity(ANSWER_BYTES);
        let mut rung = false;
        // An endless stream of changes is left for the next time.
        for _ in 0..1024 {
            buffer.clear();
            match self.0.recv(&mut buffer, 0) {
                Ok(_) => rung = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // ENOBUFS: messages found no room.
                Err(_) => rung = true,
            }
        }
        rung
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// All devices of this network namespace, by rising index. `sysfs` says what netlink does not, if it is that of this
/// namespace.
///
/// # Errors
///
/// If the kernel does not answer, or never says the same twice.
pub(crate) fn links(sysfs: &Path) -> io::Result<Vec<Link>> {
    for _ in 0..DUMPS {
        if let Some(mut links) = dump()? {
            links.sort_by_key(|link| link.ifindex);
            links.iter_mut().for_each(|link| link.complete(sysfs));
            return Ok(links);
        }
    }
    Err(io::Error::other("the network devices change faster than they can be listed"))
}

/// One dump; `None` if it was interrupted by a change.
fn dump() -> io::Result<Option<Vec<Link>>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = [0; HEADER + IFINFO];
    let mut header = NetlinkBuffer::new(&mut request[..]);
    header.set_length((HEADER + IFINFO) as u32);
    header.set_message_type(RTM_GETLINK);
    header.set_flags(NLM_F_REQUEST | NLM_F_DUMP);
    header.set_sequence_number(1);
    socket.send(&request, 0)?;
    let mut links = Vec::new();
    let mut buffer = Vec::with_capacity(ANSWER_BYTES);
    loop {
        if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&ANSWER_WAIT))? == 0 {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        buffer.clear();
        socket.recv(&mut buffer, 0)?;
        match answer(&buffer, &mut links)? {
            Answer::More => {}
            Answer::Interrupted => return Ok(None),
            Answer::Done => return Ok(Some(links)),
        }
    }
}

/// What a datagram of an answer means for the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    More,
    Done,
    Interrupted,
}

/// Takes the devices out of one datagram.
fn answer(mut bytes: &[u8], links: &mut Vec<Link>) -> io::Result<Answer> {
    while let Ok(message) = NetlinkBuffer::new_checked(bytes) {
        if message.flags() & NLM_F_DUMP_INTR != 0 {
            return Ok(Answer::Interrupted);
        }
        match message.message_type() {
            NLMSG_DONE => return Ok(Answer::Done),
            NLMSG_ERROR => {
                let error = message.payload().try_get_i32_ne().unwrap_or_default();
                return Err(io::Error::from_raw_os_error(error.saturating_neg()));
            }
            RTM_NEWLINK if links.len() < LINKS_MAX => links.extend(link(message.payload())),
            _ => {}
        }
        let length = usize::try_from(message.length()).unwrap_or(usize::MAX).next_multiple_of(4);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(Answer::More)
}

/// A device from `struct ifinfomsg` and the attributes after it; `None` if it has no name.
fn link(payload: &[u8]) -> Option<Link> {
    let mut fixed = payload.get(..IFINFO)?.get(IFINFO_INDEX..)?;
    let ifindex = fixed.try_get_u32_ne().ok()?;
    let flags = fixed.try_get_u32_ne().ok()?;
    let mut link = Link { ifindex, loopback: flags & IFF_LOOPBACK != 0, ..Link::default() };
    let mut elsewhere = false;
    // An attribute that is none ends the list.
    for attribute in NlasIterator::new(payload.get(IFINFO..)?).map_while(Result::ok) {
        let value = attribute.value();
        match attribute.kind() {
            IFLA_IFNAME => link.name = text(value),
            IFLA_LINK => link.link = number(value),
            IFLA_MASTER => link.master = number(value),
            IFLA_LINK_NETNSID => elsewhere = true,
            IFLA_LINKINFO => {
                let kind = NlasIterator::new(value).map_while(Result::ok).find(|inner| inner.kind() == IFLA_INFO_KIND);
                link.kind = kind.map(|kind| text(kind.value()));
            }
            _ => {}
        }
    }
    // The index of another namespace says nothing here; nor does a device's own.
    link.link = link.link.filter(|index| !elsewhere && *index != ifindex && *index != 0);
    (!link.name.is_empty()).then_some(link)
}

fn number(mut value: &[u8]) -> Option<u32> {
    value.try_get_u32_ne().ok()
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

/// The speed that a network device's folder in sysfs states; `None` if its driver does not know, or the link is down.
pub(crate) fn stated_speed(folder: &Path) -> Option<BitsPerSecond> {
    // In Mbit/s; -1 or unreadable where the driver does not know.
    let megabits = read::parsed::<i64>(&folder.join("speed")).and_then(|speed| u64::try_from(speed).ok());
    // SPEED_UNKNOWN as some drivers write it.
    let known = megabits.filter(|megabits| *megabits > 0 && *megabits < u64::from(u32::MAX));
    known.map(|megabits| BitsPerSecond(megabits * 1_000_000))
}

impl Link {
    /// What sysfs says of the device, if it is the same: sysfs shows the namespace of whoever mounted it.
    fn complete(&mut self, sysfs: &Path) {
        let folder = sysfs.join("class/net").join(&self.name);
        if read::parsed::<u32>(&folder.join("ifindex")) != Some(self.ifindex) {
            return;
        }
        self.physical = !self.loopback && self.kind.is_none() && read::link_name(&folder.join("device")).is_some();
        self.speed = stated_speed(&folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(HEADER + payload.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(payload);
        bytes
    }

    fn device(ifindex: u32, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(ifindex.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(attributes.concat());
        bytes
    }

    #[test]
    fn devices_are_taken_from_an_answer() {
        let kind = attribute(IFLA_LINKINFO, &attribute(IFLA_INFO_KIND, b"vlan\0"));
        let link = attribute(IFLA_LINK, &7u32.to_ne_bytes());
        let vlan = device(9, 0, &[attribute(IFLA_IFNAME, b"eth0.5\0"), link.clone(), kind]);
        let port = device(7, 0, &[attribute(IFLA_IFNAME, b"eth0\0"), attribute(IFLA_MASTER, &4u32.to_ne_bytes())]);
        let peer_elsewhere = [attribute(IFLA_IFNAME, b"veth1\0"), link, attribute(IFLA_LINK_NETNSID, &[0; 4])];
        let veth = device(8, IFF_LOOPBACK, &peer_elsewhere);
        let bytes = [vlan, port, veth, device(3, 0, &[])].map(|device| message(RTM_NEWLINK, 0, &device)).concat();
        let mut links = Vec::new();
        assert_eq!(answer(&bytes, &mut links).unwrap(), Answer::More);
        let vlan =
            Link { ifindex: 9, name: "eth0.5".into(), kind: Some("vlan".into()), link: Some(7), ..Link::default() };
        let port = Link { ifindex: 7, name: "eth0".into(), master: Some(4), ..Link::default() };
        let veth = Link { ifindex: 8, name: "veth1".into(), loopback: true, ..Link::default() };
        assert_eq!(links, [vlan, port, veth], "a device without a name is none");
    }

    #[test]
    fn an_answer_ends_fails_or_begins_again() {
        let mut links = Vec::new();
        let rows = [
            (message(NLMSG_DONE, 0, &[0; 4]), Answer::Done),
            (message(RTM_NEWLINK, NLM_F_DUMP_INTR, &[]), Answer::Interrupted),
            (message(99, 0, &[1, 2, 3]), Answer::More),
            (vec![1, 2, 3], Answer::More),
            (vec![0xff; 64], Answer::More),
            (vec![0; 64], Answer::More),
        ];
        for (bytes, expected) in rows {
            assert_eq!(answer(&bytes, &mut links).unwrap(), expected, "{bytes:?}");
        }
        let refused = message(NLMSG_ERROR, 0, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(answer(&refused, &mut links).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert!(links.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes: Vec<u8>) {
            let mut links = Vec::new();
            let _ = answer(&bytes, &mut links);
            let _ = answer(&message(RTM_NEWLINK, 0, &bytes), &mut links);
        }
    }

    #[test]
    fn this_host_has_a_loopback_device() {
        let links = links(Path::new("/sys")).unwrap();
        let loopback = links.iter().find(|link| link.loopback).expect("each network namespace has one");
        assert_eq!((loopback.name.as_str(), loopback.ifindex, loopback.physical), ("lo", 1, false));
        assert!(!Bell::new().unwrap().has_rung());
    }

    #[test]
    fn sysfs_of_another_namespace_says_nothing() {
        let sysfs = tempfile::tempdir().unwrap();
        let folder = sysfs.path().join("class/net/eth0");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("../../../devices/pci0/0000:3b:00.0", folder.join("device")).unwrap();
        for (ifindex, speed, expected) in [
            ("7", "100000\n", (true, Some(100_000_000_000))),
            ("7", "-1\n", (true, None)),
            ("7", "4294967295\n", (true, None)),
            ("8", "100000\n", (false, None)),
        ] {
            std::fs::write(folder.join("ifindex"), ifindex).unwrap();
            std::fs::write(folder.join("speed"), speed).unwrap();
            let mut link = Link { ifindex: 7, name: "eth0".into(), ..Link::default() };
            link.complete(sysfs.path());
            assert_eq!((link.physical, link.speed.map(|speed| speed.0)), expected, "{ifindex} {speed}");
        }
    }
}
