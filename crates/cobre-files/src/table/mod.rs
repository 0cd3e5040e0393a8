//! Parquet tables that may be damaged, or made to do harm.
//!
//! [`headers`] checks what a file claims, so that memory is bounded by rows that the caller expects; [`guard`]
//! makes errors of the panics that the Parquet library has for the rest. Nothing is decoded before it is asked for.

mod cells;
mod guard;
mod headers;
mod thrift;

use std::fs::File;
use std::io;

use parquet::basic::{Compression, Repetition, Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use thiserror::Error;

pub use self::cells::{Cells, Values};
use self::guard::guard;
use self::headers::{Chunk, ChunkContent};

/// Error of reading a table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The system refused it.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is damaged as a whole, or no Parquet at all.
    #[error("it is no sound Parquet file: {0}")]
    Unsound(String),
    /// A column is damaged, or is not there.
    #[error("column {column}: {what}")]
    Column {
        /// The column.
        column: String,
        /// The mistake.
        what: String,
    },
    /// It has more rows than can be meant.
    #[error("it has {found} rows; at most {most} are expected")]
    Rows {
        /// As many as it says.
        found: u64,
        /// As many as can be meant.
        most: u64,
    },
    /// It is compressed in a way that is not read.
    #[error("it is compressed by {0}; snappy, zstd or nothing is expected")]
    Compression(String),
}

/// The most rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// So many.
    Rows(u64),
    /// As many as the bytes of a file can have that Cobre itself has written: `ROWS_PER_BYTE` for each and
    /// `FIRST_ROWS` more; `GROUP_ROWS` in a row group.
    Written,
}

/// Rows of a file that Cobre has written, for each of its bytes. The pages of Parquet have 20,000 rows at most, and
/// no header of a page has fewer than 20 bytes.
const ROWS_PER_BYTE: u64 = 1024;
/// Rows that a file of any size can have.
const FIRST_ROWS: u64 = 1 << 20;
/// Rows of a group that Cobre has written: those of a piece of a simulation.
const GROUP_ROWS: u64 = 1 << 24;

/// The type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers.
    Integers,
    /// Numbers.
    Numbers,
    /// Texts.
    Texts,
    /// Something else, by its name in Parquet; it cannot be read.
    Other(String),
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// The type of its cells.
    pub kind: ColumnKind,
    /// That type by its name in Parquet.
    pub stored: String,
}

/// A Parquet table that is open for reading.
pub struct Table {
    file: File,
    length: u64,
    reader: SerializedFileReader<File>,
    columns: Vec<TableColumn>,
    rows: Vec<u64>,
}

impl Table {
    /// Reads the schema of a table and how many rows it has.
    ///
    /// # Errors
    /// When it is damaged, has more rows than `most`, columns inside others, or an unknown compression.
    pub fn open(file: File, most: Most) -> Result<Self, TableError> {
        let length = file.metadata()?.len();
        headers::check_footer(&file, length).map_err(TableError::Unsound)?;
        let own = file.try_clone()?;
        let reader = guard(|| SerializedFileReader::new(own)).map_err(TableError::Unsound)?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let columns = schema.columns().iter().map(|column| TableColumn {
            name: column.name().to_owned(),
            kind: kind(
                column.physical_type(),
                column.self_type().get_basic_info().repetition(),
            ),
            stored: column.physical_type().to_string().to_lowercase(),
        });
        let columns: Vec<TableColumn> = columns.collect();
        let rows = rows(metadata.row_groups(), metadata.file_metadata().num_rows())?;
        check_rows(&rows, most, length)?;
        for group in metadata.row_groups() {
            if group.num_columns() != columns.len() {
                return Err(TableError::Unsound(
                    "a row group has not the columns of the schema".to_owned(),
                ));
            }
            group
                .columns()
                .iter()
                .try_for_each(|column| codec(column.compression()))?;
        }
        Ok(Self {
            file,
            length,
            reader,
            columns,
            rows,
        })
    }

    /// Its columns.
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// The number of row groups.
    pub fn groups(&self) -> usize {
        self.rows.len()
    }

    /// The rows of a row group.
    pub fn group_rows(&self, group: usize) -> usize {
        self.rows[group] as usize
    }

