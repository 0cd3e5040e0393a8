//! Paths that are not drawn from openings: fresh draws of the same model, and scenarios that are given.

mod asked;
mod enumerated;
mod given;
mod history;
mod pairs;
mod resolve;
mod source;

use cobre_sddp::Change;

pub(crate) use self::enumerated::EnumeratedOpenings;
pub(crate) use self::given::GivenScenarios;
pub(crate) use self::resolve::resolve;
pub(crate) use self::source::sources;
use super::model::{SeriesNumber, StageSeries};
use super::sampling::Kinds;
use super::system::System;

/// Standard deviations that no number that is drawn is beyond: a double in [0, 1) is no closer to its ends.
const FAR: f64 = 9.0;

/// The paths of training and simulation; through the openings where there is no plan.
#[derive(Debug, Default)]
pub(crate) struct PathPlans {
    pub(crate) training: Option<PathPlan>,
    pub(crate) simulation: Option<PathPlan>,
}

/// The sources of the series of a path, by kind of series.
#[derive(Debug, Clone)]
pub(crate) struct PathPlan {
    pub(crate) kinds: Kinds,
    pub(crate) inflows: SeriesPlan,
    pub(crate) loads: SeriesPlan,
    pub(crate) sources: SeriesPlan,
    /// The sequences of openings, where each of them is a path.
    pub(crate) enumerated: Option<EnumeratedOpenings>,
}

/// The source of the series of a kind.
#[derive(Debug, Clone)]
pub(crate) enum SeriesPlan {
    /// The opening that was drawn.
    InSample,
    /// A fresh draw of the same model.
    OutOfSample,
    /// A scenario.
    Given(GivenScenarios),
}

impl PathPlans {
    /// The ends of the range of values that paths have in a stage.
    pub(crate) fn ranges(&self, stage: usize, series: &StageSeries) -> Vec<Vec<Change>> {
        let plans = self.training.iter().chain(&self.simulation);
        let ends = plans.flat_map(|plan| {
            [Extreme::Least, Extreme::Most].map(|extreme| plan.range(stage, extreme, series))
        });
        ends.collect()
    }

    /// Lowers bounds on inflows, by plant and stage, to those of given scenarios.
    pub(crate) fn lower(&self, lowest: &mut [Vec<f64>]) {
        let plans = self.training.iter().chain(&self.simulation);
        for given in plans.filter_map(|plan| plan.inflows.given()) {
            for (place, stages) in lowest.iter_mut().enumerate() {
                for (stage, lowest) in stages.iter_mut().enumerate() {
                    *lowest = lowest.min(given.least_value(place, stage));
                }
            }
        }
    }
}

/// An end of a range.
#[derive(Clone, Copy, PartialEq)]
enum Extreme {
    Least,
    Most,
}

impl PathPlan {
    /// The plan of paths through the openings.
    fn in_sample(system: &System) -> Self {
        Self {
            kinds: Kinds::of(system),
            inflows: SeriesPlan::InSample,
            loads: SeriesPlan::InSample,
            sources: SeriesPlan::InSample,
            enumerated: None,
        }
    }

    /// The plans by kind of series, with the numbers of its series.
    fn parts(&self) -> [(&SeriesPlan, std::ops::Range<usize>); 3] {
        [
            (&self.inflows, self.kinds.inflows.clone()),
            (&self.loads, self.kinds.loads.clone()),
            (&self.sources, self.kinds.sources.clone()),
        ]
    }

    /// The scenarios that give a path its name: those of the kind that has most, and of the first of such kinds.
    fn scenarios(&self) -> Option<&GivenScenarios> {
        let parts = self.parts().into_iter().rev();
        let given = parts.filter_map(|(plan, _)| plan.given());
        given.max_by_key(|given| given.len())
    }

    /// The number of scenarios; none if there are as many as are asked for.
    pub(crate) fn count(&self) -> Option<usize> {
        let sequences = self.enumerated.as_ref().map(EnumeratedOpenings::len);
        sequences.or_else(|| self.scenarios().map(GivenScenarios::len))
    }

    fn range(&self, stage: usize, extreme: Extreme, series: &StageSeries) -> Vec<Change> {
        let mut numbers = Vec::with_capacity(self.kinds.sources.end);
        for (plan, own) in self.parts() {
            numbers.extend(own.enumerate().map(|(place, _)| match plan {
                SeriesPlan::InSample => SeriesNumber::Drawn(0.0),
                SeriesPlan::OutOfSample if extreme == Extreme::Least => SeriesNumber::Drawn(-FAR),
                SeriesPlan::OutOfSample => SeriesNumber::Drawn(FAR),
                SeriesPlan::Given(given) => {
                    let ends = given.range(place, stage);
                    let end = ends.map(|[least, most]| match extreme {
                        Extreme::Least => least,
                        Extreme::Most => most,
                    });
                    end.map_or(SeriesNumber::Drawn(0.0), SeriesNumber::Value)
                }
            }));
        }
        series.changes(&self.kinds, &numbers)
    }
}

impl SeriesPlan {
    fn given(&self) -> Option<&GivenScenarios> {
        match self {
            Self::Given(given) => Some(given),
            Self::InSample | Self::OutOfSample => None,
        }
    }
}
