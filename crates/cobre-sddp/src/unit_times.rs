//! Times of the work units of an iteration, and the messages between ranks that follow them: what a forecast for
//! other numbers of ranks starts from.

use crate::path::TrialStage;
use crate::problem::Problem;
use crate::ranks::block;
use crate::training::backward::UnitKey;

/// The work units of this rank in the last iteration, and what ranks exchange in each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnitTimes {
    /// Seconds of each forward pass.
    pub forward: Vec<f64>,
    /// Seconds of each unit of the backward pass, by level: the leaves, which have none, to the bound.
    pub backward: Vec<Vec<f64>>,
    /// Bytes in all of each allgatherv, but for that of the counts, whose length is in [`counts`](Self::counts).
    pub messages: Vec<usize>,
    /// Bytes of the counts of each rank.
    pub counts: usize,
}

impl UnitTimes {
    /// No times yet, for a rank with so many passes and units by level, of `units` of all ranks.
    pub(crate) fn new(
        problem: &Problem,
        passes: (usize, usize),
        own: impl Iterator<Item = usize>,
        units: &[Vec<UnitKey>],
    ) -> Self {
        let states = problem.states.len();
        let (own_passes, all_passes) = passes;
        let stage = size_of::<TrialStage>() + 8 * states;
        let mut messages = vec![all_passes * problem.graph.stages() * stage];
        for level in units.iter().filter(|level| !level.is_empty()) {
            if !problem.is_risk_neutral() {
                let openings = level.iter().map(|unit| unit.openings.len());
                messages.push(8 * openings.sum::<usize>());
            }
            messages.push(8 * level.len() * (1 + states));
        }
        Self {
            forward: vec![0.0; own_passes],
            backward: own.map(|units| vec![0.0; units]).collect(),
            messages,
            counts: crate::training::COUNTS,
        }
    }

    /// Seconds of all units.
    pub fn total(&self) -> f64 {
        let phases = self.backward.iter().chain([&self.forward]);
        phases.flatten().sum()
    }

    /// Seconds for which units keep `ranks` ranks of one thread, which share them as the ranks of a job do: the
    /// slowest rank of each phase. These are the times of all units if the job has one rank.
    pub fn critical_path(&self, ranks: usize) -> f64 {
        let phases = self.backward.iter().chain([&self.forward]);
        let slowest = |phase: &Vec<f64>| {
            let of_rank = |rank| phase[block(phase.len(), ranks, rank)].iter().sum::<f64>();
            (0..ranks).map(of_rank).fold(0.0, f64::max)
        };
        phases.map(slowest).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::UnitTimes;

    #[test]
    fn the_slowest_rank_of_each_phase_counts() {
        let times = UnitTimes {
            forward: vec![1.0, 2.0, 3.0],
            backward: vec![vec![], vec![4.0, 1.0, 1.0, 2.0], vec![5.0]],
            ..UnitTimes::default()
        };
        assert_eq!(times.total(), 19.0);
        assert_eq!(times.critical_path(1), 19.0);
        assert_eq!(times.critical_path(2), 3.0 + 5.0 + 5.0);
        assert_eq!(times.critical_path(4), 3.0 + 4.0 + 5.0);
        assert_eq!(times.critical_path(1024), times.critical_path(4));
    }
}
