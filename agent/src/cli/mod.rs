//! The command line: one file per subcommand.

pub(crate) mod client;
pub(crate) mod doctor;
pub(crate) mod status;
