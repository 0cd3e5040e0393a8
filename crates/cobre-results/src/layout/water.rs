//! The tables of hydro plants.

stage_table! {
    /// Hydro plants, by stage.
    hydros<'a> in "simulation/hydros" {
        HYDRO_ID hydro_id: i32, "", "number of the hydro plant in the case";
        HYDRO hydro: &'a str, "", "name of the hydro plant";
        STORAGE_INITIAL_HM3 storage_initial_hm3: f64, "hm³", "water stored before the stage";
        STORAGE_HM3 storage_hm3: f64, "hm³", "water stored after the stage";
        STORAGE_MAX_HM3 storage_max_hm3: f64, "hm³", "capacity of the reservoir in the stage";
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
