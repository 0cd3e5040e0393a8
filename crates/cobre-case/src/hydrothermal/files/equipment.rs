//! `system/*.json` of pumping stations, contracts and batteries, and what differs by stage and block.

use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{Efficiency, Id, NonNegative, Number, Positive, Share};
use crate::hydrothermal::table::table;

pub(crate) const PUMPING: &str = "system/pumping_stations.json";
pub(crate) const CONTRACTS: &str = "system/energy_contracts.json";
pub(crate) const BATTERIES: &str = "system/batteries.json";
pub(crate) const EXCHANGE_FACTORS: &str = "constraints/exchange_factors.json";

object! {
    /// The pumping stations: water that is lifted from one plant to another.
    PumpingStations {
        /// All pumping stations.
        pumping_stations: Vec<PumpingStation>,
    }
}

object! {
    /// A pumping station.
    PumpingStation {
        /// Its number, unique among pumping stations.
        id: Id,
        /// Its name.
        name: String,
        /// The bus that its energy comes from.
        bus_id: Id,
        /// The hydro plant that water is taken from.
        source_hydro_id: Id,
        /// The hydro plant that water is brought to.
        destination_hydro_id: Id,
        /// Power for a flow, MW/(m³/s).
        consumption_mw_per_m3s: NonNegative,
        /// Its flow limits.
        flow: PumpingFlow,
        /// The first stage in which it is there; the first of the study if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which it is not there any more; never if left out.
        exit_stage_id: Option<Id>,
    }
}

object! {
    /// Flow limits of a pumping station.
    PumpingFlow {
        /// The least, m³/s; less is possible where there is no water, at a price above all that it saves.
        min_m3s: NonNegative,
        /// The most, m³/s.
        max_m3s: NonNegative,
    }
}

table! {
    /// Flow limits of a pumping station in a stage or block.
    PumpingBounds in "constraints/pumping_bounds.parquet", rows |sizes| sizes.by_block(sizes.pumping), {
        /// The pumping station.
        station_id: Id,
        /// The stage.
        stage_id: Id,
        /// The least flow, m³/s.
        min_m3s: Option<NonNegative>,
        /// The most flow, m³/s.
        max_m3s: Option<NonNegative>,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}

object! {
    /// The contracts by which energy is bought from or sold to others.
    EnergyContracts {
        /// All contracts.
        contracts: Vec<EnergyContract>,
    }
}

choice! {
    /// The direction of a contract.
    ContractKind {
        /// Energy comes to the bus.
        Import = "import",
        /// Energy leaves the bus.
        Export = "export",
    }
}

object! {
    /// A contract.
    EnergyContract {
        /// Its number, unique among contracts.
        id: Id,
        /// Its name.
        name: String,
        /// Its bus.
        bus_id: Id,
        /// Its direction.
        r#type: ContractKind,
        /// Cost of its energy, $/MWh; below 0 for revenue, as of exports.
        price_per_mwh: Number,
        /// Its power limits.
        limits: ContractLimits,
        /// The first stage in which it holds; the first of the study if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which it does not hold any more; never if left out.
        exit_stage_id: Option<Id>,
    }
}

object! {
    /// Power limits of a contract.
    ContractLimits {
        /// The least, MW.
        min_mw: NonNegative,
        /// The most, MW.
        max_mw: NonNegative,
    }
}

table! {
    /// Power limits and price of a contract in a stage or block.
    ContractBounds in "constraints/contract_bounds.parquet", rows |sizes| sizes.by_block(sizes.contracts), {
        /// The contract.
        contract_id: Id,
        /// The stage.
        stage_id: Id,
        /// The least power, MW.
        min_mw: Option<NonNegative>,
        /// The most power, MW.
        max_mw: Option<NonNegative>,
        /// Cost of its energy, $/MWh.
        price_per_mwh: Option<Number>,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}

object! {
    /// The batteries: energy stored at a bus. No other program that reads the format knows this file.
    Batteries {
        /// All batteries.
        batteries: Vec<Battery>,
    }
}

object! {
    /// A battery.
    Battery {
        /// Its number, unique among batteries.
        id: Id,
        /// Its name.
        name: String,
        /// Its bus.
        bus_id: Id,
        /// The energy it can store, MWh.
        capacity_mwh: NonNegative,
        /// The least energy in it at the end of a stage, MWh; 0 if left out.
        min_level_mwh: Option<NonNegative>,
        /// The energy in it before the first stage, MWh.
        initial_level_mwh: NonNegative,
        /// The most power it takes from the bus, MW.
        max_charge_mw: NonNegative,
        /// The most power it gives to the bus, MW.
        max_discharge_mw: NonNegative,
        /// The part of the energy taken that is stored; 1 if left out.
        charge_efficiency: Option<Efficiency>,
        /// The part of the energy drawn from the store that reaches the bus; 1 if left out.
        discharge_efficiency: Option<Efficiency>,
        /// The part of the stored energy that is lost in an hour; 0 if left out.
        self_discharge_per_hour: Option<Share>,
        /// Wear, $ per MWh given to the bus; 0 if left out.
        degradation_cost_per_mwh: Option<NonNegative>,
        /// Cost of a level below min_level_mwh at the end of a stage, $/MWh; 10,000 if left out.
        level_violation_below_cost: Option<Positive>,
        /// The first stage in which it is there; the first of the study if left out.
        entry_stage_id: Option<Id>,
        /// The first stage in which it is not there any more; never if left out.
        exit_stage_id: Option<Id>,
    }
}

table! {
    /// Limits of a battery in a stage or block.
    BatteryBounds in "constraints/battery_bounds.parquet", rows |sizes| sizes.by_block(sizes.batteries), {
        /// The battery.
        battery_id: Id,
        /// The stage.
        stage_id: Id,
        /// The most power it takes from the bus, MW.
        max_charge_mw: Option<NonNegative>,
        /// The most power it gives to the bus, MW.
        max_discharge_mw: Option<NonNegative>,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}

table! {
    /// Available power of non-controllable sources in stages that have no statistics.
    SourceBounds in "constraints/ncs_bounds.parquet", rows |sizes| sizes.by_block(sizes.sources), {
        /// The source.
        ncs_id: Id,
        /// The stage.
        stage_id: Id,
        /// The power that can be had, MW, before the factor of the block.
        available_generation_mw: NonNegative,
        /// The block; all blocks if empty. A row of a block beats one of the stage.
        block_id: Option<Id>,
    }
}

object! {
    /// Factors of the capacities of lines by block.
    ExchangeFactors {
        /// Factors by line and stage; 1 where there are none.
        exchange_factors: Vec<ExchangeFactor>,
    }
}

object! {
    /// Factors of the capacities of a line in a stage, by block.
    ExchangeFactor {
        /// The line.
        line_id: Id,
        /// The stage.
        stage_id: Id,
        /// The factors; 1 for blocks that have none.
        block_factors: Vec<ExchangeBlockFactor>,
    }
}

object! {
    /// The factors of a block.
    ExchangeBlockFactor {
        /// The block.
        block_id: Id,
        /// The factor of the capacity from source to target.
        direct_factor: NonNegative,
        /// The factor of the capacity from target to source.
        reverse_factor: NonNegative,
    }
}
