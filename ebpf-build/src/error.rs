//! What can go wrong in a build of the kernel side, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of a step of the build.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no kernel-side object.
#[derive(Debug)]
pub enum Error {
    /// No variable of [`crate::cache::VARIABLES`] names an absolute path.
    NoCache,
    /// Pieces that set-up brings are not there: the one error that is not a fault, only a machine not set up.
    Missing(Vec<Missing>),
    /// A program could not be run, or a file not be read or written.
    Io {
        /// What was being done to what.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ran and said no; its own message is in `output` or was already shown.
    Failed {
        /// The program and what it was to do.
        action: String,
        /// What it wrote, trimmed; empty if it wrote to the terminal.
        output: String,
    },
    /// The object contains code that can panic.
    Panics(PathBuf),
}

/// One piece that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What it is.
    pub what: &'static str,
    /// Where it was looked for.
    pub path: PathBuf,
}

impl Error {
    pub(crate) fn io(action: impl Into<String>, path: &Path, source: io::Error) -> Self {
        Self::Io { action: format!("{} {}", action.into(), path.display()), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCache => write!(out, "no cache folder: set FABRICSCOPE_CACHE to an absolute path"),
            Self::Missing(pieces) => {
                write!(out, "the kernel side cannot be built here yet:")?;
                for (i, piece) in pieces.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(out, "{comma} {} not found at {}", piece.what, piece.path.display())?;
                }
                write!(out, "; `cargo xtask setup` brings what is missing")
            }
            Self::Io { action, .. } => write!(out, "cannot {action}"),
            Self::Failed { action, output } if output.is_empty() => write!(out, "{action} failed"),
            Self::Failed { action, output } => write!(out, "{action} failed:\n{output}"),
            Self::Panics(object) => write!(
                out,
                "{} contains code that can panic, which no kernel's verifier accepts: look for indexing, \
                 slicing, division or arithmetic that is not proven in bounds in the kernel side",
                object.display()
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_piece_is_named_with_the_command_that_brings_it() {
        let missing = Missing { what: "bpf-linker", path: PathBuf::from("/c/bpf-linker") };
        let text = Error::Missing(vec![missing]).to_string();
        assert!(text.contains("bpf-linker not found at /c/bpf-linker"), "{text}");
        assert!(text.contains("`cargo xtask setup`"), "{text}");
    }
}
