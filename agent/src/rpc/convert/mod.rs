//! Domain types to the wire and back: one file per group of messages.
//!
//! To the wire always succeeds. From the wire, what is out of range or missing is an error that names the field; a
//! value that a newer version added is absent where the domain can say so, else an error too.

mod agent;
mod counters;
mod event;
mod filter;
mod health;
mod request;
mod samples;
#[cfg(test)]
pub(in crate::rpc) mod tests;

use std::str::FromStr;

pub(crate) use agent::{hook_to_wire, info_to_wire, status_to_wire};
pub(crate) use counters::{counters_from_wire, counters_to_wire};
pub(crate) use event::event_to_wire;
pub(crate) use samples::{series_from_wire, series_to_wire};

/// What a message from the wire cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// A field without which the message means nothing.
    #[error("field {0} is missing")]
    Missing(&'static str),
    /// A number too large for what it counts.
    #[error("field {0} is out of range")]
    OutOfRange(&'static str),
    /// More values, or a longer text, than allowed.
    #[error("field {0} is too long: at most {1} are allowed")]
    TooLong(&'static str, usize),
    /// A number that this version does not know.
    #[error("field {0} has the value {1}, which this version does not know")]
    Unknown(&'static str, i32),
    /// A name that this version does not know.
    #[error("field {0} names {1:?}, which this version does not know")]
    UnknownName(&'static str, String),
    /// Text that is not what the field holds.
    #[error("field {0} cannot be read: {1:?}")]
    Text(&'static str, String),
}

type Result<T> = std::result::Result<T, WireError>;

/// A field without which the message means nothing.
pub(super) fn required<T>(field: &'static str, value: Option<T>) -> Result<T> {
    value.ok_or(WireError::Missing(field))
}

/// A number in the width that the domain has for it.
fn exact<T: TryFrom<u32>>(field: &'static str, value: u32) -> Result<T> {
    T::try_from(value).map_err(|_| WireError::OutOfRange(field))
}

/// The same for one that may be absent.
fn narrow<T: TryFrom<u32>>(field: &'static str, value: Option<u32>) -> Result<Option<T>> {
    value.map(|value| exact(field, value)).transpose()
}

/// What a text says.
fn parse<T: FromStr>(field: &'static str, text: &str) -> Result<T> {
    text.parse().map_err(|_| WireError::Text(field, text.to_owned()))
}
