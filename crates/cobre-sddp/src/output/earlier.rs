//! Results of versions that kept no register, recognised by their manifests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use cobre_files::{Most, Register, Table};
use serde_json::Value;

use super::{DIRECTORIES, POLICY, RUN, dictionary, policy, training};

/// The most bytes of a manifest that are read.
const LARGEST: u64 = 64 << 20;
/// The page that `cobre report` writes unless told otherwise, and how it is known.
const PAGE: (&str, &str) = ("report.html", "<meta name=\"generator\" content=\"cobre ");

/// Adds to the register of a directory on which no run is what is proved to be a run's.
pub(super) fn adopt(register: &mut Register) {
    let known = training::NAMES.map(|table| format!("{table}.parquet"));
    if known.iter().any(|name| register.holds(name)) {
        return;
    }
    let directory = register.directory().to_owned();
    let run = read(&directory.join(RUN)).is_some_and(|text| is_run(&text));
    let policy = policy::is_policy(&directory.join(POLICY));
    if !run && !policy && !crate::checkpoint::exists(&directory) {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    names.extend(run.then(|| RUN.to_owned()));
    if policy {
        names.push(format!("{POLICY}/{}", policy::MANIFEST));
        let cuts = format!("{}.parquet", policy::TABLE);
        names.extend(policy::is_cuts(&directory.join(&cuts)).then_some(cuts));
    }
    for (name, columns) in known.iter().zip(training::columns()) {
        let columns: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let is_own = has_columns(&directory.join(name), |found| found == columns);
        names.extend(is_own.then(|| name.clone()));
    }
    let text = read(&directory.join(dictionary::FILE));
    let text = text.and_then(|text| String::from_utf8(text).ok());
    if let Some(columns) = text.as_deref().and_then(tables) {
        names.push(dictionary::FILE.to_owned());
        for (table, columns) in columns {
            let parquet = format!("{table}.parquet");
            // A name with a comma or a quote is quoted in the dictionary.
            let is_own = has_columns(&directory.join(&parquet), |found| {
                found.len() == columns.len()
            });
            names.extend(is_own.then_some(parquet));
            let csv = format!("{table}.csv");
            if first_line(&directory.join(&csv)) == Some(columns.join(",")) {
                names.push(csv);
            }
        }
    }
    let page =
        read(&directory.join(PAGE.0)).map(|text| String::from_utf8_lossy(&text).into_owned());
    if page.is_some_and(|page| page.contains(PAGE.1)) {
        names.push(PAGE.0.to_owned());
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

/// True if a file is a Parquet table whose columns have such names.
pub(super) fn has_columns(place: &Path, is_own: impl FnOnce(&[&str]) -> bool) -> bool {
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

/// The tables that a dictionary has, with their columns as CSV files name them; none if it is no dictionary.
fn tables(text: &str) -> Option<BTreeMap<&str, Vec<&str>>> {
    let text = text.strip_prefix(dictionary::HEADER)?.strip_prefix('\n')?;
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in unquoted(text, '\n') {
        let mut cells = unquoted(row, ',');
        let (file, column) = (cells.next().unwrap_or_default(), cells.next());
        let Some(table) = file.strip_suffix(".parquet").filter(|name| is_table(name)) else {
            continue;
        };
        tables.entry(table).or_default().extend(column);
    }
    Some(tables)
}

/// The parts of a text between separators that are not inside quotes.
fn unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |letter: char| {
        quoted ^= letter == '"';
        letter == separator && !quoted
    })
}

/// True if a text is the name of a table.
fn is_table(name: &str) -> bool {
    let plain = |part: &str| part.chars().all(|letter| matches!(letter, 'a'..='z' | '_'));
    let parts = name.split_once('/');
    parts.is_some_and(|(directory, file)| DIRECTORIES.contains(&directory) && plain(file))
}

fn read(place: &Path) -> Option<Vec<u8>> {
    let found = place.symlink_metadata().ok()?;
    if !found.is_file() || found.len() > LARGEST {
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
        let text = format!(
            "{}\nsimulation/buses.parquet,\"x\n../mine.parquet,\",,\"a, b\"\nsimulation/buses.parquet,y,,\n\
             ../mine.parquet,z,,\n/etc/passwd.parquet,z,,\n",
            dictionary::HEADER
        );
        let found = tables(&text).expect("a dictionary");
        let columns = vec!["\"x\n../mine.parquet,\"", "y"];
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("simulation/buses", columns)]
        );
        assert_eq!(tables("name,meaning\n"), None);
    }
}
