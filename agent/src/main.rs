//! The `fabricscope` binary: parse, dispatch, exit status.

mod cli;
mod event;
mod host;
mod kernel;
mod probes;
mod verbs;

fn main() -> std::process::ExitCode {
    cli::main()
}
