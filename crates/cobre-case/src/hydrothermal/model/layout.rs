//! Where things are in the linear program of a stage.

use cobre_sddp::{ColumnId, RowId};

/// Where things are in the linear program of a stage: by plant, source, line and bus in the order of the
/// system, and then by block.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) hydros: Vec<HydroLayout>,
    /// Generation, MW.
    pub(crate) thermals: Vec<Vec<ColumnId>>,
    /// Generation, MW.
    pub(crate) sources: Vec<Vec<ColumnId>>,
    /// Flows in either direction, MW.
    pub(crate) lines: Vec<[Vec<ColumnId>; 2]>,
    pub(crate) buses: Vec<BusLayout>,
}

/// Where a hydro plant is.
#[derive(Debug, Default)]
pub(crate) struct HydroLayout {
    /// Storage before and after, hm³, if it has a reservoir.
    pub(crate) storage: Option<[ColumnId; 2]>,
    /// Shortfall of storage below its minimum, hm³.
    pub(crate) storage_below: Option<ColumnId>,
    /// Storage after each period, hm³; the last is that after the stage.
    pub(crate) levels: Vec<ColumnId>,
    /// The balance of water of each period, in hm³.
    pub(crate) water: Vec<RowId>,
    /// The row whose right-hand side is the inflow as it is drawn: in hm³, or in m³/s if the inflow is a column.
    pub(crate) drawn: Option<RowId>,
    /// The inflow, m³/s, if it is a column.
    pub(crate) inflow: Option<ColumnId>,
    /// Slack that lifts such an inflow to zero, m³/s.
    pub(crate) truncated: Option<ColumnId>,
    /// Water that can be added to the inflow as it is drawn, m³/s.
    pub(crate) added: Option<ColumnId>,
    /// m³/s.
    pub(crate) turbined: Vec<ColumnId>,
    /// m³/s.
    pub(crate) spilled: Vec<ColumnId>,
    /// Shortfall below the minimum or excess above the maximum of flows and generation; empty where there
    /// is none.
    pub(crate) turbined_below: Vec<ColumnId>,
    pub(crate) generation_below: Vec<ColumnId>,
    pub(crate) outflow_below: Vec<ColumnId>,
    pub(crate) outflow_above: Vec<ColumnId>,
    pub(crate) generation: Generation,
    /// m³/s; empty without a diversion.
    pub(crate) diverted: Vec<ColumnId>,
    /// Shortfall of storage below the target of a filling, hm³.
    pub(crate) filling_below: Option<ColumnId>,
    /// By period, m³/s: evaporation, and how much it is too little or too much; empty without any.
    pub(crate) evaporation: Vec<ColumnId>,
    pub(crate) evaporation_below: Vec<ColumnId>,
    pub(crate) evaporation_above: Vec<ColumnId>,
    /// Withdrawal that is asked for, m³/s, and by how much too little or too much is taken.
    pub(crate) withdrawal: Option<(f64, [ColumnId; 2])>,
    /// Water that reaches the plant below during the stage, hm³; none if that is all it turbines and spills.
    pub(crate) arriving: Option<Vec<(ColumnId, f64)>>,
    /// Water under way after the stage, hm³, by period of arrival.
    pub(crate) under_way: Vec<ColumnId>,
}

/// Where the generation of a hydro plant is.
#[derive(Debug)]
pub(crate) enum Generation {
    /// Turbined flow times this, MW/(m³/s).
    PerFlow(f64),
    /// Columns by block, MW.
    Columns(Vec<ColumnId>),
}

impl Default for Generation {
    fn default() -> Self {
        Self::PerFlow(0.0)
    }
}

impl HydroLayout {
    /// The column whose multiple is the generation of a block, MW, and the factor.
    pub(crate) fn generation(&self, block: usize) -> (ColumnId, f64) {
        match &self.generation {
            Generation::PerFlow(productivity) => (self.turbined[block], *productivity),
            Generation::Columns(columns) => (columns[block], 1.0),
        }
    }
}

/// Where a bus is.
#[derive(Debug, Default)]
pub(crate) struct BusLayout {
    /// By segment, MW.
    pub(crate) deficit: Vec<Vec<ColumnId>>,
    /// MW.
    pub(crate) excess: Vec<ColumnId>,
    /// The balance of energy, in MW: its right-hand side is the load.
    pub(crate) energy: Vec<RowId>,
}
