//! `constraints/*.parquet`: bounds and costs that differ by stage. What a row leaves empty stays as
//! it is.

use crate::hydrothermal::number::{Id, NonNegative, Number};
use crate::hydrothermal::table::table;

table! {
    /// Generation limits and cost of a thermal plant in a stage.
    ThermalBounds in "constraints/thermal_bounds.parquet", rows |sizes| sizes.by_block(sizes.thermals), {
        /// The plant.
        thermal_id: Id,
        /// The stage.
        stage_id: Id,
        /// The least generation, MW.
        min_generation_mw: Option<NonNegative>,
        /// The most generation, MW.
        max_generation_mw: Option<NonNegative>,
        /// Cost of its energy, $/MWh.
        cost_per_mwh: Option<NonNegative>,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}

table! {
    /// Limits of a hydro plant in a stage.
    HydroBounds in "constraints/hydro_bounds.parquet", rows |sizes| sizes.by_block(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage.
        stage_id: Id,
        /// The least turbined flow, m³/s.
        min_turbined_m3s: Option<NonNegative>,
        /// The most turbined flow, m³/s.
        max_turbined_m3s: Option<NonNegative>,
        /// The least storage at the end of the stage, hm³.
        min_storage_hm3: Option<NonNegative>,
        /// The most storage at the end of the stage, hm³.
        max_storage_hm3: Option<NonNegative>,
        /// The least outflow, m³/s.
        min_outflow_m3s: Option<NonNegative>,
        /// The most outflow, m³/s.
        max_outflow_m3s: Option<NonNegative>,
        /// The least generation, MW.
        min_generation_mw: Option<NonNegative>,
        /// The most generation, MW.
        max_generation_mw: Option<NonNegative>,
        /// The block; all blocks if empty. A row of a block beats one of the stage, and has neither storage, filling nor withdrawal.
        block_id: Option<Id>,
        /// The most diverted flow, m³/s.
        max_diversion_m3s: Option<NonNegative>,
        /// The least diverted flow, m³/s.
        min_diversion_m3s: Option<NonNegative>,
        /// The least spilled flow, m³/s.
        min_spillage_m3s: Option<NonNegative>,
        /// The most spilled flow, m³/s.
        max_spillage_m3s: Option<NonNegative>,
        /// The flow that filling has to keep back, m³/s.
        filling_inflow_m3s: Option<NonNegative>,
        /// The same under its later name.
        filling_min_rate_m3s: Option<NonNegative>,
        /// Water taken out for other uses, m³/s; below 0 if water is returned.
        water_withdrawal_m3s: Option<Number>,
    }
}

table! {
    /// Capacities of a line in a stage.
    LineBounds in "constraints/line_bounds.parquet", rows |sizes| sizes.by_block(sizes.lines), {
        /// The line.
        line_id: Id,
        /// The stage.
        stage_id: Id,
        /// From source to target, MW.
        direct_mw: Option<NonNegative>,
        /// From target to source, MW.
        reverse_mw: Option<NonNegative>,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}

table! {
    /// Limits of a group of units of a hydro plant in a stage.
    UnitGroupBounds in "constraints/hydro_unit_group_bounds.parquet", rows |sizes| sizes.by_block(sizes.unit_groups), {
        /// The plant.
        hydro_id: Id,
        /// The group of units.
        hydro_unit_group_id: Id,
        /// The stage.
        stage_id: Id,
        /// The least turbined flow, m³/s.
        min_turbined_m3s: Option<NonNegative>,
        /// The most turbined flow, m³/s.
        max_turbined_m3s: Option<NonNegative>,
        /// The least generation, MW.
        min_generation_mw: Option<NonNegative>,
        /// The most generation, MW.
        max_generation_mw: Option<NonNegative>,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}
