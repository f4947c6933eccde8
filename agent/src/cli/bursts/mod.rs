//! `fabricscope bursts`: what network devices received and sent, in buckets of time.

mod totals;

use std::io;
use std::process::ExitCode;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bursts {
    Totals(totals::TotalsArgs),
}

/// Runs one of them.
///
/// # Errors
///
/// Those of the subcommand.
pub(crate) fn run(command: &Bursts) -> anyhow::Result<ExitCode> {
    match command {
        Bursts::Totals(args) => totals::run(args, &mut io::stdout().lock()),
    }
}
