//! The progress of training.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::events::{Iteration, TimeSplit};
use crate::lp::LpStatistics;
use crate::problem::Sense;

/// The least paths of an estimate, from the latest forward passes, once there are that many.
const ESTIMATE_PATHS: usize = 100;
/// The longest time that training can have taken, in seconds: a thousand years.
const LONGEST: f64 = 3.2e10;

/// The progress of training so far, in the modeller's sense.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) iterations: Vec<Iteration>,
    /// The bound after each iteration.
    pub(crate) bounds: Vec<f64>,
    /// The costs of all forward passes.
    pub(crate) costs: Vec<f64>,
    /// After each iteration the mean outgoing state of the first stage, if a rule asks for it.
    pub(crate) decisions: Vec<Vec<f64>>,
    /// The values of simulated paths, with the iterations before: the latest two, if a rule asks for them.
    pub(crate) simulated: Vec<(usize, Vec<f64>)>,
}

impl Progress {
    /// True if figures that were read can be those of training with so many forward passes.
    pub(crate) fn fits(&self, passes: usize) -> bool {
        let count = self.iterations.len();
        let numbered = self.iterations.iter().zip(1..);
        let mut times = self.iterations.iter().flat_map(|iteration| {
            let time = iteration.time;
            [time.total, time.forward, time.backward, time.communication]
        });
        let mut counts = self.iterations.iter().map(|iteration| iteration.lp);
        count > 0
            && u32::try_from(count.saturating_mul(passes)).is_ok()
            && self.bounds.len() == count
            && self.costs.len() == count * passes
            && numbered
                .into_iter()
                .all(|(iteration, number)| iteration.number == number)
            && times.all(|seconds| (0.0..=LONGEST).contains(&seconds))
            && counts.all(LpStatistics::is_plausible)
            && self.decisions.len() <= count
            && self.simulated.len() <= 2
            && self
                .bounds
                .iter()
                .chain(&self.costs)
                .all(|value| value.is_finite())
    }

    /// The time spent, earlier runs included.
    pub(crate) fn time(&self) -> TimeSplit {
        let last = self.iterations.last();
        last.map_or_else(TimeSplit::default, |last| last.time)
    }

    /// The duration of training, earlier runs included.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.time().total)
    }

    /// The estimate from the latest paths: all of the last iteration, and those of the iterations before
    /// until there are [`ESTIMATE_PATHS`], or `least` if that is more.
    pub(super) fn estimate(&self, least: usize) -> Estimate {
        let of_last = self.iterations.last().map_or(0, |last| last.estimate.paths);
        let count = of_last.max(ESTIMATE_PATHS).max(least);
        let first = self.costs.len().saturating_sub(count);
        Estimate::of(&self.costs[first..])
    }

    /// The best upper bound so far, for a cost: the least one.
    pub(super) fn upper_bound(&self, sense: Sense) -> Option<f64> {
        let better = match sense {
            Sense::Minimize => f64::min,
            Sense::Maximize => f64::max,
        };
        let all = self.iterations.iter();
        all.filter_map(|iteration| iteration.upper_bound)
            .reduce(better)
    }

    /// The distance of the best upper bound from the bound.
    pub(super) fn difference(&self) -> Option<f64> {
        let bound = *self.bounds.last()?;
        let uppers = self.iterations.iter().filter_map(|own| own.upper_bound);
        // All of them are on one side of it.
        uppers.map(|upper| (upper - bound).abs()).reduce(f64::min)
    }

    /// Keeps the values of simulated paths and those before them.
    pub(super) fn keep_simulated(&mut self, iterations: usize, values: Vec<f64>) {
        self.simulated.push((iterations, values));
        let old = self.simulated.len().saturating_sub(2);
        self.simulated.drain(..old);
    }

    /// The best bound so far, which need not be the last one where cuts are dropped.
    pub(super) fn bound(&self, sense: Sense) -> f64 {
        let better = match sense {
            Sense::Minimize => f64::max,
            Sense::Maximize => f64::min,
        };
        self.bounds
            .iter()
            .copied()
            .reduce(better)
            .unwrap_or(f64::NAN)
    }
}
