//! `fabricscope bursts`: what devices sent and received, sample by sample.

mod convert;
mod record;
mod totals;

use std::io;
use std::process::ExitCode;

use clap::Subcommand;

/// What to do with samples.
#[derive(Debug, Subcommand)]
pub(crate) enum Bursts {
    Record(record::RecordArgs),
    Convert(convert::ConvertArgs),
    Totals(totals::TotalsArgs),
}

/// Runs one of them.
///
/// # Errors
///
/// As each says.
pub(crate) fn run(command: &Bursts) -> anyhow::Result<ExitCode> {
    match command {
        Bursts::Record(args) => record::run(args),
        Bursts::Convert(args) => convert::run(args),
        Bursts::Totals(args) => totals::run(args, &mut io::stdout().lock()),
    }
}
