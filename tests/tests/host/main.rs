//! The release binary on this host: no RDMA needed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a failed test")]

mod bursts_agent;
mod bursts_fields;
mod bursts_iperf;
mod bursts_kernel;
mod bursts_kernel_others;
mod bursts_last;
mod bursts_marks;
mod bursts_pattern;
mod bursts_show;
mod bursts_tick;
mod counters;
mod daemon;
mod fast;
mod findings;
mod kernel;
mod output;
mod packaged;
mod program;
mod recorder;
mod recorder_disk;
mod samples;
mod sampling;
mod usage;
