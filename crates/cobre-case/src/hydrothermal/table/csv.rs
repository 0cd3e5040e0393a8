//! Tables of a case as CSV, where there is no Parquet file: the same columns, a header, commas.

use std::path::Path;

use cobre_files::{Cells, ColumnKind, TableColumn, Values};

use crate::hydrothermal::date::Date;

/// A table of numbers from a CSV file.
pub(super) struct CsvTable {
    pub(super) columns: Vec<TableColumn>,
    /// By column and row; empty cells have no value.
    cells: Vec<Vec<Option<Number>>>,
    pub(super) rows: usize,
}

/// A number, as it is written.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Broken(f64),
}

impl CsvTable {
    /// Reads a file of at most `most` rows.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(super) fn read(path: &Path, most: u64) -> Result<Self, String> {
        let text = cobre_files::read_text(path);
        let text = text.map_err(|error| format!("it cannot be read: {error}"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut lines = text.lines().enumerate();
        let lines = lines.by_ref().filter(|(_, line)| !line.trim().is_empty());
        let mut lines = lines.map(|(number, line)| (number + 1, line));
        let (_, head) = lines.next().ok_or("it has no header")?;
        let names: Vec<String> = head.split(',').map(|name| plain(name).to_owned()).collect();
        if names.len() == 1 && head.contains([';', '\t']) {
            return Err("values are separated by commas; its header has none".to_owned());
        }
        if names.iter().any(String::is_empty) {
            return Err(
                "a column has no name in the header; if it is the index of a pandas table, write the file with index=False"
                    .to_owned(),
            );
        }
        let mut cells = vec![Vec::new(); names.len()];
        let mut rows = 0;
        for (number, line) in lines {
            let values: Vec<&str> = line.split(',').map(plain).collect();
            if values.len() != names.len() {
                let (found, wanted) = (values.len(), names.len());
                return Err(format!(
                    "line {number} has {found} values, the header has {wanted}; values are separated by commas"
                ));
            }
            rows += 1;
            if rows as u64 > most {
                return Err(format!("it has more than {most} rows"));
            }
            for ((column, value), name) in cells.iter_mut().zip(values).zip(&names) {
                let cell = if is_date(name) {
                    day(value)
                } else {
                    parsed(value)
                };
                let number = cell.map_err(|()| {
                    let what = if is_date(name) {
                        "a date such as 2026-01-31"
                    } else {
                        "a number"
                    };
                    format!("line {number}: {name}: {what} is expected, {value:?} is found")
                })?;
                column.push(number);
            }
        }
        let columns = names.into_iter().zip(&cells);
        let columns = columns.map(|(name, cells)| TableColumn {
            name,
            kind: kind(cells),
            stored: match kind(cells) {
                ColumnKind::Integers => "whole numbers".to_owned(),
                _ => "numbers with a point".to_owned(),
            },
        });
        Ok(Self {
            columns: columns.collect(),
            cells,
            rows,
        })
    }

    /// The cells of a column.
    pub(super) fn cells(&self, column: usize) -> Cells {
        let cells = &self.cells[column];
        let there = cells.iter().map(Option::is_some).collect();
        let values = match kind(cells) {
            ColumnKind::Integers => {
                let whole = |cell: &Option<Number>| match cell {
                    Some(Number::Whole(value)) => *value,
                    _ => 0,
                };
                Values::Integers(cells.iter().map(whole).collect())
            }
            _ => Values::Numbers(
                cells
                    .iter()
                    .map(|cell| match cell {
                        Some(Number::Whole(value)) => *value as f64,
                        Some(Number::Broken(value)) => *value,
                        None => f64::NAN,
                    })
                    .collect(),
            ),
        };
        Cells {
            values,
            there: Some(there),
        }
    }
}

/// A value without spaces and quotes around it.
fn plain(text: &str) -> &str {
    let text = text.trim();
    let inside = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inside.unwrap_or(text)
}

fn parsed(text: &str) -> Result<Option<Number>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let whole = text.parse().map(Number::Whole);
    let number = whole.or_else(|_| text.parse().map(Number::Broken));
    number.map(Some).map_err(|_| ())
}

/// True if a column of this name has days.
fn is_date(name: &str) -> bool {
    name == "date" || name.ends_with("_date")
}

/// A day, counted as Parquet does.
fn day(text: &str) -> Result<Option<Number>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let day = Date::parse(text).ok_or(())?;
    Ok(Some(Number::Whole(day.0)))
}

fn kind(cells: &[Option<Number>]) -> ColumnKind {
    let broken = |cell: &Option<Number>| matches!(cell, Some(Number::Broken(_)));
    if cells.iter().any(broken) {
        ColumnKind::Numbers
    } else {
        ColumnKind::Integers
    }
}
