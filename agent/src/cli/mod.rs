//! The command line: one file per subcommand.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod discover;
pub(crate) mod doctor;
pub(crate) mod hooks;
pub(crate) mod status;
pub(crate) mod trace;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::host::facts::HostFacts;

/// Exit status when a command was to be traced and nothing could be attached.
const EXIT_NOTHING_ATTACHED: u8 = 125;

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
    /// Show one screen: the agent, what is degraded and why, the last failures, devices and ports.
    Status(status::StatusArgs),
    /// Run as the host's daemon.
    Agent(agent::AgentArgs),
    Check(check::CheckArgs),
}

/// Parses, dispatches, and turns the outcome into an exit status: 0 fine, 1 failed, 2 usage, 3 agent unreachable.
pub(crate) fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(status) => status,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell if standard error is gone too.
            let _ = writeln!(io::stderr(), "fabricscope: {error:#}");
            exit_code(&error)
        }
    }
}

/// The exit status of an error.
fn exit_code(error: &anyhow::Error) -> ExitCode {
    if client::is_unreachable(error) { ExitCode::from(client::EXIT_UNREACHABLE) } else { ExitCode::FAILURE }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Trace(args) => trace::run(&args),
        Command::Hooks(args) => hooks::run(&args),
        Command::Status(args) => status::run(&args, &mut io::stdout().lock()),
        Command::Agent(args) => agent::run(&args),
        Command::Check(args) => check::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock()),
        Command::Doctor(args) => doctor::run(&args, &HostFacts::read(&args.roots), &mut io::stdout().lock()),
    }
}

/// A reader that has gone away, as `head` does, is no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}
