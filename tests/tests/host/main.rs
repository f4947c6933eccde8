//! The release binary on this host: no RDMA needed.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod usage;
