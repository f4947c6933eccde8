//! The project's own commands: set-up, build, test, lab, bench.

use std::process::ExitCode;

use clap::Parser;

mod apt;
mod lab;

/// The project's own commands.
#[derive(Debug, Parser)]
enum Cli {
    /// Fetches what the lab needs
    Setup,
    Lab(lab::Args),
    LabModule(lab::ModuleArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse() {
        Cli::Setup => lab::setup().map(|()| ExitCode::SUCCESS),
        Cli::Lab(args) => lab::run(&args),
        Cli::LabModule(args) => lab::run_module(&args),
    }
}
