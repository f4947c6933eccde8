//! Small questions by netlink: for which priorities flow control is on, and what RDMA netlink lists.
//!
//! Kernel answers of this kind wait in the socket when the request returns, so nothing here waits.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `NLM_F_DUMP`: list everything.
const DUMP: u16 = 0x300;
/// `NLMSG_DONE`: the end of a list.
const DONE: u16 = 3;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// Bytes of a message's header, and of an attribute's.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// The nested and byte order flags of an attribute's type.
const TYPE_MASK: u16 = 0x3fff;
/// Bytes of an answer: the kernel answers these questions within one page.
const ANSWER: usize = 32 * 1024;
/// Parts of a list that are taken: each has at least one device.
const PARTS: usize = 4096;

/// Data centre bridging (include/uapi/linux/dcbnl.h).
const RTM_GETDCB: u16 = 78;
const DCB_CMD_IEEE_GET: u8 = 21;
const DCB_ATTR_IFNAME: u16 = 1;
const DCB_ATTR_IEEE: u16 = 13;
const DCB_ATTR_IEEE_PFC: u16 = 2;

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

/// The bodies of everything that RDMA netlink lists in answer to a command.
///
/// # Errors
///
/// The kernel's, or that the list does not end.
pub(crate) fn dump_rdma(kind: u16) -> io::Result<Vec<Vec<u8>>> {
    let socket = open(Some(rustix::net::netlink::RDMA))?;
    send(&socket, &request(kind, REQUEST | DUMP, &[]), SendFlags::empty())?;
    let mut bodies = Vec::new();
    let mut answer = vec![0; ANSWER];
    // The kernel makes the next part while one is taken, so that there is always one, up to the end.
    for _ in 0..PARTS {
        let (length, _) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
        if split(answer.get(..length).unwrap_or_default(), &mut bodies)? {
            return Ok(bodies);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink list without an end"))
}

/// Takes the messages of one part of a list, and says whether it was the last.
fn split(mut part: &[u8], bodies: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some(kind) = half(part, 4) {
        let body = parse(part)?;
        if kind == DONE {
            return Ok(true);
        }
        part = part.get((HEADER + body.len()).next_multiple_of(4)..).unwrap_or_default();
        bodies.push(body);
    }
    Ok(false)
}

/// A socket of this protocol; `None` is that of routing, whose number is 0.
fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// The body of the answer to a request.
fn ask(socket: &OwnedFd, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
    send(socket, &request(kind, REQUEST, body), SendFlags::empty())?;
    let mut answer = vec![0; ANSWER];
    let (length, _) = recv(socket, answer.as_mut_slice(), RecvFlags::empty())?;
    answer.truncate(length);
    parse(&answer)
}

fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// The body of a message, or the error in it.
fn parse(message: &[u8]) -> io::Result<Vec<u8>> {
    let short = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message that is too short");
    let length = word(message, 0).and_then(|length| usize::try_from(length).ok()).ok_or_else(short)?;
    let kind = half(message, 4).ok_or_else(short)?;
    let body = message.get(HEADER..length).ok_or_else(short)?;
    if kind == ERROR {
        let number = word(body, 0).ok_or_else(short)?.cast_signed();
        return Err(io::Error::from_raw_os_error(number.saturating_neg()));
    }
    Ok(body.to_vec())
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
    fn a_list_comes_in_parts_and_ends() {
        let message = |kind: u16, body: &[u8]| {
            let mut message = request(kind, 2, body);
            message.resize(message.len().next_multiple_of(4), 0);
            message
        };
        let mut bodies = Vec::new();
        assert!(!split(&[message(5129, b"first"), message(5129, b"second!!")].concat(), &mut bodies).unwrap());
        assert!(split(&[message(5129, b"last"), message(DONE, &[0; 4])].concat(), &mut bodies).unwrap());
        assert_eq!(bodies, [&b"first"[..], b"second!!", b"last"]);
        let error = message(ERROR, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(split(&error, &mut bodies).unwrap_err().raw_os_error(), Some(libc::EPERM));
        // Too short, too long, nothing: an error or no end, and an end of its own accord.
        assert!(split(&[9, 0, 0, 0, 1, 0], &mut bodies).is_err());
        assert!(!split(&[], &mut bodies).unwrap());
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
    fn a_device_without_data_centre_bridging_does_not_say() {
        assert_eq!(priorities("lo"), None);
        assert_eq!(priorities("no-such-device"), None);
    }
}
