//! The command line: one file per subcommand.

pub(crate) mod doctor;
