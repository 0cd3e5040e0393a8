//! The directory of a finished run.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::ResultsError;
use crate::table::Table;
use crate::{dictionary, layout};

/// A directory with the results of a finished run.
#[derive(Debug)]
pub struct Results {
    /// The directory.
    pub path: PathBuf,
    /// The contents of `run.json`.
    pub run: Value,
    /// The contents of `policy/manifest.json`.
    pub manifest: Value,
    /// The tables that `dictionary.csv` explains, by their path below the directory without the ending.
    pub tables: Vec<String>,
}

impl Results {
    /// Opens a directory.
    ///
    /// # Errors
    /// When it holds no finished run, or a file in it is damaged.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        if !path.is_dir() {
            let what =
                "there is no such directory; give the one that cobre run --output has written";
            return Err(ResultsError::incomplete(path, what));
        }
        let place = path.join(layout::RUN);
        let begun = [layout::CHECKPOINT, layout::TRAINING]
            .iter()
            .any(|name| path.join(name).is_dir());
        let run = json(&place)?.ok_or_else(|| {
            let what = if begun {
                "the run has not finished (there is no run.json); finish it with cobre run --resume"
            } else {
                "it does not hold the results of a run (there is no run.json); \
                 give the directory that cobre run --output has written"
            };
            ResultsError::incomplete(path, what)
        })?;
        if run.get("cobre").is_none() {
            let what = "it is not the run.json of cobre run (it has no key cobre)";
            return Err(ResultsError::damaged(&place, what));
        }
        let place = path.join(layout::in_policy(layout::MANIFEST));
        let manifest = json(&place)?.ok_or_else(|| missing(&place))?;
        Ok(Self {
            tables: tables(&path.join(layout::DICTIONARY))?,
            path: path.to_owned(),
            run,
            manifest,
        })
    }

    /// Opens a table, given by its path below the directory without the ending; none if the run has not
    /// written it.
    ///
    /// # Errors
    /// When the table should be there and is not, or is damaged.
    pub fn table(&self, name: &str) -> Result<Option<Table>, ResultsError> {
        if !self.tables.iter().any(|table| table == name) {
            return Ok(None);
        }
        self.needed(name).map(Some)
    }

    /// Opens a table that every run has.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub fn needed(&self, name: &str) -> Result<Table, ResultsError> {
        let place = self.path.join(layout::parquet(name));
        Table::open(&place)?.ok_or_else(|| missing(&place))
    }

    /// Opens a file that the run has written, given by its path below the directory; none if it is a table that
    /// the run has not.
    ///
    /// # Errors
    /// When the file should be there and is not, or cannot be read.
    pub fn file(&self, name: &str) -> Result<Option<File>, ResultsError> {
        let table = layout::table_in(name);
        if table.is_some_and(|table| !self.tables.iter().any(|known| known == table)) {
            return Ok(None);
        }
        let place = self.path.join(name);
        match cobre_files::open(&place) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(missing(&place)),
            Err(error) => Err(ResultsError::io("read", &place)(error)),
        }
    }

    /// True if the case is hydrothermal, so that its tables have plants and buses.
    pub fn hydrothermal(&self) -> bool {
        self.run.get("kind").and_then(Value::as_str) == Some("hydrothermal")
    }
}

fn missing(place: &Path) -> ResultsError {
    ResultsError::incomplete(
        place,
        "it is missing; files were removed: run the case again",
    )
}

/// The tables that a dictionary names, in order.
fn tables(place: &Path) -> Result<Vec<String>, ResultsError> {
    let text = text(place)?.ok_or_else(|| missing(place))?;
    dictionary::tables(&text).map_err(|what| ResultsError::damaged(place, what))
}

fn json(place: &Path) -> Result<Option<Value>, ResultsError> {
    let Some(text) = text(place)? else {
        return Ok(None);
    };
    let parsed = serde_json::from_str(&text);
    parsed
        .map(Some)
        .map_err(|error| ResultsError::damaged(place, format!("it is no sound JSON ({error})")))
}

/// The text of a file; none if there is no such file.
fn text(place: &Path) -> Result<Option<String>, ResultsError> {
    match cobre_files::read_text(place) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(ResultsError::damaged(place, "it is not text"))
        }
        Err(error) => Err(ResultsError::io("read", place)(error)),
    }
}
