//! `dictionary.csv`: what every column of every table means.

use std::collections::BTreeSet;
use std::path::Path;

use super::aside::Aside;
use super::piece::quoted;
use super::table::Table;
use crate::error::SddpError;

const FILE: &str = "dictionary.csv";

/// Writes the dictionary of these tables. Tables that the dictionary of an earlier run in this directory
/// names and this one does not are removed: results are those of one run.
pub(super) fn write(directory: &Path, tables: &[Table], csv: bool) -> Result<(), SddpError> {
    let place = directory.join(FILE);
    let earlier = std::fs::read_to_string(&place).unwrap_or_default();
    let earlier = earlier
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next());
    let earlier: BTreeSet<&str> = earlier
        .filter_map(|file| file.strip_suffix(".parquet"))
        .collect();
    for name in earlier {
        let kept = tables.iter().any(|table| table.name == name);
        for (ending, gone) in [("parquet", !kept), ("csv", !kept || !csv)] {
            let file = directory.join(format!("{name}.{ending}"));
            if gone && file.exists() {
                std::fs::remove_file(&file).map_err(SddpError::io("remove", &file))?;
            }
        }
    }
    let mut file = Aside::create(&place)?;
    file.write(b"file,column,unit,meaning\n")?;
    for table in tables {
        for column in &table.columns {
            let line = format!(
                "{},{},{},{}\n",
                quoted(&format!("{}.parquet", table.name)),
                quoted(&column.name),
                quoted(column.unit),
                quoted(&column.meaning)
            );
            file.write(line.as_bytes())?;
        }
    }
    file.finish()
}
