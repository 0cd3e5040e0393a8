//! One column of one row group.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers, NaN where a row has none.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<String>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads the rows of a column.
pub(super) fn read(reader: ColumnReader, rows: usize) -> Result<Values, ParquetError> {
    Ok(match reader {
        ColumnReader::BoolColumnReader(reader) => {
            Values::Integers(typed(reader, rows, i64::from, 0)?)
        }
        ColumnReader::Int32ColumnReader(reader) => {
            Values::Integers(typed(reader, rows, i64::from, 0)?)
        }
        ColumnReader::Int64ColumnReader(reader) => {
            Values::Integers(typed(reader, rows, |value| value, 0)?)
        }
        ColumnReader::FloatColumnReader(reader) => {
            Values::Numbers(typed(reader, rows, f64::from, f64::NAN)?)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            Values::Numbers(typed(reader, rows, |value| value, f64::NAN)?)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let text = |bytes: ByteArray| String::from_utf8_lossy(bytes.data()).into_owned();
            Values::Texts(typed(reader, rows, text, String::new())?)
        }
        _ => {
            let told = "a column is neither numbers nor texts";
            return Err(ParquetError::General(told.into()));
        }
    })
}

/// The values of all rows, with `none` where a row has none.
fn typed<T: DataType, V: Clone>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    of: impl Fn(T::T) -> V,
    none: V,
) -> Result<Vec<V>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    let mut values = values.into_iter().map(of);
    // A column that must have values has no levels.
    if levels.is_empty() {
        return Ok(values.collect());
    }
    let levels = levels.iter();
    let or_none = |level: &i16| match level {
        0 => none.clone(),
        _ => values.next().unwrap_or_else(|| none.clone()),
    };
    Ok(levels.map(or_none).collect())
}
