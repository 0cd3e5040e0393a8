//! Settings of a run: one type for the library, the command line, case files and Python.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Serialize;

use crate::basis_memory;
use crate::checkpoint::Cadence;
use crate::error::SddpError;
use crate::policy::Selection;
use crate::problem::Graph;
use crate::simulation::Sampling;
use crate::solver::Solver;
use crate::training::{StopRule, Stopping};
use crate::upper_bound;

/// The largest number of threads of a rank.
pub const MAX_THREADS: usize = 1024;
/// The largest number of forward passes of an iteration.
pub const MAX_PASSES: usize = 100_000;
/// The most paths of a simulation that make sense to ask for.
pub const MAX_PATHS: usize = 10_000_000;

/// The default of `upper_bound_states`.
const DEFAULT_STATES: NonZeroUsize = NonZeroUsize::new(upper_bound::DEFAULT_STATES).expect("not 0");
/// The most visited states of a node that an upper bound is computed with.
pub const MAX_UPPER_BOUND_STATES: usize = 100_000;

/// The most stages of a path through a cyclic graph that can be asked for, and those of a run that asks for none.
pub const MAX_PATH_STAGES: usize = 1_000_000;
const PATH_STAGES: NonZeroUsize = NonZeroUsize::new(10_000).expect("not 0");

/// The share of paths that may be ended without a warning.
const SHARE_CUT_SHORT: f64 = 1e-3;

