//! The command line: one file per subcommand.

pub(crate) mod discover;
pub(crate) mod doctor;
pub(crate) mod hooks;
pub(crate) mod trace;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::host::facts::HostFacts;

/// Watches a GPU cluster's hosts from the kernel.
#[derive(Debug, Parser)]
#[command(name = "fabricscope", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show failed verbs calls, connection manager events or device events as they happen.
    #[command(subcommand)]
    Trace(trace::Trace),
    /// Show every hook: what it is attached to, how, and what it has seen.
    Hooks(hooks::HooksArgs),
    /// Look at what this host offers, what is missing, what that costs and how to mend it.
    Doctor(doctor::DoctorArgs),
}

/// Parses, dispatches, and turns the outcome into an exit status: 0 fine, 1 failed, 2 usage.
pub(crate) fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(status) => status,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell if standard error is gone too.
            let _ = writeln!(io::stderr(), "fabricscope: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Trace(args) => trace::run(&args),
        Command::Hooks(args) => hooks::run(&args),
        Command::Doctor(args) => doctor::run(&args, &HostFacts::read(&args.roots), &mut io::stdout().lock()),
    }
}

/// A reader that has gone away, as `head` does, is no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}
