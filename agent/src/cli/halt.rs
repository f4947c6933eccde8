//! `fabricscope halt`: removes what agents that are gone have left in the kernel. Works without an agent.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::client::SocketArgs;
use crate::host::kernel::KernelFacts;
use crate::host::roots::Roots;
use crate::kernel::{remove_leftovers, sampler};

/// Arguments of `fabricscope halt`.
#[derive(Debug, clap::Args)]
pub(crate) struct HaltArgs {
    #[command(flatten)]
    socket: SocketArgs,
    #[command(flatten)]
    roots: Roots,
}

/// Removes kprobe events, cgroups and clsact filters whose makers are dead. All else that an agent has goes with its
/// process.
///
/// # Errors
///
/// If tracefs or the filters may not be read, or an agent still runs.
pub(crate) fn run(args: &HaltArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let tracefs = KernelFacts::read(&args.roots).tracefs;
    match &tracefs {
        Some(root) => {
            let removed = remove_leftovers(root)
                .with_context(|| format!("reading {} (this needs root)", root.join("kprobe_events").display()))?;
            writeln!(out, "{removed} kprobe events of dead agents removed")?;
        }
        None => writeln!(out, "no tracefs is mounted: there are no kprobe events")?,
    }
    let cgroups = super::trace::remove_leftovers(&args.roots);
    writeln!(out, "{cgroups} cgroups of dead sessions removed")?;
    let removed = sampler::remove_leftovers().context("asking for filters of network devices (this needs root)")?;
    writeln!(out, "{removed} clsact filters of dead samplers removed")?;
    if let Some(mut agent) = args.socket.agent()? {
        let (socket, version) = (args.socket.path().display(), agent.info()?.version);
        bail!(
            "an agent runs on {socket} (version {version}), with its hooks; end it by `systemctl stop fabricscope`, or its process by SIGTERM"
        );
    }
    writeln!(out, "no agent runs")?;
    Ok(ExitCode::SUCCESS)
}
