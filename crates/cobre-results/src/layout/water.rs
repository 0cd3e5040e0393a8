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
        EVAPORATION_M3S evaporation_m3s: f64, "m³/s",
            "water that evaporates; below zero if more rain falls on the lake";
        EVAPORATION_BELOW_VIOLATION_M3S evaporation_below_violation_m3s: f64, "m³/s",
            "what evaporation lacks to that of the lake's area";
        EVAPORATION_ABOVE_VIOLATION_M3S evaporation_above_violation_m3s: f64, "m³/s",
            "what evaporation is above that of the lake's area";
        WITHDRAWAL_M3S withdrawal_m3s: f64, "m³/s",
            "water taken out for other uses; below zero if water is returned";
        WITHDRAWAL_BELOW_VIOLATION_M3S withdrawal_below_violation_m3s: f64, "m³/s",
            "what withdrawal lacks to what is asked for";
        WITHDRAWAL_ABOVE_VIOLATION_M3S withdrawal_above_violation_m3s: f64, "m³/s",
            "what withdrawal is above what is asked for";
        FILLING_VIOLATION_HM3 filling_violation_hm3: f64, "hm³", "what storage lacks to the target of filling";
        ARRIVING_BELOW_HM3 arriving_below_hm3: f64, "hm³",
            "water turbined and spilled here, now or before, that reaches the plant below during the stage";
        UNDER_WAY_HM3 under_way_hm3: f64, "hm³",
            "water turbined and spilled here that reaches the plant below after the stage, before the study ends";
    }
}

block_table! {
    /// Hydro plants, by block.
    hydro_blocks<'a> in "simulation/hydro_blocks" {
        HYDRO_ID hydro_id: i32, "", "number of the hydro plant in the case";
        HYDRO hydro: &'a str, "", "name of the hydro plant";
        BUS_ID bus_id: i32, "", "number of the bus it feeds; the first one if its groups of units feed several";
        TURBINED_M3S turbined_m3s: f64, "m³/s", "flow through the turbines";
        SPILLED_M3S spilled_m3s: f64, "m³/s", "flow past the turbines; all flow while the plant is not there";
        OUTFLOW_M3S outflow_m3s: f64, "m³/s", "turbined and spilled flow together";
        GENERATION_MW generation_mw: f64, "MW", "power generated";
        MIN_TURBINED_VIOLATION_M3S min_turbined_violation_m3s: f64, "m³/s",
            "what turbined flow lacks to its minimum";
        MIN_GENERATION_VIOLATION_MW min_generation_violation_mw: f64, "MW",
            "what generation lacks to its minimum";
        MIN_OUTFLOW_VIOLATION_M3S min_outflow_violation_m3s: f64, "m³/s", "what outflow lacks to its minimum";
        MAX_OUTFLOW_VIOLATION_M3S max_outflow_violation_m3s: f64, "m³/s", "what outflow is above its maximum";
        DIVERTED_M3S diverted_m3s: f64, "m³/s", "flow through the diversion; outflow limits count it as well";
        STORAGE_HM3 storage_hm3: f64, "hm³",
            "water stored after the block if blocks are chronological, else after the stage";
        PRODUCTION_VIOLATION_MW production_violation_mw: f64, "MW",
            "how far the lowest hyperplane is below zero, where generation is zero: as in a flood";
        MIN_SPILLAGE_VIOLATION_M3S min_spillage_violation_m3s: f64, "m³/s", "what spilled flow lacks to its minimum";
        MAX_SPILLAGE_VIOLATION_M3S max_spillage_violation_m3s: f64, "m³/s", "what spilled flow is above its maximum";
        MIN_DIVERSION_VIOLATION_M3S min_diversion_violation_m3s: f64, "m³/s", "what diverted flow lacks to its minimum";
    }
}

block_table! {
    /// Production of hydro plants with hyperplanes and a level curve, by block.
    production<'a> in "simulation/production" {
        HYDRO_ID hydro_id: i32, "", "number of the hydro plant in the case";
        HYDRO hydro: &'a str, "", "name of the hydro plant";
        STORAGE_MEAN_HM3 storage_mean_hm3: f64, "hm³",
            "mean of the storages before and after, from which hyperplanes give generation";
        TURBINED_M3S turbined_m3s: f64, "m³/s", "flow through the turbines";
        NET_HEAD_M net_head_m: f64, "m", "net head at that storage and outflow";
        GENERATION_MW generation_mw: f64, "MW", "power generated, below the hyperplanes";
        EXACT_GENERATION_MW exact_generation_mw: f64, "MW",
            "power that the exact production function gives for the same storage and flows";
    }
}
