//! The files of a table: Parquet, and CSV beside it if that is wanted.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use cobre_files::WholeFile;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::row_group::{self, RowGroup};
use super::table::{Rows, Table};
use crate::error::SddpError;

/// The files of a table in the making.
pub(crate) struct TableFile {
    table: Table,
    whole: WholeFile,
    writer: SerializedFileWriter<File>,
    csv: Option<WholeFile>,
}

impl TableFile {
    /// Starts the files of a table; `open` starts the file of a name.
    pub(super) fn create(
        table: Table,
        csv: bool,
        mut open: impl FnMut(&str) -> Result<WholeFile, SddpError>,
    ) -> Result<Self, SddpError> {
        let whole = open(&table.file("parquet"))?;
        let handle = whole.handle()?;
        let start = || -> Result<_, ParquetError> {
            SerializedFileWriter::new(handle, row_group::schema(&table)?, row_group::properties()?)
        };
        let writer = start().map_err(|error| failed(whole.place(), error))?;
        let csv = csv.then(|| -> Result<_, SddpError> {
            let mut csv = open(&table.file("csv"))?;
            csv.write(row_group::header(&table).as_bytes())?;
            Ok(csv)
        });
        Ok(Self {
            whole,
            writer,
            csv: csv.transpose()?,
            table,
        })
    }

    /// Adds rows.
    pub(super) fn append(&mut self, rows: &Rows) -> Result<(), SddpError> {
        let row_group = RowGroup::new(&self.table, rows, self.csv.is_some());
        self.splice(row_group.map_err(|error| failed(self.whole.place(), error))?)
    }

    /// Adds rows that are encoded already.
    pub(crate) fn splice(&mut self, row_group: RowGroup) -> Result<(), SddpError> {
        let spliced = splice(&mut self.writer, row_group.parquet);
        spliced.map_err(|error| failed(self.whole.place(), error))?;
        match &mut self.csv {
            Some(csv) => Ok(csv.write(row_group.csv.as_bytes())?),
            None => Ok(()),
        }
    }

    /// Puts the files in their places; says which table it was.
    pub(super) fn finish(self) -> Result<Table, SddpError> {
        let closed = self.writer.close();
        closed.map_err(|error| failed(self.whole.place(), error))?;
        self.whole.finish()?;
        self.csv.map_or(Ok(()), WholeFile::finish)?;
        Ok(self.table)
    }
}

/// A table in the making that goes to no file.
pub(crate) struct MemoryTable {
    name: String,
    writer: SerializedFileWriter<Vec<u8>>,
}

impl MemoryTable {
    /// Starts the table.
    pub(crate) fn new(table: &Table) -> Result<Self, SddpError> {
        let start = || -> Result<_, ParquetError> {
            let (schema, properties) = (row_group::schema(table)?, row_group::properties()?);
            SerializedFileWriter::new(Vec::new(), schema, properties)
        };
        let writer = start().map_err(|error| failed(Path::new(&*table.name), error))?;
        Ok(Self {
            name: table.name.clone().into_owned(),
            writer,
        })
    }

    /// Adds rows that are encoded already.
    pub(crate) fn splice(&mut self, row_group: RowGroup) -> Result<(), SddpError> {
        let spliced = splice(&mut self.writer, row_group.parquet);
        spliced.map_err(|error| failed(Path::new(&self.name), error))
    }

    /// Its name, and the bytes that its file would have.
    pub(crate) fn finish(self) -> Result<(String, Vec<u8>), SddpError> {
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

fn failed(place: &Path, error: ParquetError) -> SddpError {
    SddpError::io("write", place)(std::io::Error::other(error))
}
