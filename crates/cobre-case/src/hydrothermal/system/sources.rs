//! Non-controllable sources.

use super::bounds::{apply, everywhere};
use super::buses::{Spread, block_factors, spread};
use super::index::{Index, by_stage, complete};
use super::time::Stage;
use super::window::StageWindow;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::equipment::SourceBounds;
use crate::hydrothermal::files::penalty_overrides::SourceOverrides;
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
    /// By stage, $/MWh of energy not taken.
    pub(crate) curtailment_cost: Vec<f64>,
    pub(crate) may_curtail: bool,
    /// By stage, as a part of the capacity.
    pub(crate) availability: Vec<Spread>,
    /// By stage and block; 0 where the source is not there.
    pub(crate) factors: Vec<Vec<f64>>,
    /// By stage and block, MW: power that can be had where the stage has no statistics.
    given: Vec<Vec<Option<f64>>>,
}

impl Source {
    /// The power that can be had in a block at a drawn share of the capacity, MW.
    pub(crate) fn available(&self, stage: usize, block: usize, share: f64) -> f64 {
        self.block(stage, block).available(share)
    }

    /// A block of a stage.
    pub(crate) fn block(&self, stage: usize, block: usize) -> SourceBlock {
        SourceBlock {
            given: self.given[stage][block],
            capacity: self.capacity,
            factor: self.factors[stage][block],
        }
    }
}

/// A source in a block of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceBlock {
    given: Option<f64>,
    capacity: f64,
    factor: f64,
}

impl SourceBlock {
    /// The power that can be had at a drawn share of the capacity, MW.
    pub(crate) fn available(self, share: f64) -> f64 {
        let power = self.given.unwrap_or(self.capacity * share.min(1.0));
        power * self.factor
    }

    /// The power at a share of the capacity that is given, MW.
    pub(crate) fn at_share(self, share: f64) -> f64 {
        self.capacity * share.min(1.0) * self.factor
    }
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
    let mut given: Vec<Vec<Vec<Option<f64>>>> = vec![everywhere(stages, None); index.len()];
    apply(
        &files.source_bounds,
        (&index, stage_index),
        |row: &SourceBounds| (row.ncs_id, row.stage_id, row.block_id),
        |value, row| *value = Some(row.available_generation_mw.0),
        &mut given,
        findings,
    );
    let costs = by_stage(
        &files.source_overrides,
        SourceOverrides::FILE,
        &index,
        stage_index,
        |row| (row.source_id, row.stage_id, row.curtailment_cost),
        findings,
    );
    let mut found = Vec::new();
    for (place, source) in sources.enumerate() {
        let at = list.index(place);
        let bus = buses.find(source.bus_id, &at.key("bus_id"), findings);
        let thing = format!("source {} ({})", source.id, source.name);
        let mut given = std::mem::take(&mut given[place]);
        let window = StageWindow::new(source.entry_stage_id, source.exit_stage_id, &at, findings);
        let mut factors = std::mem::take(&mut factors[place]);
        let there = window.close(stages, &mut factors, |factor| *factor = 0.0);
        let known = (&stats[place][..], &there[..]);
        let availability = availability(known, &mut given, &thing, stage_index, findings);
        let default = files.penalties.non_controllable_source.curtailment_cost;
        let usual = source.curtailment_cost.unwrap_or(default).0;
        let overrides = costs[place].iter();
        let costs = overrides.map(|cost| cost.flatten().map_or(usual, |cost| cost.0));
        found.push(Source {
            label: index.labels[place].clone(),
            bus: bus.unwrap_or(0),
            capacity: source.max_generation_mw.0,
            curtailment_cost: costs.collect(),
            may_curtail: source.allow_curtailment.unwrap_or(true),
            availability,
            factors,
            given,
        });
    }
    (found, index)
}

/// The availability of a source by stage: its statistics, else what a bound gives, else its capacity. Bounds of stages
/// that have statistics are dropped. Stages in which it is not there need none.
fn availability(
    (stats, there): (&[Option<Spread>], &[bool]),
    given: &mut [Vec<Option<f64>>],
    thing: &str,
    stages: &Index,
    findings: &mut Findings,
) -> Vec<Spread> {
    let bounded = |given: &[Option<f64>]| given.iter().all(Option::is_some);
    let whole = spread(1.0, 0.0);
    let filled = stats.iter().zip(given.iter()).zip(there);
    let filled: Vec<Option<Spread>> = filled
        .map(|((stats, given), there)| stats.or((bounded(given) || !there).then_some(whole)))
        .collect();
    for (stats, given) in stats.iter().zip(given) {
        if stats.is_some() {
            given.fill(None);
        }
    }
    if stats.iter().all(Option::is_none) {
        // Without statistics a source has its capacity.
        return vec![whole; stats.len()];
    }
    let file = SourceStats::FILE;
    let found = complete(&filled, file, thing, stages, findings);
    found.unwrap_or_else(|| vec![whole; stats.len()])
}
