//! Sampling of uncertain inflows, load and sources: the openings of a stage.

mod bounded;
mod correlation;
mod factor;
mod given;
mod normal;
mod residuals;
mod sequence;
mod shared;
mod sobol;

use std::ops::Range;

use cobre_sddp::{Noise, Purpose};

pub(crate) use self::bounded::BoundedNoise;
use self::correlation::CorrelationProfiles;
use self::given::GivenOpenings;
use self::sequence::Sequence;
use self::shared::SharedNoise;
use super::files::Files;
use super::files::stages::SamplingMethod;
use super::system::System;
use crate::finding::Findings;

/// Where openings come from if the case does not say it.
const TREE_SEED: u64 = 42;

/// Which series are what, by number.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    pub(crate) inflows: Range<usize>,
    pub(crate) loads: Range<usize>,
    pub(crate) sources: Range<usize>,
}

impl Kinds {
    /// The series of a system: inflows by plant, load by bus, sources.
    pub(crate) fn of(system: &System) -> Self {
        let loads = system.hydros.len();
        let sources = loads + system.buses.len();
        Self {
            inflows: 0..loads,
            loads: loads..sources,
            sources: sources..sources + system.sources.len(),
        }
    }
}

/// The sampling of a case.
#[derive(Debug)]
pub(crate) struct OpeningSampler {
    noise: Noise,
    kinds: Kinds,
    together: CorrelationProfiles,
    /// By stage.
    shared: Vec<SharedNoise>,
    given: Option<GivenOpenings>,
}

impl OpeningSampler {
    /// The sampling of a case; says what is wrong with its correlation.
    pub(crate) fn resolve(files: &Files, system: &System, findings: &mut Findings) -> Self {
        let seed = files
            .config
            .training
            .tree_seed
            .map_or(TREE_SEED, |seed| seed.0);
        residuals::check(system, findings);
        Self {
            noise: Noise::new(seed, Purpose::Openings),
            kinds: Kinds::of(system),
            together: correlation::resolve(files, system, findings),
            shared: shared::resolve(system),
            given: GivenOpenings::resolve(files, system, findings),
        }
    }

    /// Standard normal numbers for each opening of a stage, by series.
    pub(crate) fn draw(&self, system: &System, stage: usize) -> Vec<Vec<f64>> {
        let openings = system.stages[stage].openings;
        if let Some(given) = &self.given {
            return given.openings(stage, || self.drawn(system, stage));
        }
        let mut found = self.drawn(system, stage);
        found.truncate(openings);
        found
    }

    /// The numbers of a stage, as many as any of the stages has that share them.
    fn drawn(&self, system: &System, stage: usize) -> Vec<Vec<f64>> {
        let group = self.shared[stage];
        let series = self.kinds.sources.end;
        let mut found = vec![vec![0.0; series]; group.openings];
        let method = system.stages[group.first].sampling;
        let sequence = Sequence::new(method, self.noise, group);
        for number in 0..series {
            for (opening, level) in found.iter_mut().zip(sequence.levels(number)) {
                opening[number] = quantile(level);
            }
        }
        for opening in &mut found {
            self.correlate(stage, opening);
        }
        if method == SamplingMethod::HistoricalResiduals {
            let years = residuals::by_year(system, stage);
            let order = residuals::order(self.noise, group, years.len());
            for (opening, year) in found.iter_mut().zip(order) {
                opening[self.kinds.inflows.clone()].copy_from_slice(&years[year]);
            }
        }
        found
    }

    /// Standard normal numbers of a stage, by series, of numbers in [0, 1).
    pub(crate) fn fresh(&self, stage: usize, numbers: &mut [f64]) {
        for number in &mut *numbers {
            *number = quantile(*number);
        }
        self.correlate(stage, numbers);
    }

    /// The first of the neighbouring stages that share their noise with a stage, which are of one season and year.
    pub(crate) fn shares_with(&self, stage: usize) -> usize {
        self.shared[stage].first
    }

    /// Makes series that are drawn one by one move together.
    fn correlate(&self, stage: usize, opening: &mut [f64]) {
        for group in self.together.groups(stage) {
            let own: Vec<f64> = group
                .members
                .iter()
                .map(|&member| opening[member])
                .collect();
            for (&member, row) in group.members.iter().zip(&group.factor) {
                opening[member] = row
                    .iter()
                    .zip(&own)
                    .map(|(entry, value)| entry * value)
                    .sum();
            }
        }
    }
}

/// The standard normal number of a number in [0, 1).
pub(crate) fn quantile(level: f64) -> f64 {
    normal::quantile(inside(level))
}

/// A number of [0, 1), never 0 and never 1, which are infinitely far out.
fn inside(level: f64) -> f64 {
    (level + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON)
}
