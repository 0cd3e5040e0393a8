//! The columns of a table: their names, kinds, units and meanings.

use std::borrow::Cow;

/// The columns of a table of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// Its path below the directory of the run, without the ending.
    pub name: Cow<'static, str>,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// A column of a [`TableSchema`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit at the end if it has one.
    pub name: Cow<'static, str>,
    /// The kind of its values.
    pub kind: Kind,
    /// The unit, or nothing.
    pub unit: &'static str,
    /// The meaning, for readers of the dictionary.
    pub meaning: Cow<'static, str>,
}

/// The kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// A number, or none.
    Maybe,
    /// Texts.
    Text,
}

impl TableSchema {
    /// A table with these columns.
    pub fn new(name: impl Into<Cow<'static, str>>, columns: Vec<Column>) -> Self {
        Self {
            name: name.into(),
            columns,
        }
    }
}

impl Column {
    /// A column without a unit.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        kind: Kind,
        meaning: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            unit: "",
            meaning: meaning.into(),
        }
    }

    /// A column of numbers with a unit.
    pub fn number(
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        meaning: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            unit,
            ..Self::new(name, Kind::Number, meaning)
        }
    }

    /// The column, with a unit.
    #[must_use]
    pub fn in_unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }
}
