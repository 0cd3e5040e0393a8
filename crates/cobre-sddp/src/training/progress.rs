//! The figures of training so far.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::events::{Iteration, TimeSplit};

/// The most paths of the latest forward passes that an estimate is made from.
const ESTIMATE_PATHS: usize = 100;

/// The figures of the iterations so far, in the modeller's sense.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) iterations: Vec<Iteration>,
    /// The bound after each iteration.
    pub(crate) bounds: Vec<f64>,
    /// The costs of all forward passes.
    pub(crate) costs: Vec<f64>,
}

impl Progress {
    /// Where the time went, earlier runs included.
    pub(crate) fn time(&self) -> TimeSplit {
        let last = self.iterations.last();
        last.map_or_else(TimeSplit::default, |last| last.time)
    }

    /// How long training took, earlier runs included.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.time().total)
    }

    /// The estimate from the latest paths: all of the last iteration, and at most [`ESTIMATE_PATHS`]
    /// where iterations have fewer.
    pub(super) fn estimate(&self) -> Estimate {
        let first = self.costs.len().saturating_sub(ESTIMATE_PATHS);
        Estimate::of(&self.costs[first..])
    }
}
