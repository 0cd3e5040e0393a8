//! `dictionary.csv`: what every column of every table means.

use std::collections::BTreeSet;
use std::path::Path;

use super::aside::Aside;
use super::piece::quoted;
use super::table::Table;
use crate::error::SddpError;

const FILE: &str = "dictionary.csv";

/// Writes the dictionary of these tables, which are all there are below `part` of the directory. Those that
/// an earlier dictionary names there and this one does not are removed: results are those of one run.
pub(super) fn write(
    directory: &Path,
    part: &str,
    tables: &[Table],
    csv: bool,
) -> Result<(), SddpError> {
    let place = directory.join(FILE);
    let earlier = std::fs::read_to_string(&place).unwrap_or_default();
    let (replaced, kept): (Vec<&str>, Vec<&str>) = earlier
        .lines()
        .skip(1)
        .partition(|line| line.starts_with(part));
    let replaced = replaced.iter().filter_map(|line| line.split(',').next());
    let replaced: BTreeSet<&str> = replaced
        .filter_map(|file| file.strip_suffix(".parquet"))
        .collect();
    for name in replaced {
        let again = tables.iter().any(|table| table.name == name);
        for (ending, gone) in [("parquet", !again), ("csv", !again || !csv)] {
            let file = directory.join(format!("{name}.{ending}"));
            if gone && file.exists() {
                std::fs::remove_file(&file).map_err(SddpError::io("remove", &file))?;
            }
        }
    }
    let mut file = Aside::create(&place)?;
    file.write(b"file,column,unit,meaning\n")?;
    for line in kept {
        file.write(format!("{line}\n").as_bytes())?;
    }
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
