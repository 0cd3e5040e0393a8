//! The files of a policy, whose cuts are read node by node.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cobre_files::{Most, Table, TableError, Values};
use cobre_results::layout::MANIFEST;
use cobre_results::layout::cuts::{COLUMNS, slope};

use super::policy::{CUTS, read_manifest, sense};
use crate::error::SddpError;
use crate::policy::{Manifest, PolicyHasher, StoredCut};
use crate::problem::Sense;

/// Bytes of cuts that are read from a file of any size, and for each of its bytes.
const FREE_BYTES: u64 = 64 << 20;
const BYTES_PER_BYTE: u64 = 256;

/// A policy in its directory. Its cuts stay in their file and are read node by node: one row group of the file is in
/// memory at a time.
pub struct PolicyFile {
    directory: PathBuf,
    manifest: Manifest,
    /// −1 if the policy maximises.
    sign: f64,
    table: Table,
    /// By row group, the node of each row.
    nodes: Vec<Vec<u32>>,
    /// The row group that was read last.
    latest: RefCell<Option<(usize, Rc<CutColumns>)>>,
}

/// The columns of a row group.
struct CutColumns {
    iterations: Vec<i64>,
    passes: Vec<i64>,
    intercepts: Vec<f64>,
    /// By state.
    slopes: Vec<Vec<f64>>,
}

impl fmt::Debug for PolicyFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("PolicyFile");
        shown
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl PolicyFile {
    /// Opens the policy that [`write_policy`](crate::write_policy) wrote to a directory, and checks every number of it
    /// and its fingerprint.
    ///
    /// # Errors
    /// When a file cannot be read, or is not what a policy is made of.
    pub fn open(directory: &Path) -> Result<Self, SddpError> {
        let file = Self::open_unchecked(directory)?;
        let manifest = &file.manifest;
        let counts = (0..manifest.nodes.len()).map(|node| file.count(node));
        let counted = manifest.check_counts(counts);
        counted.map_err(|problem| file.wrong(&problem))?;
        let mut fingerprint = PolicyHasher::of(manifest);
        for node in 0..manifest.nodes.len() {
            let cuts = file.cuts(node)?;
            let checked = manifest.check_cuts(node, &cuts);
            checked.map_err(|problem| file.wrong(&problem))?;
            fingerprint.node_cuts(&cuts);
        }
        file.check_fingerprint(&fingerprint.finish())?;
        *file.latest.borrow_mut() = None;
        Ok(file)
    }

    /// Opens a policy whose cuts are not checked yet.
    pub(super) fn open_unchecked(directory: &Path) -> Result<Self, SddpError> {
        let manifest = read_manifest(directory)?;
        let place = directory.join(CUTS);
        let file = cobre_files::open(&place).map_err(SddpError::io("read", &place))?;
        let length = file.metadata().map_err(SddpError::io("read", &place))?;
        let columns = (COLUMNS.len() + manifest.states.len()) as u64;
        let most = FREE_BYTES + length.len().saturating_mul(BYTES_PER_BYTE);
        let most = (most / (columns * 8)).min(manifest.cuts as u64);
        let parts = || {
            let sign = sense(&manifest).map(Sense::sign);
            let sign =
                sign.ok_or_else(|| format!("sense {} is neither min nor max", manifest.sense))?;
            let table = Table::open(file, Most::Rows(most)).map_err(told)?;
            check_columns(&table, &manifest)?;
            let nodes = nodes(&table, &manifest)?;
            Ok((sign, table, nodes))
        };
        let (sign, table, nodes) =
            parts().map_err(|problem: String| damaged(directory, &format!("{CUTS}: {problem}")))?;
        Ok(Self {
            directory: directory.to_owned(),
            manifest,
            sign,
            table,
            nodes,
            latest: RefCell::new(None),
        })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The number of cuts of a node.
    pub(crate) fn count(&self, node: usize) -> usize {
        let groups = self.nodes.iter();
        let counts = groups.map(|nodes| nodes.iter().filter(|&&at| at as usize == node).count());
        counts.sum()
    }

    /// The cuts of a node, in the order of rows.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub(crate) fn cuts(&self, node: usize) -> Result<Vec<StoredCut>, SddpError> {
        let mut found = Vec::new();
        let mut first = 0;
        for (group, nodes) in self.nodes.iter().enumerate() {
            let rows = nodes.iter().enumerate();
            let mut rows = rows.filter(|(_, at)| **at as usize == node).peekable();
            if rows.peek().is_some() {
                let columns = self.columns(group)?;
                for (row, _) in rows {
                    let cut = columns.cut(row, self);
                    found.push(cut.ok_or_else(|| {
                        let what = "an iteration or pass that cannot be";
                        self.wrong(&format!("row {}: {what}", first + row + 1))
                    })?);
                }
            }
            first += nodes.len();
        }
        Ok(found)
    }

    /// The columns of a row group; another one that is in memory is dropped first.
    fn columns(&self, group: usize) -> Result<Rc<CutColumns>, SddpError> {
        let mut latest = self.latest.borrow_mut();
        if let Some((_, columns)) = latest.as_ref().filter(|(at, _)| *at == group) {
            return Ok(Rc::clone(columns));
        }
        *latest = None;
        let columns = CutColumns::read(&self.table, group, self.manifest.states.len());
        let columns = Rc::new(columns.map_err(|problem| self.wrong(&problem))?);
        *latest = Some((group, Rc::clone(&columns)));
        Ok(columns)
    }

    /// Checks that the cuts have the fingerprint of the manifest.
    pub(super) fn check_fingerprint(&self, found: &str) -> Result<(), SddpError> {
        if found == self.manifest.sha256 {
            return Ok(());
        }
        let what = format!("{CUTS} does not belong to {MANIFEST}: their fingerprints differ");
        Err(damaged(&self.directory, &what))
    }

    /// The error of cuts that are not what a policy is made of.
    pub(super) fn wrong(&self, problem: &str) -> SddpError {
        damaged(&self.directory, &format!("{CUTS}: {problem}"))
    }
}

