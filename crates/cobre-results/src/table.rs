//! The Parquet tables of a run, read row group by row group.

use std::path::{Path, PathBuf};

pub use cobre_files::Values;
use cobre_files::{Most, TableError};

use crate::error::ResultsError;

/// A table that is open for reading.
pub struct Table {
    path: PathBuf,
    file: cobre_files::Table,
    columns: Vec<String>,
}

impl Table {
    /// Opens a table; none if there is no such file.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read.
    pub fn open(path: &Path) -> Result<Option<Self>, ResultsError> {
        let file = match cobre_files::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ResultsError::io("read", path)(error)),
        };
        let file = cobre_files::Table::open(file, Most::Written).map_err(unsound(path))?;
        let columns = file.columns().iter();
        let columns = columns.map(|column| column.name.clone()).collect();
        Ok(Some(Self {
            path: path.to_owned(),
            file,
            columns,
        }))
    }

    /// The names of its columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The number of row groups.
    pub fn groups(&self) -> usize {
        self.file.groups()
    }

    /// A column of a row group as numbers; none is NaN.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read, or the column is not there or holds something else.
    pub fn numbers(&self, group: usize, column: &str) -> Result<Vec<f64>, ResultsError> {
        match self.values(group, column)? {
            Values::Numbers(values) => Ok(values),
            Values::Integers(values) => Ok(values.into_iter().map(|value| value as f64).collect()),
            Values::Texts(_) => Err(self.unfit(column, "numbers")),
        }
    }

    /// A column of a row group as whole numbers.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read, or the column is not there or holds something else.
    pub fn integers(&self, group: usize, column: &str) -> Result<Vec<i64>, ResultsError> {
        match self.values(group, column)? {
            Values::Integers(values) => Ok(values),
            _ => Err(self.unfit(column, "whole numbers")),
        }
    }

    /// A column of a row group as texts.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read, or the column is not there or holds something else.
    pub fn texts(&self, group: usize, column: &str) -> Result<Vec<String>, ResultsError> {
        match self.values(group, column)? {
            Values::Texts(values) => Ok(values),
            _ => Err(self.unfit(column, "texts")),
        }
    }

    /// A column of all row groups as numbers.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read, or the column is not there or holds something else.
    pub fn all_numbers(&self, column: &str) -> Result<Vec<f64>, ResultsError> {
        let groups = (0..self.groups()).map(|group| self.numbers(group, column));
        Ok(groups.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// A column of all row groups as whole numbers.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read, or the column is not there or holds something else.
    pub fn all_integers(&self, column: &str) -> Result<Vec<i64>, ResultsError> {
        let groups = (0..self.groups()).map(|group| self.integers(group, column));
        Ok(groups.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The rows of a row group.
    pub fn rows(&self, group: usize) -> usize {
        self.file.group_rows(group)
    }

    /// The error that says what is wrong with this table.
    pub fn damaged(&self, what: impl Into<String>) -> ResultsError {
        ResultsError::damaged(&self.path, what)
    }

    fn unfit(&self, column: &str, wanted: &str) -> ResultsError {
        self.damaged(format!("column {column} should hold {wanted}"))
    }

    /// A column of a row group.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read, or the column is not there.
    pub fn values(&self, group: usize, column: &str) -> Result<Values, ResultsError> {
        let place = self.columns.iter().position(|name| name == column);
        let place = place.ok_or_else(|| self.damaged(format!("column {column} is missing")))?;
        let cells = self.file.read(group, place);
        Ok(cells.map_err(unsound(&self.path))?.values)
    }
}

fn unsound(path: &Path) -> impl Fn(TableError) -> ResultsError {
    move |error| match error {
        TableError::Io(error) => ResultsError::io("read", path)(error),
        error => ResultsError::damaged(path, error.to_string()),
    }
}
