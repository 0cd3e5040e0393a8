//! Progress of a run.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::lp::LpStatistics;
use crate::spans::Span;
use crate::training::Estimate;
use crate::unit_times::UnitTimes;

/// The state of training after an iteration, in the modeller's sense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// The number of the iteration, from 1.
    pub number: usize,
    /// The bound on the optimal value: from below for a cost, from above for a revenue.
    pub bound: f64,
    /// The policy's value on this iteration's forward passes.
    pub estimate: Estimate,
    /// The bound from the other side, from above for a cost; `None` where none was computed or found.
    pub upper_bound: Option<f64>,
    /// The distance of the estimate's mean from the bound, as [`gap`](crate::gap) has it; `None` under a risk measure.
    pub gap: Option<f64>,
    /// Linear programs solved so far, by all ranks.
    pub lp: LpStatistics,
    /// Cuts in use.
    pub cuts: usize,
    /// Cuts that this iteration has added.
    pub cuts_added: usize,
    /// The time spent so far.
    pub time: TimeSplit,
}

/// Seconds since training began, by the clock of rank 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct TimeSplit {
    /// In all.
    pub total: f64,
    /// In forward passes.
    pub forward: f64,
    /// In backward passes, the bound included.
    pub backward: f64,
    /// In collectives, waiting for other ranks included.
    pub communication: f64,
}

/// Progress callbacks; every method has a default.
pub trait Observer {
    /// An iteration is done.
    fn iteration(&mut self, iteration: &Iteration) {
        let _ = iteration;
    }

    /// An iteration is done, and these were the times of this rank's work units in it.
    fn unit_times(&mut self, times: &UnitTimes) {
        let _ = times;
    }

    /// Returns true to get the [`spans`](Self::spans) of this rank.
    fn wants_spans(&self) -> bool {
        false
    }

    /// The spans since the last call: after every iteration, after the simulation, and at the end.
    fn spans(&mut self, spans: &[Span]) {
        let _ = spans;
    }

    /// This many simulated paths of all are done.
    fn simulated(&mut self, done: usize, all: usize) {
        let _ = (done, all);
    }

    /// Training goes on after `iterations` of an earlier run.
    fn resumed(&mut self, iterations: usize) {
        let _ = iterations;
    }

    /// A warning to the user, which does not end the run.
    fn warning(&mut self, text: &str) {
        let _ = text;
    }

    /// Returns true to get the tables of simulated paths of a run without an output directory. All ranks answer the
    /// same.
    fn keeps_tables(&self) -> bool {
        false
    }

    /// Returns false if the results of the first rank need not have the policy: a large one takes memory.
    fn keeps_policy(&self) -> bool {
        true
    }

    /// A table of simulated paths as the bytes of its Parquet file, on the first rank.
    fn table(&mut self, name: &str, parquet: Vec<u8>) {
        let _ = (name, parquet);
    }

    /// Returns true to end the run. If any rank does, all end after the iteration.
    fn interrupted(&mut self) -> bool {
        false
    }
}

/// The observer that ignores everything.
impl Observer for () {}
