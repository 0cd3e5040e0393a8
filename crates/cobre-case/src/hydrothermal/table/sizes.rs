//! Limits on the rows of a case's tables.

/// The most lags of the inflow of a plant in a stage.
const MOST_LAGS: u64 = 60;
/// The most hyperplanes of a plant in a stage.
const MOST_PLANES: u64 = 100;
/// The most points of the curves of a reservoir.
const MOST_POINTS: u64 = 1000;
/// The most observations of the inflow of a plant: two centuries of days.
const MOST_OBSERVATIONS: u64 = 75_000;
/// The most scenarios of a table.
const MOST_SCENARIOS: u64 = 10_000;
/// Rows that a table may have in any case.
const FREE_ROWS: u64 = 1000;
/// The most rows of a table of which nobody knows how many the case can need.
const UNKNOWN_ROWS: u64 = 1_000_000;

/// The number of entities of each kind in a case; none where its file is wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) stages: Option<usize>,
    /// Of all stages together.
    pub(crate) blocks: Option<usize>,
    pub(crate) hydros: Option<usize>,
    pub(crate) buses: Option<usize>,
    pub(crate) lines: Option<usize>,
    pub(crate) thermals: Option<usize>,
    pub(crate) sources: Option<usize>,
    pub(crate) pumping: Option<usize>,
    pub(crate) contracts: Option<usize>,
    pub(crate) batteries: Option<usize>,
    pub(crate) constraints: Option<usize>,
    /// Unit groups of all hydro plants together.
    pub(crate) unit_groups: Option<usize>,
    /// Openings of all stages together.
    pub(crate) openings: Option<usize>,
}

impl Sizes {
    /// A row for each thing and stage.
    pub(crate) fn by_stage(&self, things: Option<usize>) -> Option<u64> {
        Some((things? as u64).saturating_mul(self.stages? as u64))
    }

    /// A row for each thing and stage, those before the first included that lags go back to.
    pub(crate) fn by_past_stage(&self, things: Option<usize>) -> Option<u64> {
        Some((things? as u64).saturating_mul(self.stages? as u64 + MOST_LAGS))
    }

    /// A row for each thing and stage as a whole, and one for each block.
    pub(crate) fn by_block(&self, things: Option<usize>) -> Option<u64> {
        Some((things? as u64).saturating_mul(self.stages? as u64 + self.blocks? as u64))
    }

    /// A row for each thing, stage and lag.
    pub(crate) fn by_lag(&self, things: Option<usize>) -> Option<u64> {
        Some(self.by_stage(things)?.saturating_mul(MOST_LAGS))
    }

    /// A row for each thing, stage and hyperplane, and for hyperplanes of all stages.
    pub(crate) fn by_plane(&self, things: Option<usize>) -> Option<u64> {
        let stages = (self.stages? as u64).saturating_add(1);
        Some(
            (things? as u64)
                .saturating_mul(stages)
                .saturating_mul(MOST_PLANES),
        )
    }

    /// A row for each thing, stage and scenario.
    pub(crate) fn by_scenario(&self, things: Option<usize>) -> Option<u64> {
        Some(self.by_stage(things)?.saturating_mul(MOST_SCENARIOS))
    }

    /// A row for each thing and point of its curve.
    pub(crate) fn by_curve(things: Option<usize>) -> Option<u64> {
        Some((things? as u64).saturating_mul(MOST_POINTS))
    }

    /// A row for each thing and observation of it.
    pub(crate) fn by_observation(things: Option<usize>) -> Option<u64> {
        Some((things? as u64).saturating_mul(MOST_OBSERVATIONS))
    }

    /// A row for each uncertain series and opening.
    pub(crate) fn by_opening(&self) -> Option<u64> {
        let series = self.hydros? as u64 + self.buses? as u64 + self.sources? as u64;
        Some(series.saturating_mul(self.openings? as u64))
    }

    /// The most rows of a table that needs so many. Twice as many are read, so that what is wrong with them can be
    /// said.
    pub(super) fn most_rows(needed: Option<u64>) -> u64 {
        needed.map_or(UNKNOWN_ROWS, |needed| {
            needed.saturating_mul(2).saturating_add(FREE_ROWS)
        })
    }
}
