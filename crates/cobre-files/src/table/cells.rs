//! The values of a column.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;

use super::ColumnKind;

/// Rows that are decoded at a time.
const BATCH: usize = 1 << 16;
/// The most bytes of the texts of a chunk, beyond [`TEXT_BYTES`] for each row.
const TEXT_SLACK: usize = 64 << 20;
const TEXT_BYTES: usize = 64;

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<String>),
}

/// The rows of a column: their values, and which of them have none.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// One per row: 0, NaN or an empty text where the row has none.
    pub values: Values,
    /// By row, whether it has a value; none if all have.
    pub there: Option<Vec<bool>>,
}

impl Cells {
    /// No rows.
    pub(super) fn empty(kind: &ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Integers => Values::Integers(Vec::new()),
            ColumnKind::Texts => Values::Texts(Vec::new()),
            ColumnKind::Numbers | ColumnKind::Other(_) => Values::Numbers(Vec::new()),
        };
        Self {
            values,
            there: None,
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Integers(values) => values.len(),
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the rows of the same column in the next group.
    pub(super) fn append(&mut self, mut other: Self) {
        if self.there.is_some() || other.there.is_some() {
            let (before, more) = (self.len(), other.len());
            let there = self.there.get_or_insert_with(|| vec![true; before]);
            there.extend(other.there.take().unwrap_or_else(|| vec![true; more]));
        }
        match (&mut self.values, other.values) {
            (Values::Integers(values), Values::Integers(more)) => values.extend(more),
            (Values::Numbers(values), Values::Numbers(more)) => values.extend(more),
            (Values::Texts(values), Values::Texts(more)) => values.extend(more),
            // A column is of one kind in all groups: the schema says which.
            _ => {}
        }
    }
}

/// Reads the rows of a column of a group.
pub(super) fn read(reader: ColumnReader, rows: usize) -> Result<Cells, ParquetError> {
    let (values, there) = match reader {
        ColumnReader::Int32ColumnReader(reader) => {
            let (values, there) = typed(reader, rows, |value| Ok(i64::from(value)), 0)?;
            (Values::Integers(values), there)
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let (values, there) = typed(reader, rows, Ok, 0)?;
            (Values::Integers(values), there)
        }
        ColumnReader::FloatColumnReader(reader) => {
            let (values, there) = typed(reader, rows, |value| Ok(f64::from(value)), f64::NAN)?;
            (Values::Numbers(values), there)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            let (values, there) = typed(reader, rows, Ok, f64::NAN)?;
            (Values::Numbers(values), there)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let most = TEXT_SLACK + rows * TEXT_BYTES;
            let mut bytes = 0;
            let text = |value: ByteArray| {
                bytes += value.len();
                if bytes > most {
                    let told = format!("its texts have more than {most} bytes");
                    return Err(ParquetError::General(told));
                }
                Ok(String::from_utf8_lossy(value.data()).into_owned())
            };
            let (values, there) = typed(reader, rows, text, String::new())?;
            (Values::Texts(values), there)
        }
        _ => {
            let told = "it is neither numbers nor texts";
            return Err(ParquetError::General(told.to_owned()));
        }
    };
    Ok(Cells { values, there })
}

/// The values of all rows, with `none` where a row has none, and which rows have one.
fn typed<T: DataType, V: Clone>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    mut of: impl FnMut(T::T) -> Result<V, ParquetError>,
    none: V,
) -> Result<(Vec<V>, Option<Vec<bool>>), ParquetError> {
    let mut found = Vec::with_capacity(rows);
    let mut there: Option<Vec<bool>> = None;
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    while found.len() < rows {
        values.clear();
        levels.clear();
        let wanted = BATCH.min(rows - found.len());
        let (records, _, _) = reader.read_records(wanted, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            let told = format!("it has {} values of {rows} rows", found.len());
            return Err(ParquetError::General(told));
        }
        // A column that must have values has no levels.
        if levels.is_empty() {
            for value in values.drain(..) {
                found.push(of(value)?);
            }
            continue;
        }
        let before = found.len();
        let marks = there.get_or_insert_with(|| vec![true; before]);
        let mut values = values.drain(..);
        for level in &levels {
            let value = if *level == 0 { None } else { values.next() };
            marks.push(value.is_some());
            found.push(value.map_or_else(|| Ok(none.clone()), &mut of)?);
        }
    }
    Ok((found, there))
}
