//! `dictionary.csv`: what every column of every table means.

use std::collections::BTreeSet;
use std::path::Path;

use super::DIRECTORIES;
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
        .filter(|name| is_table(name))
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

/// True if a text is the name of a table. Anything else is part of a name that a modeller gave to a
/// column, and must not decide which files are removed.
fn is_table(name: &str) -> bool {
    let plain = |part: &str| part.chars().all(|letter| matches!(letter, 'a'..='z' | '_'));
    let parts = name.split_once('/');
    parts.is_some_and(|(directory, file)| DIRECTORIES.contains(&directory) && plain(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Column, Kind};

    #[test]
    fn names_of_columns_remove_no_files() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("results");
        std::fs::create_dir_all(directory.join("simulation")).expect("a directory");
        let (stale, own) = ("simulation/buses.parquet", "mine.parquet");
        std::fs::write(directory.join(stale), "old").expect("a file");
        std::fs::write(root.path().join(own), "precious").expect("a file");
        let table = |name: &'static str| {
            let hostile = format!("x\n../{own},");
            Table::new(name, vec![Column::new(hostile, Kind::Number, "")])
        };
        write(&directory, &[table("simulation/buses")], false).expect("it is written");
        write(&directory, &[table("simulation/costs")], false).expect("it is written");
        assert!(root.path().join(own).exists(), "a name removed a file");
        assert!(!directory.join(stale).exists(), "an earlier table is left");
    }
}