/// Makes of one list of settings with their defaults both [`Settings`] and [`Overrides`].
macro_rules! settings {
    ($($(#[$doc:meta])+ $name:ident: $type:ty = $default:expr,)+) => {
        /// The settings of a run.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct Settings {
            $($(#[$doc])+ pub $name: $type,)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// Some of the [`Settings`]: those that a case, or its caller, asks for.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Overrides {
            $($(#[$doc])+ pub $name: Option<$type>,)+
        }

        impl Settings {
            /// These settings, with `overrides` in the place of those that it has.
            #[must_use]
            pub fn with(self, overrides: Overrides) -> Self {
                Self { $($name: overrides.$name.unwrap_or(self.$name),)+ }
            }
        }
    };
}

settings! {
    /// The seed of all random numbers.
    seed: u64 = 0,
    /// Forward passes per iteration.
    passes: NonZeroUsize = NonZeroUsize::MIN,
    /// The cut selection.
    selection: Selection = Selection::ALL,
    /// The stopping rules.
    stopping: Stopping = Stopping::default(),
    /// Threads of this rank; ranks may differ.
    threads: NonZeroUsize = NonZeroUsize::MIN,
    /// Paths to simulate after training.
    simulate: usize = 0,
    /// The most stages of a path through a cyclic graph.
    path_stages: NonZeroUsize = PATH_STAGES,
    /// The stages of simulated paths through a cyclic graph; `None` to let them end by chance, as those of training do.
    simulate_stages: Option<NonZeroUsize> = None,
    /// The seed of those paths, where it is another than that of all random numbers.
    simulate_seed: Option<u64> = None,
    /// The source of those paths.
    sampling: Sampling = Sampling::Fresh,
    /// The solver of nodes.
    solver: Solver = Solver::default(),
    /// The most bytes of the bases that all units of all ranks remember. Results depend on it.
    basis_memory: u64 = basis_memory::DEFAULT,
    /// The iterations after each of which an upper bound is computed, and after the last; 0 for none.
    upper_bound: usize = 0,
    /// The most visited states of a node that the upper bound is computed with.
    upper_bound_states: NonZeroUsize = DEFAULT_STATES,
    /// The cadence of checkpoints.
    checkpoints: Cadence = Cadence::default(),
    /// True to resume from the newest checkpoint, if there is one.
    resume: bool = false,
    /// The directory of results; `None` to write none.
    output: Option<PathBuf> = None,
    /// True to write tables as CSV as well.
    csv: bool = false,
}

impl Settings {
    /// Checks the settings for a problem, which is risk-neutral or not. [`run`](crate::run) begins with it.
    ///
    /// # Errors
    /// A number that is out of all proportion, and a stopping rule that means nothing for the problem.
    pub fn check(&self, risk_neutral: bool) -> Result<(), SddpError> {
        let counts = [
            ("threads", self.threads.get(), MAX_THREADS),
            ("forward_passes", self.passes.get(), MAX_PASSES),
            ("simulate", self.simulate, MAX_PATHS),
            (
                "upper_bound_states",
                self.upper_bound_states.get(),
                MAX_UPPER_BOUND_STATES,
            ),
            ("path_stages", self.path_stages.get(), MAX_PATH_STAGES),
            (
                "simulate_stages",
                self.simulate_stages.map_or(0, NonZeroUsize::get),
                MAX_PATH_STAGES,
            ),
        ];
        if let Some((key, asked, most)) = counts.into_iter().find(|(_, asked, most)| asked > most) {
            return Err(SddpError::Setting {
                key,
                value: asked.to_string(),
                expected: format!("a whole number of at most {most} is expected"),
            });
        }
        let of_gap =
            |rule: &&StopRule| matches!(rule, StopRule::Gap { .. } | StopRule::AbsoluteGap { .. });
        let gap = self.stopping.rules.iter().find(of_gap);
        if let Some(rule) = gap.filter(|_| self.upper_bound == 0) {
            return Err(SddpError::Setting {
                key: "stop",
                value: rule.to_string(),
                expected: "the rule compares the bound with an upper bound: ask for one (--upper-bound K, upper_bound=K)".to_owned(),
            });
        }
        let statistical = |rule: &&StopRule| matches!(rule, StopRule::Statistical { .. });
        if let Some(rule) = self
            .stopping
            .rules
            .iter()
            .find(statistical)
            .filter(|_| !risk_neutral)
        {
            return Err(SddpError::Setting {
                key: "stop",
                value: rule.to_string(),
                expected: "the rule compares the bound with a mean, and under a risk measure the bound does not hold for the mean".to_owned(),
            });
        }
        Ok(())
    }
}

impl Settings {
    /// Checks the settings for a policy graph.
    ///
    /// # Errors
    /// A number of simulated stages where the graph alone says when paths end.
    pub(crate) fn check_graph(&self, graph: &Graph) -> Result<(), SddpError> {
        match self.simulate_stages {
            Some(stages) if !graph.is_cyclic() => Err(SddpError::Setting {
                key: "simulate_stages",
                value: stages.to_string(),
                expected: "the policy graph has no cycle, so that its last stage ends every path: leave it out".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The warning about paths that are ended before chance ends them, if these are many.
    pub(crate) fn cut_short(&self, graph: &Graph) -> Option<String> {
        if !graph.is_cyclic() {
            return None;
        }
        let stages = self.path_stages;
        let share = graph.survival(stages.get());
        (share > SHARE_CUT_SHORT).then(|| {
            format!(
                "path_stages={stages} ends {:.1} % of the paths before chance does, and estimates lack what they would \
                 cost; bounds are valid",
                100.0 * share
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_take_the_place_of_settings() {
        let case = Overrides {
            seed: Some(42),
            simulate: Some(7),
            ..Overrides::default()
        };
        let caller = Overrides {
            seed: Some(3),
            ..Overrides::default()
        };
        let found = Settings::default().with(case).with(caller);
        let expected = Settings {
            seed: 3,
            simulate: 7,
            ..Settings::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_out_of_proportion_are_refused() {
        let most = Settings {
            simulate: MAX_PATHS,
            ..Settings::default()
        };
        assert!(most.check(true).is_ok());
        let more = Settings {
            simulate: MAX_PATHS + 1,
            ..most
        };
        let error = more.check(true).expect_err("too many");
        assert_eq!(
            error.to_string(),
            "simulate=10000001: a whole number of at most 10000000 is expected"
        );
    }

    #[test]
    fn a_statistical_stop_needs_a_risk_neutral_problem() {
        let settings = Settings {
            stopping: Stopping::any(vec![StopRule::Statistical { paths: 10 }]),
            ..Settings::default()
        };
        assert!(settings.check(true).is_ok());
        let error = settings.check(false).expect_err("no mean").to_string();
        assert!(error.starts_with("stop=statistical:10: "), "{error}");
    }
}
