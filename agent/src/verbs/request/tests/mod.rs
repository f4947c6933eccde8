//! Requests built by hand at the offsets that the headers give, and arbitrary bytes.
//!
//! The offsets were taken with `offsetof` from the headers of 6.1 and 7.2, not from the code under test.

mod arbitrary;
mod cm;
mod legacy;
mod native;
mod words;

use agent_common::verb::{VerbKey, interface};

use super::types::Request;
use super::{RawRequest, decode};

/// A structure of `len` bytes with each value at its offset, and 0xff in between: what is read from a
/// wrong place shows.
fn structure(len: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0xff; len];
    for (offset, value) in fields {
        bytes[*offset..*offset + value.len()].copy_from_slice(value);
    }
    bytes
}

/// A `struct ib_uverbs_attr`: attr_id, len, flags, attr_data (u16 each), data (u64).
fn attr(id: u16, len: u16, data: u64) -> Vec<u8> {
    let mut bytes = [id, len, 1, 0].map(u16::to_le_bytes).concat();
    bytes.extend(data.to_le_bytes());
    bytes
}

fn native(key: VerbKey, attrs: &[Vec<u8>], payload: &[u8]) -> Request {
    decode(&RawRequest { key, attrs: &attrs.concat(), core_in: &[], payload })
}

/// The structure by write() and behind the ioctl that carries it: both have to say the same.
#[track_caller]
fn check_command(command: u32, core_in: &[u8], expected: &Request) {
    let key = VerbKey::legacy(interface::LEGACY_WRITE, command);
    assert_eq!(&decode(&RawRequest { key, core_in, ..RawRequest::default() }), expected, "write");

    let key = VerbKey::legacy(interface::LEGACY_IOCTL, command);
    let len = u16::try_from(core_in.len()).unwrap();
    // Up to 8 bytes stand in the attribute itself; what follows them there is not the structure's.
    let inline = match len {
        0..=8 => {
            u64::from_le_bytes(core_in.iter().copied().chain([0xff; 8]).collect::<Vec<_>>()[..8].try_into().unwrap())
        }
        _ => 0x7f00_1234_5678,
    };
    let attrs = [attr(0, len, inline), attr(2, 8, u64::from(command))].concat();
    let behind = if len <= 8 { &[][..] } else { core_in };
    assert_eq!(&decode(&RawRequest { key, attrs: &attrs, core_in: behind, payload: &[] }), expected, "ioctl");
}
