//! The command line: one file per subcommand.

pub(crate) mod check;
pub(crate) mod doctor;
