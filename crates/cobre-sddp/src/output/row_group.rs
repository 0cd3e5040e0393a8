//! Rows in the form that files have them: made wherever the rows are, put together by whoever writes.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde::{Deserialize, Serialize};

use super::table::{Cell, Column, Kind, Rows, Table, Values};

/// Consecutive rows of a table: a Parquet file of one row group, and lines of CSV if those are wanted.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowGroup {
    pub(super) parquet: Vec<u8>,
    pub(super) csv: String,
}

impl RowGroup {
    /// The row_group of these rows.
    ///
    /// # Errors
    /// When they cannot be encoded, which would be a fault of this program.
    pub(crate) fn new(table: &Table, rows: &Rows, csv: bool) -> Result<Self, ParquetError> {
        let mut parquet = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut parquet, schema(table)?, properties()?)?;
        let mut group = writer.next_row_group()?;
        for values in &rows.0 {
            if let Some(mut column) = group.next_column()? {
                write(&mut column, values)?;
                column.close()?;
            }
        }
        group.close()?;
        writer.close()?;
        let csv = if csv { lines(rows) } else { String::new() };
        Ok(Self { parquet, csv })
    }
}

/// The columns as Parquet has them.
pub(super) fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<_>, _> = table.columns.iter().map(field).collect();
    let schema = Type::group_type_builder("schema");
    Ok(Arc::new(schema.with_fields(fields?).build()?))
}

pub(super) fn properties() -> Result<WriterPropertiesPtr, ParquetError> {
    let level = ZstdLevel::try_new(3)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
    Ok(Arc::new(properties.build()))
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Integer => (Physical::INT64, None),
        Kind::Number | Kind::Maybe => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.kind == Kind::Maybe {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let built = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(built))
}

fn write(column: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    match values {
        Values::Integers(values) => column
            .typed::<Int64Type>()
            .write_batch(values, None, None)?,
        Values::Numbers(values) => column
            .typed::<DoubleType>()
            .write_batch(values, None, None)?,
        Values::Maybe(values) => {
            let there: Vec<f64> = values.iter().flatten().copied().collect();
            let levels: Vec<i16> = values
                .iter()
                .map(|value| i16::from(value.is_some()))
                .collect();
            column
                .typed::<DoubleType>()
                .write_batch(&there, Some(&levels), None)?
        }
        Values::Texts(texts) => {
            let (known, rows) = texts.parts();
            let known: Vec<ByteArray> = known.iter().map(|text| text.as_str().into()).collect();
            let texts: Vec<ByteArray> = rows
                .iter()
                .map(|&place| known[place as usize].clone())
                .collect();
            column
                .typed::<ByteArrayType>()
                .write_batch(&texts, None, None)?
        }
    };
    Ok(())
}

/// The first line of a CSV file.
pub(super) fn header(table: &Table) -> String {
    let names = table.columns.iter().map(|column| quoted(&column.name));
    let names: Vec<String> = names.collect();
    names.join(",") + "\n"
}

/// Rows as lines of CSV. Numbers have as many digits as it takes to get the same number back.
fn lines(rows: &Rows) -> String {
    let mut text = String::new();
    for row in 0..rows.count() {
        for (place, values) in rows.0.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            // Writing to a text does not fail.
            let _ = match values.cell(row) {
                Cell::Integer(number) => write!(text, "{number}"),
                Cell::Number(number) | Cell::Maybe(Some(number)) => write!(text, "{number:?}"),
                Cell::Maybe(None) => Ok(()),
                Cell::Text(value) => write!(text, "{}", quoted(value)),
            };
        }
        text.push('\n');
    }
    text
}

/// A text as a cell of CSV. One that a spreadsheet would take for a formula has an apostrophe in front; so has one that
/// looks like such a cell, and whoever takes one apostrophe away has the text.
pub(super) fn quoted(text: &str) -> String {
    let apostrophe = if is_formula(text.trim_start_matches('\'')) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

/// True if a spreadsheet would compute a text instead of showing it. A number is what it computes
/// to.
fn is_formula(text: &str) -> bool {
    let starts = [
        '=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    text.starts_with(starts) && !text.parse().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_every_digit_and_quotes_what_must_be() {
        let table = Table::new(
            "a",
            vec![
                Column::new("text", Kind::Text, ""),
                Column::number("x, y", "", ""),
                Column::new("z", Kind::Maybe, ""),
            ],
        );
        let mut rows = Rows::new(&table);
        rows.push(&["a \"b\"".into(), (0.1 + 0.2).into(), None.into()]);
        rows.push(&["c".into(), 1e300.into(), Some(-2.0).into()]);
        assert_eq!(header(&table), "text,\"x, y\",z\n");
        let found = lines(&rows);
        assert_eq!(
            found,
            "\"a \"\"b\"\"\",0.30000000000000004,\nc,1e300,-2.0\n"
        );
    }

    #[test]
    fn texts_that_spreadsheets_would_compute_have_an_apostrophe() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+cmd", "'+cmd"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\r=x", "\"'\r=x\""),
            ("=A1,\"b\"", "\"'=A1,\"\"b\"\"\""),
            ("-inf", "'-inf"),
            ("'=x", "''=x"),
            ("'s", "'s"),
            ("-1.5", "-1.5"),
            ("+2e3", "+2e3"),
            ("a-b", "a-b"),
            ("", ""),
        ] {
            assert_eq!(quoted(text), cell);
        }
        let table = Table::new("a", vec![Column::number("=x", "", "")]);
        assert_eq!(header(&table), "'=x\n");
    }
}
