//! `constraints/penalty_overrides_*.parquet`: costs of violations in a stage. They beat those of an entity, and
//! those of penalties.json. What a row leaves empty stays as it is.

use crate::hydrothermal::number::{Id, Positive};
use crate::hydrothermal::table::table;

table! {
    /// Costs at a bus in a stage.
    BusOverrides in "constraints/penalty_overrides_bus.parquet", rows |sizes| sizes.by_stage(sizes.buses), {
        /// The bus.
        bus_id: Id,
        /// The stage.
        stage_id: Id,
        /// Energy that nobody takes, $/MWh.
        excess_cost: Option<Positive>,
    }
}

table! {
    /// Costs of a line in a stage.
    LineOverrides in "constraints/penalty_overrides_line.parquet", rows |sizes| sizes.by_stage(sizes.lines), {
        /// The line.
        line_id: Id,
        /// The stage.
        stage_id: Id,
        /// Energy that is sent, $/MWh.
        exchange_cost: Option<Positive>,
    }
}

table! {
    /// Costs of a non-controllable source in a stage.
    SourceOverrides in "constraints/penalty_overrides_ncs.parquet", rows |sizes| sizes.by_stage(sizes.sources), {
        /// The source.
        source_id: Id,
        /// The stage.
        stage_id: Id,
        /// Energy that could be had and is not taken, $/MWh.
        curtailment_cost: Option<Positive>,
    }
}

table! {
    /// Costs of a hydro plant in a stage; units as in penalties.json.
    HydroOverrides in "constraints/penalty_overrides_hydro.parquet", rows |sizes| sizes.by_stage(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage.
        stage_id: Id,
        /// Water spilled.
        spillage_cost: Option<Positive>,
        /// Storage below its minimum.
        storage_violation_below_cost: Option<Positive>,
        /// Turbined flow below its minimum.
        turbined_violation_below_cost: Option<Positive>,
        /// Outflow below its minimum.
        outflow_violation_below_cost: Option<Positive>,
        /// Outflow above its maximum.
        outflow_violation_above_cost: Option<Positive>,
        /// Generation below its minimum.
        generation_violation_below_cost: Option<Positive>,
        /// Method penalty: the cost of added water.
        inflow_nonnegativity_cost: Option<Positive>,
        /// Turbined flow in stages with hyperplanes.
        fpha_turbined_cost: Option<Positive>,
        /// Water diverted.
        diversion_cost: Option<Positive>,
        /// Storage below the target of a filling.
        filling_target_violation_cost: Option<Positive>,
        /// Evaporation other than that of the lake's area, too little or too much.
        evaporation_violation_cost: Option<Positive>,
        /// Withdrawal other than what is asked for, too little or too much.
        water_withdrawal_violation_cost: Option<Positive>,
        /// Too much withdrawn; as water_withdrawal_violation_cost if left out.
        water_withdrawal_violation_pos_cost: Option<Positive>,
        /// Too little withdrawn; as water_withdrawal_violation_cost if left out.
        water_withdrawal_violation_neg_cost: Option<Positive>,
        /// Too much evaporation; as evaporation_violation_cost if left out.
        evaporation_violation_pos_cost: Option<Positive>,
        /// Too little evaporation; as evaporation_violation_cost if left out.
        evaporation_violation_neg_cost: Option<Positive>,
        /// Turbined flow in all stages, in place of fpha_turbined_cost.
        turbined_cost: Option<Positive>,
    }
}
