//! Small questions to the kernel by netlink, and what the answers look like: dcb, ethtool, devlink, RDMA.
//!
//! Kernel answers of this kind wait in the socket when the request returns, so nothing here waits.

mod dcb;
pub(crate) mod devlink;
pub(crate) mod ethtool;
mod generic;
pub(crate) mod rdma;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

pub(crate) use dcb::priorities;
pub(crate) use rdma::Rdma;

/// `NLM_F_REQUEST`, `NLM_F_DUMP`.
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// `NLMSG_ERROR`, `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of a message's header, and of an attribute's.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// An attribute that holds others.
pub(crate) const NESTED: u16 = 0x8000;
/// An attribute's type without the flags for nesting and byte order.
const TYPE_MASK: u16 = 0x3fff;
/// Bytes of an answer: the kernel fills at most as many at a time.
const ANSWER: usize = 32 * 1024;
/// Entries of one list that are taken; further ones are not.
const ENTRIES: usize = 16_384;

/// A socket that questions are asked by, one after the other.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    /// The number of the last question: what answers an earlier one, given up after an error, is passed over.
    asked: Cell<u32>,
}

impl Channel {
    /// Opens one of this protocol; `None` is that of routing, whose number is 0.
    ///
    /// # Errors
    ///
    /// Where the kernel has no such protocol.
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        Self::bound(protocol, 0)
    }

    /// Opens one that hears of these groups of routing, a bit each.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub(crate) fn listening(groups: u32) -> io::Result<Self> {
        Self::bound(None, groups)
    }

    fn bound(protocol: Option<Protocol>, groups: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { socket, asked: Cell::new(0) })
    }

    /// Kinds and bodies of what has come without being asked for.
    ///
    /// # Errors
    ///
    /// The kernel's: `ENOBUFS` if something found no room.
    pub(crate) fn heard(&self) -> io::Result<Vec<(u16, Vec<u8>)>> {
        Ok(messages(&self.receive()?).map(|message| (message.kind, message.body.to_vec())).collect())
    }

    /// The body of the answer to a question.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn ask(&self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        let number = self.send(kind, REQUEST, body)?;
        loop {
            if let Some(answer) = first(&self.receive()?, number) {
                return answer;
            }
        }
    }

    /// The bodies of everything that is listed in answer to a question.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn list(&self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let number = self.send(kind, REQUEST | DUMP, body)?;
        let mut bodies = Vec::new();
        loop {
            let answer = self.receive()?;
            for message in messages(&answer).filter(|message| message.number == number) {
                match message.kind {
                    DONE => return Ok(bodies),
                    ERROR => return Err(error_in(message.body)),
                    _ if bodies.len() < ENTRIES => bodies.push(message.body.to_vec()),
                    _ => {}
                }
            }
        }
    }

    fn send(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<u32> {
        let number = self.asked.get().wrapping_add(1);
        self.asked.set(number);
        send(&self.socket, &message(kind, flags, number, body), SendFlags::empty())?;
        Ok(number)
    }

    fn receive(&self) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; ANSWER];
        let (length, _) = recv(&self.socket, answer.as_mut_slice(), RecvFlags::empty())?;
        answer.truncate(length);
        Ok(answer)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn message(kind: u16, flags: u16, number: u32, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(number.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// One message of several that came together.
struct Message<'a> {
    kind: u16,
    number: u32,
    body: &'a [u8],
}

/// The body of the first message that answers this question, or the error in it; `None` if none does.
fn first(bytes: &[u8], number: u32) -> Option<io::Result<Vec<u8>>> {
    if messages(bytes).next().is_none() {
        return Some(Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink message that is too short")));
    }
    let message = messages(bytes).find(|message| message.number == number)?;
    Some(if message.kind == ERROR { Err(error_in(message.body)) } else { Ok(message.body.to_vec()) })
}

/// The error a message of that kind tells.
fn error_in(body: &[u8]) -> io::Error {
    match word(body) {
        Some(number) => io::Error::from_raw_os_error(number.cast_signed().saturating_neg()),
        None => io::Error::new(io::ErrorKind::InvalidData, "a netlink error that is too short"),
    }
}

/// The messages one after the other; what is cut off ends them.
fn messages(bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::try_from(word(rest)?).ok()?;
        let kind = half(rest.get(4..)?)?;
        let number = word(rest.get(8..)?)?;
        let body = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, number, body })
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
        let length = usize::from(half(rest)?);
        let kind = half(rest.get(2..)?)? & TYPE_MASK;
        let value = rest.get(ATTRIBUTE..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The attributes of one type.
pub(crate) fn all(bytes: &[u8], kind: u16) -> impl Iterator<Item = &[u8]> {
    attributes(bytes).filter(move |(found, _)| *found == kind).map(|(_, value)| value)
}

/// The first attribute of this type.
pub(crate) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    all(bytes, kind).next()
}

/// Text up to its zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn half(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?))
}

/// A number of 32 bits.
pub(crate) fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// A number of 64 bits.
pub(crate) fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_odd_messages_are_errors() {
        let message = message(ERROR, 0, 7, &(-libc::ENODEV).to_ne_bytes());
        assert_eq!(first(&message, 7).unwrap().unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert!(first(&message, 8).is_none(), "it answers another question");
        for length in 0..message.len() {
            assert!(first(&message[..length], 7).unwrap().is_err());
        }
        assert!(first(&[&[255], &message[1..]].concat(), 7).unwrap().is_err());
    }

    #[test]
    fn messages_and_attributes_end_where_they_are_cut_off() {
        let two = [message(16, 0, 1, b"12345"), vec![0; 3], message(DONE, 0, 1, &[0; 4])].concat();
        assert_eq!(messages(&two).map(|message| message.kind).collect::<Vec<_>>(), [16, DONE]);
        let mut body = Vec::new();
        attribute(&mut body, 1, b"abc");
        attribute(&mut body, 2 | NESTED, &7u64.to_ne_bytes());
        assert_eq!((find(&body, 1), find(&body, 2).and_then(long), find(&body, 3)), (Some(&b"abc"[..]), Some(7), None));
        for length in 0..body.len() {
            assert!(attributes(&body[..length]).count() < 2, "{length}");
        }
        // A length of nothing would go on for ever.
        assert_eq!(attributes(&[0; 64]).count(), 0);
        assert_eq!(messages(&[0; 64]).count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes: Vec<u8>) {
            let _ = first(&bytes, 0);
            let _ = first(&message(16, 0, 0, &bytes), 0);
            devlink::parse_any(&bytes);
            ethtool::parse_any(&bytes);
            rdma::parse_any(&bytes);
        }
    }
}
