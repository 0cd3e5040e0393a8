//! The columns of a Parquet file.

use std::path::Path;

use cobre_files::{Cells, ColumnKind, Most, Table, TableError, Values};

use super::{Cell, Row};
use crate::finding::{Findings, Place};
use crate::hydrothermal::number;

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
}

impl Column {
    /// Its name in Parquet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Integer => "int32",
            Self::Number => "double",
        }
    }

    /// The kind found instead of it, if any.
    fn differs(self, found: &ColumnKind) -> Option<&str> {
        match found {
            ColumnKind::Integers if self == Self::Integer => None,
            ColumnKind::Numbers if self == Self::Number => None,
            ColumnKind::Integers => Some(Self::Integer.name()),
            ColumnKind::Numbers => Some(Self::Number.name()),
            ColumnKind::Texts => Some("byte_array"),
            ColumnKind::Other(other) => Some(other),
        }
    }
}

/// The columns of a file, to be taken one by one.
pub(crate) struct Columns<'f> {
    table: Table,
    at: Place,
    findings: &'f mut Findings,
}

impl<'f> Columns<'f> {
    /// Opens a file of at most `most` rows, or says what is wrong with it or its schema. No value is decoded.
    pub(super) fn open<R: Row>(
        path: &Path,
        most: u64,
        at: Place,
        findings: &'f mut Findings,
    ) -> Option<Self> {
        let file = cobre_files::open(path).map_err(TableError::from);
        let table = match file.and_then(|file| Table::open(file, Most::Rows(most))) {
            Ok(table) => table,
            Err(error) => {
                findings.wrong(&at, error.to_string());
                return None;
            }
        };
        let sound = check_schema::<R>(&table, &at, findings);
        sound.then_some(Self {
            table,
            at,
            findings,
        })
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Decodes a column if it is there; `Err` after saying that it is damaged.
    fn decoded(&mut self, name: &str) -> Result<Option<Cells>, ()> {
        let mut columns = self.table.columns().iter();
        let Some(place) = columns.position(|column| column.name == name) else {
            return Ok(None);
        };
        let cells = self.table.read_all(place);
        cells.map(Some).map_err(|error| {
            let (at, message) = match error {
                TableError::Column { column, what } => {
                    (self.at.rows(format!("column {column}")), what)
                }
                error => (self.at.clone(), error.to_string()),
            };
            self.findings.wrong(&at, message);
        })
    }

    /// The values of a column.
    pub(crate) fn take<T: Cell>(&mut self, name: &'static str) -> Option<Vec<T>> {
        let Some(cells) = self.decoded(name).ok()? else {
            return (0..self.rows()).map(|_| T::none()).collect();
        };
        let numbers: Vec<f64> = match cells.values {
            Values::Integers(values) => values.into_iter().map(|value| value as f64).collect(),
            Values::Numbers(values) => values,
            Values::Texts(_) => return None,
        };
        let there = |row: usize| cells.there.as_ref().is_none_or(|there| there[row]);
        let mut found = Vec::with_capacity(numbers.len());
        for (row, value) in numbers.into_iter().enumerate() {
            let value = there(row).then_some(value);
            let cell = value.map_or_else(T::none, T::of);
            if cell.is_none() {
                let value = value.map_or("nothing".to_owned(), number::shown);
                let message = format!("{name}: {} is expected, {value} is found", T::WHAT);
                self.findings.wrong(&self.at.row(row), message);
            }
            found.push(cell);
        }
        found.into_iter().collect()
    }

    /// Refuses a column of the format that this version cannot honour, unless it is empty.
    pub(crate) fn refuse(&mut self, name: &'static str, why: &str) -> Option<()> {
        let mut columns = self.table.columns().iter();
        let column = columns.find(|column| column.name == name);
        let Some(column) = column.filter(|_| self.rows() > 0) else {
            return Some(());
        };
        let empty = !matches!(column.kind, ColumnKind::Other(_)) && {
            let cells = self.decoded(name).ok()?;
            let there = cells.as_ref().and_then(|cells| cells.there.as_ref());
            there.is_some_and(|there| !there.contains(&true))
        };
        if !empty {
            let at = self.at.rows(format!("column {name}"));
            let message = format!("not supported: {why}; remove the column");
            self.findings.wrong(&at, message);
        }
        Some(())
    }
}

/// Says which columns are missing, hold something else, come twice, or are none of the format.
fn check_schema<R: Row>(table: &Table, at: &Place, findings: &mut Findings) -> bool {
    let before = findings.count();
    let found = table.columns();
    let known = R::columns();
    for (name, holds, optional, _) in &known {
        let at = at.rows(format!("column {name}"));
        match found.iter().find(|column| column.name == *name) {
            None if *optional => {}
            None => findings.wrong(&at, "the column is missing"),
            Some(column) => {
                if let Some(other) = holds.differs(&column.kind) {
                    let message = format!("{} is expected, {other} is found", holds.name());
                    findings.wrong(&at, message);
                }
            }
        }
    }
    let names = || known.iter().map(|(name, _, _, _)| *name);
    let mut seen = std::collections::HashSet::new();
    for column in found {
        let name = column.name.as_str();
        let at = at.rows(format!("column {name}"));
        if !seen.insert(name) {
            findings.wrong(&at, "the column is there twice");
        } else if !names()
            .chain(R::REFUSED.iter().copied())
            .any(|known| known == name)
        {
            let known: Vec<&str> = names().collect();
            let message = format!("unknown column; {} are known", known.join(", "));
            findings.wrong(&at, message);
        }
    }
    findings.count() == before
}
