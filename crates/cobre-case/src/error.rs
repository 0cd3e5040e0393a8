//! Why there is no problem to solve.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::finding::{Finding, Severity};

/// Why there is no problem to solve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// Nothing says what kind of problem this is.
    #[error(
        "{}: not a problem this version reads: a case is a directory, and the name of a StochOptFormat file ends in .sof.json",
        path.display()
    )]
    UnknownKind {
        /// What was given.
        path: PathBuf,
    },
    /// A directory that has nothing of a case.
    #[error(
        "{}: not a case: it has neither config.json nor any other file that a case must have; `cobre init` writes one",
        path.display()
    )]
    NotACase {
        /// What was given.
        path: PathBuf,
    },
    /// Overrides of a file that is not there.
    #[error(
        "{}: it has no config.json that could be overridden: only the directory of a case has one",
        path.display()
    )]
    NoConfig {
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
    /// The case makes no sense.
    #[error("{}: {}", path.display(), list(&wrong(findings)))]
    Case {
        /// The case.
        path: PathBuf,
        /// Everything that is wrong, at least one thing, and what looks wrong.
        findings: Vec<Finding>,
    },
}

impl CaseError {
    /// The message without the list that it ends with where several things are wrong.
    pub fn headline(&self) -> String {
        let errors = self.errors().len();
        match self {
            Self::Invalid { path, .. } | Self::Case { path, .. } if errors > 1 => {
                format!("{}: {errors} errors", path.display())
            }
            _ => self.to_string(),
        }
    }

    /// Everything that is wrong, one by one, where there can be several things.
    pub fn errors(&self) -> Vec<String> {
        match self {
            Self::Invalid { errors, .. } => errors.clone(),
            Self::Case { findings, .. } => wrong(findings),
            _ => Vec::new(),
        }
    }
}

fn wrong(findings: &[Finding]) -> Vec<String> {
    let errors = findings.iter();
    let errors = errors.filter(|finding| finding.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

fn list(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("{} errors\n  {}", many.len(), many.join("\n  ")),
    }
}
