//! Thermal plants.

use super::index::{Index, by_stage};
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

/// What a thermal plant can do in a block.
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

/// Puts the bounds of stages in place, and then those of blocks.
fn bounds(
    files: &Files,
    index: &Index,
    stages: &[Stage],
    stage_index: &Index,
    limits: &mut [Vec<Vec<ThermalLimits>>],
    findings: &mut Findings,
) {
    let file = ThermalBounds::FILE;
    let most = stages
        .iter()
        .map(|stage| stage.hours.len())
        .max()
        .unwrap_or(0);
    for block in std::iter::once(None).chain((0..most).map(Some)) {
        let of_block = |row: &&ThermalBounds| match (row.block_id, block) {
            (None, None) => true,
            (Some(id), Some(block)) => usize::try_from(id) == Ok(block),
            _ => false,
        };
        let rows: Vec<ThermalBounds> = files
            .thermal_bounds
            .iter()
            .filter(of_block)
            .copied()
            .collect();
        let read = |row: &ThermalBounds| (row.thermal_id, row.stage_id, *row);
        let found = by_stage(&rows, file, index, stage_index, read, findings);
        for (plant, of_plant) in found.iter().enumerate() {
            for (stage, row) in of_plant.iter().enumerate() {
                let Some(row) = row else { continue };
                let limits = &mut limits[plant][stage];
                match block {
                    None => limits
                        .iter_mut()
                        .for_each(|limits| *limits = limits.changed(row)),
                    Some(block) if block < limits.len() => {
                        limits[block] = limits[block].changed(row);
                    }
                    Some(_) => {}
                }
            }
        }
    }
    for (number, row) in files.thermal_bounds.iter().enumerate() {
        let at = Place::file(file).row(number);
        let Some(id) = row.block_id else { continue };
        let stage = stages.iter().find(|stage| stage.id == row.stage_id);
        let exists = |stage: &Stage| usize::try_from(id).is_ok_and(|id| id < stage.hours.len());
        if stage.is_some_and(|stage| !exists(stage)) {
            findings.wrong(&at, format!("stage {} has no block {id}", row.stage_id));
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
                findings.wrong(&Place::file(file).rows(thing), message);
            }
        }
    }
}
