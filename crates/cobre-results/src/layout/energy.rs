//! The tables of thermal plants, sources, buses and lines.

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
