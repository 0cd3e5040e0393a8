//! The files a run leaves, and nothing else knows their names.
//!
//! All of them are the same bytes for any backend, rank and thread count, except those that hold
//! times: `run.json` and `training/timings.parquet`.

mod aside;
mod lock;
mod policy;
mod table;

pub use policy::{read as read_policy, write as write_policy};

use std::path::{Path, PathBuf};

use serde_json::json;

pub(crate) use self::aside::Aside;
use self::lock::Lock;
use self::table::{Kind, TableFile, Values};
use crate::error::SddpError;
use crate::path::Paths;
use crate::policy::{Manifest, Policy};
use crate::problem::{Problem, State};
use crate::run::{Results, Settings};
use crate::training::Trained;

/// The directory that a run writes to, and that no other run writes to meanwhile.
pub(crate) struct Directory {
    path: PathBuf,
    _lock: Lock,
}

impl Directory {
    /// Makes the directory and those in it.
    ///
    /// # Errors
    /// When they cannot be made, and when another run writes there.
    pub(crate) fn create(path: &Path) -> Result<Self, SddpError> {
        std::fs::create_dir_all(path).map_err(SddpError::io("create the directory", path))?;
        let lock = Lock::take(path)?;
        for part in ["training", "policy", "simulation"] {
            let part = path.join(part);
            std::fs::create_dir_all(&part).map_err(SddpError::io("create the directory", &part))?;
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The bound, the estimate and the size of the policy after each iteration.
    pub(crate) fn write_training(&self, trained: &Trained) -> Result<(), SddpError> {
        let all = || trained.iterations.iter();
        let counts = |count: fn(&crate::events::Iteration) -> u64| {
            Values::Integers(
                all()
                    .map(|iteration| count(iteration).cast_signed())
                    .collect(),
            )
        };
        let numbers = |number: fn(&crate::events::Iteration) -> f64| {
            Values::Numbers(all().map(number).collect())
        };
        let half_widths = all().map(|iteration| iteration.estimate.half_width_95);
        let columns = [
            ("iteration", counts(|iteration| iteration.number as u64)),
            ("bound", numbers(|iteration| iteration.bound)),
            (
                "estimate_mean",
                numbers(|iteration| iteration.estimate.mean),
            ),
            (
                "estimate_half_width_95",
                Values::Maybe(half_widths.collect()),
            ),
            (
                "estimate_paths",
                counts(|iteration| iteration.estimate.paths as u64),
            ),
            (
                "gap",
                Values::Maybe(all().map(|iteration| iteration.gap).collect()),
            ),
            ("cuts", counts(|iteration| iteration.cuts as u64)),
            ("lp_solves", counts(|iteration| iteration.lp.solves)),
        ];
        self.write_table("training/convergence.parquet", &columns)?;
        let columns = [
            ("iteration", counts(|iteration| iteration.number as u64)),
            ("seconds", numbers(|iteration| iteration.time.total)),
            (
                "forward_seconds",
                numbers(|iteration| iteration.time.forward),
            ),
            (
                "backward_seconds",
                numbers(|iteration| iteration.time.backward),
            ),
            (
                "communication_seconds",
                numbers(|iteration| iteration.time.communication),
            ),
            ("highs_solves", counts(|iteration| iteration.lp.highs)),
            ("refactored", counts(|iteration| iteration.lp.refactored)),
            ("cold_starts", counts(|iteration| iteration.lp.cold_starts)),
            ("fallbacks", counts(|iteration| iteration.lp.fallbacks)),
            ("retries", counts(|iteration| iteration.lp.retries)),
        ];
        self.write_table("training/timings.parquet", &columns)
    }

    /// The policy, in the part of the directory that is its own.
    pub(crate) fn write_policy(&self, policy: &Policy) -> Result<(), SddpError> {
        policy::write(&self.path.join("policy"), policy)
    }

    /// Opens the files that simulated paths go to.
    pub(crate) fn simulation(&self, problem: &Problem) -> Result<SimulationFiles, SddpError> {
        SimulationFiles::create(&self.path.join("simulation"), problem)
    }

    /// Writes the paths of the modeller's own scenarios.
    pub(crate) fn write_validation(
        &self,
        problem: &Problem,
        paths: &Paths,
    ) -> Result<(), SddpError> {
        let sign = problem.sense.sign();
        let costs = (0..paths.count()).map(|path| sign * paths.cost(problem, path));
        let columns = [
            (
                "scenario",
                Values::Integers((1..=paths.count()).map(integer).collect()),
            ),
            ("value", Values::Numbers(costs.collect())),
        ];
        self.write_table("simulation/validation.parquet", &columns)
    }

    /// What differs from run to run: times, the machine, versions.
    pub(crate) fn write_run(
        &self,
        results: &Results,
        ranks: usize,
        settings: &Settings,
    ) -> Result<(), SddpError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let run = json!({
            "format": Manifest::FORMAT,
            "cobre": env!("CARGO_PKG_VERSION"),
            "host": host.trim(),
            "ranks": ranks,
            "threads": settings.threads,
            "stop_reason": results.trained.reason.to_string(),
            "solver": settings.solver.name(),
            "lp_solves": results.lp.solves,
            "lp": results.lp.json(),
            "shared_bytes": results.shared_bytes,
            "seconds": {"train": results.seconds.train, "simulate": results.seconds.simulate},
        });
        write_json(&self.path.join("run.json"), &run)
    }

    fn write_table(&self, name: &str, columns: &[(&str, Values)]) -> Result<(), SddpError> {
        write_table(&self.path.join(name), columns)
    }
}

fn write_table(place: &Path, columns: &[(&str, Values)]) -> Result<(), SddpError> {
    let kinds: Vec<(&str, Kind)> = columns
        .iter()
        .map(|(name, values)| (*name, values.kind()))
        .collect();
    let mut file = TableFile::create(place, &kinds)?;
    file.append(columns.iter().map(|(_, values)| values))?;
    file.finish()
}

fn write_json(place: &Path, value: &serde_json::Value) -> Result<(), SddpError> {
    let mut file = Aside::create(place)?;
    file.write(format!("{value:#}\n").as_bytes())?;
    file.finish()
}

/// A count as files have it.
fn integer(count: usize) -> i64 {
    (count as u64).cast_signed()
}

/// The files of simulated paths: one row per path, per stage, and per stage and state.
pub(crate) struct SimulationFiles {
    paths: TableFile,
    stages: TableFile,
    states: TableFile,
}

impl SimulationFiles {
    fn create(directory: &Path, problem: &Problem) -> Result<Self, SddpError> {
        let name = |state: &State| match state.name.as_str() {
            // Columns of the table have these names already.
            "path" | "stage" => format!("state:{}", state.name),
            name => name.to_owned(),
        };
        let names: Vec<String> = problem.states.iter().map(name).collect();
        let paths = [("path", Kind::Integer), ("value", Kind::Number)];
        let of_stages = [
            ("path", Kind::Integer),
            ("stage", Kind::Integer),
            ("node", Kind::Text),
            ("opening", Kind::Integer),
            ("stage_value", Kind::Number),
            ("future_value", Kind::Number),
        ];
        let mut states = vec![("path", Kind::Integer), ("stage", Kind::Integer)];
        states.extend(names.iter().map(|name| (name.as_str(), Kind::Number)));
        Ok(Self {
            paths: TableFile::create(&directory.join("paths.parquet"), &paths)?,
            stages: TableFile::create(&directory.join("stages.parquet"), &of_stages)?,
            states: TableFile::create(&directory.join("states.parquet"), &states)?,
        })
    }

