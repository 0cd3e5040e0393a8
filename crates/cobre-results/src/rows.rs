//! Rows of a table, column by column.

use std::collections::HashMap;

use crate::schema::{Kind, TableSchema};

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Of a column of whole numbers.
    Integer(i64),
    /// Of a column of numbers.
    Number(f64),
    /// Of a column of numbers that may be missing.
    Maybe(Option<f64>),
    /// Of a column of texts.
    Text(&'a str),
}

impl From<usize> for Cell<'_> {
    fn from(count: usize) -> Self {
        Self::Integer((count as u64).cast_signed())
    }
}

impl From<i32> for Cell<'_> {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(number: Option<f64>) -> Self {
        Self::Maybe(number)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

/// A type of which cells are made.
pub(crate) trait CellValue {
    /// The kind of the columns that hold such values.
    const KIND: Kind;
}

impl CellValue for usize {
    const KIND: Kind = Kind::Integer;
}

impl CellValue for i32 {
    const KIND: Kind = Kind::Integer;
}

impl CellValue for i64 {
    const KIND: Kind = Kind::Integer;
}

impl CellValue for f64 {
    const KIND: Kind = Kind::Number;
}

impl CellValue for Option<f64> {
    const KIND: Kind = Kind::Maybe;
}

impl CellValue for &str {
    const KIND: Kind = Kind::Text;
}

/// Part of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnData {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Maybe(Vec<Option<f64>>),
    Texts(Texts),
}

/// Texts of which many are the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Texts {
    known: Vec<String>,
    places: HashMap<String, u32>,
    rows: Vec<u32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        let place = self.places.get(text).copied().unwrap_or_else(|| {
            let place = self.known.len() as u32;
            self.known.push(text.to_owned());
            self.places.insert(text.to_owned(), place);
            place
        });
        self.rows.push(place);
    }

    /// The texts there are, and by row which of them it is.
    pub(crate) fn parts(&self) -> (&[String], &[u32]) {
        (&self.known, &self.rows)
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut all = Self::default();
        for text in texts {
            all.push(text.as_ref());
        }
        all
    }
}

impl ColumnData {
    fn none(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integers(Vec::new()),
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Maybe => Self::Maybe(Vec::new()),
            Kind::Text => Self::Texts(Texts::default()),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Integers(_) => Kind::Integer,
            Self::Numbers(_) => Kind::Number,
            Self::Maybe(_) => Kind::Maybe,
            Self::Texts(_) => Kind::Text,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Maybe(values) => values.len(),
            Self::Texts(texts) => texts.rows.len(),
        }
    }

    pub(crate) fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Integers(values) => Cell::Integer(values[row]),
            Self::Numbers(values) => Cell::Number(values[row]),
            Self::Maybe(values) => Cell::Maybe(values[row]),
            Self::Texts(texts) => Cell::Text(&texts.known[texts.rows[row] as usize]),
        }
    }
}

/// Rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows(Vec<ColumnData>);

impl Rows {
    /// No rows of this table yet.
    pub fn new(schema: &TableSchema) -> Self {
        let columns = schema.columns.iter();
        Self(
            columns
                .map(|column| ColumnData::none(column.kind))
                .collect(),
        )
    }

    /// Adds a row: one value for each column, of its kind.
    ///
    /// # Panics
    /// When it has other values than the table has columns.
    pub fn push(&mut self, row: &[Cell<'_>]) {
        assert_eq!(row.len(), self.0.len(), "a row has a value for each column");
        for (values, cell) in self.0.iter_mut().zip(row) {
            match (values, *cell) {
                (ColumnData::Integers(values), Cell::Integer(value)) => values.push(value),
                (ColumnData::Numbers(values), Cell::Number(value)) => values.push(value),
                (ColumnData::Maybe(values), Cell::Maybe(value)) => values.push(value),
                (ColumnData::Texts(texts), Cell::Text(text)) => texts.push(text),
                (values, cell) => panic!("{cell:?} in a column of {:?}", values.kind()),
            }
        }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.0.first().map_or(0, ColumnData::len)
    }

    /// The value of a row in a column.
    pub(crate) fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        self.0[column].cell(row)
    }

    /// The columns.
    pub(crate) fn columns(&self) -> &[ColumnData] {
        &self.0
    }
}
