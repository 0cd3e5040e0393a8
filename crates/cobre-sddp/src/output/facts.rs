//! The contents of `run.json`: inputs, settings, machines and versions of a run.

use std::time::{SystemTime, UNIX_EPOCH};

use cobre_results::calendar;
use cobre_results::layout::FORMAT;
use serde_json::{Map, Value, json};

use super::Tables;
use crate::checkpoint::Provenance;
use crate::run::Results;
use crate::settings::Settings;

/// The tables and facts of a case, from the caller of a run.
pub struct About<'a> {
    /// The tables of simulated paths.
    pub tables: &'a dyn Tables,
    /// Further entries of `run.json`: the case, its kind, the backend.
    pub facts: Map<String, Value>,
}

impl<'a> About<'a> {
    /// The tables of a case, its name and kind, and the backend.
    pub fn new(tables: &'a dyn Tables, case: &str, kind: &str, backend: &str) -> Self {
        let facts = [("case", case), ("kind", kind), ("backend", backend)];
        let facts = facts.map(|(name, value)| (name.to_owned(), Value::from(value)));
        Self {
            tables,
            facts: facts.into_iter().collect(),
        }
    }
}

/// The input of `run.json`.
pub(crate) struct Facts<'a> {
    pub(crate) about: &'a About<'a>,
    pub(crate) results: &'a Results,
    pub(crate) settings: &'a Settings,
    pub(crate) risk: String,
    /// The kinds of the paths of forward passes and of the simulation, where they are not drawn from openings.
    pub(crate) kinds: [Option<String>; 2],
    /// The inputs that training starts from.
    pub(crate) provenance: &'a Provenance,
    /// Of each rank, its machine and its threads.
    pub(crate) hosts: Vec<String>,
    pub(crate) threads: Vec<usize>,
}

impl Facts<'_> {
    pub(super) fn json(&self) -> Value {
        let (results, settings) = (self.results, self.settings);
        let trained = &results.trained;
        let mut run = self.about.facts.clone();
        let more = json!({
            "format": FORMAT,
            "cobre": env!("CARGO_PKG_VERSION"),
            "finished": now(),
            "ranks": self.hosts.len(),
            "hosts": self.hosts,
            "threads": self.threads,
            "seed": settings.seed,
            "iterations": trained.iterations.len(),
            "bound": trained.bound,
            "bound_half_width_95": results.bound_half_width_95(),
            "upper_bound": trained.upper_bound,
            "estimate": results.simulated.map(|estimate| json!({
                "mean": estimate.mean,
                "half_width_95": estimate.half_width_95,
                "paths": estimate.paths,
            })),
            "interrupted": results.interrupted_in(),
            "fictitious_cost": results.fictitious.mean,
            "stop_reason": trained.reason.to_string(),
            "problem_sha256": self.provenance.problem.to_string(),
            "warm_start_sha256": self.provenance.policy,
            "policy_sha256": results.policy_sha256,
            "settings": self.settings(),
            "solver": settings.solver.name(),
            "lp_solves": results.lp.solves,
            "lp": results.lp.json(),
            "shared_bytes": results.shared_bytes,
            "seconds": {
                "train": results.seconds.train,
                "simulate": results.seconds.simulate,
                "write": results.seconds.write,
            },
        });
        if let Value::Object(more) = more {
            run.extend(more);
        }
        Value::Object(run)
    }

    /// The settings, as on the command line.
    fn settings(&self) -> Value {
        let settings = self.settings;
        let stop: Vec<String> = settings
            .stopping
            .rules
            .iter()
            .map(ToString::to_string)
            .collect();
        json!({
            "seed": settings.seed,
            "simulate_seed": settings.simulate_seed.unwrap_or(settings.seed),
            "forward_passes": settings.passes,
            "cut_selection": settings.selection.to_string(),
            "risk": self.risk,
            "solver": settings.solver.name(),
            "basis_memory": settings.basis_memory,
            "stop": stop,
            "upper_bound": settings.upper_bound,
            "upper_bound_states": settings.upper_bound_states,
            "stop_when_all": settings.stopping.all,
            "simulate": settings.simulate,
            "simulate_stages": settings.simulate_stages,
            "path_stages": settings.path_stages,
            "training_paths": self.kinds[0].as_deref().unwrap_or("in_sample"),
            "sampling": self.kinds[1].as_deref().unwrap_or(settings.sampling.name()),
        })
    }
}

/// The time in UTC, to the second.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    text(since.map_or(0, |since| since.as_secs()))
}

/// Seconds since 1970 as a date and a time.
fn text(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let date = calendar::text(days.cast_signed());
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(text(1_767_225_599), "2025-12-31T23:59:59Z");
    }
}
