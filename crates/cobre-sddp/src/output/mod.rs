//! The files a run leaves, and nothing else knows their names.
//!
//! All of them are the same bytes for any backend, rank and thread count, except those that hold
//! times: `run.json` and `training/timings.parquet`.

mod aside;
mod dictionary;
mod facts;
mod file;
mod lock;
mod piece;
mod plain;
mod policy;
mod record;
mod table;
mod training;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

pub(crate) use self::aside::Aside;
pub use self::facts::About;
pub(crate) use self::facts::{Facts, host};
pub(crate) use self::file::TableFile;
use self::lock::Lock;
pub(crate) use self::piece::Piece;
pub use self::plain::PlainTables;
pub use self::policy::{read as read_policy, write as write_policy};
pub(crate) use self::record::PathTables;
pub use self::record::{Tables, Visited, stage_columns};
pub use self::table::{Cell, Column, Kind, Rows, Table};
use crate::error::SddpError;
use crate::policy::Policy;
use crate::training::TrainingResults;

/// The version of the files' layout.
const FORMAT: u32 = 1;
/// The file that is there if all others are.
const RUN: &str = "run.json";

/// The directories that tables are in.
const DIRECTORIES: [&str; 3] = ["training", "policy", "simulation"];

/// The directory that a run writes to, and that no other run writes to meanwhile.
pub(crate) struct Directory {
    path: PathBuf,
    csv: bool,
    /// The tables there are.
    tables: RefCell<Vec<Table>>,
    _lock: Lock,
}

impl Directory {
    /// Makes the directory and those in it.
    ///
    /// # Errors
    /// When they cannot be made, and when another run writes there.
    pub(crate) fn create(path: &Path, csv: bool) -> Result<Self, SddpError> {
        std::fs::create_dir_all(path).map_err(SddpError::io("create the directory", path))?;
        let lock = Lock::take(path)?;
        for part in DIRECTORIES {
            let part = path.join(part);
            std::fs::create_dir_all(&part).map_err(SddpError::io("create the directory", &part))?;
        }
        Ok(Self {
            path: path.to_owned(),
            csv,
            tables: RefCell::default(),
            _lock: lock,
        })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The bound, the estimate and the size of the policy after each iteration; and the times.
    pub(crate) fn write_training(&self, trained: &TrainingResults) -> Result<(), SddpError> {
        // The results of an earlier run are incomplete from now on.
        let earlier = self.path.join(RUN);
        if earlier.exists() {
            std::fs::remove_file(&earlier).map_err(SddpError::io("remove", &earlier))?;
        }
        for (table, rows) in training::tables(trained) {
            self.write_table(table, &rows)?;
        }
        Ok(())
    }

    /// The policy, in the part of the directory that is its own.
    pub(crate) fn write_policy(&self, policy: &Policy) -> Result<(), SddpError> {
        let (table, rows) = policy::table("policy/cuts", policy);
        self.write_table(table, &rows)?;
        policy::write_manifest(&self.path.join("policy"), &policy.manifest)
    }

    /// Opens the files that simulated paths go to.
    pub(crate) fn simulation(&self, tables: &PathTables<'_>) -> Result<Vec<TableFile>, SddpError> {
        let tables = tables.tables.iter().cloned();
        let files = tables.map(|table| TableFile::create(&self.path, table, self.csv));
        files.collect()
    }

    /// Puts the files of a table in their places.
    pub(crate) fn put(&self, file: TableFile) -> Result<(), SddpError> {
        let table = file.finish()?;
        self.tables.borrow_mut().push(table);
        Ok(())
    }

    /// Writes the values of the validation scenarios.
    pub(crate) fn write_validation(&self, values: &[f64]) -> Result<(), SddpError> {
        let columns = vec![
            Column::new(
                "scenario",
                Kind::Integer,
                "number of the modeller's scenario, from 1",
            ),
            Column::new("value", Kind::Number, "value of the policy on it"),
        ];
        let table = Table::new("simulation/validation", columns);
        let mut rows = Rows::new(&table);
        for (path, value) in values.iter().enumerate() {
            rows.push(&[(path + 1).into(), (*value).into()]);
        }
        self.write_table(table, &rows)
    }

    /// Says what all columns mean, takes away what an earlier run has left, and writes down, last of all, what
    /// differs from run to run: times, machines, versions.
    pub(crate) fn finish(&self, facts: &Facts<'_>) -> Result<(), SddpError> {
        dictionary::write(&self.path, &self.tables.borrow(), self.csv)?;
        write_json(&self.path.join(RUN), &facts.json())
    }

    fn write_table(&self, table: Table, rows: &Rows) -> Result<(), SddpError> {
        let mut file = TableFile::create(&self.path, table, self.csv)?;
        file.append(rows)?;
        self.put(file)
    }
}

fn write_json(place: &Path, value: &serde_json::Value) -> Result<(), SddpError> {
    let mut file = Aside::create(place)?;
    file.write(format!("{value:#}\n").as_bytes())?;
    file.finish()
}
