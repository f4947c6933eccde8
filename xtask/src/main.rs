//! The project's own commands: set-up, build, test, run, lab. `cargo xtask COMMAND` runs them.
//!
//! # How to work on the project
//!
//! | you want to | run |
//! |---|---|
//! | see it work on this host | `cargo xtask run --for 20s` |
//! | know that everything holds | `cargo xtask test` |
//! | be quick while editing | `cargo test -p CRATE`, then `cargo xtask test --only unit` |
//! | run a command on another kernel, with RDMA | `cargo xtask lab --kernel 6.12 -- COMMAND` |
//! | know what watching costs | `cargo xtask bench verbs`, `cargo xtask bench counters` |
//! | have the pieces and nothing else | `cargo xtask setup` |
//!
//! Each of them begins with set-up ([`setup`]), which brings what is missing into one cache folder and is done at
//! once when everything is there. Plain cargo commands need no set-up: without it the agent is built without its
//! kernel side, and says so.
//!
//! # Where things are
//!
//! Each command is a module of its name. A module that has kinds of things holds them in one table: `STEPS` of
//! [`setup`], `STAGES` of [`test`], `RULES`, `FENCES` and `KNOWS` of [`tidy`]. To add a piece, a stage, or a rule
//! is to add a row. How the kernel side is built is known to the crate `ebpf-build` alone; of the project's other
//! crates xtask links none, so that it builds when they do not.

mod apt;
mod bench;
mod build;
mod lab;
mod run;
mod runner;
mod setup;
mod test;
mod tidy;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use bench::Bench;
use setup::Part;
use test::Only;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Bring what building and testing need into the cache folder; safe to repeat
    Setup,
    /// Build every binary, the kernel side inside
    Build {
        /// With optimisations, as it ships
        #[arg(long)]
        release: bool,
    },
    /// Run every check and test; the last line sums them up
    Test {
        /// Only this part
        #[arg(long, value_enum)]
        only: Option<Only>,
    },
    /// Build the agent and run it on this host, with a live summary
    Run {
        /// End by itself after this time, such as 20s
        #[arg(long = "for", value_name = "DURATION")]
        duration: Option<String>,
        /// What else the agent is told
        #[arg(last = true, value_name = "AGENT ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Run a command on a stock kernel in a virtual machine, with soft-RoCE
    Lab(lab::Args),
    /// Build a kernel module for a lab kernel
    LabModule(lab::ModuleArgs),
    /// Measure what watching costs
    #[command(subcommand)]
    Bench(Bench),
    /// Hold the project's own rules against its sources
    Tidy,
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
        Task::Setup => setup::run(&Part::ALL)?,
        Task::Build { release } => build::all(release)?,
        Task::Test { only } => return test::run(only),
        Task::Run { duration, arguments } => run::run(duration.as_deref(), &arguments)?,
        Task::Lab(args) => return lab::run(&args),
        Task::LabModule(args) => return lab::run_module(&args),
        Task::Bench(which) => return bench::run(&which),
        Task::Tidy => tidy::run()?,
    }
    Ok(ExitCode::SUCCESS)
}
