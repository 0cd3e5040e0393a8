//! Rows in the form that files have them: made wherever the rows are, put together by whoever writes.

use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde::{Deserialize, Serialize};

use crate::csv;
use crate::rows::{ColumnData, Rows};
use crate::schema::{Column, Kind, TableSchema};

/// Consecutive rows of a table: a Parquet file of one row group, and lines of CSV if those are wanted.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowGroup {
    pub(crate) parquet: Vec<u8>,
    pub(crate) csv: String,
}

impl RowGroup {
    /// The row group of these rows; `csv` wants lines of CSV too.
    ///
    /// # Errors
    /// When they cannot be encoded, which would be a fault of this program.
    pub fn new(schema: &TableSchema, rows: &Rows, csv: bool) -> io::Result<Self> {
        let parquet = encode(schema, rows).map_err(io::Error::other)?;
        let csv = if csv { csv::lines(rows) } else { String::new() };
        Ok(Self { parquet, csv })
    }
}

/// A Parquet file of these rows.
fn encode(schema: &TableSchema, rows: &Rows) -> Result<Vec<u8>, ParquetError> {
    let mut parquet = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut parquet, parquet_schema(schema)?, properties()?)?;
    let mut group = writer.next_row_group()?;
    for values in rows.columns() {
        if let Some(mut column) = group.next_column()? {
            write(&mut column, values)?;
            column.close()?;
        }
    }
    group.close()?;
    writer.close()?;
    Ok(parquet)
}

/// The columns as Parquet has them.
pub(crate) fn parquet_schema(schema: &TableSchema) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<_>, _> = schema.columns.iter().map(field).collect();
    let group = Type::group_type_builder("schema");
    Ok(Arc::new(group.with_fields(fields?).build()?))
}

pub(crate) fn properties() -> Result<WriterPropertiesPtr, ParquetError> {
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

fn write(column: &mut SerializedColumnWriter<'_>, values: &ColumnData) -> Result<(), ParquetError> {
    match values {
        ColumnData::Integers(values) => column
            .typed::<Int64Type>()
            .write_batch(values, None, None)?,
        ColumnData::Numbers(values) => column
            .typed::<DoubleType>()
            .write_batch(values, None, None)?,
        ColumnData::Maybe(values) => {
            let there: Vec<f64> = values.iter().flatten().copied().collect();
            let levels: Vec<i16> = values
                .iter()
                .map(|value| i16::from(value.is_some()))
                .collect();
            column
                .typed::<DoubleType>()
                .write_batch(&there, Some(&levels), None)?
        }
        ColumnData::Texts(texts) => {
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
