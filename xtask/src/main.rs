//! The project's own commands: set-up, build, test, lab, bench.

mod apt;
mod lab;
mod runner;
mod setup;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use setup::Part;

/// The project's own commands; run them as `cargo xtask COMMAND`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Bring what building and testing need into the cache folder; safe to repeat.
    Setup,
    /// Boot a stock kernel with soft-RoCE in a virtual machine and run a command there.
    Lab(lab::Args),
}

fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(task: Task) -> Result<ExitCode> {
    match task {
        Task::Setup => setup::run(&[Part::Compiler, Part::KernelSide])?,
        Task::Lab(args) => return lab::run(&args),
    }
    Ok(ExitCode::SUCCESS)
}
