//! Groups of units of hydro plants: one plant that feeds several buses.

use std::collections::HashMap;

use super::bounds::{check_order, everywhere};
use super::index::Index;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::constraints::UnitGroupBounds;
use crate::hydrothermal::files::system;
use crate::hydrothermal::number::NonNegative;
use crate::hydrothermal::table::Row;

/// A group of units of a hydro plant.
#[derive(Debug)]
pub(crate) struct UnitGroup {
    pub(crate) label: String,
    pub(crate) bus: usize,
    /// By stage and block.
    pub(crate) limits: Vec<Vec<UnitLimits>>,
}

/// Limits of a group of units in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitLimits {
    /// m³/s.
    pub(crate) min_turbined: f64,
    /// m³/s.
    pub(crate) max_turbined: f64,
    /// MW.
    pub(crate) min_generation: f64,
    /// MW.
    pub(crate) max_generation: f64,
}

/// The least and the most of a quantity.
type UnitRange = fn(&UnitLimits) -> (f64, f64);

impl UnitLimits {
    fn new(file: &system::UnitGroup) -> Self {
        let or_zero = |value: Option<NonNegative>| value.map_or(0.0, |value| value.0);
        Self {
            min_turbined: or_zero(file.min_turbined_m3s),
            max_turbined: file.max_turbined_m3s.0,
            min_generation: or_zero(file.min_generation_mw),
            max_generation: file.max_generation_mw.0,
        }
    }

    fn change(&mut self, row: &UnitGroupBounds) {
        let or = |value: Option<NonNegative>, old: f64| value.map_or(old, |value| value.0);
        self.min_turbined = or(row.min_turbined_m3s, self.min_turbined);
        self.max_turbined = or(row.max_turbined_m3s, self.max_turbined);
        self.min_generation = or(row.min_generation_mw, self.min_generation);
        self.max_generation = or(row.max_generation_mw, self.max_generation);
    }
}

/// The bus of a plant: its own, or that of its first group of units.
pub(super) fn bus(
    plant: &system::Hydro,
    buses: &Index,
    at: &Place,
    findings: &mut Findings,
) -> Option<usize> {
    match (plant.bus_id, plant.groups().first()) {
        (Some(id), None) => buses.find(id, &at.key("bus_id"), findings),
        (None, Some(group)) => buses.find(group.bus_id, &at.key("unit_groups[0].bus_id"), findings),
        (Some(_), Some(_)) => {
            let message = "unit_groups have buses of their own; remove bus_id";
            findings.wrong(&at.key("bus_id"), message);
            None
        }
        (None, None) => {
            let message = "the key is missing; or else give unit_groups";
            findings.wrong(&at.key("bus_id"), message);
            None
        }
    }
}

/// The groups of all plants.
pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    (plants, stages, stage_index): (&Index, &[Stage], &Index),
    findings: &mut Findings,
) -> Vec<Vec<UnitGroup>> {
    let list = Place::file(system::HYDROS).key("hydros");
    let mut found = Vec::new();
    let mut places = HashMap::new();
    for (place, plant) in files.hydros.hydros.iter().enumerate() {
        let at = list.index(place).key("unit_groups");
        let named = plant.groups().iter();
        let named = named.map(|group| (group.id, group.name.as_str()));
        let index = Index::new("group of units", named, &at, findings);
        let mut groups = Vec::new();
        for (number, group) in plant.groups().iter().enumerate() {
            places.insert((plant.id, group.id), (place, number));
            let at = at.index(number);
            let bus = buses.find(group.bus_id, &at.key("bus_id"), findings);
            let limits = UnitLimits::new(group);
            for (key, least, most) in [
                ("min_turbined_m3s", limits.min_turbined, limits.max_turbined),
                (
                    "min_generation_mw",
                    limits.min_generation,
                    limits.max_generation,
                ),
            ] {
                if least > most {
                    findings.wrong(&at.key(key), format!("{least} is above the most, {most}"));
                }
            }
            groups.push(UnitGroup {
                label: format!("{}.{}", plants.labels[place], index.labels[number]),
                bus: bus.unwrap_or(0),
                limits: everywhere(stages, limits),
            });
        }
        found.push(groups);
    }
    bounds(files, stage_index, &places, &mut found, findings);
    check(files, stages, &found, findings);
    found
}

/// Puts the rows of the table of bounds in place.
fn bounds(
    files: &Files,
    stages: &Index,
    places: &HashMap<(i32, i32), (usize, usize)>,
    found: &mut [Vec<UnitGroup>],
    findings: &mut Findings,
) {
    let file = Place::file(UnitGroupBounds::FILE);
    let mut seen = HashMap::new();
    for of_block in [false, true] {
        let rows = files.unit_group_bounds.iter().enumerate();
        for (number, row) in rows.filter(|(_, row)| row.block_id.is_some() == of_block) {
            let at = file.row(number);
            let (plant, group) = (row.hydro_id, row.hydro_unit_group_id);
            let Some(&(place, unit)) = places.get(&(plant, group)) else {
                let message = format!("hydro plant {plant} has no group of units {group}");
                findings.wrong(&at, message);
                continue;
            };
            let Some(stage) = stages.find(row.stage_id, &at, findings) else {
                continue;
            };
            if let Some(first) = seen.insert((place, unit, stage, row.block_id), number) {
                findings.wrong(&at, format!("row {} is about the same", first + 1));
            }
            let blocks = &mut found[place][unit].limits[stage];
            let id = row.block_id.map(usize::try_from);
            match id {
                None => blocks.iter_mut().for_each(|limits| limits.change(row)),
                Some(Ok(id)) if id < blocks.len() => blocks[id].change(row),
                Some(_) => {
                    let message = format!("stage {} has no such block", row.stage_id);
                    findings.wrong(&at, message);
                }
            }
        }
    }
}

/// Says where rows make the least larger than the most.
fn check(files: &Files, stages: &[Stage], found: &[Vec<UnitGroup>], findings: &mut Findings) {
    for (plant, groups) in files.hydros.hydros.iter().zip(found) {
        for (file, group) in plant.groups().iter().zip(groups) {
            let what = format!("hydro plant {}, group {}", plant.id, file.id);
            let whole = UnitLimits::new(file);
            let ranges: [UnitRange; 2] = [
                |limits| (limits.min_turbined, limits.max_turbined),
                |limits| (limits.min_generation, limits.max_generation),
            ];
            for range in ranges {
                let (least, most) = range(&whole);
                if least <= most {
                    let file = UnitGroupBounds::FILE;
                    check_order(file, &what, &group.limits, stages, range, findings);
                }
            }
        }
    }
}
