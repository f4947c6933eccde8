//! `fabricscope trace`: failed verbs calls, connection manager events or device events, as they happen.
//!
//! A session uses the agent's hooks if one runs on this host, so that nothing is loaded twice; else it loads its own for
//! as long as it lasts. A command after `--` runs in a cgroup of its own, by which it and its children are told from
//! everything else.

pub(crate) mod args;
mod scope;
mod session;
mod source;
mod stuck;
mod summary;

pub(crate) use args::Trace;
pub(crate) use scope::remove_leftovers;

use std::process::ExitCode;

/// Traces until the command ends, the time is over, enough events were shown, or the user ends it.
///
/// # Errors
///
/// If nothing can be traced, or the output cannot be written.
pub(crate) fn run(args: &Trace) -> anyhow::Result<ExitCode> {
    session::run(args)
}
