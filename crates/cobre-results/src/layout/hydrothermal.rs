//! The tables of hydrothermal cases: plants, sources, buses and lines. Costs are in `cost_kinds.rs`.

stage_table! {
    /// Hydro plants, by stage.
    hydros<'a> in "simulation/hydros" {
        HYDRO_ID hydro_id: i32, "", "number of the hydro plant in the case";
        HYDRO hydro: &'a str, "", "name of the hydro plant";
        STORAGE_INITIAL_HM3 storage_initial_hm3: f64, "hm³", "water stored before the stage";
        STORAGE_HM3 storage_hm3: f64, "hm³", "water stored after the stage";
        INFLOW_M3S inflow_m3s: f64, "m³/s",
            "natural inflow, after what config.json wants done about inflows below zero by truncation";
        INFLOW_ADDED_M3S inflow_added_m3s: f64, "m³/s",
            "water added to an inflow below zero, at a cost (method penalty)";
        WATER_VALUE_PER_HM3 water_value_per_hm3: f64, "$/hm³",
            "what one more hm³ of water in this stage saves now and later, in money of this stage";
        MIN_STORAGE_VIOLATION_HM3 min_storage_violation_hm3: f64, "hm³", "what storage lacks to its minimum";
    }
}

block_table! {
    /// Hydro plants, by block.
    hydro_blocks<'a> in "simulation/hydro_blocks" {
        HYDRO_ID hydro_id: i32, "", "number of the hydro plant in the case";
        HYDRO hydro: &'a str, "", "name of the hydro plant";
        BUS_ID bus_id: i32, "", "number of the bus it feeds";
        TURBINED_M3S turbined_m3s: f64, "m³/s", "flow through the turbines";
        SPILLED_M3S spilled_m3s: f64, "m³/s", "flow past the turbines";
        OUTFLOW_M3S outflow_m3s: f64, "m³/s", "turbined and spilled flow together";
        GENERATION_MW generation_mw: f64, "MW", "power generated";
        MIN_TURBINED_VIOLATION_M3S min_turbined_violation_m3s: f64, "m³/s",
            "what turbined flow lacks to its minimum";
        MIN_GENERATION_VIOLATION_MW min_generation_violation_mw: f64, "MW",
            "what generation lacks to its minimum";
        MIN_OUTFLOW_VIOLATION_M3S min_outflow_violation_m3s: f64, "m³/s", "what outflow lacks to its minimum";
        MAX_OUTFLOW_VIOLATION_M3S max_outflow_violation_m3s: f64, "m³/s", "what outflow is above its maximum";
    }
}

block_table! {
    /// Thermal plants, by block.
    thermals<'a> in "simulation/thermals" {
        THERMAL_ID thermal_id: i32, "", "number of the thermal plant in the case";
        THERMAL thermal: &'a str, "", "name of the thermal plant";
        BUS_ID bus_id: i32, "", "number of the bus it feeds";
        GENERATION_MW generation_mw: f64, "MW", "power generated";
        COST cost: f64, "$", "what it adds to the cost of the stage";
    }
}

block_table! {
    /// Non-controllable sources, by block.
    sources<'a> in "simulation/sources" {
        SOURCE_ID source_id: i32, "", "number of the non-controllable source in the case";
        SOURCE source: &'a str, "", "name of the non-controllable source";
        BUS_ID bus_id: i32, "", "number of the bus it feeds";
        AVAILABLE_MW available_mw: f64, "MW", "power that could be had";
        GENERATION_MW generation_mw: f64, "MW", "power taken";
        CURTAILED_MW curtailed_mw: f64, "MW", "power that could be had and was not taken";
        COST cost: f64, "$",
            "what it adds to the cost of the stage: energy taken is credited the curtailment cost, so it is not above zero";
    }
}

block_table! {
    /// Buses, by block.
    buses<'a> in "simulation/buses" {
        BUS_ID bus_id: i32, "", "number of the bus in the case";
        BUS bus: &'a str, "", "name of the bus";
        LOAD_MW load_mw: f64, "MW", "load";
        DEFICIT_MW deficit_mw: f64, "MW", "load that is not served";
        EXCESS_MW excess_mw: f64, "MW", "power that nobody takes";
        MARGINAL_COST_PER_MWH marginal_cost_per_mwh: f64, "$/MWh",
            "what one more MWh of load costs now and later, in money of this stage";
        DEFICIT_COST deficit_cost: f64, "$", "what the deficit adds to the cost of the stage";
        EXCESS_COST excess_cost: f64, "$", "what the excess adds to the cost of the stage";
    }
}

block_table! {
    /// Lines, by block.
    lines<'a> in "simulation/lines" {
        LINE_ID line_id: i32, "", "number of the line in the case";
        LINE line: &'a str, "", "name of the line";
        FROM_BUS_ID from_bus_id: i32, "", "number of the bus at its beginning";
        TO_BUS_ID to_bus_id: i32, "", "number of the bus at its end";
        DIRECT_MW direct_mw: f64, "MW", "power sent from its beginning to its end";
        REVERSE_MW reverse_mw: f64, "MW", "power sent from its end to its beginning";
        LOSSES_MW losses_mw: f64, "MW", "power sent that does not arrive";
        COST cost: f64, "$", "what it adds to the cost of the stage";
    }
}
