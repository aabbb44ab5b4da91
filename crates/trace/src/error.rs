//! What can go wrong with a trace on disk, each in one sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a trace could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is at the path.
    #[error("{} does not exist: give the path of a trace, a directory that hangdog record or snap made", path.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// Something is there, and it is not a trace.
    #[error("{} is not a hangdog trace ({what}): give a directory that hangdog record or snap made", path.display())]
    NotATrace {
        /// The path as given.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// A file of the trace is truncated, corrupt or does not fit the format.
    #[error("{} is damaged ({what}): copy the trace again from where it was recorded, or record again", file.display())]
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A later hangdog wrote the trace.
    #[error("{} has format version {version} and this hangdog knows up to {}: install a newer hangdog", path.display(), crate::format::FORMAT)]
    TooNew {
        /// The trace.
        path: PathBuf,
        /// Its format version.
        version: u32,
    },
    /// The file system has no room, or the user's quota is used up.
    #[error("the disk is full: {} could not be written; what was saved before stays readable, so free some space or record to another disk", file.display())]
    DiskFull {
        /// The file that did not fit.
        file: PathBuf,
    },
    /// The path is taken.
    #[error("{} exists already: choose another name or remove it first", path.display())]
    Exists {
        /// The path as given.
        path: PathBuf,
    },
    /// The system refused to read or write.
    #[error("{}: {cause}: check the path and its permissions", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A text trace does not follow the grammar of [`crate::text`].
    #[error("line {line}: {what}")]
    Text {
        /// Line number, from 1.
        line: usize,
        /// What is wrong and what is expected.
        what: String,
    },
}

/// A result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Tells a full disk from other failures of the system.
    pub(crate) fn io(path: &Path, cause: io::Error) -> Error {
        use io::ErrorKind::*;
        match cause.kind() {
            StorageFull | QuotaExceeded => Error::DiskFull { file: path.into() },
            _ => Error::Io {
                path: path.into(),
                cause,
            },
        }
    }

    /// Of a file inside a trace: what is no regular file is damage.
    pub(crate) fn reading(path: &Path, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::InvalidData => Error::damaged(path, cause),
            _ => Error::io(path, cause),
        }
    }

    pub(crate) fn damaged(file: &Path, what: impl ToString) -> Error {
        Error::Damaged {
            file: file.into(),
            what: what.to_string(),
        }
    }
}
