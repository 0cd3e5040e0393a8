//! The files of a table: Parquet, and CSV beside it if that is wanted.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use cobre_files::{FileError, WholeFile};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use crate::row_group::{self, RowGroup};
use crate::rows::Rows;
use crate::schema::TableSchema;
use crate::{csv, layout};

/// The files of a table in the making.
pub struct TableFile {
    schema: TableSchema,
    whole: WholeFile,
    writer: SerializedFileWriter<File>,
    csv: Option<WholeFile>,
}

impl TableFile {
    /// Starts the files of a table; `open` starts the file of a name.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn create(
        schema: TableSchema,
        csv: bool,
        mut open: impl FnMut(&str) -> Result<WholeFile, FileError>,
    ) -> Result<Self, FileError> {
        let whole = open(&layout::parquet(&schema.name))?;
        let handle = whole.handle()?;
        let start = || -> Result<_, ParquetError> {
            SerializedFileWriter::new(
                handle,
                row_group::parquet_schema(&schema)?,
                row_group::properties()?,
            )
        };
        let writer = start().map_err(|error| failed(whole.place(), error))?;
        let csv = csv.then(|| -> Result<_, FileError> {
            let mut csv = open(&layout::csv(&schema.name))?;
            csv.write(csv::header(&schema).as_bytes())?;
            Ok(csv)
        });
        Ok(Self {
            whole,
            writer,
            csv: csv.transpose()?,
            schema,
        })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When the system does not take them.
    pub fn append(&mut self, rows: &Rows) -> Result<(), FileError> {
        let row_group = RowGroup::new(&self.schema, rows, self.csv.is_some());
        self.splice(row_group.map_err(|error| failed(self.whole.place(), error))?)
    }

    /// Adds rows that are encoded already.
    ///
    /// # Errors
    /// When the system does not take them.
    pub fn splice(&mut self, row_group: RowGroup) -> Result<(), FileError> {
        let spliced = splice(&mut self.writer, row_group.parquet);
        spliced.map_err(|error| failed(self.whole.place(), error))?;
        match &mut self.csv {
            Some(csv) => csv.write(row_group.csv.as_bytes()),
            None => Ok(()),
        }
    }

    /// Puts the files in their places; says which table it was.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(self) -> Result<TableSchema, FileError> {
        let closed = self.writer.close();
        closed.map_err(|error| failed(self.whole.place(), error))?;
        self.whole.finish()?;
        self.csv.map_or(Ok(()), WholeFile::finish)?;
        Ok(self.schema)
    }
}

fn failed(place: &Path, error: impl Into<Box<dyn Error + Send + Sync>>) -> FileError {
    // The Parquet library wraps what the system said.
    let source = match error.into().downcast::<ParquetError>() {
        Ok(error) => match *error {
            ParquetError::External(inner) => inner
                .downcast::<io::Error>()
                .map_or_else(io::Error::other, |inner| *inner),
            error => io::Error::other(error),
        },
        Err(error) => io::Error::other(error),
    };
    FileError::Io {
        action: "write",
        path: place.to_owned(),
        source,
    }
}

/// A table in the making that goes to no file.
pub struct MemoryTable {
    name: String,
    writer: SerializedFileWriter<Vec<u8>>,
}

impl MemoryTable {
    /// Starts the table.
    ///
    /// # Errors
    /// When its columns make no schema.
    pub fn new(table: &TableSchema) -> Result<Self, FileError> {
        let start = || -> Result<_, ParquetError> {
            let (schema, properties) =
                (row_group::parquet_schema(table)?, row_group::properties()?);
            SerializedFileWriter::new(Vec::new(), schema, properties)
        };
        let writer = start().map_err(|error| failed(Path::new(&*table.name), error))?;
        Ok(Self {
            name: table.name.clone().into_owned(),
            writer,
        })
    }

    /// Adds rows that are encoded already.
    ///
    /// # Errors
    /// When they are not those of this table.
    pub fn splice(&mut self, row_group: RowGroup) -> Result<(), FileError> {
        let spliced = splice(&mut self.writer, row_group.parquet);
        spliced.map_err(|error| failed(Path::new(&self.name), error))
    }

    /// Its name, and the bytes that its file would have.
    ///
    /// # Errors
    /// When the table cannot be closed.
    pub fn finish(self) -> Result<(String, Vec<u8>), FileError> {
        let whole = self.writer.into_inner();
        let whole = whole.map_err(|error| failed(Path::new(&self.name), error))?;
        Ok((self.name, whole))
    }
}

/// Adds the row groups of a Parquet file to another one, without decoding them.
fn splice<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    bytes: Vec<u8>,
) -> Result<(), ParquetError> {
    let bytes = bytes::Bytes::from(bytes);
    let reader = SerializedFileReader::new(bytes.clone())?;
    for from in reader.metadata().row_groups() {
        let mut group = writer.next_row_group()?;
        for column in from.columns() {
            let closed = ColumnCloseResult {
                bytes_written: column.compressed_size().cast_unsigned(),
                rows_written: from.num_rows().cast_unsigned(),
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            group.append_column(&bytes, closed)?;
        }
        group.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_said_is_said_once() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let wrapped = ParquetError::External(Box::new(full));
        let FileError::Io { source, .. } = failed(Path::new("table.parquet"), wrapped) else {
            panic!("an error of the system");
        };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert!(source.source().is_none(), "{source:?}");
    }
}
