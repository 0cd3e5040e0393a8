//! Thermal plants.

use std::collections::HashSet;

use super::index::Index;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::constraints::ThermalBounds;
use crate::hydrothermal::files::system;
use crate::hydrothermal::table::Row;

/// A thermal plant.
#[derive(Debug)]
pub(crate) struct Thermal {
    pub(crate) label: String,
    pub(crate) bus: usize,
    /// By stage and block.
    pub(crate) limits: Vec<Vec<ThermalLimits>>,
}

/// Limits of a thermal plant in a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThermalLimits {
    /// MW.
    pub(crate) min: f64,
    /// MW.
    pub(crate) max: f64,
    /// $/MWh.
    pub(crate) cost: f64,
}

impl ThermalLimits {
    fn changed(self, row: &ThermalBounds) -> Self {
        Self {
            min: row.min_generation_mw.map_or(self.min, |value| value.0),
            max: row.max_generation_mw.map_or(self.max, |value| value.0),
            cost: row.cost_per_mwh.map_or(self.cost, |value| value.0),
        }
    }
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> Vec<Thermal> {
    let list = Place::file(system::THERMALS).key("thermals");
    let plants = &files.thermals.thermals;
    let things = plants.iter().map(|plant| (plant.id, plant.name.as_str()));
    let index = Index::new("thermal plant", things, &list, findings);
    let mut limits: Vec<Vec<Vec<ThermalLimits>>> = Vec::new();
    let mut on = Vec::new();
    for (place, plant) in plants.iter().enumerate() {
        let at = list.index(place);
        on.push(buses.find(plant.bus_id, &at.key("bus_id"), findings));
        let whole = ThermalLimits {
            min: plant.generation.min_mw.0,
            max: plant.generation.max_mw.0,
            cost: plant.cost_per_mwh.0,
        };
        if whole.min > whole.max {
            let message = format!("{} is above max_mw, {}", whole.min, whole.max);
            findings.wrong(&at.key("generation.min_mw"), message);
        }
        limits.push(
            stages
                .iter()
                .map(|stage| vec![whole; stage.hours.len()])
                .collect(),
        );
    }
    bounds(files, &index, stages, stage_index, &mut limits, findings);
    let plants = index.labels.into_iter().zip(on).zip(limits);
    plants
        .filter_map(|((label, bus), limits)| {
            Some(Thermal {
                label,
                bus: bus?,
                limits,
            })
        })
        .collect()
}

/// Puts the bounds of stages in place, and then those of blocks, which beat them.
fn bounds(
    files: &Files,
    index: &Index,
    stages: &[Stage],
    stage_index: &Index,
    limits: &mut [Vec<Vec<ThermalLimits>>],
    findings: &mut Findings,
) {
    let file = Place::file(ThermalBounds::FILE);
    let mut seen = HashSet::new();
    for of_block in [false, true] {
        let rows = files.thermal_bounds.iter().enumerate();
        for (number, row) in rows.filter(|(_, row)| row.block_id.is_some() == of_block) {
            let at = file.row(number);
            let plant = index.find(row.thermal_id, &at, findings);
            let stage = stage_index.find(row.stage_id, &at, findings);
            let (Some(plant), Some(stage)) = (plant, stage) else {
                continue;
            };
            if !seen.insert((plant, stage, row.block_id)) {
                let block = row.block_id.map(|id| format!(", block {id}"));
                let message = format!(
                    "there is a row of thermal plant {}, stage {}{} already",
                    row.thermal_id,
                    row.stage_id,
                    block.unwrap_or_default()
                );
                findings.wrong(&at, message);
            }
            let limits = &mut limits[plant][stage];
            let Some(id) = row.block_id else {
                for limits in limits {
                    *limits = limits.changed(row);
                }
                continue;
            };
            match usize::try_from(id).ok().and_then(|id| limits.get_mut(id)) {
                Some(limits) => *limits = limits.changed(row),
                None => findings.wrong(&at, format!("stage {} has no block {id}", row.stage_id)),
            }
        }
    }
    for (plant, of_plant) in limits.iter().enumerate() {
        for (stage, of_stage) in of_plant.iter().enumerate() {
            if let Some(wrong) = of_stage.iter().find(|limits| limits.min > limits.max)
                && files.thermals.thermals[plant].generation.min_mw.0
                    <= files.thermals.thermals[plant].generation.max_mw.0
            {
                let thing = format!(
                    "thermal plant {}, stage {}",
                    files.thermals.thermals[plant].id, stages[stage].id
                );
                let message = format!(
                    "the least generation, {}, is above the most, {}",
                    wrong.min, wrong.max
                );
                findings.wrong(&file.rows(thing), message);
            }
        }
    }
}
