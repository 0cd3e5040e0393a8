//! Non-controllable sources.

use super::buses::{Spread, block_factors, spread};
use super::index::{Index, by_stage, complete};
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::scenarios::{self, SourceStats};
use crate::hydrothermal::files::system;
use crate::hydrothermal::table::Row;

/// A non-controllable source.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) label: String,
    pub(crate) bus: usize,
    /// MW.
    pub(crate) capacity: f64,
    /// $/MWh of energy not taken.
    pub(crate) curtailment_cost: f64,
    pub(crate) may_curtail: bool,
    /// By stage, as a part of the capacity.
    pub(crate) availability: Vec<Spread>,
    /// By stage and block.
    pub(crate) factors: Vec<Vec<f64>>,
}

pub(super) fn resolve(
    files: &Files,
    buses: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> (Vec<Source>, Index) {
    let list = Place::file(system::SOURCES).key("non_controllable_sources");
    let sources = files
        .sources
        .iter()
        .flat_map(|file| &file.non_controllable_sources);
    let things = sources
        .clone()
        .map(|source| (source.id, source.name.as_str()));
    let index = Index::new("source", things, &list, findings);
    let stats = by_stage(
        &files.source_stats,
        SourceStats::FILE,
        &index,
        stage_index,
        |row| (row.ncs_id, row.stage_id, spread(row.mean.0, row.std.0)),
        findings,
    );
    let rows = files
        .source_factors
        .iter()
        .flat_map(|file| &file.non_controllable_factors);
    let rows = rows.map(|row| (row.ncs_id, row.stage_id, &row.block_factors[..]));
    let place = Place::file(scenarios::SOURCE_FACTORS).key("non_controllable_factors");
    let mut factors = block_factors(
        rows,
        &place,
        "ncs_id",
        &index,
        (stages, stage_index),
        findings,
    );
    let mut found = Vec::new();
    for (place, source) in sources.enumerate() {
        let at = list.index(place);
        let bus = buses.find(source.bus_id, &at.key("bus_id"), findings);
        let thing = format!("source {} ({})", source.id, source.name);
        let file = SourceStats::FILE;
        let availability = complete(&stats[place], file, &thing, stage_index, findings);
        let Some(bus) = bus else { continue };
        let cost = source.curtailment_cost;
        let default = files.penalties.non_controllable_source.curtailment_cost;
        found.push(Source {
            label: index.labels[place].clone(),
            bus,
            capacity: source.max_generation_mw.0,
            curtailment_cost: cost.unwrap_or(default).0,
            may_curtail: source.allow_curtailment.unwrap_or(true),
            // Without statistics a source has its capacity.
            availability: availability.unwrap_or_else(|| vec![spread(1.0, 0.0); stages.len()]),
            factors: std::mem::take(&mut factors[place]),
        });
    }
    (found, index)
}
