//! Small questions by netlink: for which priorities flow control is on, which RDMA devices there are, and what a
//! port's hardware counters say at this moment. The last asks the driver each time, where sysfs serves what it has
//! kept for some milliseconds, and it knows optional counters, which have no files.
//!
//! Kernel answers of this kind wait in the socket when the request returns, so nothing here waits.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

/// `NLM_F_REQUEST`, `NLM_F_DUMP`.
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// `NLMSG_ERROR`, `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of a message's header, and of an attribute's.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// The nested and byte order flags of an attribute's type.
const TYPE_MASK: u16 = 0x3fff;
/// Bytes of an answer: the kernel answers these questions within one page.
const ANSWER: usize = 32 * 1024;

/// Data centre bridging (include/uapi/linux/dcbnl.h).
const RTM_GETDCB: u16 = 78;
const DCB_CMD_IEEE_GET: u8 = 21;
const DCB_ATTR_IFNAME: u16 = 1;
const DCB_ATTR_IEEE: u16 = 13;
const DCB_ATTR_IEEE_PFC: u16 = 2;

/// RDMA (include/uapi/rdma/rdma_netlink.h): `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, …)`, and attributes.
const RDMA_GET: u16 = (5 << 10) + 1;
const RDMA_STAT_GET: u16 = (5 << 10) + 17;
const ATTR_DEV_INDEX: u16 = 1;
const ATTR_DEV_NAME: u16 = 2;
const ATTR_PORT_INDEX: u16 = 3;
const ATTR_NODE_GUID: u16 = 6;
const ATTR_COUNTERS: u16 = 80;
const ATTR_COUNTER: u16 = 81;
const ATTR_COUNTER_NAME: u16 = 82;
const ATTR_COUNTER_VALUE: u16 = 83;

/// An RDMA device as the kernel numbers it in this process's namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RdmaDevice {
    /// By which it is asked for.
    pub(crate) index: u32,
    /// Such as `mlx5_0`.
    pub(crate) name: String,
    /// The number that sysfs writes as `b8ce:f603:00ab:cdef`.
    pub(crate) node_guid: u64,
}

/// A way to ask RDMA devices.
#[derive(Debug)]
pub(crate) struct Rdma {
    socket: OwnedFd,
}

impl Rdma {
    /// Opens a socket to ask by.
    ///
    /// # Errors
    ///
    /// Where the kernel has no RDMA.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { socket: open(Some(rustix::net::netlink::RDMA))? })
    }

    /// Every device.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn devices(&self) -> io::Result<Vec<RdmaDevice>> {
        Ok(self.list(RDMA_GET)?.iter().filter_map(|body| device_in(body)).collect())
    }

    /// The attributes of everything that is listed in answer to a command (a message's type).
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn list(&self, command: u16) -> io::Result<Vec<Vec<u8>>> {
        let mut bodies = Vec::new();
        send(&self.socket, &message(command, REQUEST | DUMP, &[]), SendFlags::empty())?;
        loop {
            let answer = receive(&self.socket)?;
            for (kind, body) in messages(&answer) {
                match kind {
                    DONE => return Ok(bodies),
                    ERROR => return Err(error_in(body)),
                    _ => bodies.push(body.to_vec()),
                }
            }
        }
    }

    /// The hardware counters of a port, by the driver's names, read from the driver now.
    ///
    /// # Errors
    ///
    /// The kernel's: `EINVAL` for a device that has none.
    pub(crate) fn statistics(&self, index: u32, port: u32) -> io::Result<Vec<(String, u64)>> {
        let mut body = Vec::new();
        attribute(&mut body, ATTR_DEV_INDEX, &index.to_ne_bytes());
        attribute(&mut body, ATTR_PORT_INDEX, &port.to_ne_bytes());
        Ok(counters_in(&ask(&self.socket, RDMA_STAT_GET, &body)?))
    }
}

fn device_in(attributes: &[u8]) -> Option<RdmaDevice> {
    let index = word(find(attributes, ATTR_DEV_INDEX)?, 0)?;
    let node_guid = long(find(attributes, ATTR_NODE_GUID)?)?;
    Some(RdmaDevice { index, name: text(find(attributes, ATTR_DEV_NAME)?), node_guid })
}

fn counters_in(bytes: &[u8]) -> Vec<(String, u64)> {
    let all = find(bytes, ATTR_COUNTERS).unwrap_or_default();
    let counter = |entry: &[u8]| Some((text(find(entry, ATTR_COUNTER_NAME)?), long(find(entry, ATTR_COUNTER_VALUE)?)?));
    attributes(all).filter(|(kind, _)| *kind == ATTR_COUNTER).filter_map(|(_, entry)| counter(entry)).collect()
}

/// Text up to its zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// A number of 64 bits.
pub(crate) fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// Priorities with flow control, one bit each; `None` if the device does not say.
pub(crate) fn priorities(netdev: &str) -> Option<u8> {
    let socket = open(None).ok()?;
    let mut body = vec![0, DCB_CMD_IEEE_GET, 0, 0];
    attribute(&mut body, DCB_ATTR_IFNAME, &[netdev.as_bytes(), &[0]].concat());
    let answer = ask(&socket, RTM_GETDCB, &body).ok()?;
    enabled(answer.get(ATTRIBUTE..)?)
}

