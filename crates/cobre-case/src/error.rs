//! Why there is no problem to solve.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no problem to solve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// Nothing says what kind of problem this is.
    #[error("{}: not a problem this version reads; the name of a StochOptFormat file ends in .sof.json", path.display())]
    UnknownKind {
        /// What was given.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file makes no sense.
    #[error("{}: {}", path.display(), list(errors))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong, at least one thing.
        errors: Vec<String>,
    },
}

fn list(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("{} errors\n  {}", many.len(), many.join("\n  ")),
    }
}
