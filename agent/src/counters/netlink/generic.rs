//! Generic netlink (include/uapi/linux/genetlink.h): families that are found by their names.

use std::io;

use rustix::net::netlink;

use super::{Channel, attribute, find, half};

/// The family that knows the others, and its question after one.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`: command, version, 2 bytes of nothing.
const GENERIC_HEADER: usize = 4;

/// A family, and a socket that it is asked by.
#[derive(Debug)]
pub(super) struct Family {
    channel: Channel,
    id: u16,
}

impl Family {
    /// Finds a family.
    ///
    /// # Errors
    ///
    /// The kernel's: `ENOENT` where there is no such family.
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let channel = Channel::open(Some(netlink::GENERIC))?;
        let mut body = header(GET_FAMILY);
        attribute(&mut body, FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let answer = channel.ask(CONTROL, &body)?;
        let id = answer.get(GENERIC_HEADER..).and_then(|answer| half(find(answer, FAMILY_ID)?));
        let id = id.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a netlink family without a number"))?;
        Ok(Self { channel, id })
    }

    /// The attributes of the answer to a command.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(super) fn ask(&self, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
        let mut answer = self.channel.ask(self.id, &[&header(command), attributes].concat())?;
        Ok(answer.split_off(GENERIC_HEADER.min(answer.len())))
    }

    /// The attributes of everything that is listed in answer to a command.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(super) fn list(&self, command: u8) -> io::Result<Vec<Vec<u8>>> {
        let mut answers = self.channel.list(self.id, &header(command))?;
        Ok(answers.iter_mut().map(|answer| answer.split_off(GENERIC_HEADER.min(answer.len()))).collect())
    }
}

fn header(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_that_is_not_there_is_an_error() {
        assert!(Family::open("no_such_family").is_err());
    }
}
