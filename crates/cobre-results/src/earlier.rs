//! Results of versions that kept no register, recognised by their manifests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use cobre_files::{Most, Register, Table};
use serde_json::Value;

use crate::dictionary;
use crate::layout::{
    self, DICTIONARY, MANIFEST, POLICY, REPORT, REPORT_MARK, RUN, convergence, cuts, timings,
};
use crate::writer::{Proofs, TRAINING_TABLES};

/// The most bytes of a manifest that are read.
const LARGEST: u64 = 64 << 20;

/// Adds to the register of a directory on which no run is what is proved to be a run's.
pub(crate) fn adopt(register: &mut Register, proofs: &Proofs) {
    let known = TRAINING_TABLES.map(layout::parquet);
    if known.iter().any(|name| register.holds(name)) {
        return;
    }
    let directory = register.directory().to_owned();
    let run = read(&directory.join(RUN)).is_some_and(|text| is_run(&text));
    let policy = (proofs.is_policy)(&directory.join(POLICY));
    if !run && !policy && !(proofs.has_checkpoint)(&directory) {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    names.extend(run.then(|| RUN.to_owned()));
    if policy {
        names.push(layout::in_policy(MANIFEST));
        let table = layout::parquet(cuts::TABLE);
        names.extend(is_cuts(&directory.join(&table)).then_some(table));
    }
    let schemas = [convergence::schema(), timings::schema()];
    for (name, schema) in known.iter().zip(schemas) {
        let columns: Vec<&str> = schema.columns.iter().map(|column| &*column.name).collect();
        let is_own = has_columns(&directory.join(name), |found| found == columns);
        names.extend(is_own.then(|| name.clone()));
    }
    names.extend(explained(&directory));
    let page = read(&directory.join(REPORT));
    let page = page.map(|text| String::from_utf8_lossy(&text).into_owned());
    if page.is_some_and(|page| page.contains(REPORT_MARK)) {
        names.push(REPORT.to_owned());
    }
    let is_file = |name: &String| {
        let found = directory.join(name).symlink_metadata();
        found.is_ok_and(|found| found.is_file())
    };
    names
        .into_iter()
        .filter(is_file)
        .for_each(|name| register.adopt(name));
}

/// The dictionary of a directory, and the files of the tables that it explains.
fn explained(directory: &Path) -> Vec<String> {
    let text = read(&directory.join(DICTIONARY));
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let Some(tables) = text.as_deref().and_then(tables) else {
        return Vec::new();
    };
    let mut names = vec![DICTIONARY.to_owned()];
    for (table, columns) in tables {
        let parquet = layout::parquet(table);
        // A name with a comma or a quote is quoted in the dictionary.
        let is_own = has_columns(&directory.join(&parquet), |found| {
            found.len() == columns.len()
        });
        names.extend(is_own.then_some(parquet));
        let csv = layout::csv(table);
        if first_line(&directory.join(&csv)) == Some(columns.join(",")) {
            names.push(csv);
        }
    }
    names
}

/// The tables that a dictionary explains, with their columns.
fn tables(text: &str) -> Option<BTreeMap<&str, Vec<&str>>> {
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, column) in dictionary::entries(text)? {
        if let Some(table) = layout::table_in(file).filter(|name| is_table(name)) {
            tables.entry(table).or_default().extend(column);
        }
    }
    Some(tables)
}

/// True if a file is a table of cuts.
pub fn is_cuts(place: &Path) -> bool {
    has_columns(place, |found| found.starts_with(&cuts::COLUMNS))
}

/// True if a file is a Parquet table whose columns have such names.
fn has_columns(place: &Path, is_own: impl FnOnce(&[&str]) -> bool) -> bool {
    let is_file = place.symlink_metadata().is_ok_and(|found| found.is_file());
    let file = is_file.then(|| cobre_files::open(place).ok()).flatten();
    let table = file.and_then(|file| Table::open(file, Most::Written).ok());
    table.is_some_and(|table| {
        let columns = table.columns().iter();
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        is_own(&names)
    })
}

fn is_run(text: &[u8]) -> bool {
    let run: Value = serde_json::from_slice(text).unwrap_or_default();
    run["cobre"].is_string() && run["format"].is_u64() && run["policy_sha256"].is_string()
}

/// True if a text is the name of a table.
fn is_table(name: &str) -> bool {
    let plain = |part: &str| part.chars().all(|letter| matches!(letter, 'a'..='z' | '_'));
    let parts = name.split_once('/');
    parts.is_some_and(|(directory, file)| layout::DIRECTORIES.contains(&directory) && plain(file))
}

fn read(place: &Path) -> Option<Vec<u8>> {
    // A link is not followed.
    let found = place.symlink_metadata().ok()?;
    if !found.is_file() {
        return None;
    }
    cobre_files::read(place, LARGEST).ok()
}

fn first_line(place: &Path) -> Option<String> {
    let mut line = Vec::new();
    let file = cobre_files::open(place).ok()?.take(1 << 20);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    Some(line.strip_suffix('\n')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_name_no_files() {
        let text = "file,column,unit,meaning\n\
             simulation/buses.parquet,\"x\n../mine.parquet,\",,\"a, b\"\nsimulation/buses.parquet,y,,\n\
             ../mine.parquet,z,,\n/etc/passwd.parquet,z,,\n";
        let found = tables(text).expect("a dictionary");
        let names: Vec<&str> = found.into_keys().collect();
        assert_eq!(names, ["simulation/buses"]);
        assert_eq!(tables("name,meaning\n"), None);
    }
}
