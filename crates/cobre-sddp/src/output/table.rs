//! Parquet files of plain columns.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::aside::Aside;
use crate::error::SddpError;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Number,
    /// A number, or none.
    Maybe,
    Text,
}

/// Part of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Maybe(Vec<Option<f64>>),
    Texts(Vec<String>),
}

impl Values {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Integers(_) => Kind::Integer,
            Self::Numbers(_) => Kind::Number,
            Self::Maybe(_) => Kind::Maybe,
            Self::Texts(_) => Kind::Text,
        }
    }
}

/// A Parquet file in the making.
pub(super) struct TableFile {
    aside: Aside,
    writer: SerializedFileWriter<File>,
}

impl TableFile {
    /// Starts a file with these columns.
    pub(super) fn create(place: &Path, columns: &[(&str, Kind)]) -> Result<Self, SddpError> {
        let aside = Aside::create(place)?;
        let handle = aside.handle()?;
        let open = || -> Result<_, ParquetError> {
            let fields: Result<Vec<_>, _> = columns
                .iter()
                .map(|(name, kind)| field(name, *kind))
                .collect();
            let schema = Type::group_type_builder("schema")
                .with_fields(fields?)
                .build()?;
            let level = ZstdLevel::try_new(3)?;
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
            SerializedFileWriter::new(handle, Arc::new(schema), Arc::new(properties.build()))
        };
        let writer = open().map_err(|error| failed(place, error))?;
        Ok(Self { aside, writer })
    }

    /// Adds rows: one part of each column, all of one length.
    pub(super) fn append<'v>(
        &mut self,
        columns: impl Iterator<Item = &'v Values>,
    ) -> Result<(), SddpError> {
        let add = || -> Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            for values in columns {
                if let Some(mut column) = group.next_column()? {
                    write(&mut column, values)?;
                    column.close()?;
                }
            }
            group.close().map(|_| ())
        };
        add().map_err(|error| failed(self.aside.place(), error))
    }

    /// Puts the file in its place.
    pub(super) fn finish(self) -> Result<(), SddpError> {
        let closed = self.writer.close();
        closed.map_err(|error| failed(self.aside.place(), error))?;
        self.aside.finish()
    }
}

fn failed(place: &Path, error: ParquetError) -> SddpError {
    SddpError::io("write", place)(std::io::Error::other(error))
}

fn field(name: &str, kind: Kind) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Integer => (Physical::INT64, None),
        Kind::Number | Kind::Maybe => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if kind == Kind::Maybe {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let built = Type::primitive_type_builder(name, physical)
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
        Values::Texts(values) => {
            let texts: Vec<ByteArray> = values.iter().map(|text| text.as_str().into()).collect();
            column
                .typed::<ByteArrayType>()
                .write_batch(&texts, None, None)?
        }
    };
    Ok(())
}
