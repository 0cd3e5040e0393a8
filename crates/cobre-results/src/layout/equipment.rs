//! The tables of pumping stations, contracts, batteries, commitments, groups of units and generic constraints.

block_table! {
    /// Pumping stations, by block.
    pumping<'a> in "simulation/pumping" {
        STATION_ID station_id: i32, "", "number of the pumping station in the case";
        STATION station: &'a str, "", "name of the pumping station";
        BUS_ID bus_id: i32, "", "number of the bus that its energy comes from";
        FLOW_M3S flow_m3s: f64, "m³/s", "water lifted";
        POWER_MW power_mw: f64, "MW", "power taken from the bus";
        MIN_PUMPING_VIOLATION_M3S min_pumping_violation_m3s: f64, "m³/s", "what the flow lacks to its minimum";
    }
}

block_table! {
    /// Contracts, by block.
    contracts<'a> in "simulation/contracts" {
        CONTRACT_ID contract_id: i32, "", "number of the contract in the case";
        CONTRACT contract: &'a str, "", "name of the contract";
        BUS_ID bus_id: i32, "", "number of its bus";
        IMPORT_MW import_mw: f64, "MW", "power that comes to the bus";
        EXPORT_MW export_mw: f64, "MW", "power that leaves the bus";
        COST cost: f64, "$", "what it adds to the cost of the stage; revenue is below zero";
    }
}

stage_table! {
    /// Batteries, by stage.
    batteries<'a> in "simulation/batteries" {
        BATTERY_ID battery_id: i32, "", "number of the battery in the case";
        BATTERY battery: &'a str, "", "name of the battery";
        LEVEL_INITIAL_MWH level_initial_mwh: f64, "MWh", "energy stored before the stage";
        LEVEL_MWH level_mwh: f64, "MWh", "energy stored after the stage";
        SELF_DISCHARGE_MWH self_discharge_mwh: f64, "MWh", "stored energy that is lost by itself during the stage";
        ENERGY_VALUE_PER_MWH energy_value_per_mwh: f64, "$/MWh",
            "what one more MWh in store at the end of the stage saves, in money of this stage";
        MIN_LEVEL_VIOLATION_MWH min_level_violation_mwh: f64, "MWh", "what the level lacks to its minimum";
    }
}

block_table! {
    /// Batteries, by block.
    battery_blocks<'a> in "simulation/battery_blocks" {
        BATTERY_ID battery_id: i32, "", "number of the battery in the case";
        BATTERY battery: &'a str, "", "name of the battery";
        BUS_ID bus_id: i32, "", "number of its bus";
        CHARGE_MW charge_mw: f64, "MW", "power taken from the bus";
        DISCHARGE_MW discharge_mw: f64, "MW", "power given to the bus";
        COST cost: f64, "$", "wear: what it adds to the cost of the stage";
    }
}

stage_table! {
    /// Commitments of thermal plants, by stage.
    commitments<'a> in "simulation/commitments" {
        THERMAL_ID thermal_id: i32, "", "number of the thermal plant in the case";
        THERMAL thermal: &'a str, "", "name of the thermal plant";
        DELIVERY_STAGE delivery_stage: i32, "", "number of the stage in the case that generation is committed for";
        COMMITTED_MW committed_mw: f64, "MW", "mean power of that stage";
        COST cost: f64, "$", "what it adds to the cost of the stage";
    }
}

block_table! {
    /// Groups of units of hydro plants, by block.
    hydro_units<'a> in "simulation/hydro_units" {
        HYDRO_ID hydro_id: i32, "", "number of the hydro plant in the case";
        HYDRO hydro: &'a str, "", "name of the hydro plant";
        UNIT_GROUP_ID unit_group_id: i32, "", "number of the group of units in the case";
        UNIT_GROUP unit_group: &'a str, "", "name of the group of units";
        BUS_ID bus_id: i32, "", "number of the bus it feeds";
        TURBINED_M3S turbined_m3s: f64, "m³/s", "flow through its turbines";
        GENERATION_MW generation_mw: f64, "MW", "power generated";
        MIN_TURBINED_VIOLATION_M3S min_turbined_violation_m3s: f64, "m³/s",
            "what turbined flow lacks to its minimum";
        MIN_GENERATION_VIOLATION_MW min_generation_violation_mw: f64, "MW", "what generation lacks to its minimum";
    }
}

block_table! {
    /// Generic constraints, by block.
    constraints<'a> in "simulation/constraints" {
        CONSTRAINT_ID constraint_id: i32, "", "number of the generic constraint in the case";
        CONSTRAINT constraint: &'a str, "", "name of the generic constraint";
        VALUE value: f64, "", "left-hand side";
        LOWER lower: Option<f64>, "", "the least it should be";
        UPPER upper: Option<f64>, "", "the most it should be";
        PRICE_PER_HOUR price_per_hour: f64, "$/h",
            "what the bound would cost per hour if it were 1 higher, now and later, in money of this stage; 0 where it does not bind";
        MIN_CONSTRAINT_VIOLATION min_constraint_violation: f64, "", "what the left-hand side lacks to its least";
        MAX_CONSTRAINT_VIOLATION max_constraint_violation: f64, "", "what the left-hand side is above its most";
        COST cost: f64, "$", "what violations add to the cost of the stage";
    }
}
