//! `dictionary.csv`: what every column of every table means.

use cobre_files::WholeFile;

use super::row_group::quoted;
use super::table::Table;
use crate::error::SddpError;

pub(super) const FILE: &str = "dictionary.csv";
/// Its first line.
pub(super) const HEADER: &str = "file,column,unit,meaning";

/// Writes the dictionary of these tables.
pub(super) fn write(mut file: WholeFile, tables: &[Table]) -> Result<(), SddpError> {
    file.write(HEADER.as_bytes())?;
    file.write(b"\n")?;
    for table in tables {
        for column in &table.columns {
            let line = format!(
                "{},{},{},{}\n",
                quoted(&table.file("parquet")),
                quoted(&column.name),
                quoted(column.unit),
                quoted(&column.meaning)
            );
            file.write(line.as_bytes())?;
        }
    }
    Ok(file.finish()?)
}
