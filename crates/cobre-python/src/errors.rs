//! Errors as Python exceptions: the only place that maps one to the other. The classes are Python's
//! own, in `cobre/errors.py`, so that they can be pickled and subclassed.

use std::error::Error;
use std::path::PathBuf;

use cobre_case::CaseError;
use cobre_comm::{BackendError, CommError};
use cobre_files::TableError;
use cobre_launch::LaunchError;
use cobre_results::ResultsError;
use cobre_sddp::SddpError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A class of `cobre/errors.py` to be raised, with its message and what else it carries.
struct Raise {
    class: &'static str,
    message: String,
    more: Vec<(&'static str, Field)>,
}

#[derive(IntoPyObject)]
enum Field {
    Texts(Vec<String>),
    Text(String),
    Number(Option<usize>),
    File(Option<PathBuf>),
}

impl Raise {
    fn new(class: &'static str, message: String) -> Self {
        Self {
            class,
            message,
            more: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, field: Field) -> Self {
        self.more.push((name, field));
        self
    }
}

impl From<Raise> for PyErr {
    fn from(raise: Raise) -> Self {
        Python::attach(|py| {
            let make = || -> PyResult<Self> {
                let more = PyDict::new(py);
                for (name, field) in raise.more {
                    more.set_item(name, field)?;
                }
                let class = py.import("cobre.errors")?.getattr(raise.class)?;
                Ok(Self::from_value(class.call((raise.message,), Some(&more))?))
            };
            make().unwrap_or_else(|error| error)
        })
    }
}

/// The error and what caused it, on one line.
fn told(error: &dyn Error) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    let words: Vec<String> = chain.map(ToString::to_string).collect();
    words.join(": ")
}

/// Findings about what the caller gave.
pub(crate) fn invalid(findings: &[String]) -> PyErr {
    let message = match findings {
        [one] => one.clone(),
        many => format!("{} errors\n  {}", many.len(), many.join("\n  ")),
    };
    Raise::new("ValidationError", message)
        .with("findings", Field::Texts(findings.to_vec()))
        .into()
}

pub(crate) fn of_case(error: &CaseError) -> PyErr {
    match error {
        CaseError::Unreadable { .. } => Raise::new("IOError", told(error)).into(),
        CaseError::Invalid { .. } | CaseError::Case { .. } => {
            Raise::new("ValidationError", told(error))
                .with("findings", Field::Texts(error.errors()))
                .into()
        }
        _ => invalid(&[told(error)]),
    }
}

pub(crate) fn of_run(error: &SddpError) -> PyErr {
    let raise = match error.kind() {
        "solver" => Raise::new("SolverError", told(error)),
        "io" => Raise::new("IOError", told(error)),
        "input" => return invalid(&[told(error)]),
        _ => Raise::new("CommunicationError", told(error)),
    };
    match error {
        SddpError::Solver { failure, .. } => raise
            .with("node", Field::Text(failure.node.clone()))
            .with("opening", Field::Number(failure.opening))
            .with("file", Field::File(failure.file.clone()))
            .into(),
        _ => raise.into(),
    }
}

/// An error of reading a table of results.
pub(crate) fn of_table(place: &str, error: &TableError) -> PyErr {
    let message = format!("{place}: {}", told(error));
    match error {
        TableError::Io(_) => Raise::new("IOError", message).into(),
        _ => invalid(&[message]),
    }
}

/// An error of reading results, or of writing a report of them.
pub(crate) fn of_results(error: &ResultsError) -> PyErr {
    match error {
        ResultsError::Io { .. } => Raise::new("IOError", told(error)).into(),
        _ => invalid(&[told(error)]),
    }
}

pub(crate) fn of_comm(error: &CommError) -> PyErr {
    Raise::new("CommunicationError", told(error)).into()
}

pub(crate) fn of_backend(error: &BackendError) -> PyErr {
    Raise::new("CommunicationError", told(error)).into()
}

/// An error of another rank, which that rank knows the details of.
pub(crate) fn of_rank(rank: usize, what: &str) -> PyErr {
    Raise::new("CommunicationError", format!("rank {rank} {what}")).into()
}

/// An error of the system before a job began.
pub(crate) fn of_system(error: &std::io::Error) -> PyErr {
    Raise::new("IOError", format!("cannot start workers: {error}")).into()
}

pub(crate) fn of_launch(error: &LaunchError) -> PyErr {
    let class = match error {
        LaunchError::RankCount { .. }
        | LaunchError::BackendNotAvailable { .. }
        | LaunchError::BackendNotLaunched { .. } => return invalid(&[told(error)]),
        LaunchError::SupervisorLost { .. } | LaunchError::Unkillable { .. } => "CommunicationError",
        _ => "IOError",
    };
    Raise::new(class, told(error)).into()
}
