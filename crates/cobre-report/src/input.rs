//! The results that a report is made from.

use std::path::Path;
use std::rc::Rc;

use cobre_results::layout::convergence;
use cobre_results::{Results, ResultsError, Table};
use serde_json::Value;

use crate::simulation::SimulationData;

/// The results of a run, opened for a report.
pub(crate) struct ReportInput {
    pub(crate) results: Rc<Results>,
    pub(crate) convergence: Table,
    pub(crate) simulation: Option<SimulationData>,
    /// True if the problem maximises.
    pub(crate) maximised: bool,
    /// True if the bound is one of the mean; under a risk measure it is not.
    pub(crate) neutral: bool,
    /// The stages of the simulated paths through a cyclic graph: they lack the cost of what follows.
    pub(crate) path_stages: Option<u64>,
}

impl ReportInput {
    /// Opens a directory; `chosen` scenarios are shown one by one in any case.
    ///
    /// # Errors
    /// When it holds no finished run, or a file in it is damaged.
    pub(crate) fn open(path: &Path, chosen: &[String]) -> Result<Self, ResultsError> {
        let results = Rc::new(Results::open(path)?);
        let said = |key: &str| results.manifest.get(key).and_then(Value::as_str);
        let (sense, risk) = (said("sense"), said("risk"));
        Ok(Self {
            convergence: results.needed(convergence::TABLE)?,
            simulation: SimulationData::open(&results, chosen)?,
            maximised: sense == Some("max"),
            neutral: risk == Some("expectation"),
            path_stages: results
                .run
                .pointer("/settings/simulate_stages")
                .and_then(Value::as_u64),
            results,
        })
    }

    /// The name of the case, in short.
    pub(crate) fn name(&self) -> String {
        let path = &self.results.path;
        let case = self.results.run.get("case").and_then(Value::as_str);
        let named = case.and_then(|case| Path::new(case).file_name());
        let absolute = path.canonicalize();
        let directory = absolute.as_ref().ok().and_then(|path| path.file_name());
        let name = named.or(directory).unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The noun for totals.
    pub(crate) fn value_word(&self) -> &'static str {
        if self.maximised || !self.results.hydrothermal() {
            "value"
        } else {
            "cost"
        }
    }

    /// The unit of totals; StochOptFormat has none.
    pub(crate) fn value_unit(&self) -> &'static str {
        if self.results.hydrothermal() { "$" } else { "" }
    }
}
