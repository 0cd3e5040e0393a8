//! The files of a table: Parquet, and CSV beside it if that is wanted.

use std::fs::File;
use std::path::Path;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::aside::Aside;
use super::piece::{self, Piece};
use super::table::{Rows, Table};
use crate::error::SddpError;

/// The files of a table in the making.
pub(crate) struct TableFile {
    table: Table,
    aside: Aside,
    writer: SerializedFileWriter<File>,
    csv: Option<Aside>,
}

impl TableFile {
    /// Starts the files of a table below `directory`.
    pub(super) fn create(directory: &Path, table: Table, csv: bool) -> Result<Self, SddpError> {
        let place = |ending: &str| directory.join(format!("{}.{ending}", table.name));
        let aside = Aside::create(&place("parquet"))?;
        let handle = aside.handle()?;
        let open = || -> Result<_, ParquetError> {
            SerializedFileWriter::new(handle, piece::schema(&table)?, piece::properties()?)
        };
        let writer = open().map_err(|error| failed(aside.place(), error))?;
        let csv = csv.then(|| -> Result<_, SddpError> {
            let mut csv = Aside::create(&place("csv"))?;
            csv.write(piece::header(&table).as_bytes())?;
            Ok(csv)
        });
        Ok(Self {
            aside,
            writer,
            csv: csv.transpose()?,
            table,
        })
    }

    /// Adds rows.
    pub(super) fn append(&mut self, rows: &Rows) -> Result<(), SddpError> {
        let piece = Piece::new(&self.table, rows, self.csv.is_some());
        self.splice(piece.map_err(|error| failed(self.aside.place(), error))?)
    }

    /// Adds rows that are encoded already.
    pub(crate) fn splice(&mut self, piece: Piece) -> Result<(), SddpError> {
        let spliced = self.splice_parquet(piece.parquet);
        spliced.map_err(|error| failed(self.aside.place(), error))?;
        match &mut self.csv {
            Some(csv) => csv.write(piece.csv.as_bytes()),
            None => Ok(()),
        }
    }

    fn splice_parquet(&mut self, bytes: Vec<u8>) -> Result<(), ParquetError> {
        let bytes = bytes::Bytes::from(bytes);
        let reader = SerializedFileReader::new(bytes.clone())?;
        for from in reader.metadata().row_groups() {
            let mut group = self.writer.next_row_group()?;
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

    /// Puts the files in their places; says which table it was.
    pub(super) fn finish(self) -> Result<Table, SddpError> {
        let closed = self.writer.close();
        closed.map_err(|error| failed(self.aside.place(), error))?;
        self.aside.finish()?;
        self.csv.map_or(Ok(()), Aside::finish)?;
        Ok(self.table)
    }
}

fn failed(place: &Path, error: ParquetError) -> SddpError {
    SddpError::io("write", place)(std::io::Error::other(error))
}
