//! The files of a policy: what it belongs to, and its cuts as the modeller's sense has them.

use std::fs::File;
use std::io;
use std::path::Path;

use cobre_files::{FileError, WholeFile};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use super::{Cell, Column, Kind, Rows, Table, TableFile, write_json};
use crate::error::SddpError;
use crate::policy::{Manifest, Policy, StoredCut};
use crate::problem::Sense;

pub(super) const MANIFEST: &str = "manifest.json";
const CUTS: &str = "cuts.parquet";
/// The files of a policy.
pub(super) const NAMES: [&str; 2] = [MANIFEST, CUTS];
/// The table of cuts among the results of a run.
pub(super) const TABLE: &str = "policy/cuts";
/// The columns before the slopes, one of which each state has.
const COLUMNS: [&str; 4] = ["node", "iteration", "pass", "intercept"];

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
    let there = |name: &&str| directory.join(name).symlink_metadata().is_ok();
    if let Some(name) = NAMES.into_iter().find(there)
        && !is_policy(directory)
    {
        return Err(FileError::foreign(directory.join(name), "is there already").into());
    }
    std::fs::create_dir_all(directory).map_err(SddpError::io("create the directory", directory))?;
    let (table, rows) = table("cuts", policy);
    let open = |name: &str| Ok(WholeFile::create(&directory.join(name))?);
    let mut file = TableFile::create(table, false, open)?;
    file.append(&rows)?;
    file.finish()?;
    write_json(open(MANIFEST)?, &manifest(&policy.manifest)?)
}

/// Whether the files of a policy in a directory are a policy's: its manifest is one.
pub(super) fn is_policy(directory: &Path) -> bool {
    let text = std::fs::read(directory.join(MANIFEST)).ok();
    text.is_some_and(|text| serde_json::from_slice::<Manifest>(&text).is_ok())
}

/// The cuts, as the modeller's sense has them.
pub(super) fn table(name: &'static str, policy: &Policy) -> (Table, Rows) {
    let manifest = &policy.manifest;
    let meanings = [
        (Kind::Text, "node whose cost to go the cut is below"),
        (Kind::Integer, "iteration that made it, from 1"),
        (Kind::Integer, "forward pass of that iteration, from 1"),
        (Kind::Number, "value of the cut where all states are zero"),
    ];
    let columns = COLUMNS.into_iter().zip(meanings);
    let columns = columns.map(|(name, (kind, meaning))| Column::new(name, kind, meaning));
    let mut columns: Vec<Column> = columns.collect();
    columns.extend(manifest.states.iter().map(|state| {
        let meaning = format!("how the cut changes with state {}", state.name);
        Column::new(format!("slope:{}", state.name), Kind::Number, meaning)
    }));
    let table = Table::new(name, columns);
    let mut rows = Rows::new(&table);
    let sign = sense(manifest).map_or(1.0, Sense::sign);
    let passes = manifest.forward_passes.max(1) as u32;
    for (name, cuts) in manifest.nodes.iter().zip(&policy.cuts) {
        for cut in cuts {
            let mut row: Vec<Cell<'_>> = vec![
                name.as_str().into(),
                Cell::Integer(i64::from(cut.slot / passes + 1)),
                Cell::Integer(i64::from(cut.slot % passes + 1)),
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
    let text = std::fs::read(&place).map_err(SddpError::io("read", &place))?;
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
    let file = File::open(&place).map_err(SddpError::io("read", &place))?;
    let cuts = cuts(file, &manifest).map_err(|problem| wrong(format!("{CUTS}: {problem}")))?;
    let policy = Policy { manifest, cuts };
    if policy.sha256() != policy.manifest.sha256 {
        return Err(wrong(format!(
            "{CUTS} does not belong to {MANIFEST}: their fingerprints differ"
        )));
    }
    Ok(policy)
}

/// The cuts in a file, by node.
fn cuts(file: File, manifest: &Manifest) -> Result<Vec<Vec<StoredCut>>, String> {
    let told = |error: parquet::errors::ParquetError| error.to_string();
    let sign = sense(manifest)
        .ok_or_else(|| format!("sense {} is neither min nor max", manifest.sense))?
        .sign();
    let passes =
        i64::try_from(manifest.forward_passes.max(1)).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file).map_err(told)?;
    let mut found: Vec<Vec<StoredCut>> = vec![Vec::new(); manifest.nodes.len()];
    for (number, row) in reader.get_row_iter(None).map_err(told)?.enumerate() {
        let row = row.map_err(told)?;
        let wrong = |what: &str| format!("row {}: {what}", number + 1);
        let node = row.get_string(0).map_err(told)?;
        let node = manifest.nodes.iter().position(|name| name == node);
        let node = node.ok_or_else(|| wrong("a node that the manifest does not have"))?;
        let (iteration, pass) = (
            row.get_long(1).map_err(told)?,
            row.get_long(2).map_err(told)?,
        );
        let slot = iteration
            .checked_sub(1)
            .and_then(|before| before.checked_mul(passes)?.checked_add(pass - 1))
            .and_then(|slot| u32::try_from(slot).ok())
            .filter(|_| (1..=passes).contains(&pass))
            .ok_or_else(|| wrong("an iteration or pass that cannot be"))?;
        let mut gradient = Vec::with_capacity(manifest.states.len());
        for state in 0..manifest.states.len() {
            gradient.push(sign * row.get_double(COLUMNS.len() + state).map_err(told)?);
        }
        found[node].push(StoredCut {
            slot,
            intercept: sign * row.get_double(COLUMNS.len() - 1).map_err(told)?,
            gradient,
        });
    }
    Ok(found)
}
