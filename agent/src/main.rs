//! The `fabricscope` binary: parse, dispatch, exit status.

#![allow(dead_code, clippy::allow_attributes, reason = "until the parts are put together")]
mod cli;
mod config;
mod daemon;
mod event;
mod host;
mod kernel;
mod log;
mod metrics;
mod probes;
mod verbs;

use clap::Parser as _;

#[derive(clap::Parser)]
#[command(name = "fabricscope")]
enum Command {
    Doctor(cli::doctor::DoctorArgs),
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    let Command::Doctor(args) = Command::parse();
    let facts = host::facts::HostFacts::read(&args.roots);
    cli::doctor::run(&args, &facts, &mut std::io::stdout().lock())
}