    /// The rows of all groups.
    pub fn rows(&self) -> usize {
        self.rows.iter().sum::<u64>() as usize
    }

    /// The error that something is wrong with a column.
    pub fn wrong(column: &str, what: impl Into<String>) -> TableError {
        TableError::Column {
            column: column.to_owned(),
            what: what.into(),
        }
    }

    /// A column of a row group, given by its number.
    ///
    /// # Errors
    /// When it is damaged, or holds nothing that can be read.
    pub fn read(&self, group: usize, column: usize) -> Result<Cells, TableError> {
        let TableColumn { name, kind, .. } = &self.columns[column];
        let holds = match kind {
            ColumnKind::Integers | ColumnKind::Numbers => ChunkContent::Numbers,
            ColumnKind::Texts => ChunkContent::Texts,
            ColumnKind::Other(other) => {
                let what = format!("{other} is found where numbers or texts are expected");
                return Err(Self::wrong(name, what));
            }
        };
        let rows = self.rows[group];
        let wrong = |what: String| Self::wrong(name, what);
        let metadata = self.reader.metadata().row_group(group).column(column);
        let (start, length) = guard(|| Ok(metadata.byte_range())).map_err(wrong)?;
        let end = start.checked_add(length).filter(|end| *end <= self.length);
        if end.is_none() {
            return Err(wrong("it is cut off".to_owned()));
        }
        let chunk = Chunk {
            start,
            length,
            rows,
            holds,
        };
        headers::check_pages(&self.file, chunk).map_err(wrong)?;
        let read = || {
            let group = self.reader.get_row_group(group)?;
            cells::read(group.get_column_reader(column)?, rows as usize)
        };
        guard(read).map_err(wrong)
    }

    /// A column of all row groups, given by its number.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_all(&self, column: usize) -> Result<Cells, TableError> {
        let mut all = Cells::empty(&self.columns[column].kind);
        for group in 0..self.groups() {
            all.append(self.read(group, column)?);
        }
        Ok(all)
    }
}

fn kind(physical: Type, repetition: Repetition) -> ColumnKind {
    match physical {
        _ if repetition == Repetition::REPEATED => ColumnKind::Other("a list".to_owned()),
        Type::INT32 | Type::INT64 => ColumnKind::Integers,
        Type::FLOAT | Type::DOUBLE => ColumnKind::Numbers,
        Type::BYTE_ARRAY => ColumnKind::Texts,
        other => ColumnKind::Other(other.to_string().to_lowercase()),
    }
}

/// The rows of each group; they must sum to `all`.
fn rows(groups: &[RowGroupMetaData], all: i64) -> Result<Vec<u64>, TableError> {
    let rows = groups.iter().map(|group| u64::try_from(group.num_rows()));
    let rows = rows.collect::<Result<Vec<u64>, _>>();
    let rows =
        rows.map_err(|_| TableError::Unsound("a row group has less than no rows".to_owned()))?;
    let sum = rows
        .iter()
        .fold(0_u64, |sum, rows| sum.saturating_add(*rows));
    if u64::try_from(all).ok() == Some(sum) {
        Ok(rows)
    } else {
        let what = format!("it says {all} rows, and its row groups {sum}");
        Err(TableError::Unsound(what))
    }
}

fn check_rows(rows: &[u64], most: Most, length: u64) -> Result<(), TableError> {
    let sum = rows.iter().sum::<u64>();
    let largest = rows.iter().copied().max().unwrap_or(0);
    let (found, most) = match most {
        Most::Rows(most) => (sum, most),
        Most::Written if largest > GROUP_ROWS => (largest, GROUP_ROWS),
        Most::Written => (sum, length.saturating_mul(ROWS_PER_BYTE) + FIRST_ROWS),
    };
    if found > most {
        return Err(TableError::Rows { found, most });
    }
    Ok(())
}

fn codec(codec: Compression) -> Result<(), TableError> {
    match codec {
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) => Ok(()),
        other => {
            let other = other.to_string();
            let name = other.split('(').next().unwrap_or_default();
            Err(TableError::Compression(name.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests;
