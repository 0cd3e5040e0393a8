//! Buses and their load.

use std::collections::HashSet;

use super::index::{Index, by_stage, complete};
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::penalties::{self, DeficitSegment};
use crate::hydrothermal::files::penalty_overrides::BusOverrides;
use crate::hydrothermal::files::scenarios::{self, BlockFactor, LoadStats};
use crate::hydrothermal::files::system;
use crate::hydrothermal::number::Id;
use crate::hydrothermal::table::Row;

/// Mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// A bus.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) label: String,
    /// Depth, MW, which may be infinite, and cost, $/MWh.
    pub(crate) deficit: Vec<(f64, f64)>,
    /// By stage, $/MWh.
    pub(crate) excess_cost: Vec<f64>,
    /// By stage, MW.
    pub(crate) load: Vec<Spread>,
    /// By stage and block.
    pub(crate) factors: Vec<Vec<f64>>,
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> Vec<Bus> {
    let list = Place::file(system::BUSES).key("buses");
    if files.buses.buses.is_empty() {
        findings.wrong(&list, "there is no bus");
    }
    let defaults = Place::file(penalties::FILE).key("bus.deficit_segments");
    let default = segments(&files.penalties.bus.deficit_segments, &defaults, findings);
    let load = by_stage(
        &files.load_stats,
        LoadStats::FILE,
        buses,
        stage_index,
        |row| {
            (
                row.bus_id,
                row.stage_id,
                spread(row.mean_mw.0, row.std_mw.0),
            )
        },
        findings,
    );
    let rows = files
        .load_factors
        .iter()
        .flat_map(|file| &file.load_factors);
    let rows = rows.map(|row| (row.bus_id, row.stage_id, &row.block_factors[..]));
    let place = Place::file(scenarios::LOAD_FACTORS).key("load_factors");
    let mut factors = block_factors(
        rows,
        &place,
        "bus_id",
        buses,
        (stages, stage_index),
        findings,
    );
    let excess = by_stage(
        &files.bus_overrides,
        BusOverrides::FILE,
        buses,
        stage_index,
        |row| (row.bus_id, row.stage_id, row.excess_cost),
        findings,
    );
    let usual = files.penalties.bus.excess_cost.0;
    let mut found = Vec::new();
    for (place, bus) in files.buses.buses.iter().enumerate() {
        let own = bus.deficit_segments.as_ref().map(|own| {
            let at = list.index(place).key("deficit_segments");
            segments(own, &at, findings)
        });
        let thing = format!("bus {} ({})", bus.id, bus.name);
        let zero = spread(0.0, 0.0);
        let load = complete(&load[place], LoadStats::FILE, &thing, stage_index, findings);
        found.push(Bus {
            label: buses.labels[place].clone(),
            deficit: own.unwrap_or_else(|| default.clone()),
            excess_cost: excess[place]
                .iter()
                .map(|cost| cost.flatten().map_or(usual, |cost| cost.0))
                .collect(),
            load: load.unwrap_or_else(|| vec![zero; stages.len()]),
            factors: std::mem::take(&mut factors[place]),
        });
    }
    found
}

pub(super) fn spread(mean: f64, deviation: f64) -> Spread {
    Spread { mean, deviation }
}

fn segments(file: &[DeficitSegment], at: &Place, findings: &mut Findings) -> Vec<(f64, f64)> {
    if file.is_empty() {
        findings.wrong(at, "there is no segment");
    }
    for (place, segment) in file.iter().enumerate() {
        let last = place + 1 == file.len();
        if segment.depth_mw.is_none() != last {
            let message = if last {
                "the last segment has no end: null is expected"
            } else {
                "only the last segment has no end: a depth is expected"
            };
            findings.wrong(&at.index(place).key("depth_mw"), message);
        }
        if place > 0 && segment.cost.0 < file[place - 1].cost.0 {
            let message = format!(
                "{} is below the {} of the segment before",
                segment.cost.0,
                file[place - 1].cost.0
            );
            findings.wrong(&at.index(place).key("cost"), message);
        }
    }
    let depth = |segment: &DeficitSegment| segment.depth_mw.map_or(f64::INFINITY, |depth| depth.0);
    file.iter()
        .map(|segment| (depth(segment), segment.cost.0))
        .collect()
}

/// Factors by thing, stage and block; 1 where none is given.
pub(super) fn block_factors<'r>(
    rows: impl Iterator<Item = (Id, Id, &'r [BlockFactor])>,
    list: &Place,
    key: &str,
    things: &Index,
    (stages, stage_index): (&[Stage], &Index),
    findings: &mut Findings,
) -> Vec<Vec<Vec<f64>>> {
    let ones = |stage: &Stage| vec![1.0; stage.hours.len()];
    let mut found = vec![stages.iter().map(ones).collect::<Vec<_>>(); things.len()];
    let mut seen = HashSet::new();
    for (number, (thing, stage, blocks)) in rows.enumerate() {
        let at = list.index(number);
        let thing_found = things.find(thing, &at.key(key), findings);
        let stage_found = stage_index.find(stage, &at.key("stage_id"), findings);
        let (Some(thing_at), Some(stage_at)) = (thing_found, stage_found) else {
            continue;
        };
        if !seen.insert((thing, stage)) {
            let what = things.what();
            findings.wrong(
                &at,
                format!("there are factors of {what} {thing}, stage {stage} already"),
            );
        }
        for (place, block) in blocks.iter().enumerate() {
            let at = at.key("block_factors").index(place).key("block_id");
            let factors = &mut found[thing_at][stage_at];
            let id = block.block_id;
            match usize::try_from(id).ok().and_then(|id| factors.get_mut(id)) {
                Some(factor) => *factor = block.factor.0,
                None => findings.wrong(&at, format!("stage {stage} has no block {id}")),
            }
            if blocks[..place].iter().any(|other| other.block_id == id) {
                findings.wrong(&at, format!("block {id} has a factor already"));
            }
        }
    }
    found
}
