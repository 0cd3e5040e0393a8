//! Batteries.

use super::bounds::with_bounds;
use super::index::Index;
use super::time::Stage;
use super::window::StageWindow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::equipment::{self, BatteryBounds};

/// The cost of a level below its minimum where the file gives none, $/MWh.
const LEVEL_BELOW: f64 = 10_000.0;

/// A battery.
#[derive(Debug)]
pub(crate) struct Battery {
    pub(crate) label: String,
    pub(crate) bus: usize,
    /// MWh.
    pub(crate) capacity: f64,
    /// MWh.
    pub(crate) min_level: f64,
    /// MWh.
    pub(crate) initial_level: f64,
    /// The parts of energy that are left by charging and by discharging.
    pub(crate) charge_efficiency: f64,
    pub(crate) discharge_efficiency: f64,
    /// The part of the stored energy that is lost in an hour.
    pub(crate) self_discharge: f64,
    /// $/MWh given to the bus.
    pub(crate) degradation_cost: f64,
    /// $/MWh.
    pub(crate) level_below_cost: f64,
    /// By stage.
    pub(crate) is_there: Vec<bool>,
    /// By stage and block, MW: the most charged and the most discharged.
    pub(crate) limits: Vec<Vec<[f64; 2]>>,
}

impl Battery {
    /// The part of a level that is left after so many hours.
    pub(crate) fn retained(&self, hours: f64) -> f64 {
        libm::pow(1.0 - self.self_discharge, hours)
    }
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Vec<Battery>, Index) {
    let list = Place::file(equipment::BATTERIES).key("batteries");
    let batteries = files.batteries.iter().flat_map(|file| &file.batteries);
    let things = batteries.clone().map(|battery| {
        let limits = [battery.max_charge_mw.0, battery.max_discharge_mw.0];
        (battery.id, battery.name.as_str(), limits)
    });
    let (index, limits) = with_bounds(
        ("battery", &list),
        things,
        (stages, stage_index),
        &files.battery_bounds,
        |row: &BatteryBounds| (row.battery_id, row.stage_id, row.block_id),
        |[charge, discharge], row| {
            *charge = row.max_charge_mw.map_or(*charge, |value| value.0);
            *discharge = row.max_discharge_mw.map_or(*discharge, |value| value.0);
        },
        findings,
    );
    let mut found = Vec::new();
    for (place, (battery, mut limits)) in batteries.zip(limits).enumerate() {
        let at = list.index(place);
        let bus = buses.find(battery.bus_id, &at.key("bus_id"), findings);
        check_levels(battery, &at, findings);
        let window = StageWindow::new(battery.entry_stage_id, battery.exit_stage_id, &at, findings);
        let is_there = window.close(stages, &mut limits, |limits| *limits = [0.0; 2]);
        found.push(Battery {
            label: index.labels[place].clone(),
            bus: bus.unwrap_or(0),
            capacity: battery.capacity_mwh.0,
            min_level: battery.min_level_mwh.map_or(0.0, |level| level.0),
            initial_level: battery.initial_level_mwh.0,
            charge_efficiency: battery.charge_efficiency.map_or(1.0, |part| part.0),
            discharge_efficiency: battery.discharge_efficiency.map_or(1.0, |part| part.0),
            self_discharge: battery.self_discharge_per_hour.map_or(0.0, |part| part.0),
            degradation_cost: battery.degradation_cost_per_mwh.map_or(0.0, |cost| cost.0),
            level_below_cost: battery
                .level_violation_below_cost
                .map_or(LEVEL_BELOW, |cost| cost.0),
            is_there,
            limits,
        });
    }
    (found, index)
}

/// Says which levels a battery cannot have.
fn check_levels(battery: &equipment::Battery, at: &Place, findings: &mut Findings) {
    let most = battery.capacity_mwh.0;
    let least = battery.min_level_mwh.map_or(0.0, |level| level.0);
    if least > most {
        let message = format!("{least} is above capacity_mwh, {most}");
        findings.wrong(&at.key("min_level_mwh"), message);
    } else if !(least..=most).contains(&battery.initial_level_mwh.0) {
        let message = format!(
            "the initial level is {}; it must be from {least} to {most}",
            battery.initial_level_mwh.0
        );
        findings.wrong(&at.key("initial_level_mwh"), message);
    }
}
