//! What a run has left in its directory.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::ReportError;
use crate::simulation::Simulation;
use crate::table::Table;

/// A directory with the results of a finished run.
pub(crate) struct Results {
    pub(crate) path: PathBuf,
    /// What `run.json` says.
    pub(crate) run: Value,
    pub(crate) convergence: Table,
    pub(crate) simulation: Option<Simulation>,
    /// Whether a high value is a good one.
    pub(crate) maximised: bool,
}

impl Results {
    /// Opens a directory.
    ///
    /// # Errors
    /// When it holds no finished run, or a file in it is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self, ReportError> {
        if !path.is_dir() {
            let what =
                "there is no such directory; give the one that cobre run --output has written";
            return Err(ReportError::incomplete(path, what));
        }
        let run = json(&path.join("run.json"))?;
        let begun = path.join("checkpoint").is_dir() || path.join("training").is_dir();
        let run = run.ok_or_else(|| {
            let what = if begun {
                "the run has not finished (there is no run.json); finish it with cobre run --resume"
            } else {
                "it does not hold the results of a run (there is no run.json); \
                 give the directory that cobre run --output has written"
            };
            ReportError::incomplete(path, what)
        })?;
        if run.get("cobre").is_none() {
            let what = "it is not the run.json of cobre run (it has no key cobre)";
            return Err(ReportError::damaged(&path.join("run.json"), what));
        }
        let place = path.join("training/convergence.parquet");
        let missing = "it is missing; files were removed: run the case again";
        let convergence =
            Table::open(&place)?.ok_or_else(|| ReportError::incomplete(&place, missing))?;
        let manifest = json(&path.join("policy/manifest.json"))?.unwrap_or_default();
        Ok(Self {
            path: path.to_owned(),
            maximised: manifest.get("sense").and_then(Value::as_str) == Some("max"),
            simulation: Simulation::open(&path.join("simulation"))?,
            run,
            convergence,
        })
    }

    /// What the run was of, in short.
    pub(crate) fn name(&self) -> String {
        let case = self.run.get("case").and_then(Value::as_str);
        let named = case.and_then(|case| Path::new(case).file_name());
        let absolute = self.path.canonicalize();
        let directory = absolute.as_ref().ok().and_then(|path| path.file_name());
        let name = named.or(directory).unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Whether the case is hydrothermal, so that its tables speak of plants and buses.
    pub(crate) fn hydrothermal(&self) -> bool {
        self.run.get("kind").and_then(Value::as_str) == Some("hydrothermal")
    }

    /// What totals are called.
    pub(crate) fn value_word(&self) -> &'static str {
        if self.maximised || !self.hydrothermal() {
            "value"
        } else {
            "cost"
        }
    }

    /// The unit of totals; StochOptFormat has none.
    pub(crate) fn value_unit(&self) -> &'static str {
        if self.hydrothermal() { "$" } else { "" }
    }
}

fn json(path: &Path) -> Result<Option<Value>, ReportError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Err(ReportError::damaged(path, "it is not text"));
        }
        Err(error) => return Err(ReportError::io("read", path)(error)),
    };
    let parsed = serde_json::from_str(&text);
    parsed
        .map(Some)
        .map_err(|error| ReportError::damaged(path, format!("it is no sound JSON ({error})")))
}
