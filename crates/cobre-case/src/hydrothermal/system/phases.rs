//! Phases of a plant: not there yet, filling, in operation, gone.

use super::time::Stage;
use super::window::StageWindow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::system;

/// The phase of a plant in a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HydroPhase {
    /// It is not there yet: water flows past its site, and what its site holds stays.
    Absent,
    /// Its reservoir is filled for the first time, up to this storage at the end of the stage, hm³.
    Filling { target: f64 },
    /// It is in operation.
    Operating,
    /// It is gone: water flows past its site, and what it held is let go.
    Retired,
}

impl HydroPhase {
    /// True if water flows past its site.
    pub(crate) fn passes(self) -> bool {
        matches!(self, Self::Absent | Self::Retired)
    }
}

/// The phases of a plant by stage; targets of filling are zero until [`set_targets`].
pub(super) fn resolve(
    plant: &system::Hydro,
    stages: &[Stage],
    at: &Place,
    findings: &mut Findings,
) -> Vec<HydroPhase> {
    // Before the first stage or after the last one is right too: the study is a part of the plant's time.
    let window = StageWindow::new(plant.entry_stage_id, plant.exit_stage_id, at, findings);
    let (entry, exit) = (plant.entry_stage_id, plant.exit_stage_id);
    let after = stages.last().map_or(0, |last| last.id.saturating_add(1));
    let start = plant.filling.as_ref().map(|filling| {
        let at_plant = at;
        let at = at_plant.key("filling");
        let key = at.key("start_stage_id");
        let start = filling.start_stage_id;
        if plant.entry_stage_id.is_none() {
            let message = "filling ends where entry_stage_id says; add that key to the plant";
            findings.wrong(&at, message);
        } else if entry.is_some_and(|entry| start >= entry) {
            let message = format!("{start} is not before entry_stage_id of the plant");
            findings.wrong(&key, message);
        } else if entry.is_some_and(|entry| entry > after) {
            let message =
                "filling has its targets from the stages before it, and the study ends earlier";
            findings.wrong(&at_plant.key("entry_stage_id"), message);
        }
        if filling.filling_inflow_m3s.is_some() && filling.filling_min_rate_m3s.is_some() {
            let message = "it is another name of filling_inflow_m3s; keep one of them";
            findings.wrong(&at.key("filling_min_rate_m3s"), message);
        }
        start
    });
    let phase = |stage: &Stage| {
        if window.has(stage.id) {
            HydroPhase::Operating
        } else if exit.is_some_and(|exit| stage.id >= exit) {
            HydroPhase::Retired
        } else if start.is_some_and(|start| stage.id >= start) {
            HydroPhase::Filling { target: 0.0 }
        } else {
            HydroPhase::Absent
        }
    };
    stages.iter().map(phase).collect()
}

/// Sets the targets of filling, given least storage, hm³, and the flow to keep back, m³/s, by stage.
pub(super) fn set_targets(
    phases: &mut [HydroPhase],
    stages: &[Stage],
    least: &[f64],
    rates: &[f64],
) {
    let mut owed: Option<f64> = None;
    for place in (0..phases.len()).rev() {
        if let HydroPhase::Filling { target } = &mut phases[place] {
            // The last target is the least storage, and those before are lower by what is kept back later.
            let next = owed.unwrap_or(least[place]);
            *target = next.min(least[place]).max(0.0);
            owed = Some(next - stages[place].total_volume() * rates[place]);
        }
    }
}
