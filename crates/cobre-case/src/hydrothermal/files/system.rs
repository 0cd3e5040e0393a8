//! `system/*.json`: buses, lines, plants and sources.

use super::hydraulics::{Diversion, Efficiency, Evaporation, Filling, HydraulicLosses, Tailrace};
use super::penalties::DeficitSegment;
use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{Id, LeadStages, NonNegative, Percent, Positive};

pub(crate) const BUSES: &str = "system/buses.json";
pub(crate) const LINES: &str = "system/lines.json";
pub(crate) const THERMALS: &str = "system/thermals.json";
pub(crate) const HYDROS: &str = "system/hydros.json";
pub(crate) const SOURCES: &str = "system/non_controllable_sources.json";

object! {
    /// The buses: places where energy is balanced.
    Buses {
        /// All buses.
        buses: Vec<Bus>,
    }
}

object! {
    /// A bus.
    Bus {
        /// Its number, unique among buses.
        id: Id,
        /// Its name.
        name: String,
        /// The cost of unserved load here; as in penalties.json if left out.
        deficit_segments: Option<Vec<DeficitSegment>>,
    }
}

object! {
    /// The lines between buses.
    Lines {
        /// All lines.
        lines: Vec<Line>,
    }
}

object! {
    /// A line.
    Line {
        /// Its number, unique among lines.
        id: Id,
        /// Its name.
        name: String,
        /// The bus it starts at.
        source_bus_id: Id,
        /// The bus it ends at.
        target_bus_id: Id,
        /// Its capacities.
        capacity: Capacity,
        /// Cost of energy sent, $/MWh; as in penalties.json if left out.
        exchange_cost: Option<NonNegative>,
        /// The part of what is sent that does not arrive, %; 0 if left out.
        losses_percent: Option<Percent>,
        /// The first stage in which it is there; the first of the study if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which it is not there any more; never if left out.
        exit_stage_id: Option<Id>,
    }
}

object! {
    /// Capacities of a line.
    Capacity {
        /// From source to target, MW.
        direct_mw: NonNegative,
        /// From target to source, MW.
        reverse_mw: NonNegative,
    }
}

object! {
    /// The thermal plants.
    Thermals {
        /// All thermal plants.
        thermals: Vec<Thermal>,
    }
}

object! {
    /// A thermal plant.
    Thermal {
        /// Its number, unique among thermal plants.
        id: Id,
        /// Its name.
        name: String,
        /// Its bus.
        bus_id: Id,
        /// Its generation limits.
        generation: ThermalGeneration,
        /// Cost of its energy, $/MWh; or else cost_segments.
        cost_per_mwh: Option<NonNegative>,
        /// Cost of its energy by segments of power; the last one goes on to max_mw.
        cost_segments: Option<Vec<CostSegment>>,
        /// Dispatch that is committed stages ahead; decided in the stage itself if left out.
        anticipated_config: Option<AnticipatedConfig>,
        /// Dispatch that is committed stages ahead, as older cases have it.
        gnl_config: Option<GnlConfig>,
        /// The first stage in which it is there; the first of the study if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which it is not there any more; never if left out.
        exit_stage_id: Option<Id>,
    }
}

object! {
    /// A segment of power at one cost.
    CostSegment {
        /// Its size, MW.
        capacity_mw: Positive,
        /// Cost of its energy, $/MWh; not below that of the segment before.
        cost_per_mwh: NonNegative,
    }
}

object! {
    /// The lead of commitments: one of the two keys.
    AnticipatedConfig {
        /// Stages between the commitment and the generation.
        lead_stages: Option<LeadStages>,
        /// Hours before the start of a stage at which its generation is committed, at the latest.
        lead_time_hours: Option<Positive>,
    }
}

object! {
    /// The lead of commitments.
    GnlConfig {
        /// Stages between the commitment and the generation.
        lag_stages: LeadStages,
    }
}

object! {
    /// Generation limits of a thermal plant.
    ThermalGeneration {
        /// The least, MW.
        min_mw: NonNegative,
        /// The most, MW.
        max_mw: NonNegative,
    }
}

object! {
    /// The hydro plants.
    Hydros {
        /// All hydro plants.
        hydros: Vec<Hydro>,
    }
}

object! {
    /// A hydro plant.
    Hydro {
        /// Its number, unique among hydro plants.
        id: Id,
        /// Its name.
        name: String,
        /// Its bus; left out where unit_groups have buses of their own.
        bus_id: Option<Id>,
        /// Groups of units that feed buses of their own; one group at bus_id if left out.
        unit_groups: Option<Vec<UnitGroup>>,
        /// The plant that its water flows to; null if to the sea.
        downstream_id: Option<Id>,
        /// Its storage limits.
        reservoir: Reservoir,
        /// Its outflow limits.
        outflow: Outflow,
        /// Its generation limits.
        generation: HydroGeneration,
        /// The costs of its violations, where they differ from penalties.json.
        penalties: Option<PenaltyOverrides>,
        /// Evaporation of its reservoir; none if left out.
        evaporation: Option<Evaporation>,
        /// A channel to another plant; none if left out.
        diversion: Option<Diversion>,
        /// The first filling of its reservoir; it is full enough if left out.
        filling: Option<Filling>,
        /// The first stage in which the plant is in operation; the first of all if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which the plant is gone; it stays if left out.
        exit_stage_id: Option<Id>,
        /// Hours that released water needs to the plant below; 0 if left out.
        travel_time_hours: Option<NonNegative>,
        /// The level of the water below the plant, for computed hyperplanes; 0 m if left out.
        tailrace: Option<Tailrace>,
        /// Head lost on the way to the turbines, for computed hyperplanes; none if left out.
        hydraulic_losses: Option<HydraulicLosses>,
        /// Efficiency, for computed hyperplanes; 1 if left out.
        efficiency: Option<Efficiency>,
        /// Energy of water and head, MW/(m³/s) per m: times net head at a reference it is the productivity where no other is given.
        specific_productivity_mw_per_m3s_per_m: Option<NonNegative>,
    }
}