impl CutColumns {
    fn read(table: &Table, group: usize, states: usize) -> Result<Self, String> {
        let numbers = |column: usize| match table.read(group, column).map_err(told)?.values {
            Values::Numbers(values) => Ok(values),
            _ => Err(format!(
                "column {}: numbers are expected",
                table.columns()[column].name
            )),
        };
        let integers = |column: usize| match table.read(group, column).map_err(told)?.values {
            Values::Integers(values) => Ok(values),
            _ => Err(format!(
                "column {}: whole numbers are expected",
                COLUMNS[column]
            )),
        };
        let slopes = (0..states).map(|state| numbers(COLUMNS.len() + state));
        Ok(Self {
            iterations: integers(1)?,
            passes: integers(2)?,
            intercepts: numbers(3)?,
            slopes: slopes.collect::<Result<_, _>>()?,
        })
    }

    /// The cut of a row; none if no pass of any iteration can have made it.
    fn cut(&self, row: usize, file: &PolicyFile) -> Option<StoredCut> {
        let slopes = self.slopes.iter();
        Some(StoredCut {
            slot: file.manifest.slot(self.iterations[row], self.passes[row])?,
            intercept: file.sign * self.intercepts[row],
            gradient: slopes.map(|slopes| file.sign * slopes[row]).collect(),
        })
    }
}

/// The error of a policy that is not what one is made of.
pub(super) fn damaged(directory: &Path, problem: &str) -> SddpError {
    let error = std::io::Error::new(std::io::ErrorKind::InvalidData, problem);
    SddpError::io("read the policy in", directory)(error)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn told(error: TableError) -> String {
    error.to_string()
}

/// By row group, the node of each row.
fn nodes(table: &Table, manifest: &Manifest) -> Result<Vec<Vec<u32>>, String> {
    let numbers = manifest.nodes.iter().map(String::as_str).zip(0..);
    let numbers: HashMap<&str, u32> = numbers.collect();
    let mut first = 0;
    let groups = (0..table.groups()).map(|group| {
        let Values::Texts(names) = table.read(group, 0).map_err(told)?.values else {
            return Err(format!("column {}: texts are expected", COLUMNS[0]));
        };
        let rows = names.iter().zip(first + 1..);
        first += names.len();
        let nodes = rows.map(|(name, row)| {
            let unknown = || format!("row {row}: a node that the manifest does not have");
            numbers.get(name.as_str()).copied().ok_or_else(unknown)
        });
        nodes.collect()
    });
    groups.collect()
}

/// Checks that a file has the columns of a policy's cuts, and no others.
fn check_columns(table: &Table, manifest: &Manifest) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::super::policy::{read, write};
    use super::*;
    use crate::policy::{InitialState, Policy};

    /// A policy of three nodes whose cuts take several row groups.
    fn policy() -> Policy {
        const STATES: usize = 300;
        let cut = |node: u32, number: u32| StoredCut {
            slot: number,
            intercept: f64::from(node + 3 * number),
            gradient: (0..STATES)
                .map(|state| f64::from(number) - state as f64)
                .collect(),
        };
        let counts = [9_000, 0, 7_000];
        let cuts = counts.iter().zip(0..);
        let cuts = cuts.map(|(&count, node)| (0..count).map(|number| cut(node, number)).collect());
        let states = (0..STATES).map(|state| InitialState {
            name: format!("s{state}"),
            initial: 0.0,
        });
        let manifest = Manifest {
            format: Manifest::FORMAT,
            sense: "max".to_owned(),
            risk: "expectation".to_owned(),
            seed: 0,
            forward_passes: 1,
            iterations: 9_000,
            bound: 0.0,
            states: states.collect(),
            nodes: ["a", "b", "c"].map(str::to_owned).to_vec(),
            start_dates: Vec::new(),
            cuts: 16_000,
            sha256: String::new(),
        };
        let mut policy = Policy {
            manifest,
            cuts: cuts.collect(),
        };
        policy.manifest.sha256 = policy.sha256();
        policy
    }

    #[test]
    fn cuts_of_several_row_groups_are_those_of_their_nodes() {
        let directory = tempfile::tempdir().expect("a directory");
        let policy = policy();
        write(directory.path(), &policy).expect("it is written");
        let file = PolicyFile::open(directory.path()).expect("it is sound");
        assert!(file.table.groups() > 2, "{} groups", file.table.groups());
        for node in [2, 0, 1] {
            assert_eq!(file.count(node), policy.cuts[node].len());
            let cuts = file.cuts(node).expect("it is read");
            assert!(cuts == policy.cuts[node], "node {node}");
        }
        let again = read(directory.path()).expect("it is read");
        assert!(again == policy);
    }
}
