//! Sizes of the linear programs of a case, computed before anything of that size is allocated.

use cobre_sddp::MOST_OPENING_NUMBERS;

use super::files::stages;
use super::files::{Files, system};
use crate::finding::{Findings, Place};

/// The most columns of all linear programs of a case together.
const MOST_COLUMNS: usize = 1 << 23;
/// Columns of a hydro plant in a block: turbined, spilled, diverted, generation, storage, evaporation, and what may be
/// missing.
const HYDRO_COLUMNS: usize = 14;
/// Columns of a bus in a block: load that is not served, in segments, and too much energy.
const BUS_COLUMNS: usize = 4;
/// Columns of a line in a block: one for each way.
const LINE_COLUMNS: usize = 2;

/// Says if a case is too large to be built.
pub(super) fn check(files: &Files, findings: &mut Findings) -> bool {
    let list = &files.stages.stages;
    let blocks = list.iter().map(|stage| stage.blocks.len());
    let blocks = blocks.fold(0, usize::saturating_add);
    let hydros = files.hydros.hydros.len();
    let thermals = files.thermals.thermals.len();
    let (buses, lines) = (files.buses.buses.len(), files.lines.lines.len());
    let sources = files.sources.as_ref();
    let sources = sources.map_or(0, |file| file.non_controllable_sources.len());
    let per_block =
        hydros * HYDRO_COLUMNS + thermals + buses * BUS_COLUMNS + lines * LINE_COLUMNS + sources;
    let per_block = per_block.saturating_add(equipment(files));
    let columns = per_block.saturating_mul(list.len().saturating_add(blocks));
    if columns > MOST_COLUMNS {
        let message = format!(
            "{} stages with {blocks} blocks, {hydros} hydro plants, {thermals} thermal plants, {buses} buses, {lines} \
             lines and {sources} sources make about {columns} columns; at most {MOST_COLUMNS} are possible",
            list.len()
        );
        findings.wrong(&Place::file(stages::FILE), message);
        return false;
    }
    // An opening changes the inflow of each plant, and in each block the load of a bus and the most of a source.
    let graph = files.stages.policy_graph.nodes.as_deref();
    let numbers = list.iter().map(|stage| {
        let of_stage = graph.iter().copied().flatten();
        let nodes = of_stage.filter(|node| node.stage_id == stage.id).count();
        let by_block = (buses + 2 * sources).saturating_mul(stage.blocks.len());
        let numbers = hydros.saturating_mul(2).saturating_add(by_block);
        let numbers = numbers.saturating_mul(2).saturating_add(1);
        numbers
            .saturating_mul(stage.num_scenarios.0)
            .saturating_mul(nodes.max(1))
    });
    let numbers = numbers.fold(0, usize::saturating_add);
    if numbers > MOST_OPENING_NUMBERS {
        let message = format!(
            "the openings of all stages put about {numbers} numbers into linear programs; at most \
             {MOST_OPENING_NUMBERS} are possible: lower num_scenarios"
        );
        findings.wrong(&Place::file(stages::FILE), message);
        return false;
    }
    segments(files, blocks, findings)
}

/// Columns of equipment and constraints in a block.
fn equipment(files: &Files) -> usize {
    let segments = files.thermals.thermals.iter();
    let segments = segments.map(|plant| plant.cost_segments.as_ref().map_or(0, Vec::len));
    let leads = files.thermals.thermals.iter().map(|plant| {
        let config = plant.anticipated_config.as_ref();
        let lead = config.and_then(|config| config.lead_stages);
        let lead = lead.or(plant.gnl_config.as_ref().map(|config| config.lag_stages));
        // Two columns for each stage that is committed; hours ahead may be any number of them.
        let stages = files.stages.stages.len();
        let hours = config.and_then(|config| config.lead_time_hours);
        2 * hours
            .map_or(lead.map_or(0, |lead| lead.0), |_| stages)
            .min(stages)
    });
    let units = files
        .hydros
        .hydros
        .iter()
        .map(|plant| 3 * plant.groups().len());
    let pumping = files.pumping.as_ref();
    let contracts = files.contracts.as_ref();
    let batteries = files.batteries.as_ref();
    let constraints = files.constraints.as_ref();
    let others = [
        pumping.map_or(0, |file| 2 * file.pumping_stations.len()),
        contracts.map_or(0, |file| file.contracts.len()),
        batteries.map_or(0, |file| 5 * file.batteries.len()),
        constraints.map_or(0, |file| 2 * file.constraints.len()),
    ];
    let all = segments.chain(leads).chain(units).chain(others);
    all.fold(0, usize::saturating_add)
}

/// Says if the segments of load that is not served are too many.
fn segments(files: &Files, blocks: usize, findings: &mut Findings) -> bool {
    let usual = files.penalties.bus.deficit_segments.len();
    let count = |bus: &system::Bus| bus.deficit_segments.as_ref().map_or(usual, Vec::len);
    let segments = files
        .buses
        .buses
        .iter()
        .map(count)
        .fold(0, usize::saturating_add);
    let columns = segments.saturating_mul(blocks);
    if columns > MOST_COLUMNS {
        let message = format!(
            "{segments} segments in {blocks} blocks make {columns} columns; at most {MOST_COLUMNS} are possible"
        );
        findings.wrong(&Place::file(system::BUSES), message);
    }
    columns <= MOST_COLUMNS
}
