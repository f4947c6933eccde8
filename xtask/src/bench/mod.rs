//! `cargo xtask bench`: what watching costs, in figures, beside the tools that people would use instead.
//!
//! One comparison is one run on one machine: all that is compared alternates, round by round, so that a busy host
//! disturbs all of it alike. Of each run's batches the quickest counts, of the rounds the median.

mod bursts;
mod counters;
mod fast;
mod report;
mod runs;
mod samples;
mod script;
mod served;
mod verbs;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// What the burst sampler adds to a packet, beside tcpdump and bpftrace, and what draining and keeping take
    Bursts(bursts::Args),
    /// What a full reading of a host's NIC counters takes, beside node_exporter on the same tree
    Counters(counters::Args),
    /// What the verbs tracer adds to a call, beside bpftrace on the same functions and on every function
    Verbs(verbs::Args),
}

/// Runs the command line.
///
/// # Errors
/// When something that is needed is not there, or a run fails.
pub(crate) fn run(bench: &Bench) -> Result<ExitCode> {
    match bench {
        Bench::Bursts(args) => bursts::run(args),
        Bench::Counters(args) => counters::run(args),
        Bench::Verbs(args) => verbs::run(args),
    }
}
