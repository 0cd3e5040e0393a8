//! Where things are in the linear program of a stage.

use cobre_sddp::{ColumnId, RowId};

/// Where things are in the linear program of a stage: by plant, source, line and bus in the order of the
/// system, and then by block.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) hydros: Vec<HydroLayout>,
    pub(crate) thermals: Vec<ThermalLayout>,
    /// Generation, MW.
    pub(crate) sources: Vec<Vec<ColumnId>>,
    /// Flows in either direction, MW.
    pub(crate) lines: Vec<[Vec<ColumnId>; 2]>,
    pub(crate) buses: Vec<BusLayout>,
    pub(crate) pumping: Vec<PumpingLayout>,
    /// Power, MW.
    pub(crate) contracts: Vec<Vec<ColumnId>>,
    pub(crate) batteries: Vec<BatteryLayout>,
    /// By source, where a generic constraint of the stage asks for it.
    pub(crate) curtailed: Vec<Option<CurtailedLayout>>,
    /// The rows of generic constraints that hold in the stage.
    pub(crate) constraints: Vec<ConstraintLayout>,
}

/// Where a thermal plant is.
#[derive(Debug, Default)]
pub(crate) struct ThermalLayout {
    /// MW.
    pub(crate) generation: Vec<ColumnId>,
    /// The columns whose costs are those of the block.
    pub(crate) paid: Vec<Vec<ColumnId>>,
    pub(crate) commitment: Option<CommitmentLayout>,
}

/// Where the commitments of a thermal plant are.
#[derive(Debug, Default)]
pub(crate) struct CommitmentLayout {
    /// The stages that are committed in this one.
    pub(crate) decided: Vec<CommittedStage>,
}

/// Where the commitment for a later stage is.
#[derive(Debug)]
pub(crate) struct CommittedStage {
    /// The number of that stage.
    pub(crate) stage: usize,
    /// Its mean power, MW.
    pub(crate) power: ColumnId,
    /// The columns whose costs are those of the commitment.
    pub(crate) paid: Vec<ColumnId>,
}

/// Where a pumping station is.
#[derive(Debug, Default)]
pub(crate) struct PumpingLayout {
    /// m³/s.
    pub(crate) flow: Vec<ColumnId>,
    /// Shortfall below the minimum, m³/s; empty where there is none.
    pub(crate) below: Vec<ColumnId>,
}

/// Where a battery is.
#[derive(Debug)]
pub(crate) struct BatteryLayout {
    /// MW.
    pub(crate) charge: Vec<ColumnId>,
    /// MW.
    pub(crate) discharge: Vec<ColumnId>,
    /// Levels before and after the stage, MWh.
    pub(crate) level: [ColumnId; 2],
    /// The level at the end of each period, MWh.
    pub(crate) levels: Vec<ColumnId>,
    /// The balances of energy stored, MWh.
    pub(crate) balance: Vec<RowId>,
    /// Shortfall of the level below its minimum, MWh.
    pub(crate) below: Option<ColumnId>,
}

/// Where the curtailed power of a source is, MW, by block, with the rows whose right-hand side is available power.
#[derive(Debug)]
pub(crate) struct CurtailedLayout {
    pub(crate) columns: Vec<ColumnId>,
    pub(crate) rows: Vec<RowId>,
}

/// Where a row of a generic constraint is.
#[derive(Debug)]
pub(crate) struct ConstraintLayout {
    /// The place of the constraint.
    pub(crate) constraint: usize,
    /// The block; none for the whole stage.
    pub(crate) block: Option<usize>,
    /// Its hours.
    pub(crate) hours: f64,
    /// The least and the most of its terms, the number beside them, what is known of them beforehand, and what is decided.
    pub(crate) bounds: [f64; 2],
    pub(crate) constant: f64,
    pub(crate) known: f64,
    pub(crate) terms: Vec<(ColumnId, f64)>,
    pub(crate) row: RowId,
    /// Amounts by which the left-hand side is below and above its bounds, where that is possible.
    pub(crate) below: Option<ColumnId>,
    pub(crate) above: Option<ColumnId>,
}

/// Where a group of units of a hydro plant is.
#[derive(Debug, Default)]
pub(crate) struct UnitLayout {
    /// m³/s.
    pub(crate) turbined: Vec<ColumnId>,
    pub(crate) generation: Generation,
    /// Shortfall below the minimum of flow and generation; empty where there is none.
    pub(crate) turbined_below: Vec<ColumnId>,
    pub(crate) generation_below: Vec<ColumnId>,
}

impl UnitLayout {
    /// The column whose multiple is the generation of a block, MW, and the factor.
    pub(crate) fn generation(&self, block: usize) -> (ColumnId, f64) {
        self.generation.of(&self.turbined, block)
    }
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
    /// Slack that lifts such an inflow to zero at a price that nobody pays, m³/s.
    pub(crate) truncated: Option<ColumnId>,
    /// Slack that lifts such an inflow to zero at a cost, m³/s.
    pub(crate) lifted: Option<ColumnId>,
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
    pub(crate) spilled_below: Vec<ColumnId>,
    pub(crate) spilled_above: Vec<ColumnId>,
    pub(crate) diverted_below: Vec<ColumnId>,
    /// Groups of units that feed buses of their own; empty if the plant feeds one.
    pub(crate) units: Vec<UnitLayout>,
    pub(crate) generation: Generation,
    /// Generation above hyperplanes that are below zero, MW; empty where none can be.
    pub(crate) production_above: Vec<ColumnId>,
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

impl Generation {
    /// The column whose multiple is the generation of a block, given those of turbined flow, and the factor.
    fn of(&self, turbined: &[ColumnId], block: usize) -> (ColumnId, f64) {
        match self {
            Self::PerFlow(productivity) => (turbined[block], *productivity),
            Self::Columns(columns) => (columns[block], 1.0),
        }
    }
}

impl HydroLayout {
    /// The column whose multiple is the generation of a block, MW, and the factor.
    pub(crate) fn generation(&self, block: usize) -> (ColumnId, f64) {
        self.generation.of(&self.turbined, block)
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
