//! The columns of a Parquet file.

use std::fs::File;
use std::path::Path;

use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::Cell;
use crate::finding::{Findings, Place};
use crate::hydrothermal::number;

/// What a column holds.
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
}

/// What a column of a file holds.
#[derive(Debug)]
enum Values {
    Known(Column, Vec<Option<f64>>),
    Other(String),
}

/// The columns of a file, to be taken one by one.
pub(crate) struct Columns<'f> {
    found: Found,
    rows: usize,
    at: Place,
    known: Vec<&'static str>,
    findings: &'f mut Findings,
}

impl<'f> Columns<'f> {
    /// Reads all columns of a file, or says why it cannot be read.
    pub(super) fn read(path: &Path, at: Place, findings: &'f mut Findings) -> Option<Self> {
        if path.is_dir() {
            findings.wrong(&at, "it is a directory; one file is expected");
            return None;
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                findings.wrong(&at, format!("it cannot be read: {error}"));
                return None;
            }
        };
        match read_all(file) {
            Ok((found, rows)) => Some(Self {
                found,
                rows,
                at,
                known: Vec::new(),
                findings,
            }),
            Err(error) => {
                findings.wrong(&at, error);
                None
            }
        }
    }

    fn find(&mut self, name: &'static str) -> Option<usize> {
        self.known.push(name);
        let place = self.found.iter().position(|(known, _, _)| known == name)?;
        self.found[place].2 = true;
        Some(place)
    }

    /// The values of a column.
    pub(crate) fn take<T: Cell>(&mut self, name: &'static str) -> Option<Vec<T>> {
        let at = self.at.rows(format!("column {name}"));
        let Some(place) = self.find(name) else {
            if T::OPTIONAL {
                return (0..self.rows).map(|_| T::none()).collect();
            }
            self.findings.wrong(&at, "the column is missing");
            return None;
        };
        let values = match &self.found[place].1 {
            Values::Known(Column::Integer, values) if T::COLUMN == Column::Integer => values,
            Values::Known(Column::Number, values) if T::COLUMN == Column::Number => values,
            Values::Known(other, _) => {
                let message = format!(
                    "{} is expected, {} is found",
                    T::COLUMN.name(),
                    other.name()
                );
                self.findings.wrong(&at, message);
                return None;
            }
            Values::Other(found) => {
                let message = format!("{} is expected, {found} is found", T::COLUMN.name());
                self.findings.wrong(&at, message);
                return None;
            }
        };
        let mut found = Vec::with_capacity(values.len());
        for (row, value) in values.iter().enumerate() {
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
    pub(crate) fn refuse(&mut self, name: &'static str, why: &str) {
        if let Some(place) = self.find(name) {
            let empty = match &self.found[place].1 {
                Values::Known(_, values) => values.iter().all(Option::is_none),
                Values::Other(_) => self.rows == 0,
            };
            if !empty {
                let at = self.at.rows(format!("column {name}"));
                let message = format!("not supported: {why}; remove the column");
                self.findings.wrong(&at, message);
            }
        }
        self.known.pop();
    }

    /// Says which columns are none of the format; returns the number of rows.
    pub(crate) fn close(self) -> usize {
        for (name, _, _) in self.found.iter().filter(|(_, _, seen)| !seen) {
            let at = self.at.rows(format!("column {name}"));
            let message = format!("unknown column; {} are known", self.known.join(", "));
            self.findings.wrong(&at, message);
        }
        self.rows
    }
}

type Found = Vec<(String, Values, bool)>;

/// More rows than any case has: a file of a few bytes can claim any number.
const MOST_ROWS: i64 = 10_000_000;

/// All columns of a file, and how many rows it has; else what is wrong with it.
fn read_all(file: File) -> Result<(Found, usize), String> {
    let unsound = |error: ParquetError| format!("it is no sound Parquet file: {error}");
    let reader = SerializedFileReader::new(file).map_err(unsound)?;
    let groups = reader.metadata().row_groups();
    let rows = groups.iter().map(RowGroupMetaData::num_rows);
    let rows = rows.fold(0, i64::saturating_add);
    if rows > MOST_ROWS {
        return Err(format!(
            "it has {rows} rows; at most {MOST_ROWS} are expected"
        ));
    }
    let columns = groups.iter().flat_map(RowGroupMetaData::columns);
    for codec in columns.map(ColumnChunkMetaData::compression) {
        if !matches!(
            codec,
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_)
        ) {
            let codec = codec.to_string();
            let name = codec.split('(').next().unwrap_or_default();
            return Err(format!(
                "it is compressed by {name}; snappy, zstd or nothing is expected"
            ));
        }
    }
    read_sound(&reader).map_err(unsound)
}

