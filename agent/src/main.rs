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
mod kernel;
mod probes;
mod rpc;
mod terminal;
mod verbs;

fn main() -> std::process::ExitCode {
    cli::main()
}
