//! Errors of runs.

use std::io;
use std::path::PathBuf;

use cobre_comm::CommError;
pub use cobre_comm::{ClassifiedError, ErrorKind, FieldName, Fields};
use cobre_files::FileError;
use thiserror::Error;

use crate::lp::LpFailure;

/// The reason why a run ended without a result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SddpError {
    /// A linear program could not be solved.
    #[error("{during}: {failure}")]
    Solver {
        /// The task, with iteration and scenario.
        during: String,
        /// The failure.
        failure: Box<LpFailure>,
    },
    /// Ranks could not communicate, or one of them is gone.
    #[error("the ranks of this job cannot go on together")]
    Communication(#[from] CommError),
    /// A rank was asked something else than the others.
    #[error("rank {rank} has another {what} than rank 0; give all ranks the same file and options")]
    Disagreement {
        /// The first such rank.
        rank: usize,
        /// The input that differs: `problem`, `settings` or `policy`.
        what: &'static str,
    },
    /// A setting that means nothing, or nothing for the problem.
    #[error("{key}={value}: {expected}")]
    Setting {
        /// Its name.
        key: &'static str,
        /// Its value.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A rank has computed other cuts than the others.
    #[error(
        "rank {rank} has other cuts than rank 0 after iteration {iteration}: the same program on its machine does not compute the \
         same; start all ranks from one build, and check the memory of that machine"
    )]
    Divergence {
        /// The first such rank.
        rank: usize,
        /// The iteration.
        iteration: usize,
    },
    /// The machine has not the memory that training takes.
    #[error("{detail}")]
    OutOfMemory {
        /// The bytes, by estimate.
        bytes: u64,
        /// The part of the run that takes them, and a remedy.
        detail: String,
    },
    /// A checkpoint that this run cannot go on from, or would lose.
    #[error("{0}")]
    Checkpoint(String),
    /// A policy belongs to another problem.
    #[error("the policy does not fit the problem: {0}")]
    Misfit(String),
    /// Something that Cobre did not write is where results would be.
    #[error(transparent)]
    Foreign(FileError),
    /// A file could not be written, or read.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ClassifiedError for SddpError {
    /// The kind. A rank that learns why another has given up has the same kind.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Solver { .. } => ErrorKind::Solver,
            Self::Io { .. } => ErrorKind::Io,
            Self::Setting { .. } => ErrorKind::Usage,
            Self::OutOfMemory { .. } => ErrorKind::Memory,
            Self::Communication(error) => error.kind(),
            Self::Divergence { .. } => ErrorKind::Communication,
            Self::Disagreement { .. }
            | Self::Misfit(_)
            | Self::Checkpoint(_)
            | Self::Foreign(_) => ErrorKind::Input,
        }
    }

    fn fields(&self) -> Fields {
        let fields = Fields::default();
        match self {
            Self::Solver { failure, .. } => fields
                .with(FieldName::Node, &failure.node)
                .maybe(FieldName::Opening, failure.opening)
                .maybe(FieldName::File, failure.file.as_deref()),
            Self::Communication(error) => error.fields(),
            Self::Disagreement { rank, .. } | Self::Divergence { rank, .. } => {
                fields.with(FieldName::Rank, *rank)
            }
            Self::Setting {
                key,
                value,
                expected,
            } => fields
                .with(FieldName::Key, *key)
                .with(FieldName::Value, value)
                .with(FieldName::Expected, expected),
            Self::Foreign(FileError::Foreign { path, .. }) | Self::Io { path, .. } => {
                fields.with(FieldName::File, path.as_path())
            }
            Self::OutOfMemory { bytes, .. } => fields.with(FieldName::Bytes, *bytes),
            Self::Foreign(_) | Self::Checkpoint(_) | Self::Misfit(_) => fields,
        }
    }
}

impl SddpError {
    /// An I/O error of doing `action` with `path`.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

impl From<FileError> for SddpError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io {
                action,
                path,
                source,
            } => Self::Io {
                action,
                path,
                source,
            },
            foreign => Self::Foreign(foreign),
        }
    }
}
