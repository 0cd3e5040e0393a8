//! Thermal plants: limits, costs by segment, and how long ahead they are committed.

use super::bounds::{check_order, with_bounds};
use super::commitment::{self, Commitment};
use super::index::Index;
use super::time::Stage;
use super::window::StageWindow;
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
    /// Segments of power: size, MW, which is infinite in the last one, and cost, $/MWh.
    pub(crate) segments: Vec<(f64, f64)>,
    /// Commitment ahead of dispatch, if the plant is dispatched so.
    pub(crate) commitment: Option<Commitment>,
}

impl Thermal {
    /// The segments at given limits: the most of each, MW, and its cost, $/MWh. A cost of the limits holds for all
    /// power.
    pub(crate) fn segments(&self, limits: &ThermalLimits) -> Vec<(f64, f64)> {
        match limits.cost {
            Some(cost) => vec![(f64::INFINITY, cost)],
            None => self.segments.clone(),
        }
    }

    /// The least cost of its energy in all stages, $/MWh.
    pub(crate) fn cheapest(&self) -> f64 {
        let limits = self.limits.iter().flatten();
        let costs = limits.map(|limits| limits.cost.unwrap_or(self.segments[0].1));
        costs.fold(f64::INFINITY, f64::min)
    }
}

/// Limits of a thermal plant in a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThermalLimits {
    /// MW.
    pub(crate) min: f64,
    /// MW.
    pub(crate) max: f64,
    /// $/MWh of all its energy, in place of its segments.
    pub(crate) cost: Option<f64>,
}

impl ThermalLimits {
    fn change(&mut self, row: &ThermalBounds) {
        self.min = row.min_generation_mw.map_or(self.min, |value| value.0);
        self.max = row.max_generation_mw.map_or(self.max, |value| value.0);
        self.cost = row.cost_per_mwh.map(|value| value.0).or(self.cost);
    }
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Vec<Thermal>, Index) {
    let list = Place::file(system::THERMALS).key("thermals");
    let plants = &files.thermals.thermals;
    let things = plants.iter().map(|plant| {
        let whole = ThermalLimits {
            min: plant.generation.min_mw.0,
            max: plant.generation.max_mw.0,
            cost: None,
        };
        (plant.id, plant.name.as_str(), whole)
    });
    let (index, limits) = with_bounds(
        ("thermal plant", &list),
        things,
        (stages, stage_index),
        &files.thermal_bounds,
        |row: &ThermalBounds| (row.thermal_id, row.stage_id, row.block_id),
        ThermalLimits::change,
        findings,
    );
    let mut past = commitment::past(files, &index, findings);
    let mut found = Vec::new();
    for (place, (plant, mut limits)) in plants.iter().zip(limits).enumerate() {
        let at = list.index(place);
        let bus = buses.find(plant.bus_id, &at.key("bus_id"), findings);
        let (least, most) = (plant.generation.min_mw.0, plant.generation.max_mw.0);
        let what = format!("thermal plant {}", plant.id);
        if least > most {
            let message = format!("{least} is above max_mw, {most}");
            findings.wrong(&at.key("generation.min_mw"), message);
        } else {
            let range = |limits: &ThermalLimits| (limits.min, limits.max);
            check_order(ThermalBounds::FILE, &what, &limits, stages, range, findings);
        }
        let window = StageWindow::new(plant.entry_stage_id, plant.exit_stage_id, &at, findings);
        window.close(stages, &mut limits, |limits| {
            (limits.min, limits.max) = (0.0, 0.0);
        });
        let mut plant = Thermal {
            label: index.labels[place].clone(),
            bus: bus.unwrap_or(0),
            limits,
            segments: segments(plant, &at, findings),
            commitment: None,
        };
        let past = past[place].take();
        plant.commitment = commitment::resolve(
            (&files.thermals.thermals[place], &plant),
            (&files.stages.stages, stages),
            past,
            &at,
            findings,
        );
        found.push(plant);
    }
    (found, index)
}

/// The cost of a plant by segments of power.
fn segments(plant: &system::Thermal, at: &Place, findings: &mut Findings) -> Vec<(f64, f64)> {
    let file = match (&plant.cost_per_mwh, &plant.cost_segments) {
        (Some(cost), None) => return vec![(f64::INFINITY, cost.0)],
        (None, Some(segments)) => segments,
        (Some(_), Some(_)) => {
            let message = "cost_segments are there as well; remove one of the two";
            findings.wrong(&at.key("cost_per_mwh"), message);
            return vec![(f64::INFINITY, 0.0)];
        }
        (None, None) => {
            findings.wrong(
                &at.key("cost_per_mwh"),
                "the key is missing; or else give cost_segments",
            );
            return vec![(f64::INFINITY, 0.0)];
        }
    };
    let at = at.key("cost_segments");
    if file.is_empty() {
        findings.wrong(&at, "there is no segment");
        return vec![(f64::INFINITY, 0.0)];
    }
    for (place, pair) in file.windows(2).enumerate() {
        let [before, cost] = [&pair[0], &pair[1]].map(|segment| segment.cost_per_mwh.0);
        if cost < before {
            let message = format!(
                "{cost} is below the {before} of the segment before: the cheapest is used first"
            );
            findings.wrong(&at.index(place + 1).key("cost_per_mwh"), message);
        }
    }
    let mut found: Vec<(f64, f64)> = file
        .iter()
        .map(|segment| (segment.capacity_mw.0, segment.cost_per_mwh.0))
        .collect();
    if let Some(last) = found.last_mut() {
        last.0 = f64::INFINITY;
    }
    found
}
