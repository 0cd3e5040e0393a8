//! `penalties.json`: what violations cost where nothing else is said.

use crate::hydrothermal::json::object;
use crate::hydrothermal::number::{NonNegative, Positive};

pub(crate) const FILE: &str = "penalties.json";

/// Anything that can be read.
pub(super) const STAND_IN: &str = r#"{
    "bus": {"deficit_segments": [{"depth_mw": null, "cost": 1}], "excess_cost": 1},
    "line": {"exchange_cost": 1},
    "hydro": {
        "spillage_cost": 1, "fpha_turbined_cost": 1, "diversion_cost": 1, "storage_violation_below_cost": 1,
        "filling_target_violation_cost": 1, "turbined_violation_below_cost": 1, "outflow_violation_below_cost": 1,
        "outflow_violation_above_cost": 1, "generation_violation_below_cost": 1, "evaporation_violation_cost": 1,
        "water_withdrawal_violation_cost": 1
    },
    "non_controllable_source": {"curtailment_cost": 1}
}"#;

object! {
    /// Costs of violations, unless a more specific file gives others.
    Penalties {
        /// Buses.
        bus: BusPenalties,
        /// Lines.
        line: LinePenalties,
        /// Hydro plants.
        hydro: HydroPenalties,
        /// Non-controllable sources.
        non_controllable_source: SourcePenalties,
        /// A note that nothing reads.
        version: Option<String>,
    }
}

object! {
    /// Costs of too little or too much energy at a bus.
    BusPenalties {
        /// Load that is not served, by segment.
        deficit_segments: Vec<DeficitSegment>,
        /// Energy that nobody takes, $/MWh.
        excess_cost: NonNegative,
    }
}

object! {
    /// A part of the load that can stay unserved at a cost.
    DeficitSegment {
        /// Its depth, MW; null in the last one, which has no end.
        depth_mw: Option<Positive>,
        /// Its cost, $/MWh; never below that of the segment before.
        cost: NonNegative,
    }
}

object! {
    /// Costs of lines.
    LinePenalties {
        /// Energy that is sent, $/MWh.
        exchange_cost: NonNegative,
    }
}

object! {
    /// Costs of hydro plants.
    HydroPenalties {
        /// Water spilled, $/(m³/s·h).
        spillage_cost: NonNegative,
        /// Turbined flow in stages with hyperplanes, $/(m³/s·h).
        fpha_turbined_cost: NonNegative,
        /// Water diverted, $/(m³/s·h).
        diversion_cost: NonNegative,
        /// Storage below its minimum at the end of a stage, $/hm³.
        storage_violation_below_cost: NonNegative,
        /// Storage below the target of a filling at the end of a stage, $/hm³.
        filling_target_violation_cost: NonNegative,
        /// Turbined flow below its minimum, $/(m³/s·h).
        turbined_violation_below_cost: NonNegative,
        /// Outflow below its minimum, $/(m³/s·h).
        outflow_violation_below_cost: NonNegative,
        /// Outflow above its maximum, $/(m³/s·h).
        outflow_violation_above_cost: NonNegative,
        /// Generation below its minimum, $/MWh.
        generation_violation_below_cost: NonNegative,
        /// Evaporation other than that of the lake's area, $/(m³/s·h).
        evaporation_violation_cost: NonNegative,
        /// Withdrawal other than what is asked for, $/(m³/s·h).
        water_withdrawal_violation_cost: NonNegative,
        /// Method penalty: the cost of added water, $/(m³/s·h).
        inflow_nonnegativity_cost: Option<NonNegative>,
        /// Turbined flow of all plants, $/(m³/s·h), in place of fpha_turbined_cost; only that counts if left out.
        turbined_cost: Option<NonNegative>,
        /// Too much withdrawn; as water_withdrawal_violation_cost if left out.
        water_withdrawal_violation_pos_cost: Option<NonNegative>,
        /// Too little withdrawn; as water_withdrawal_violation_cost if left out.
        water_withdrawal_violation_neg_cost: Option<NonNegative>,
        /// Too much evaporation; as evaporation_violation_cost if left out.
        evaporation_violation_pos_cost: Option<NonNegative>,
        /// Too little evaporation; as evaporation_violation_cost if left out.
        evaporation_violation_neg_cost: Option<NonNegative>,
    }
}

object! {
    /// Costs of non-controllable sources.
    SourcePenalties {
        /// Energy that could be had and is not taken, $/MWh.
        curtailment_cost: NonNegative,
    }
}
