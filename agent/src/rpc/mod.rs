//! The agent's gRPC interface and the client of it. With the crate `proto`, the only place that names tonic or prost.
//!
//! It must not compute, lock or keep state: a call is checked, handed to the daemon's loop as a command, and answered
//! with what the loop says.

pub(crate) mod client;
pub(crate) mod convert;
pub(crate) mod limits;
pub(crate) mod seen;
pub(crate) mod server;
mod service;
pub(crate) mod socket;
#[cfg(test)]
pub(crate) mod tests;
