//! The command line: one file per subcommand.

pub(crate) mod agent;
pub(crate) mod bursts;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod counters;
pub(crate) mod discover;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod halt;
pub(crate) mod help;
pub(crate) mod hooks;
mod rdma_record;
pub(crate) mod status;
pub(crate) mod trace;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

use crate::host::facts::HostFacts;

/// Exit status when a command was to be traced and nothing could be attached.
const EXIT_NOTHING_ATTACHED: u8 = 125;

/// Exit status when the words on the command line are wrong, as that of the parser.
const EXIT_USAGE: u8 = 2;

/// Names every RDMA call that failed on this host, and the kernel function that refused it.
#[derive(Debug, Parser)]
#[command(name = "fabricscope", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Failed verbs calls, events of devices and connections, and NICs that are not well.
    #[command(subcommand)]
    Trace(trace::Trace),
    /// What devices sent and received, sample by sample: bursts, utilisation, contention.
    #[command(subcommand)]
    Bursts(bursts::Bursts),
    /// Every hook: where it stands, how it is attached, and what it has seen.
    Hooks(hooks::HooksArgs),
    Counters(counters::CountersArgs),
    /// What a counter means, what raises it, and what to look at next.
    #[command(subcommand)]
    Explain(explain::Explain),
    Doctor(doctor::DoctorArgs),
    Status(status::StatusArgs),
    /// Remove what agents that are gone have left in the kernel.
    Halt(halt::HaltArgs),
    Agent(agent::AgentArgs),
    Check(check::CheckArgs),
}

/// Parses, dispatches, and turns the outcome into an exit status: 0 fine, 1 failed, 2 usage, 3 agent unreachable.
pub(crate) fn main() -> ExitCode {
    let parsed = help::command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let outcome = match parsed {
        Ok(cli) => dispatch(cli.command),
        Err(words) => say(&words),
    };
    match outcome {
        Ok(status) => status,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to tell if standard error is gone too.
            let what = if is_output(&error) { "cannot write the output: " } else { "" };
            let _ = writeln!(io::stderr(), "fabricscope: {what}{error:#}");
            exit_code(&error)
        }
    }
}

/// Prints help, the version, or what is wrong with the words on the command line.
fn say(words: &clap::Error) -> anyhow::Result<ExitCode> {
    words.print()?;
    Ok(u8::try_from(words.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Words that each are right and together are not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(&'static str);

/// The exit status of an error.
fn exit_code(error: &anyhow::Error) -> ExitCode {
    if client::is_unreachable(error) {
        ExitCode::from(client::EXIT_UNREACHABLE)
    } else if error.is::<Usage>() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::FAILURE
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Trace(args) => trace::run(&args),
        Command::Bursts(args) => bursts::run(&args, &mut io::stdout().lock()),
        Command::Hooks(args) => hooks::run(&args),
        Command::Counters(args) => counters::run(&args, &mut io::stdout().lock()),
        Command::Explain(what) => explain::run(&what, &mut io::stdout().lock()),
        Command::Status(args) => status::run(&args, &mut io::stdout().lock()),
        Command::Halt(args) => halt::run(&args, &mut io::stdout().lock()),
        Command::Agent(args) => agent::run(&args),
        Command::Check(args) => check::run(&args, &mut io::stdout().lock(), &mut io::stderr().lock()),
        Command::Doctor(args) => {
            let mut facts = HostFacts::read(&args.roots);
            let text = |error: anyhow::Error| format!("{error:#}");
            facts.fexit = Some(crate::kernel::try_fexit(&args.roots).map_err(text));
            doctor::try_sampler(&mut facts, &args.roots);
            doctor::run(&args, &facts, &mut io::stdout().lock())
        }
    }
}

/// A bare error of input or output comes from printing: all others say what was read or asked.
fn is_output(error: &anyhow::Error) -> bool {
    let json = |error: &serde_json::Error| error.is_io();
    error.chain().next().is_some_and(|first| first.is::<io::Error>() || first.downcast_ref().is_some_and(json))
}

/// A reader that has gone away, as `head` does, is no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<io::Error>() {
        Some(error) => Some(error.kind()),
        // Does not name the error inside as its source.
        None => cause.downcast_ref::<serde_json::Error>()?.io_error_kind(),
    };
    error.chain().any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}
