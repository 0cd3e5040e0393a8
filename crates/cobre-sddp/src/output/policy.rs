//! The files of a policy: what it belongs to, and its cuts as the modeller's sense has them.

use std::io;
use std::path::Path;

use cobre_files::{FileError, WholeFile};
use cobre_results::layout::cuts::{COLUMNS, NAME, schema};
use cobre_results::layout::{MANIFEST, POLICY_FILES};
use cobre_results::{Cell, Rows, TableFile, TableSchema, is_cuts, write_json};

use super::policy_file::{PolicyFile, damaged};
use crate::error::SddpError;
use crate::policy::{Manifest, Policy, StoredCut};
use crate::problem::Sense;

pub(super) const CUTS: &str = POLICY_FILES[1];
/// Numbers of cuts that are encoded at a time: the most of a row group.
const PIECE_CELLS: usize = 1 << 21;

pub(super) fn sense(manifest: &Manifest) -> Option<Sense> {
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
    cobre_files::make_directories(directory)?;
    let table = cuts_schema(NAME, &policy.manifest);
    let open = |name: &str| WholeFile::create(&directory.join(name));
    let mut file = TableFile::create(table.clone(), false, open)?;
    for rows in pieces(&table, policy) {
        file.append(&rows)?;
    }
    file.finish()?;
    Ok(write_json(open(MANIFEST)?, &manifest(&policy.manifest)?)?)
}

/// True if a directory holds the files of a policy: its manifest is one.
pub(super) fn is_policy(directory: &Path) -> bool {
    let text = cobre_files::read_text(&directory.join(MANIFEST)).ok();
    text.is_some_and(|text| serde_json::from_str::<Manifest>(&text).is_ok())
}

/// The table of the cuts of a policy.
pub(super) fn cuts_schema(name: &'static str, manifest: &Manifest) -> TableSchema {
    schema(
        name,
        manifest.states.iter().map(|state| state.name.as_str()),
    )
}

/// The cuts, as the modeller's sense has them, in pieces of at most [`PIECE_CELLS`] numbers; at least one piece.
pub(super) fn pieces<'p>(
    schema: &'p TableSchema,
    policy: &'p Policy,
) -> impl Iterator<Item = Rows> + use<'p> {
    let manifest = &policy.manifest;
    let columns = COLUMNS.len() + manifest.states.len();
    let nodes = manifest.nodes.iter().zip(&policy.cuts);
    let mut cuts = nodes
        .flat_map(|(name, cuts)| cuts.iter().map(move |cut| (name, cut)))
        .peekable();
    let mut is_first = true;
    std::iter::from_fn(move || {
        if !std::mem::take(&mut is_first) && cuts.peek().is_none() {
            return None;
        }
        let mut rows = Rows::new(schema);
        for (name, cut) in cuts.by_ref().take((PIECE_CELLS / columns).max(1)) {
            push(&mut rows, manifest, name, cut);
        }
        Some(rows)
    })
}

/// Adds a cut to rows.
fn push(rows: &mut Rows, manifest: &Manifest, node: &str, cut: &StoredCut) {
    let sign = sense(manifest).map_or(1.0, Sense::sign);
    let (iteration, pass) = manifest.iteration_and_pass(cut.slot);
    let mut row: Vec<Cell<'_>> = vec![
        node.into(),
        Cell::Integer(iteration),
        Cell::Integer(pass),
        (sign * cut.intercept).into(),
    ];
    let slopes = cut.gradient.iter();
    row.extend(slopes.map(|slope| Cell::Number(sign * slope)));
    rows.push(&row);
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
    let file = PolicyFile::open_unchecked(directory)?;
    let nodes = 0..file.manifest().nodes.len();
    let cuts = nodes
        .map(|node| file.cuts(node))
        .collect::<Result<_, _>>()?;
    let manifest = file.manifest().clone();
    let policy = Policy { manifest, cuts };
    policy.check().map_err(|problem| file.wrong(&problem))?;
    file.check_fingerprint(&policy.sha256())?;
    Ok(policy)
}

/// Reads the manifest of a policy from the directory that [`write()`] wrote.
///
/// # Errors
/// When the file cannot be read, or is none of a policy.
pub fn read_manifest(directory: &Path) -> Result<Manifest, SddpError> {
    let place = directory.join(MANIFEST);
    let wrong = |problem: &str| damaged(directory, problem);
    let text = cobre_files::read(&place, cobre_files::MOST_TEXT_BYTES);
    let text = text.map_err(SddpError::io("read", &place))?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| wrong(&format!("{MANIFEST}: {error}")))?;
    if manifest.format != Manifest::FORMAT {
        let found = manifest.format;
        return Err(wrong(&format!(
            "its layout has version {found}; this program reads {}",
            Manifest::FORMAT
        )));
    }
    Ok(manifest)
}
