//! Options of the caller, which take precedence over those of the case.

use cobre_sddp::{Selection, StopRule, Stopping};

use crate::CaseSettings;

/// Options of the caller; those left out come from the case, else from the defaults.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Iterations of training.
    pub iterations: Option<usize>,
    /// Rules to stop by.
    pub stop: Vec<StopRule>,
    /// True if all rules must agree.
    pub stop_when_all: bool,
    /// Forward passes per iteration.
    pub forward_passes: Option<usize>,
    /// The seed of all random numbers.
    pub seed: Option<u64>,
    /// Which cuts are used.
    pub selection: Option<Selection>,
    /// Paths to simulate after training.
    pub simulate: Option<usize>,
}

impl Overrides {
    /// The settings of a run on a case with these settings, or on one that has none.
    pub fn over(self, case: Option<&CaseSettings>) -> CaseSettings {
        let stopping = match (self.iterations, case) {
            (None, Some(case)) if self.stop.is_empty() => case.stopping.clone(),
            (iterations, _) => Stopping::asked(iterations, self.stop, self.stop_when_all),
        };
        let own = case.cloned().unwrap_or_else(|| CaseSettings {
            forward_passes: 1,
            stopping: stopping.clone(),
            seed: 0,
            selection: Selection::ALL,
            simulate: 0,
        });
        CaseSettings {
            forward_passes: self.forward_passes.unwrap_or(own.forward_passes),
            stopping,
            seed: self.seed.unwrap_or(own.seed),
            selection: self.selection.unwrap_or(own.selection),
            simulate: self.simulate.unwrap_or(own.simulate),
        }
    }
}
