//! What a caller asks of a run, before what the case says.

use cobre_sddp::policy::Selection;
use cobre_sddp::training::{StopRule, Stopping};

use crate::CaseSettings;

/// What a caller asks of a run; what it leaves open, the case says, else it is as usual.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Iterations of training.
    pub iterations: Option<usize>,
    /// Rules to stop by.
    pub stop: Vec<StopRule>,
    /// Whether all rules must agree.
    pub stop_when_all: bool,
    /// Forward passes per iteration.
    pub forward_passes: Option<usize>,
    /// Where all chance comes from.
    pub seed: Option<u64>,
    /// Which cuts are used.
    pub selection: Option<Selection>,
    /// Paths to simulate after training.
    pub simulate: Option<usize>,
}

impl Wishes {
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
