//! The values on paths of a plan, as a function of seed, path and stage.

use std::sync::{Arc, Mutex, PoisonError};

use cobre_sddp::{Change, Noise, PathPoint, PathSource, PathSources, Purpose};

use super::{PathPlan, PathPlans, SeriesPlan};
use crate::hydrothermal::model::{SeriesNumber, StageSeries};
use crate::hydrothermal::sampling::OpeningSampler;
use crate::hydrothermal::system::System;

/// The sources of the paths of plans.
pub(crate) fn sources(
    plans: PathPlans,
    system: &System,
    series: Vec<StageSeries>,
    sampling: OpeningSampler,
) -> PathSources {
    let (series, sampling) = (Arc::new(series), Arc::new(sampling));
    let source = |plan: PathPlan| -> Arc<dyn PathSource> {
        let stages = (0..system.stages.len()).filter(|_| plan.needs_openings());
        let openings = stages.map(|stage| sampling.draw(system, stage)).collect();
        Arc::new(CasePaths {
            plan,
            stages: system.nodes.iter().map(|node| node.stage).collect(),
            series: Arc::clone(&series),
            sampling: Arc::clone(&sampling),
            openings,
            order: Mutex::default(),
        })
    };
    PathSources {
        training: plans.training.map(source),
        simulation: plans.simulation.map(source),
    }
}

impl PathPlan {
    /// True if some series are those of openings.
    fn needs_openings(&self) -> bool {
        self.parts().into_iter().any(|(plan, own)| match plan {
            SeriesPlan::InSample => !own.is_empty(),
            SeriesPlan::OutOfSample => false,
            SeriesPlan::Given(given) => given.is_partial(),
        })
    }
}

/// The paths of a plan.
#[derive(Debug)]
struct CasePaths {
    plan: PathPlan,
    /// The place of the stage of each node.
    stages: Vec<usize>,
    /// By node.
    series: Arc<Vec<StageSeries>>,
    sampling: Arc<OpeningSampler>,
    /// By stage, opening and series, where a series is that of an opening.
    openings: Vec<Vec<Vec<f64>>>,
    /// The order of scenarios in the round of forward passes that was asked for last.
    order: Mutex<Option<(u64, usize, Vec<usize>)>>,
}

impl CasePaths {
    /// The scenario of a path: in the order of files when simulated, else in random order, none twice before all were
    /// there.
    fn scenario(&self, seed: u64, purpose: Purpose, path: usize) -> usize {
        let count = self.plan.count().unwrap_or(usize::MAX);
        if self.plan.enumerated.is_some() {
            return path % count;
        }
        if purpose != Purpose::Training || count == usize::MAX {
            return path;
        }
        let (round, place) = (path / count, path % count);
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match &*order {
            Some((of_seed, of_round, order)) if (*of_seed, *of_round) == (seed, round) => {
                order[place]
            }
            _ => {
                let noise = Noise::new(seed, Purpose::ScenarioOrder);
                let drawn = |scenario: &usize| noise.draw(round, *scenario, 0)[0];
                let mut drawn: Vec<(f64, usize)> = (0..count)
                    .map(|scenario| (drawn(&scenario), scenario))
                    .collect();
                drawn.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
                let all: Vec<usize> = drawn.into_iter().map(|(_, scenario)| scenario).collect();
                let found = all[place];
                *order = Some((seed, round, all));
                found
            }
        }
    }

    /// A fresh draw of all series.
    fn fresh(&self, at: &PathPoint, stage: usize) -> Vec<f64> {
        let purpose = match at.purpose {
            Purpose::Training => Purpose::OutOfSampleTraining,
            _ => Purpose::OutOfSampleSimulation,
        };
        let mut numbers = vec![0.0; self.plan.kinds.sources.end];
        // Stages of one season and year share their noise.
        let first = at.stage - (stage - self.sampling.shares_with(stage)).min(at.stage);
        Noise::new(at.seed, purpose).fill(at.path, first, &mut numbers);
        self.sampling.fresh(stage, &mut numbers);
        numbers
    }
}

impl PathSource for CasePaths {
    fn kind(&self) -> &str {
        if self.plan.enumerated.is_some() {
            return "enumerated";
        }
        let given = self.plan.scenarios().map(|given| given.kind);
        given.unwrap_or("out_of_sample")
    }

    fn count(&self) -> Option<usize> {
        self.plan.count()
    }

    fn label(&self, seed: u64, purpose: Purpose, path: usize) -> String {
        let scenario = self.scenario(seed, purpose, path);
        let given = self.plan.scenarios();
        given.map_or(String::new(), |given| given.label(scenario).to_owned())
    }

    fn changes(&self, at: &PathPoint) -> Vec<Change> {
        let stage = self.stages[at.node];
        let scenario = self.scenario(at.seed, at.purpose, at.path);
        let mut fresh = None;
        let mut numbers = Vec::with_capacity(self.plan.kinds.sources.end);
        for (plan, own) in self.plan.parts() {
            let first = own.start;
            let drawn = self.plan.enumerated.as_ref();
            let drawn = drawn.map_or(at.opening, |all| all.opening(scenario, stage));
            numbers.extend(own.map(|series| {
                let opening = || SeriesNumber::Drawn(self.openings[stage][drawn][series]);
                match plan {
                    SeriesPlan::InSample => opening(),
                    SeriesPlan::OutOfSample => {
                        let fresh: &Vec<f64> = fresh.get_or_insert_with(|| self.fresh(at, stage));
                        SeriesNumber::Drawn(fresh[series])
                    }
                    SeriesPlan::Given(given) => {
                        let number = given.number(scenario, stage, series - first);
                        number.map_or_else(opening, SeriesNumber::Value)
                    }
                }
            }));
        }
        self.series[at.node].changes(&self.plan.kinds, &numbers)
    }

    fn identity(&self) -> String {
        if self.plan.enumerated.is_some() {
            return "enumerated".to_owned();
        }
        let parts = self.plan.parts().map(|(plan, _)| match plan {
            SeriesPlan::InSample => "in_sample".to_owned(),
            SeriesPlan::OutOfSample => "out_of_sample".to_owned(),
            SeriesPlan::Given(given) => format!("{} {:016x}", given.kind, given.hash()),
        });
        parts.join(", ")
    }
}
