//! The results directory while a run writes it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use cobre_files::{FileError, Lock, Register, WholeFile};
use serde_json::Value;

use crate::layout::{self, DICTIONARY, DIRECTORIES, POLICY_FILES, RUN, convergence, cuts, timings};
use crate::rows::Rows;
use crate::schema::TableSchema;
use crate::table_file::TableFile;
use crate::{dictionary, earlier};

/// The tables that every run writes after training.
pub(crate) const TRAINING_TABLES: [&str; 2] = [convergence::TABLE, timings::TABLE];

/// Proofs that files of versions that kept no register are a run's, by those who know their content.
#[derive(Debug, Clone, Copy)]
pub struct Proofs {
    /// True if a directory holds the files of a policy.
    pub is_policy: fn(&Path) -> bool,
    /// True if there is a checkpoint beside the results in a directory.
    pub has_checkpoint: fn(&Path) -> bool,
}

/// The directory that a run writes to, and that no other run writes to meanwhile.
///
/// Files in it that are on its register are removed and replaced, and no others. Every file is there complete or not
/// at all.
#[derive(Debug)]
pub struct ResultsWriter {
    path: PathBuf,
    csv: bool,
    /// The tables there are.
    tables: RefCell<Vec<TableSchema>>,
    register: RefCell<Register>,
    _lock: Lock,
}

impl ResultsWriter {
    /// Makes the directory and those in it. `tables` are the names of those that the run will write of
    /// simulated paths; `csv` wants a CSV file beside each Parquet file; `host` is the name of this machine.
    ///
    /// # Errors
    /// When something that Cobre did not write is in the way, before anything is written; when they cannot be
    /// made; and when another run writes there.
    pub fn create(
        path: &Path,
        csv: bool,
        tables: &[&str],
        host: &str,
        proofs: &Proofs,
    ) -> Result<Self, FileError> {
        let mut names = vec![RUN.to_owned(), DICTIONARY.to_owned()];
        names.extend(TRAINING_TABLES.map(layout::parquet));
        names.extend(POLICY_FILES.map(layout::in_policy));
        names.extend(tables.iter().map(|table| layout::parquet(table)));
        if csv {
            let tables = TRAINING_TABLES.iter().chain([&cuts::TABLE]).chain(tables);
            names.extend(tables.map(|table| layout::csv(table)));
        }
        survey(path, &names, proofs)?;
        cobre_files::make_directories(path)?;
        let lock = Lock::take(path, host)?;
        // Again: another run may have been here meanwhile.
        let mut register = survey(path, &names, proofs)?;
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
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what an earlier run has left here, its report included, but for the files that this one replaces
    /// right after training.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove_earlier(&self) -> Result<(), FileError> {
        let mut kept: Vec<String> = POLICY_FILES.map(layout::in_policy).into();
        for name in TRAINING_TABLES.iter().chain([&cuts::TABLE]) {
            kept.push(layout::parquet(name));
            kept.extend(self.csv.then(|| layout::csv(name)));
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
        register.settle()
    }

    /// Writes a table.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write_table(&self, schema: TableSchema, rows: &Rows) -> Result<(), FileError> {
        let mut file = self.start_table(schema)?;
        file.append(rows)?;
        self.put(file)
    }

    /// Starts the files of a table.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start_table(&self, schema: TableSchema) -> Result<TableFile, FileError> {
        TableFile::create(schema, self.csv, |name| self.open(name))
    }

    /// Puts the files of a table in their places.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn put(&self, file: TableFile) -> Result<(), FileError> {
        let schema = file.finish()?;
        self.tables.borrow_mut().push(schema);
        Ok(())
    }

    /// Writes a JSON file.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write_json(&self, name: &str, value: &Value) -> Result<(), FileError> {
        write_json(self.open(name)?, value)
    }

    /// Writes the meaning of all columns and, last of all, `run.json`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(&self, run: &Value) -> Result<(), FileError> {
        dictionary::write(self.open(DICTIONARY)?, &self.tables.borrow())?;
        // Names that came to nothing are nobody's again.
        self.register.borrow_mut().settle()?;
        self.write_json(RUN, run)
    }

    /// Starts a file of this run.
    fn open(&self, name: &str) -> Result<WholeFile, FileError> {
        self.register.borrow_mut().create(name)
    }
}

/// The register of a directory, if nothing that Cobre did not write is at one of these names.
fn survey(path: &Path, names: &[String], proofs: &Proofs) -> Result<Register, FileError> {
    Lock::check(path)?;
    let mut register = Register::open(path)?;
    earlier::adopt(&mut register, proofs);
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

/// Notes on the register of `output` a file below it that its run has written in another way.
///
/// # Errors
/// When the system refuses.
pub fn note(output: &Path, file: &Path) -> Result<(), FileError> {
    let Some(name) = file.strip_prefix(output).ok().and_then(Path::to_str) else {
        return Ok(());
    };
    let mut register = Register::open(output)?;
    register.adopt(name);
    register.claim([])
}

/// Writes JSON as readers like it, and puts the file in its place.
///
/// # Errors
/// When the system refuses.
pub fn write_json(mut file: WholeFile, value: &Value) -> Result<(), FileError> {
    file.write(format!("{value:#}\n").as_bytes())?;
    file.finish()
}
