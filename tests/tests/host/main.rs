//! The release binary on this host: no RDMA needed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a failed test")]

mod counters;
mod daemon;
mod kernel;
mod output;
mod packaged;
mod program;
mod usage;
