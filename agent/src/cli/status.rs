//! `fabricscope status`: the agent and its host on one screen.

mod json;
mod render;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use super::client::SocketArgs;
use super::doctor::{self, Offer};
use crate::counters::netlink::devlink::{Devlink, Reporter};
use crate::host::facts::HostFacts;
use crate::host::roots::Roots;
use crate::rpc::seen::AgentStatus;
use crate::terminal::Paper;

/// The running agent, its last failures and losses, RDMA devices and health reporters
///
/// Without an agent: what this host offers to one. Exit status: 0 if the agent does all it is configured to do, or if
/// none runs; 1 if something is degraded; 3 if no agent answers on --socket.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) socket: SocketArgs,

    #[command(flatten)]
    pub(crate) roots: Roots,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// One JSON object
    Json,
}

/// What is shown.
#[derive(Debug)]
enum Report {
    /// By the agent that runs.
    Agent(Box<AgentStatus>),
    /// By looking at the host, since none runs.
    Alone(Box<HostFacts>, Vec<Offer>),
}

impl Report {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Agent(status) if !status.degraded.is_empty() => ExitCode::FAILURE,
            Self::Agent(_) | Self::Alone(..) => ExitCode::SUCCESS,
        }
    }

    /// The health reporters stand below: they are the kernel's, whether an agent runs or not.
    fn print(&self, reporters: &[Reporter], output: Output, paper: Paper, out: &mut impl Write) -> anyhow::Result<()> {
        match output {
            Output::Table => render::table(self, reporters, paper, out)?,
            Output::Json => json::object(self, reporters, out)?,
        }
        Ok(out.flush()?)
    }
}

/// Asks the agent, or looks at the host if none runs, and prints.
///
/// # Errors
///
/// If an agent runs and does not answer as it should, if the one that was asked for is not there
/// ([`super::client::is_unreachable`]), or if `out` cannot be written.
pub(crate) fn run(args: &StatusArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let report = ask(args)?;
    let reporters = Devlink::open().and_then(|devlink| devlink.reporters()).unwrap_or_default();
    report.print(&reporters, args.output, Paper::of_stdout(), out)?;
    Ok(report.exit_code())
}

fn ask(args: &StatusArgs) -> anyhow::Result<Report> {
    if let Some(mut agent) = args.socket.agent()? {
        return Ok(Report::Agent(Box::new(agent.status()?)));
    }
    let facts = HostFacts::read(&args.roots);
    let offers = doctor::offers(&facts);
    Ok(Report::Alone(Box::new(facts), offers))
}
