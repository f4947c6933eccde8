//! What can be wrong with a sample file.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be written or read. Each names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// Something else than samples.
    #[error("{path} is no sample file: {why}")]
    NotSamples {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// The beginning of a file only.
    #[error(
        "{path} is cut short: it begins as Parquet and does not end so, and what it held cannot be read; copy it anew"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// Written by another version.
    #[error(
        "{path} holds samples in schema version {found}, this program reads version {expected}; use one of its age"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version, as it stands there.
        found: String,
        /// The version that is read here.
        expected: u32,
    },
    /// Its own parts contradict each other.
    #[error("{path} is damaged: {what}; copy it anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// More than is read.
    #[error("{path} is too large: {what}, at most {limit} are read; split it")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How much there is of what.
        what: String,
        /// How much is read.
        limit: u64,
    },
    /// These samples do not fit into such a file.
    #[error("{path} cannot hold these samples: {why}")]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What it cannot say.
        why: String,
    },
    /// No room.
    #[error("no room for {path}: {said}; free some, or write elsewhere")]
    Full {
        /// The file.
        path: PathBuf,
        /// What the kernel said. Part of the message, so no source that would be printed behind it once more.
        said: io::Error,
    },
    /// The file system refused.
    #[error("cannot {operation} {path}: {said}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said. Part of the message, so no source that would be printed behind it once more.
        said: io::Error,
    },
}

impl FileError {
    /// An error of the file system: no room is told apart.
    pub(crate) fn io(operation: &'static str, path: &Path, said: io::Error) -> Self {
        let path = path.to_owned();
        match said.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path, said }
            }
            _ => Self::Io { operation, path, said },
        }
    }
}

/// What is wrong with the bytes of a file, before anyone says which file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// As [`FileError::NotSamples`].
    NotSamples(String),
    /// As [`FileError::Truncated`].
    Truncated,
    /// As [`FileError::Schema`].
    Schema(String),
    /// As [`FileError::Damaged`].
    Damaged(String),
    /// As [`FileError::TooLarge`].
    TooLarge(String, u64),
    /// As [`FileError::Unfit`].
    Unfit(String),
}

impl Fault {
    /// Names the file.
    pub(super) fn of(self, path: &Path) -> FileError {
        let path = path.to_owned();
        match self {
            Self::NotSamples(why) => FileError::NotSamples { path, why },
            Self::Truncated => FileError::Truncated { path },
            Self::Schema(found) => FileError::Schema { path, found, expected: super::meta::SCHEMA },
            Self::Damaged(what) => FileError::Damaged { path, what },
            Self::TooLarge(what, limit) => FileError::TooLarge { path, what, limit },
            Self::Unfit(why) => FileError::Unfit { path, why },
        }
    }
}

impl From<parquet::errors::ParquetError> for Fault {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Damaged(error.to_string())
    }
}
