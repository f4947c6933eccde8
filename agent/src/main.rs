//! The `fabricscope` binary: parse, dispatch, exit status.

#![allow(dead_code, clippy::allow_attributes, reason = "until the parts are put together")]
mod cli;
mod config {
    //! Bounds that the handle needs.
    pub(crate) mod limits {
        //! Bounds.
        pub(crate) const COMMANDS: usize = 64;
        pub(crate) const WATCH_QUEUE: usize = 1024;
        pub(crate) const WATCHERS: usize = 16;
        pub(crate) const LAST_FAILURES: usize = 16;
    }
}
mod daemon {
    //! The handle.
    pub(crate) mod handle;
}
mod event;
mod host;
mod kernel {
    //! The state only.
    pub(crate) mod state;
}
mod probes;
mod rpc;
mod terminal;
mod verbs;

use clap::Parser as _;

#[derive(clap::Parser)]
#[command(name = "fabricscope")]
enum Command {
    Doctor(cli::doctor::DoctorArgs),
    Status(cli::status::StatusArgs),
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    match Command::parse() {
        Command::Doctor(args) => {
            let facts = host::facts::HostFacts::read(&args.roots);
            cli::doctor::run(&args, &facts, &mut std::io::stdout().lock())
        }
        Command::Status(args) => cli::status::run(&args, &mut std::io::stdout().lock()),
    }
}
