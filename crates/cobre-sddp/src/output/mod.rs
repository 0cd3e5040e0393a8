//! The files a run leaves, and nothing else knows their names.
//!
//! A run removes and replaces files that are on the register of the directory, and no others.
//!
//! All of them are the same bytes for any backend, rank and thread count, except those that hold
//! times: `run.json` and `training/timings.parquet`.

mod dictionary;
mod earlier;
mod facts;
mod file;
mod plain;
mod policy;
mod record;
mod row_group;
mod table;
mod training;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use cobre_files::{FileError, Lock, Register, WholeFile};

pub use self::facts::About;
pub(crate) use self::facts::{Facts, host};
pub(crate) use self::file::{MemoryTable, TableFile};
pub use self::plain::PlainTables;
pub use self::policy::{read as read_policy, write as write_policy};
pub(crate) use self::record::PathTables;
pub use self::record::{Tables, Visited, stage_columns};
pub(crate) use self::row_group::RowGroup;
pub use self::table::{Cell, Column, Kind, Rows, Table};
use crate::error::SddpError;
use crate::policy::Policy;
use crate::training::TrainingResults;

/// The version of the files' layout.
const FORMAT: u32 = 1;
/// The file that is there if all others are.
const RUN: &str = "run.json";

/// The table of the modeller's own scenarios.
pub(crate) const VALIDATION: &str = "simulation/validation";
/// The directory of the policy.
const POLICY: &str = "policy";
/// The directories that tables are in.
const DIRECTORIES: [&str; 3] = ["training", POLICY, "simulation"];

/// The directory that a run writes to, and that no other run writes to meanwhile.
pub(crate) struct Directory {
    path: PathBuf,
    csv: bool,
    /// The tables there are.
    tables: RefCell<Vec<Table>>,
    register: RefCell<Register>,
    _lock: Lock,
}

impl Directory {
    /// Makes the directory and those in it. `tables` are the names of those that the run will write of
    /// simulated paths.
    ///
    /// # Errors
    /// When something that Cobre did not write is in the way, before anything is written; when they cannot be
    /// made; and when another run writes there.
    pub(crate) fn create(path: &Path, csv: bool, tables: &[&str]) -> Result<Self, SddpError> {
        let mut names = vec![RUN.to_owned(), dictionary::FILE.to_owned()];
        names.extend(training::NAMES.map(|table| format!("{table}.parquet")));
        names.extend(policy::NAMES.map(|file| format!("{POLICY}/{file}")));
        names.extend(tables.iter().map(|table| format!("{table}.parquet")));
        if csv {
            let tables = training::NAMES.iter().chain([&policy::TABLE]).chain(tables);
            names.extend(tables.map(|table| format!("{table}.csv")));
        }
        survey(path, &names)?;
        std::fs::create_dir_all(path).map_err(SddpError::io("create the directory", path))?;
        let lock = Lock::take(path, &host())?;
        // Again: another run may have been here meanwhile.
        let mut register = survey(path, &names)?;
        for part in DIRECTORIES {
            register.make_directory(part)?;
        }
        Ok(Self {
            path: path.to_owned(),
            csv,
            tables: RefCell::default(),
            register: RefCell::new(register),
            _lock: lock,
        })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The bound, the estimate and the size of the policy after each iteration; and the times. What an earlier run has
    /// left here goes, its report included, but for the files that this one replaces now.
    pub(crate) fn write_training(&self, trained: &TrainingResults) -> Result<(), SddpError> {
        let tables = training::tables(trained);
        let mut kept: Vec<String> = policy::NAMES.map(|name| format!("{POLICY}/{name}")).into();
        for name in training::NAMES.iter().chain([&policy::TABLE]) {
            kept.push(format!("{name}.parquet"));
            kept.extend(self.csv.then(|| format!("{name}.csv")));
        }
        let mut register = self.register.borrow_mut();
        register.claim(kept.iter().map(String::as_str))?;
        // First the file that says that all others are there.
        register.remove(RUN)?;
        let earlier = register.names_of_results().filter(|name| {
            let made = name.strip_suffix('/');
            let in_use = made.is_some_and(|name| DIRECTORIES.contains(&name));
            !in_use && !kept.iter().any(|kept| kept == name)
        });
        // Files before the directories that they are in.
        let earlier: Vec<String> = earlier.map(str::to_owned).rev().collect();
        for name in earlier {
            register.remove(&name)?;
        }
        register.settle()?;
        drop(register);
        for (table, rows) in tables {
            self.write_table(table, &rows)?;
        }
        Ok(())
    }

    /// The policy, in the part of the directory that is its own.
    pub(crate) fn write_policy(&self, policy: &Policy) -> Result<(), SddpError> {
        let (table, rows) = policy::table(policy::TABLE, policy);
        self.write_table(table, &rows)?;
        let name = format!("{POLICY}/{}", policy::MANIFEST);
        write_json(self.open(&name)?, &policy::manifest(&policy.manifest)?)
    }

    /// Opens the files that simulated paths go to.
    pub(crate) fn simulation(&self, tables: &PathTables<'_>) -> Result<Vec<TableFile>, SddpError> {
        let tables = tables.tables.iter().cloned();
        let files = tables.map(|table| TableFile::create(table, self.csv, |name| self.open(name)));
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
        let table = Table::new(VALIDATION, columns);
        let mut rows = Rows::new(&table);
        for (path, value) in values.iter().enumerate() {
            rows.push(&[(path + 1).into(), (*value).into()]);
        }
        self.write_table(table, &rows)
    }

    /// Says what all columns mean, and writes down, last of all, what differs from run to run: times, machines,
    /// versions.
    pub(crate) fn finish(&self, facts: &Facts<'_>) -> Result<(), SddpError> {
        dictionary::write(self.open(dictionary::FILE)?, &self.tables.borrow())?;
        // Names that came to nothing are nobody's again.
        self.register.borrow_mut().settle()?;
        write_json(self.open(RUN)?, &facts.json())
    }

    fn write_table(&self, table: Table, rows: &Rows) -> Result<(), SddpError> {
        let mut file = TableFile::create(table, self.csv, |name| self.open(name))?;
        file.append(rows)?;
        self.put(file)
    }

    /// Starts a file of this run.
    fn open(&self, name: &str) -> Result<WholeFile, SddpError> {
        Ok(self.register.borrow_mut().create(name)?)
    }
}

/// The register of a directory, if nothing that Cobre did not write is at one of these names.
fn survey(path: &Path, names: &[String]) -> Result<Register, FileError> {
    Lock::check(path)?;
    let mut register = Register::open(path)?;
    earlier::adopt(&mut register);
    for name in names {
        register.check(name)?;
    }
    // What an earlier run has left goes, unless it was changed since.
    for name in register
        .names_of_results()
        .filter(|name| !name.ends_with('/'))
    {
        register.check_content(name)?;
    }
    Ok(register)
}

/// Notes a file that this run has written beside its results in another way.
pub(crate) fn note(output: &Path, file: &Path) -> Result<(), FileError> {
    let Some(name) = file.strip_prefix(output).ok().and_then(Path::to_str) else {
        return Ok(());
    };
    let mut register = Register::open(output)?;
    register.adopt(name);
    register.claim([])
}

fn write_json(mut file: WholeFile, value: &serde_json::Value) -> Result<(), SddpError> {
    file.write(format!("{value:#}\n").as_bytes())?;
    Ok(file.finish()?)
}
