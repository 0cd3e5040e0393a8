//! Errors of runs.

use std::io;
use std::path::PathBuf;

use cobre_comm::{Cause, CommError};
use cobre_files::FileError;
use thiserror::Error;

use crate::lp::LpFailure;

/// The kinds of errors that ranks tell each other.
const SOLVER: &str = "solver";
const IO: &str = "io";
const INPUT: &str = "input";

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

impl SddpError {
    /// The kind of the error: `solver`, `io`, `input` or `communication`. A rank that learns why
    /// another has given up has the same kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Solver { .. } => SOLVER,
            Self::Io { .. } => IO,
            Self::Divergence { .. } => "communication",
            Self::Disagreement { .. }
            | Self::Misfit(_)
            | Self::Checkpoint(_)
            | Self::Foreign(_) => INPUT,
            Self::Communication(error) => {
                let reason = match error {
                    CommError::CollectiveFailed {
                        cause: Cause::Aborted { reason, .. },
                        ..
                    } => reason.as_str(),
                    _ => "",
                };
                let known = [SOLVER, IO, INPUT].into_iter();
                let mut said = known.filter(|kind| reason.starts_with(&format!("{kind}: ")));
                said.next().unwrap_or("communication")
            }
        }
    }

    /// The reason that other ranks get.
    pub(crate) fn reason(&self) -> String {
        format!("{}: {self}", self.kind())
    }

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
