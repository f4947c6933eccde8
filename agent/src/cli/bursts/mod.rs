//! `fabricscope bursts`: what network devices sent and received, in time buckets.

mod record;

use std::process::ExitCode;

/// What to do with samples.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bursts {
    /// Sample a network device from a given time on, and write a file
    Record(record::RecordArgs),
}

/// Runs one of them.
///
/// # Errors
///
/// As each says.
pub(crate) fn run(command: &Bursts) -> anyhow::Result<ExitCode> {
    match command {
        Bursts::Record(args) => record::run(args),
    }
}
