//! `fabricscope bursts`: what devices sent and received, sample by sample.

mod compare;
mod convert;
mod field;
mod format;
mod json;
mod load;
mod pause;
mod plot;
mod record;
mod report;
pub(crate) mod show;
mod svg;
mod table;
#[cfg(test)]
mod testing;
mod totals;
mod watch;

use std::io::Write;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};

/// What to do with samples.
#[derive(Debug, Subcommand)]
pub(crate) enum Bursts {
    Record(Box<record::RecordArgs>),
    /// The bursts of a device: a table, a plot, a picture for a report
    Show(show::ShowArgs),
    Watch(watch::WatchArgs),
    /// Several hosts or devices on one clock: which burst together, and how many at once
    Compare(compare::CompareArgs),
    Convert(convert::ConvertArgs),
    Totals(totals::TotalsArgs),
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// JSON: one object, of `show` one for each device
    Json,
}

/// Runs one of them.
///
/// # Errors
///
/// As each says; or if `out` cannot be written.
pub(crate) fn run(command: &Bursts, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match command {
        Bursts::Record(args) => record::run(args, out),
        Bursts::Show(args) => show::run(args, out),
        Bursts::Watch(args) => watch::run(args, out),
        Bursts::Compare(args) => compare::run(args, out),
        Bursts::Convert(args) => convert::run(args),
        Bursts::Totals(args) => totals::run(args, out),
    }
}
