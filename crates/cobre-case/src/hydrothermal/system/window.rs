//! Entry and exit: the stages in which something is there.

use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::number::Id;

/// The stages in which something is there: entry ≤ stage < exit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StageWindow {
    entry: Option<Id>,
    exit: Option<Id>,
}

impl StageWindow {
    /// The window of these keys of the object `at`; says if it has no stage.
    pub(crate) fn new(
        entry: Option<Id>,
        exit: Option<Id>,
        at: &Place,
        findings: &mut Findings,
    ) -> Self {
        if let (Some(entry), Some(exit)) = (entry, exit)
            && exit <= entry
        {
            let message = format!("{exit} is not after entry_stage_id, {entry}");
            findings.wrong(&at.key("exit_stage_id"), message);
        }
        Self { entry, exit }
    }

    /// True if the stage of this number is one of them.
    pub(crate) fn has(&self, stage: Id) -> bool {
        self.entry.is_none_or(|entry| entry <= stage) && self.exit.is_none_or(|exit| stage < exit)
    }

    /// Closes limits, by stage and block, in the stages that are none of them; returns whether each stage is one.
    pub(crate) fn close<T>(
        &self,
        stages: &[Stage],
        limits: &mut [Vec<T>],
        close: impl Fn(&mut T),
    ) -> Vec<bool> {
        let is_there = self.of(stages);
        for (_, limits) in is_there.iter().zip(limits).filter(|(there, _)| !**there) {
            limits.iter_mut().for_each(&close);
        }
        is_there
    }

    /// By stage, whether it is one of them.
    pub(crate) fn of(&self, stages: &[Stage]) -> Vec<bool> {
        stages.iter().map(|stage| self.has(stage.id)).collect()
    }
}
