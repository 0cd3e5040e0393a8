//! The files of a policy: what it belongs to, and its cuts as the modeller's sense has them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use cobre_files::{FileError, Most, TableError, Values, WholeFile};
use cobre_results::layout::cuts::{COLUMNS, NAME, schema, slope};
use cobre_results::layout::{MANIFEST, POLICY_FILES};
use cobre_results::{Cell, Rows, TableFile, TableSchema, is_cuts, write_json};

use crate::error::SddpError;
use crate::policy::{Manifest, Policy, StoredCut};
use crate::problem::Sense;

const CUTS: &str = POLICY_FILES[1];

fn sense(manifest: &Manifest) -> Option<Sense> {
    let senses = [Sense::Minimize, Sense::Maximize];
    senses
        .into_iter()
        .find(|sense| sense.name() == manifest.sense)
}

/// Writes a policy into a directory, which is made if it is not there. A policy that is there is replaced.
///
/// # Errors
/// When files are there that are no policy's, and when a file cannot be written.
pub fn write(directory: &Path, policy: &Policy) -> Result<(), SddpError> {
    let cuts = directory.join(CUTS);
    let is_foreign = |name: &&str| {
        let is_there = directory.join(name).symlink_metadata().is_ok();
        is_there && (!is_policy(directory) || (*name == CUTS && !is_cuts(&cuts)))
    };
    if let Some(name) = POLICY_FILES.into_iter().find(is_foreign) {
        return Err(FileError::foreign(directory.join(name), "is there already").into());
    }
    policy.check().map_err(SddpError::Misfit)?;
    std::fs::create_dir_all(directory).map_err(SddpError::io("create the directory", directory))?;
    let (table, rows) = table(NAME, policy);
    let open = |name: &str| WholeFile::create(&directory.join(name));
    let mut file = TableFile::create(table, false, open)?;
    file.append(&rows)?;
    file.finish()?;
    Ok(write_json(open(MANIFEST)?, &manifest(&policy.manifest)?)?)
}

/// True if a directory holds the files of a policy: its manifest is one.
pub(super) fn is_policy(directory: &Path) -> bool {
    let text = cobre_files::read_text(&directory.join(MANIFEST)).ok();
    text.is_some_and(|text| serde_json::from_str::<Manifest>(&text).is_ok())
}

/// The cuts, as the modeller's sense has them.
pub(super) fn table(name: &'static str, policy: &Policy) -> (TableSchema, Rows) {
    let manifest = &policy.manifest;
    let states = manifest.states.iter().map(|state| state.name.as_str());
    let table = schema(name, states);
    let mut rows = Rows::new(&table);
    let sign = sense(manifest).map_or(1.0, Sense::sign);
    for (name, cuts) in manifest.nodes.iter().zip(&policy.cuts) {
        for cut in cuts {
            let (iteration, pass) = manifest.iteration_and_pass(cut.slot);
            let mut row: Vec<Cell<'_>> = vec![
                name.as_str().into(),
                Cell::Integer(iteration),
                Cell::Integer(pass),
                (sign * cut.intercept).into(),
            ];
            let slopes = cut.gradient.iter();
            row.extend(slopes.map(|slope| Cell::Number(sign * slope)));
            rows.push(&row);
        }
    }
    (table, rows)
}

/// The text of what a policy belongs to.
pub(super) fn manifest(manifest: &Manifest) -> Result<serde_json::Value, SddpError> {
    let written = serde_json::to_value(manifest);
    written.map_err(|error| SddpError::io("write", MANIFEST)(io::Error::other(error)))
}

/// Reads a policy from the directory that [`write()`] wrote, and checks its fingerprint.
///
/// # Errors
/// When a file cannot be read, or is not what a policy is made of.
pub fn read(directory: &Path) -> Result<Policy, SddpError> {
    let place = directory.join(MANIFEST);
    let wrong = |problem: String| {
        let error = io::Error::new(io::ErrorKind::InvalidData, problem);
        SddpError::io("read the policy in", directory)(error)
    };
    let text = cobre_files::read(&place, cobre_files::MOST_TEXT_BYTES);
    let text = text.map_err(SddpError::io("read", &place))?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
    if manifest.format != Manifest::FORMAT {
        let found = manifest.format;
        return Err(wrong(format!(
            "its layout has version {found}; this program reads {}",
            Manifest::FORMAT
        )));
    }
    let place = directory.join(CUTS);
    let file = cobre_files::open(&place).map_err(SddpError::io("read", &place))?;
    let cuts = cuts(file, &manifest).map_err(|problem| wrong(format!("{CUTS}: {problem}")))?;
    let policy = Policy { manifest, cuts };
    policy
        .check()
        .map_err(|problem| wrong(format!("{CUTS}: {problem}")))?;
    if policy.sha256() != policy.manifest.sha256 {
        return Err(wrong(format!(
            "{CUTS} does not belong to {MANIFEST}: their fingerprints differ"
        )));
    }
    Ok(policy)
}

