//! Results of runs: tables in memory or in files, and reports.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use cobre_files::{Most, Table, TableError, Values};
use cobre_report::Report;
use cobre_results::layout::costs;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use rustix::fs::MemfdFlags;

use crate::errors;

/// The place of a Parquet table.
#[derive(FromPyObject)]
pub(crate) enum TablePlace {
    /// The bytes of one.
    Memory(Vec<u8>),
    /// A file.
    Path(PathBuf),
}

/// The values of a column. NaN stands for no number.
#[derive(IntoPyObject)]
pub(crate) enum ColumnValues<'py> {
    Integers(Bound<'py, PyArray1<i64>>),
    Numbers(Bound<'py, PyArray1<f64>>),
    Texts(Vec<String>),
}

/// Reads a table that a run has made: names and values of its columns.
#[pyfunction]
pub(crate) fn read_table(
    py: Python<'_>,
    source: TablePlace,
) -> PyResult<Vec<(String, ColumnValues<'_>)>> {
    let place = match &source {
        TablePlace::Memory(_) => "a table in memory".to_owned(),
        TablePlace::Path(path) => path.display().to_string(),
    };
    let columns = py.detach(|| columns(source));
    let columns = columns.map_err(|error| errors::of_table(&place, &error))?;
    let columns = columns.into_iter().map(|(name, values)| {
        let values = match values {
            Values::Integers(values) => ColumnValues::Integers(values.into_pyarray(py)),
            Values::Numbers(values) => ColumnValues::Numbers(values.into_pyarray(py)),
            Values::Texts(values) => ColumnValues::Texts(values),
        };
        (name, values)
    });
    Ok(columns.collect())
}

fn columns(source: TablePlace) -> Result<Vec<(String, Values)>, TableError> {
    let file = match source {
        TablePlace::Memory(bytes) => {
            let file = rustix::fs::memfd_create("cobre-table", MemfdFlags::CLOEXEC);
            let mut file = File::from(file.map_err(std::io::Error::from)?);
            file.write_all(&bytes)?;
            file
        }
        TablePlace::Path(path) => cobre_files::open(&path)?,
    };
    let table = Table::open(file, Most::Written)?;
    let columns = table.columns().iter().enumerate();
    let columns = columns.map(|(place, column)| {
        let cells = table.read_all(place)?;
        Ok((column.name.clone(), cells.values))
    });
    columns.collect()
}

/// True if a column of the table of costs is a kind of cost that somebody pays.
#[pyfunction]
pub(crate) fn is_cost_kind(column: &str) -> bool {
    costs::is_kind(column)
}

/// Writes the report of a run, and its charts as pictures if there is a directory for them; returns the files.
#[pyfunction]
pub(crate) fn write_report(
    py: Python<'_>,
    output: PathBuf,
    page: PathBuf,
    pictures: Option<PathBuf>,
) -> PyResult<Vec<PathBuf>> {
    let written = py.detach(|| {
        let report = Report::read(&output)?;
        report.write(&page, pictures.as_deref())
    });
    written.map_err(|error| errors::of_results(&error))
}
