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
    /// The balance of water, in hm³.
    pub(crate) water: Option<RowId>,
    /// The row whose right-hand side is the inflow as it is drawn: in hm³, or in m³/s if it depends on the
    /// past.
    pub(crate) drawn: Option<RowId>,
    /// The inflow, m³/s, if it depends on the past.
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