impl Hydro {
    /// Its groups of units, where it has any.
    pub(crate) fn groups(&self) -> &[UnitGroup] {
        self.unit_groups.as_deref().unwrap_or_default()
    }
}

object! {
    /// A group of units of a hydro plant.
    UnitGroup {
        /// Its number, unique among the groups of the plant.
        id: Id,
        /// Its name.
        name: String,
        /// Its bus.
        bus_id: Id,
        /// The least generation, MW; 0 if left out.
        min_generation_mw: Option<NonNegative>,
        /// The most generation, MW.
        max_generation_mw: NonNegative,
        /// The least turbined flow, m³/s; 0 if left out.
        min_turbined_m3s: Option<NonNegative>,
        /// The most turbined flow, m³/s.
        max_turbined_m3s: NonNegative,
    }
}

object! {
    /// Storage limits of a plant.
    Reservoir {
        /// The least, hm³.
        min_storage_hm3: NonNegative,
        /// The most, hm³; 0 for a run-of-river plant.
        max_storage_hm3: NonNegative,
    }
}

object! {
    /// Outflow limits of a plant: turbined, spilled and diverted.
    Outflow {
        /// The least, m³/s.
        min_outflow_m3s: NonNegative,
        /// The most, m³/s; null if there is no limit.
        max_outflow_m3s: Option<NonNegative>,
    }
}

choice! {
    /// The production function.
    GenerationModel {
        /// Generation in proportion to the turbined flow.
        ConstantProductivity = "constant_productivity",
        /// The same.
        LinearizedHead = "linearized_head",
        /// Generation below hyperplanes of storage, turbined and spilled flow.
        Fpha = "fpha",
    }
}

object! {
    /// Generation of a hydro plant.
    HydroGeneration {
        /// The production function.
        model: GenerationModel,
        /// Energy of water, MW/(m³/s); may be left out where no stage needs it.
        productivity_mw_per_m3s: Option<Positive>,
        /// The least turbined flow, m³/s.
        min_turbined_m3s: NonNegative,
        /// The most turbined flow, m³/s.
        max_turbined_m3s: NonNegative,
        /// The least generation, MW.
        min_generation_mw: NonNegative,
        /// The most generation, MW.
        max_generation_mw: NonNegative,
    }
}

object! {
    /// Costs of violations at one plant; units as in penalties.json.
    PenaltyOverrides {
        /// Water spilled.
        spillage_cost: Option<NonNegative>,
        /// Storage below its minimum.
        storage_violation_below_cost: Option<NonNegative>,
        /// Turbined flow below its minimum.
        turbined_violation_below_cost: Option<NonNegative>,
        /// Outflow below its minimum.
        outflow_violation_below_cost: Option<NonNegative>,
        /// Outflow above its maximum.
        outflow_violation_above_cost: Option<NonNegative>,
        /// Generation below its minimum.
        generation_violation_below_cost: Option<NonNegative>,
        /// Method penalty: the cost of added water.
        inflow_nonnegativity_cost: Option<NonNegative>,
        /// Turbined flow in stages with hyperplanes.
        fpha_turbined_cost: Option<NonNegative>,
        /// Water diverted.
        diversion_cost: Option<NonNegative>,
        /// Storage below the target of a filling.
        filling_target_violation_cost: Option<NonNegative>,
        /// Evaporation other than that of the lake's area, too little or too much.
        evaporation_violation_cost: Option<NonNegative>,
        /// Withdrawal other than what is asked for, too little or too much.
        water_withdrawal_violation_cost: Option<NonNegative>,
        /// Too much withdrawn; as water_withdrawal_violation_cost if left out.
        water_withdrawal_violation_pos_cost: Option<NonNegative>,
        /// Too little withdrawn; as water_withdrawal_violation_cost if left out.
        water_withdrawal_violation_neg_cost: Option<NonNegative>,
        /// Too much evaporation; as evaporation_violation_cost if left out.
        evaporation_violation_pos_cost: Option<NonNegative>,
        /// Too little evaporation; as evaporation_violation_cost if left out.
        evaporation_violation_neg_cost: Option<NonNegative>,
        /// Turbined flow in all stages, in place of fpha_turbined_cost.
        turbined_cost: Option<NonNegative>,
    }
}

object! {
    /// The non-controllable sources: wind, sun and the like.
    Sources {
        /// All sources.
        non_controllable_sources: Vec<Source>,
    }
}

object! {
    /// A non-controllable source.
    Source {
        /// Its number, unique among sources.
        id: Id,
        /// Its name.
        name: String,
        /// Its bus.
        bus_id: Id,
        /// Its capacity, MW.
        max_generation_mw: NonNegative,
        /// Cost of energy that could be had and is not taken, $/MWh; as in penalties.json if left out.
        curtailment_cost: Option<NonNegative>,
        /// The permission to curtail its energy; yes if left out.
        allow_curtailment: Option<bool>,
        /// The first stage in which it is there; the first of the study if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which it is not there any more; never if left out.
        exit_stage_id: Option<Id>,
    }
}