/// The bit mask in the attributes of an answer. `struct ieee_pfc` begins with what can be, then what is enabled.
fn enabled(attributes: &[u8]) -> Option<u8> {
    let ieee = find(attributes, DCB_ATTR_IEEE)?;
    find(ieee, DCB_ATTR_IEEE_PFC)?.get(1).copied()
}

/// A socket of this protocol; `None` is that of routing, whose number is 0.
fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut answer = vec![0; ANSWER];
    let (length, _) = recv(socket, answer.as_mut_slice(), RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// The body of the answer to a request.
fn ask(socket: &OwnedFd, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    send(socket, &message(kind, REQUEST, body), SendFlags::empty())?;
    parse(&receive(socket)?)
}

/// The body of the first message, or the error in it.
fn parse(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let short = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message that is too short");
    match messages(bytes).next().ok_or_else(short)? {
        (ERROR, body) => Err(error_in(body)),
        (_, body) => Ok(body.to_vec()),
    }
}

/// The error a message of that kind tells.
fn error_in(body: &[u8]) -> io::Error {
    match word(body, 0) {
        Some(number) => io::Error::from_raw_os_error(number.cast_signed().saturating_neg()),
        None => io::Error::new(io::ErrorKind::InvalidData, "a netlink error that is too short"),
    }
}

/// Kinds and bodies of the messages one after the other; what is cut off ends them.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::try_from(word(rest, 0)?).ok()?;
        let kind = half(rest, 4)?;
        let body = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Adds an attribute to a message.
pub(crate) fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE + value.len()).unwrap_or(u16::MAX);
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The attributes one after the other; what is cut off ends them.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(half(rest, 0)?);
        let kind = half(rest, 2)? & TYPE_MASK;
        let value = rest.get(ATTRIBUTE..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of this type.
pub(crate) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_priorities_are_found_in_the_nested_attributes() {
        let mut pfc = Vec::new();
        attribute(&mut pfc, 1, &[9; 5]);
        attribute(&mut pfc, DCB_ATTR_IEEE_PFC, &[8, 0b1000, 0, 0]);
        let mut all = Vec::new();
        attribute(&mut all, DCB_ATTR_IFNAME, b"eth0\0");
        attribute(&mut all, DCB_ATTR_IEEE | 0x8000, &pfc);
        assert_eq!(enabled(&all), Some(0b1000));
        for length in 0..all.len() {
            // Cut off anywhere: no panic, and never a mask that is not there.
            assert!(matches!(enabled(&all[..length]), None | Some(0b1000)), "{length}");
        }
    }

    #[test]
    fn errors_and_odd_messages_are_errors() {
        let mut message = vec![20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        message.extend((-libc::ENODEV).to_ne_bytes());
        assert_eq!(parse(&message).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        for length in 0..message.len() {
            assert!(parse(&message[..length]).is_err());
        }
        message[0] = 255;
        assert!(parse(&message).is_err());
    }

    #[test]
    fn devices_and_counters_are_found_in_their_messages() {
        let mut body = Vec::new();
        attribute(&mut body, ATTR_DEV_INDEX, &7u32.to_ne_bytes());
        attribute(&mut body, ATTR_DEV_NAME, b"mlx5_0\0");
        attribute(&mut body, ATTR_NODE_GUID, &0xb8ce_f603_00ab_cdef_u64.to_ne_bytes());
        let expected = RdmaDevice { index: 7, name: "mlx5_0".to_owned(), node_guid: 0xb8ce_f603_00ab_cdef };
        assert_eq!(device_in(&body), Some(expected));
        let entry = |name: &[u8], value: u64| {
            let mut entry = Vec::new();
            attribute(&mut entry, ATTR_COUNTER_NAME, name);
            attribute(&mut entry, ATTR_COUNTER_VALUE, &value.to_ne_bytes());
            entry
        };
        let mut table = Vec::new();
        attribute(&mut table, ATTR_COUNTER | 0x8000, &entry(b"np_cnp_sent\0", 5));
        attribute(&mut table, ATTR_COUNTER | 0x8000, &entry(b"odd\0", u64::MAX)[..14]);
        attribute(&mut table, ATTR_COUNTER, &entry(b"out_of_sequence\0", u64::MAX));
        let mut all = Vec::new();
        attribute(&mut all, ATTR_COUNTERS | 0x8000, &table);
        let expected = [("np_cnp_sent".to_owned(), 5), ("out_of_sequence".to_owned(), u64::MAX)];
        assert_eq!(counters_in(&all), expected);
        for length in 0..all.len() {
            assert!(counters_in(&all[..length]).len() <= 2 && device_in(&all[..length]).is_none());
        }
        let two = [message(RDMA_GET, 0, &body), message(DONE, 0, &[0; 4])].concat();
        assert_eq!(messages(&two).map(|(kind, _)| kind).collect::<Vec<_>>(), [RDMA_GET, DONE]);
    }

    #[test]
    fn the_kernel_lists_its_devices_or_has_no_rdma() {
        if let Ok(rdma) = Rdma::new() {
            match rdma.devices() {
                Ok(devices) => assert!(devices.iter().all(|device| !device.name.is_empty()), "{devices:?}"),
                // Without the RDMA stack nobody listens.
                Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
            }
            assert!(rdma.statistics(u32::MAX, 1).is_err());
        }
    }

    #[test]
    fn a_device_without_data_centre_bridging_does_not_say() {
        assert_eq!(priorities("lo"), None);
        assert_eq!(priorities("no-such-device"), None);
    }
}
