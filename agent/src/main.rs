//! The `fabricscope` binary: parse, dispatch, exit status.

mod cli;
mod host;
#[cfg_attr(not(test), expect(dead_code, reason = "nothing decodes records yet"))]
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
