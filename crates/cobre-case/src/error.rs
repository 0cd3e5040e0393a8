//! Errors of reading a problem.

use std::io;
use std::path::PathBuf;

use cobre_sddp::{ClassifiedError, ErrorKind, FieldName, Fields};
use thiserror::Error;

use crate::finding::{Finding, Severity};

/// Errors of reading a problem.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// Nothing says what kind of problem this is.
    #[error(
        "{}: not a problem this version reads: a case is a directory, and the name of a StochOptFormat file ends in .sof.json",
        path.display()
    )]
    UnknownKind {
        /// The path that was given.
        path: PathBuf,
    },
    /// A directory that has nothing of a case.
    #[error(
        "{}: not a case: it has neither config.json nor any other file that a case must have; `cobre init` writes one",
        path.display()
    )]
    NotACase {
        /// The path that was given.
        path: PathBuf,
    },
    /// Overrides of a file that is not there.
    #[error(
        "{}: it has no config.json that could be overridden: only the directory of a case has one",
        path.display()
    )]
    NoConfig {
        /// The path that was given.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
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
    /// Everything that is wrong, one by one, where there can be several things.
    pub fn errors(&self) -> Vec<String> {
        match self {
            Self::Invalid { errors, .. } => errors.clone(),
            Self::Case { findings, .. } => wrong(findings),
            _ => Vec::new(),
        }
    }
}

impl ClassifiedError for CaseError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable { .. } => ErrorKind::Io,
            _ => ErrorKind::Input,
        }
    }

    /// The fields; those of a case have the place of its first error.
    fn fields(&self) -> Fields {
        let errors = self.errors();
        let fields = match self {
            Self::Case { path, findings } => {
                let mut errors = findings.iter();
                let first = errors.find(|finding| finding.severity == Severity::Error);
                let file = first.map_or_else(|| path.clone(), |first| path.join(&first.file));
                let key = first.map(|first| first.place.as_str());
                Fields::default()
                    .with(FieldName::File, file.as_path())
                    .maybe(FieldName::Key, key.filter(|key| !key.is_empty()))
            }
            Self::UnknownKind { path }
            | Self::NotACase { path }
            | Self::NoConfig { path }
            | Self::Unreadable { path, .. }
            | Self::Invalid { path, .. } => Fields::default().with(FieldName::File, path.as_path()),
        };
        fields.maybe(FieldName::Errors, (!errors.is_empty()).then_some(errors))
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
