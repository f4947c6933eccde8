//! The `fabricscope` binary: parse, dispatch, exit status.

mod bursts;
mod cli;
mod config;
mod counters;
mod daemon;
#[cfg(test)]
mod documentation;
mod event;
mod health;
mod host;
mod kernel;
mod log;
mod metrics;
mod probes;
mod rpc;
mod terminal;
mod verbs;

fn main() -> std::process::ExitCode {
    cli::main()
}
