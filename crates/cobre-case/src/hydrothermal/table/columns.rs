//! The columns of a Parquet file.

use std::path::Path;

use cobre_files::{Cells, ColumnKind, Most, Table, TableColumn, TableError, Values};

use super::csv::CsvTable;
use super::{CSV, Cell, Row};
use crate::finding::{Findings, Place};
use crate::hydrothermal::number;
use crate::hydrothermal::release18::{column_name, is_implied};
use crate::template::TemplateColumn;

/// Whole numbers up to this one are doubles too: 2⁵³.
const EXACT: u64 = 1 << 53;
/// Names that pandas gives the index of a table.
const INDICES: [&str; 3] = ["__index_level_0__", "Unnamed: 0", "index"];

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// Days.
    Date,
}

impl Column {
    /// Its name in Parquet.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Integer => "int32",
            Self::Number => "double",
            Self::Date => "date32",
        }
    }

    /// True if a column holds it: whole numbers are numbers too.
    fn is(self, found: &ColumnKind) -> bool {
        match found {
            ColumnKind::Integers => true,
            ColumnKind::Numbers => self == Self::Number,
            ColumnKind::Texts | ColumnKind::Other(_) => false,
        }
    }
}

/// A table of either kind.
enum TableSource {
    Parquet(Table),
    Csv(CsvTable),
}

impl TableSource {
    fn open(path: &Path, most: u64) -> Result<Self, String> {
        if path.extension().is_some_and(|ending| ending == CSV) {
            return CsvTable::read(path, most).map(Self::Csv);
        }
        let file = cobre_files::open(path).map_err(TableError::from);
        let table = file.and_then(|file| Table::open(file, Most::Rows(most)));
        table.map(Self::Parquet).map_err(|error| error.to_string())
    }

    fn columns(&self) -> &[TableColumn] {
        match self {
            Self::Parquet(table) => table.columns(),
            Self::Csv(table) => &table.columns,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Parquet(table) => table.rows(),
            Self::Csv(table) => table.rows,
        }
    }

    fn read_all(&self, column: usize) -> Result<Cells, TableError> {
        match self {
            Self::Parquet(table) => table.read_all(column),
            Self::Csv(table) => Ok(table.cells(column)),
        }
    }
}

/// The columns of a file, to be taken one by one.
pub(crate) struct Columns<'f> {
    table: TableSource,
    /// The file, as a path below the case.
    file: &'static str,
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
        let table = match TableSource::open(path, most) {
            Ok(table) => table,
            Err(error) => {
                findings.wrong(&at, error);
                return None;
            }
        };
        let sound = check_schema::<R>(&table, &at, findings);
        sound.then_some(Self {
            table,
            file: R::FILE,
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
        let Some(place) = columns.position(|column| column_name(self.file, &column.name) == name)
        else {
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
            Values::Integers(values) => self.exact(name, values)?,
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

    /// Whole numbers as numbers, if each of them is one.
    fn exact(&mut self, name: &str, values: Vec<i64>) -> Option<Vec<f64>> {
        let far = |value: &i64| value.unsigned_abs() > EXACT;
        if let Some(row) = values.iter().position(far) {
            let message = format!("{name}: {} has no exact value as a double", values[row]);
            self.findings.wrong(&self.at.row(row), message);
            return None;
        }
        Some(values.into_iter().map(|value| value as f64).collect())
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

/// All columns of a file; `days` are those of days.
pub(super) fn all(path: &Path, days: &[&str]) -> Result<Vec<(String, TemplateColumn)>, String> {
    let table = TableSource::open(path, u64::MAX)?;
    let mut found = Vec::new();
    for (place, column) in table.columns().iter().enumerate() {
        let cells = table.read_all(place).map_err(|error| error.to_string())?;
        let there = |row: usize| cells.there.as_ref().is_none_or(|there| there[row]);
        let all = (0..table.rows()).all(there);
        let whole = |value: &i64| i32::try_from(*value).unwrap_or(i32::MAX);
        let own = match &cells.values {
            Values::Integers(values) if days.contains(&column.name.as_str()) => {
                TemplateColumn::Days(values.iter().map(whole).collect())
            }
            Values::Integers(values) if all => {
                TemplateColumn::Ids(values.iter().map(whole).collect())
            }
            Values::Integers(values) => {
                let rows = values.iter().enumerate();
                let rows = rows.map(|(row, value)| there(row).then(|| whole(value)));
                TemplateColumn::MaybeIds(rows.collect())
            }
            Values::Numbers(values) if all => TemplateColumn::Numbers(values.clone()),
            Values::Numbers(values) => {
                let rows = values.iter().enumerate();
                let rows = rows.map(|(row, value)| there(row).then_some(*value));
                TemplateColumn::Maybe(rows.collect())
            }
            Values::Texts(_) => {
                return Err(format!(
                    "column {}: texts are no part of the format",
                    column.name
                ));
            }
        };
        found.push((column.name.clone(), own));
    }
    Ok(found)
}

/// The names of the columns of a file.
pub(super) fn names(path: &Path) -> Result<Vec<String>, String> {
    let table = TableSource::open(path, u64::MAX)?;
    let columns = table.columns().iter();
    Ok(columns.map(|column| column.name.clone()).collect())
}

/// Says which columns are missing, hold something else, come twice, or are none of the format.
fn check_schema<R: Row>(table: &TableSource, at: &Place, findings: &mut Findings) -> bool {
    let before = findings.count();
    let found = table.columns();
    let known = R::columns();
    for (name, holds, optional, _) in &known {
        let at = at.rows(format!("column {name}"));
        match found
            .iter()
            .find(|column| column_name(R::FILE, &column.name) == *name)
        {
            None if *optional => {}
            None => findings.wrong(&at, "the column is missing"),
            Some(column) => {
                let is_date = *holds == Column::Date;
                // Days are int32; times since 1970 are int64.
                let is_time = is_date && column.stored == "int64";
                if is_time || !holds.is(&column.kind) {
                    let (holds, stored) = (holds.name(), &column.stored);
                    let hint = if is_date {
                        "; times and texts of pandas are days after pandas.to_datetime(…).dt.date"
                    } else {
                        ""
                    };
                    let message = format!("{holds} is expected, {stored} is found{hint}");
                    findings.wrong(&at, message);
                }
            }
        }
    }
    let names = || known.iter().map(|(name, _, _, _)| *name);
    let mut seen = std::collections::HashSet::new();
    for column in found {
        let name = column_name(R::FILE, &column.name);
        if is_implied(R::FILE, name) {
            continue;
        }
        let at = at.rows(format!("column {name}"));
        if !seen.insert(name) {
            findings.wrong(&at, "the column is there twice");
        } else if !names()
            .chain(R::REFUSED.iter().copied())
            .any(|known| known == name)
        {
            let known: Vec<&str> = names().collect();
            let hint = if INDICES.contains(&name) {
                "; it is the index of a pandas table: write the file with index=False"
            } else {
                ""
            };
            let message = format!("unknown column; {} are known{hint}", known.join(", "));
            findings.wrong(&at, message);
        }
    }
    findings.count() == before
}
