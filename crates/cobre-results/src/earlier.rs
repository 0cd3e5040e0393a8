//! Results of versions that kept no register, recognised by their manifests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use cobre_files::Register;
use serde_json::Value;

use crate::dictionary;
use crate::layout::{self, DICTIONARY, POLICY, POLICY_FILES, REPORT, REPORT_MARK, RUN};
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
        names.extend(POLICY_FILES.map(layout::in_policy));
    }
    names.extend(known);
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
    let Some(entries) = text.as_deref().and_then(dictionary::entries) else {
        return Vec::new();
    };
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, column) in entries {
        if let Some(table) = layout::table_in(file).filter(|name| is_table(name)) {
            tables.entry(table).or_default().extend(column);
        }
    }
    let mut names = vec![DICTIONARY.to_owned()];
    for (table, columns) in tables {
        names.push(layout::parquet(table));
        let csv = layout::csv(table);
        if first_line(&directory.join(&csv)) == Some(columns.join(",")) {
            names.push(csv);
        }
    }
    names
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
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join(DICTIONARY);
        let text = "file,column,unit,meaning\n\
             simulation/buses.parquet,\"x\n../mine.parquet,\",,\"a, b\"\nsimulation/buses.parquet,y,,\n\
             ../mine.parquet,z,,\n/etc/passwd.parquet,z,,\n";
        std::fs::write(&place, text).expect("a file");
        let found = explained(directory.path());
        assert_eq!(found, [DICTIONARY, "simulation/buses.parquet"]);
        std::fs::write(&place, "name,meaning\n").expect("a file");
        assert!(explained(directory.path()).is_empty());
    }
}