    /// Adds a batch of paths of which the first has this number.
    pub(crate) fn append(
        &mut self,
        problem: &Problem,
        first: usize,
        batch: &Paths,
    ) -> Result<(), SddpError> {
        let sign = problem.sense.sign();
        let (mut path_numbers, mut values) = (Vec::new(), Vec::new());
        let (mut paths, mut depths, mut nodes, mut openings) = (vec![], vec![], vec![], vec![]);
        let (mut costs, mut futures) = (Vec::new(), Vec::new());
        let mut states: Vec<Vec<f64>> = vec![Vec::new(); problem.states.len()];
        for path in 0..batch.count() {
            let number = integer(first + path + 1);
            path_numbers.push(number);
            values.push(sign * batch.cost(problem, path));
            for (depth, stage) in batch.stages(path).enumerate() {
                paths.push(number);
                depths.push(integer(depth + 1));
                nodes.push(problem.nodes[stage.node].name.clone());
                openings.push(integer(stage.opening + 1));
                costs.push(sign * stage.cost);
                futures.push(sign * stage.future);
                for (column, value) in states.iter_mut().zip(stage.outgoing) {
                    column.push(*value);
                }
            }
        }
        self.paths
            .append([Values::Integers(path_numbers), Values::Numbers(values)].iter())?;
        let (paths, depths) = (Values::Integers(paths), Values::Integers(depths));
        let states: Vec<Values> = states.into_iter().map(Values::Numbers).collect();
        self.states
            .append([&paths, &depths].into_iter().chain(&states))?;
        let rest = [
            Values::Texts(nodes),
            Values::Integers(openings),
            Values::Numbers(costs),
            Values::Numbers(futures),
        ];
        self.stages
            .append([&paths, &depths].into_iter().chain(&rest))
    }

    /// Puts the files in their places.
    pub(crate) fn finish(self) -> Result<(), SddpError> {
        self.paths.finish()?;
        self.stages.finish()?;
        self.states.finish()
    }
}
