//! The contents of the files that a run leaves; cobre-results has their layout.
//!
//! All of them are the same bytes for any backend, rank and thread count, except those that hold
//! times: `run.json` and `training/timings.parquet`.

mod export;
mod facts;
mod plain;
mod policy;
mod policy_file;
mod record;
mod training;

use std::path::Path;

use cobre_comm::host_name;
use cobre_results::layout::{self, MANIFEST, cuts, validation};
use cobre_results::{Proofs, ResultsWriter, Rows, TableFile};

pub use self::export::{cuts_csv, cuts_sddp_jl};
pub use self::facts::About;
pub(crate) use self::facts::Facts;
pub use self::plain::PlainTables;
pub use self::policy::{
    read as read_policy, read_manifest as read_policy_manifest, write as write_policy,
};
pub use self::policy_file::PolicyFile;
pub(crate) use self::record::PathTables;
pub use self::record::{Tables, Visited};
use crate::checkpoint;
use crate::error::SddpError;
use crate::policy::Policy;
use crate::training::TrainingResults;

const PROOFS: Proofs = Proofs {
    is_policy: policy::is_policy,
    has_checkpoint: checkpoint::exists,
};

/// The directory of a run's results.
pub(crate) struct RunOutput(ResultsWriter);

impl RunOutput {
    /// Makes the directory; `tables` are the names of those that the run will write of simulated paths.
    ///
    /// # Errors
    /// When something that Cobre did not write is in the way, before anything is written; when it cannot be
    /// made; and when another run writes there.
    pub(crate) fn create(path: &Path, csv: bool, tables: &[&str]) -> Result<Self, SddpError> {
        Ok(Self(ResultsWriter::create(
            path,
            csv,
            tables,
            &host_name(),
            &PROOFS,
        )?))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The bound, the estimate and the size of the policy after each iteration; and the times. What an earlier run has
    /// left here goes.
    pub(crate) fn write_training(&self, trained: &TrainingResults) -> Result<(), SddpError> {
        self.0.remove_earlier()?;
        for (schema, rows) in training::tables(trained) {
            self.0.write_table(schema, &rows)?;
        }
        Ok(())
    }

    /// The policy, in the part of the directory that is its own.
    pub(crate) fn write_policy(&self, policy: &Policy) -> Result<(), SddpError> {
        let schema = policy::cuts_schema(cuts::TABLE, &policy.manifest);
        let mut file = self.0.start_table(schema.clone())?;
        for rows in policy::pieces(&schema, policy) {
            file.append(&rows)?;
        }
        self.0.put(file)?;
        let manifest = policy::manifest(&policy.manifest)?;
        Ok(self.0.write_json(&layout::in_policy(MANIFEST), &manifest)?)
    }

    /// Starts the files that simulated paths go to.
    pub(crate) fn simulation(&self, tables: &PathTables<'_>) -> Result<Vec<TableFile>, SddpError> {
        let tables = tables.tables.iter().cloned();
        let files = tables.map(|schema| Ok(self.0.start_table(schema)?));
        files.collect()
    }

    /// Puts the files of a table in their places.
    pub(crate) fn put(&self, file: TableFile) -> Result<(), SddpError> {
        Ok(self.0.put(file)?)
    }

    /// Writes the values of the validation scenarios.
    pub(crate) fn write_validation(&self, values: &[f64]) -> Result<(), SddpError> {
        let schema = validation::schema();
        let mut rows = Rows::new(&schema);
        for (scenario, &value) in (1..).zip(values) {
            rows.push(&validation::Row { scenario, value }.cells());
        }
        Ok(self.0.write_table(schema, &rows)?)
    }

    /// Writes the meaning of all columns and, last of all, what differs from run to run: times, machines, versions.
    pub(crate) fn finish(&self, facts: &Facts<'_>) -> Result<(), SddpError> {
        Ok(self.0.finish(&facts.json())?)
    }
}
