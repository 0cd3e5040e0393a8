//! Lines between buses.

use std::collections::HashSet;

use super::bounds::with_bounds;
use super::index::{Index, by_stage};
use super::time::Stage;
use super::window::StageWindow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::constraints::LineBounds;
use crate::hydrothermal::files::equipment::EXCHANGE_FACTORS;
use crate::hydrothermal::files::penalty_overrides::LineOverrides;
use crate::hydrothermal::files::system;
use crate::hydrothermal::table::Row;

/// A line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// By stage, $/MWh.
    pub(crate) cost: Vec<f64>,
    /// The part of what is sent that arrives.
    pub(crate) arrives: f64,
    /// By stage and block, MW: there and back.
    pub(crate) capacity: Vec<Vec<[f64; 2]>>,
}

/// The index of lines, and their capacities by stage and block, from source to target and back, whether or not they are
/// there.
pub(crate) fn capacities(
    files: &Files,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Index, Vec<Vec<Vec<[f64; 2]>>>) {
    let list = Place::file(system::LINES).key("lines");
    let lines = &files.lines.lines;
    let things = lines.iter().map(|line| {
        let both = [line.capacity.direct_mw.0, line.capacity.reverse_mw.0];
        (line.id, line.name.as_str(), both)
    });
    let (index, mut capacity) = with_bounds(
        ("line", &list),
        things,
        (stages, stage_index),
        &files.line_bounds,
        |row: &LineBounds| (row.line_id, row.stage_id, row.block_id),
        |[direct, reverse], row| {
            *direct = row.direct_mw.map_or(*direct, |value| value.0);
            *reverse = row.reverse_mw.map_or(*reverse, |value| value.0);
        },
        findings,
    );
    factors(files, &index, stage_index, &mut capacity, findings);
    (index, capacity)
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Vec<Line>, Index) {
    let list = Place::file(system::LINES).key("lines");
    let lines = &files.lines.lines;
    let (index, capacity) = capacities(files, stages, stage_index, findings);
    let costs = by_stage(
        &files.line_overrides,
        LineOverrides::FILE,
        &index,
        stage_index,
        |row| (row.line_id, row.stage_id, row.exchange_cost),
        findings,
    );
    let mut found = Vec::new();
    for (place, (line, mut capacity)) in lines.iter().zip(capacity).enumerate() {
        let at = list.index(place);
        let from = buses.find(line.source_bus_id, &at.key("source_bus_id"), findings);
        let to = buses.find(line.target_bus_id, &at.key("target_bus_id"), findings);
        if from.is_some() && from == to {
            findings.wrong(&at.key("target_bus_id"), "it is the source bus as well");
        }
        let window = StageWindow::new(line.entry_stage_id, line.exit_stage_id, &at, findings);
        window.close(stages, &mut capacity, |capacity| *capacity = [0.0; 2]);
        let default = files.penalties.line.exchange_cost;
        let usual = line.exchange_cost.unwrap_or(default).0;
        let costs = costs[place].iter();
        let costs = costs.map(|cost| cost.flatten().map_or(usual, |cost| cost.0));
        found.push(Line {
            label: index.labels[place].clone(),
            from: from.unwrap_or(0),
            to: to.unwrap_or(0),
            cost: costs.collect(),
            arrives: 1.0 - line.losses_percent.map_or(0.0, |losses| losses.0) / 100.0,
            capacity,
        });
    }
    (found, index)
}

/// Multiplies capacities by the factors of their blocks; says which factors name nothing or come twice.
fn factors(
    files: &Files,
    lines: &Index,
    stages: &Index,
    capacity: &mut [Vec<Vec<[f64; 2]>>],
    findings: &mut Findings,
) {
    let list = Place::file(EXCHANGE_FACTORS).key("exchange_factors");
    let mut seen = HashSet::new();
    let entries = files.exchange_factors.iter();
    let entries = entries.flat_map(|file| &file.exchange_factors);
    for (number, entry) in entries.enumerate() {
        let at = list.index(number);
        let line = lines.find(entry.line_id, &at.key("line_id"), findings);
        let stage = stages.find(entry.stage_id, &at.key("stage_id"), findings);
        let (Some(line), Some(stage)) = (line, stage) else {
            continue;
        };
        if !seen.insert((line, stage)) {
            let (line, stage) = (entry.line_id, entry.stage_id);
            let message = format!("there are factors of line {line}, stage {stage} already");
            findings.wrong(&at, message);
        }
        for (place, block) in entry.block_factors.iter().enumerate() {
            let at = at.key("block_factors").index(place).key("block_id");
            let id = block.block_id;
            let blocks = &mut capacity[line][stage];
            match usize::try_from(id).ok().and_then(|id| blocks.get_mut(id)) {
                Some([direct, reverse]) => {
                    *direct *= block.direct_factor.0;
                    *reverse *= block.reverse_factor.0;
                }
                None => findings.wrong(&at, format!("stage {} has no block {id}", entry.stage_id)),
            }
            let before = &entry.block_factors[..place];
            if before.iter().any(|other| other.block_id == id) {
                findings.wrong(&at, format!("block {id} has factors already"));
            }
        }
    }
}