fn read_sound(reader: &SerializedFileReader<File>) -> Result<(Found, usize), ParquetError> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns: Found = Vec::new();
    for (number, column) in schema.columns().iter().enumerate() {
        let name = column.path().string();
        let mut values = Values::Other(column.physical_type().to_string().to_lowercase());
        if column.max_rep_level() == 0 {
            for group in 0..reader.num_row_groups() {
                let group = reader.get_row_group(group)?;
                let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
                let level = column.max_def_level();
                append(group.get_column_reader(number)?, rows, level, &mut values)?;
            }
            // A table without rows has no groups, and any kind of column is empty.
            if reader.num_row_groups() == 0 {
                values = kind(column.physical_type())
                    .map_or(values, |kind| Values::Known(kind, Vec::new()));
            }
        }
        columns.push((name, values, false));
    }
    let rows = reader.metadata().file_metadata().num_rows();
    // What a file says is believed only if a column bears it out.
    let borne_out = columns
        .iter()
        .any(|(_, values, _)| matches!(values, Values::Known(..)));
    let rows = usize::try_from(rows)
        .ok()
        .filter(|_| borne_out)
        .unwrap_or(0);
    let short = columns.iter().find(|(_, values, _)| match values {
        Values::Known(_, values) => values.len() != rows,
        Values::Other(_) => false,
    });
    match short {
        Some((name, _, _)) => Err(ParquetError::General(format!(
            "column {name} has not {rows} rows"
        ))),
        None => Ok((columns, rows)),
    }
}

fn kind(physical: parquet::basic::Type) -> Option<Column> {
    match physical {
        parquet::basic::Type::INT32 | parquet::basic::Type::INT64 => Some(Column::Integer),
        parquet::basic::Type::FLOAT | parquet::basic::Type::DOUBLE => Some(Column::Number),
        _ => None,
    }
}

/// Adds the values of a group to those of the groups before.
fn append(
    reader: ColumnReader,
    rows: usize,
    level: i16,
    to: &mut Values,
) -> Result<(), ParquetError> {
    let (kind, values) = match reader {
        ColumnReader::Int32ColumnReader(reader) => {
            (Column::Integer, typed(reader, rows, level, f64::from)?)
        }
        ColumnReader::Int64ColumnReader(reader) => (
            Column::Integer,
            typed(reader, rows, level, |value| value as f64)?,
        ),
        ColumnReader::FloatColumnReader(reader) => {
            (Column::Number, typed(reader, rows, level, f64::from)?)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            (Column::Number, typed(reader, rows, level, |value| value)?)
        }
        _ => return Ok(()),
    };
    match to {
        Values::Known(_, known) => known.extend(values),
        Values::Other(_) => *to = Values::Known(kind, values),
    }
    Ok(())
}

/// All values of a column in a group; none where the row has none.
fn typed<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    level: i16,
    number: impl Fn(T::T) -> f64,
) -> Result<Vec<Option<f64>>, ParquetError> {
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
    let mut values = values.into_iter().map(number);
    if level == 0 {
        return Ok(values.map(Some).collect());
    }
    let rows = levels.iter();
    let rows = rows.map(|found| (*found == level).then(|| values.next()).flatten());
    Ok(rows.collect())
}
