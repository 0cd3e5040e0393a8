//! Errors as Python exceptions: the only place that maps one to the other. The classes are Python's
//! own, in `cobre/errors.py`, so that they can be pickled and subclassed.

use std::error::Error;

use cobre_comm::{ClassifiedError, ErrorKind, FieldName, FieldValue, Fields};
use cobre_files::TableError;
use cobre_results::ResultsError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An error to be raised as a class of `cobre/errors.py`, with its kind and its fields.
struct PythonError {
    kind: ErrorKind,
    message: String,
    fields: Fields,
}

impl PythonError {
    fn class(&self) -> &'static str {
        match self.kind {
            ErrorKind::Usage | ErrorKind::Input => "ValidationError",
            ErrorKind::Io | ErrorKind::Memory => "IOError",
            ErrorKind::Solver => "SolverError",
            _ => "CommunicationError",
        }
    }

    /// The exception. The errors of an input are the findings of the exception.
    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import("cobre.errors")?.getattr(self.class())?;
        let fields = PyDict::new(py);
        fields.set_item("kind", self.kind.name())?;
        for (name, value) in self.fields {
            let name = match name {
                FieldName::Errors => "findings",
                name => name.name(),
            };
            match value {
                FieldValue::Text(text) => fields.set_item(name, text)?,
                FieldValue::Texts(texts) => fields.set_item(name, texts)?,
                FieldValue::Number(number) => fields.set_item(name, number)?,
                FieldValue::Numbers(numbers) => fields.set_item(name, numbers)?,
            }
        }
        let exception = class.call((self.message,), Some(&fields))?;
        Ok(PyErr::from_value(exception))
    }
}

impl From<PythonError> for PyErr {
    fn from(raise: PythonError) -> Self {
        Python::attach(|py| raise.exception(py).unwrap_or_else(|error| error))
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
    PythonError {
        kind: ErrorKind::Input,
        message,
        fields: Fields::default().with(FieldName::Errors, findings.to_vec()),
    }
    .into()
}

/// An error of Cobre.
pub(crate) fn of(error: &impl ClassifiedError) -> PyErr {
    PythonError {
        kind: error.kind(),
        message: told(error),
        fields: error.fields(),
    }
    .into()
}

/// An error of reading results, or of writing a report of them.
pub(crate) fn of_results(error: &ResultsError) -> PyErr {
    let kind = match error {
        ResultsError::Io { .. } => ErrorKind::Io,
        _ => ErrorKind::Input,
    };
    PythonError {
        kind,
        message: told(error),
        fields: Fields::default(),
    }
    .into()
}

/// An error of reading a table of results.
pub(crate) fn of_table(place: &str, error: &TableError) -> PyErr {
    let kind = match error {
        TableError::Io(_) => ErrorKind::Io,
        _ => ErrorKind::Input,
    };
    let message = format!("{place}: {}", told(error));
    PythonError {
        kind,
        message,
        fields: Fields::default(),
    }
    .into()
}

/// An error of another rank, which that rank knows the details of.
pub(crate) fn of_rank(rank: usize, what: &str) -> PyErr {
    PythonError {
        kind: ErrorKind::Communication,
        message: format!("rank {rank} {what}"),
        fields: Fields::default().with(FieldName::Rank, rank),
    }
    .into()
}

/// An error of the system before a job began.
pub(crate) fn of_system(error: &std::io::Error) -> PyErr {
    PythonError {
        kind: ErrorKind::Io,
        message: format!("cannot start workers: {error}"),
        fields: Fields::default(),
    }
    .into()
}