/// Bytes of cuts that are read from a file of any size, and for each of its bytes.
const FREE_BYTES: u64 = 64 << 20;
const BYTES_PER_BYTE: u64 = 256;

/// The cuts in a file, by node.
fn cuts(file: File, manifest: &Manifest) -> Result<Vec<Vec<StoredCut>>, String> {
    let told = |error: TableError| error.to_string();
    let sign = sense(manifest)
        .ok_or_else(|| format!("sense {} is neither min nor max", manifest.sense))?
        .sign();
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let columns = (COLUMNS.len() + manifest.states.len()) as u64;
    let most = (FREE_BYTES + length.saturating_mul(BYTES_PER_BYTE)) / (columns * 8);
    let rows = Most::Rows(most.min(manifest.cuts as u64));
    let table = cobre_files::Table::open(file, rows).map_err(told)?;
    check_columns(&table, manifest)?;
    let integers = |column: usize| match table.read_all(column).map_err(told)?.values {
        Values::Integers(values) => Ok(values),
        _ => Err(format!(
            "column {}: whole numbers are expected",
            COLUMNS[column]
        )),
    };
    let numbers = |column: usize| match table.read_all(column).map_err(told)?.values {
        Values::Numbers(values) => Ok(values),
        _ => Err(format!(
            "column {}: numbers are expected",
            table.columns()[column].name
        )),
    };
    let Values::Texts(nodes) = table.read_all(0).map_err(told)?.values else {
        return Err(format!("column {}: texts are expected", COLUMNS[0]));
    };
    let (iterations, passes) = (integers(1)?, integers(2)?);
    let intercepts = numbers(3)?;
    let states = (0..manifest.states.len()).map(|state| numbers(COLUMNS.len() + state));
    let slopes: Vec<Vec<f64>> = states.collect::<Result<_, _>>()?;
    let places = manifest.nodes.iter().zip(0..);
    let places: HashMap<&str, usize> = places.map(|(name, place)| (name.as_str(), place)).collect();
    let mut found: Vec<Vec<StoredCut>> = vec![Vec::new(); manifest.nodes.len()];
    for (row, node) in nodes.iter().enumerate() {
        let wrong = |what: &str| format!("row {}: {what}", row + 1);
        let node = places.get(node.as_str());
        let node = node.ok_or_else(|| wrong("a node that the manifest does not have"))?;
        let slot = manifest.slot(iterations[row], passes[row]);
        found[*node].push(StoredCut {
            slot: slot.ok_or_else(|| wrong("an iteration or pass that cannot be"))?,
            intercept: sign * intercepts[row],
            gradient: slopes.iter().map(|slopes| sign * slopes[row]).collect(),
        });
    }
    Ok(found)
}

/// Checks that a file has the columns of a policy's cuts, and no others.
fn check_columns(table: &cobre_files::Table, manifest: &Manifest) -> Result<(), String> {
    let slopes = manifest.states.iter().map(|state| slope(&state.name));
    let expected = COLUMNS.into_iter().map(str::to_owned).chain(slopes);
    let expected: Vec<String> = expected.collect();
    let found: Vec<&str> = table
        .columns()
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    if let Some(name) = found
        .iter()
        .find(|name| !expected.iter().any(|known| known == *name))
    {
        return Err(format!(
            "column {name}: it is none of a policy with these states"
        ));
    }
    match expected
        .iter()
        .zip(&found)
        .find(|(expected, found)| expected != *found)
    {
        Some((expected, _)) => Err(format!("column {expected}: it is not in its place")),
        None if found.len() == expected.len() => Ok(()),
        None => Err("it has not as many columns as the manifest has states".to_owned()),
    }
}
