//! Errors of reading results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Errors of reading results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The directory does not hold the results of a finished run.
    #[error("{}: {what}", path.display())]
    Incomplete {
        /// The directory or file.
        path: PathBuf,
        /// The missing file, and what to do about it.
        what: String,
    },
    /// A file is there and is not what a run writes.
    #[error("{}: {what}; it is damaged or not written by cobre run: run the case again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// Something that Cobre did not write is where a file would be.
    #[error("{0}")]
    InTheWay(String),
    /// The system refused something.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl ResultsError {
    /// That something is missing.
    pub fn incomplete(path: &Path, what: impl Into<String>) -> Self {
        Self::Incomplete {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// That a file is not what it should be.
    pub fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// That the system refused something.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
