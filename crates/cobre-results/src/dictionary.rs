//! `dictionary.csv`: the meaning of every column of every table.

use cobre_files::{FileError, WholeFile};

use crate::csv::{quoted, split};
use crate::layout;
use crate::schema::TableSchema;

/// Its first line.
const HEADER: &str = "file,column,unit,meaning";

/// Writes the dictionary of these tables.
pub(crate) fn write(mut file: WholeFile, tables: &[TableSchema]) -> Result<(), FileError> {
    file.write(HEADER.as_bytes())?;
    file.write(b"\n")?;
    for table in tables {
        for column in &table.columns {
            let line = format!(
                "{},{},{},{}\n",
                quoted(&layout::parquet(&table.name)),
                quoted(&column.name),
                quoted(column.unit),
                quoted(&column.meaning)
            );
            file.write(line.as_bytes())?;
        }
    }
    file.finish()
}

/// A row of a dictionary: a file, and a column as CSV files name it.
pub(crate) type Entry<'a> = (&'a str, Option<&'a str>);

/// The rows of a dictionary; none if its first line is another.
pub(crate) fn entries(text: &str) -> Option<impl Iterator<Item = Entry<'_>>> {
    let rows = text.strip_prefix(HEADER)?.strip_prefix('\n')?;
    let rows = split(rows, '\n').filter(|row| !row.is_empty());
    Some(rows.map(|row| {
        let mut cells = split(row, ',');
        (cells.next().unwrap_or_default(), cells.next())
    }))
}

/// The tables of a dictionary in order, or what is wrong with it.
pub(crate) fn tables(text: &str) -> Result<Vec<String>, String> {
    let entries = entries(text).ok_or_else(|| format!("its first line is not {HEADER}"))?;
    if !text.ends_with('\n') {
        return Err("its end is missing".to_owned());
    }
    let mut tables: Vec<String> = Vec::new();
    for (file, _) in entries {
        let name = layout::table_in(file);
        let name = name.ok_or_else(|| format!("{file:?} is not the name of a table"))?;
        if tables.last().is_none_or(|last| last != name) {
            tables.push(name.to_owned());
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_that_is_cut_off_or_of_something_else_is_refused() {
        let sound = "file,column,unit,meaning\na/b.parquet,\"x,\ny\",,z\na/b.parquet,y,,z\nc.parquet,y,,z\n";
        assert_eq!(tables(sound), Ok(vec!["a/b".to_owned(), "c".to_owned()]));
        for (text, what) in [
            (&sound[..sound.len() - 1], "end is missing"),
            ("file,column\na.parquet,b\n", "first line"),
            ("file,column,unit,meaning\nnotes.txt,b,,\n", "notes.txt"),
        ] {
            let error = tables(text).expect_err(text);
            assert!(error.contains(what), "{error}");
        }
    }
}
