//! `scenarios/*`: what is uncertain, and how load and sources differ by block.

use serde_json::{Value, json};

use crate::finding::{Findings, Place};
use crate::hydrothermal::json::{Json, Object, Read, choice, object};
use crate::hydrothermal::number::{Id, NonNegative, Number};
use crate::hydrothermal::table::table;

pub(crate) const LOAD_FACTORS: &str = "scenarios/load_factors.json";
pub(crate) const SOURCE_FACTORS: &str = "scenarios/non_controllable_factors.json";
pub(crate) const CORRELATION: &str = "scenarios/correlation.json";

table! {
    /// Mean and deviation of inflows.
    InflowStats in "scenarios/inflow_seasonal_stats.parquet", rows |sizes| sizes.by_past_stage(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage; below 0 for stages before the first.
        stage_id: Id,
        /// The mean, m³/s.
        mean_m3s: Number,
        /// The standard deviation, m³/s.
        std_m3s: NonNegative,
    }
    refused {
        ar_order: "the order is what inflow_ar_coefficients.parquet has",
    }
}

table! {
    /// Mean and deviation of inflows in the regimes of a Markov chain.
    InflowRegimes in "scenarios/inflow_regimes.parquet", rows |sizes| sizes.by_scenario(sizes.hydros), {
        /// The regime: `scenario_id` of nodes of the policy graph.
        scenario_id: Id,
        /// The plant.
        hydro_id: Id,
        /// The stage.
        stage_id: Id,
        /// The mean in the regime, m³/s.
        mean_m3s: Number,
        /// The standard deviation in the regime, m³/s.
        std_m3s: NonNegative,
    }
}

table! {
    /// The dependence of inflows on earlier ones.
    ArCoefficients in "scenarios/inflow_ar_coefficients.parquet", rows |sizes| sizes.by_lag(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage.
        stage_id: Id,
        /// Stages back, from 1.
        lag: Id,
        /// The coefficient, of deviations divided by their standard deviation.
        coefficient: Number,
        /// The deviation of what is new in a stage, as a part of the standard deviation; the same for all lags. Derived
        /// from the coefficients if left out.
        residual_std_ratio: Option<NonNegative>,
    }
}

table! {
    /// Mean and deviation of load.
    LoadStats in "scenarios/load_seasonal_stats.parquet", rows |sizes| sizes.by_stage(sizes.buses), {
        /// The bus.
        bus_id: Id,
        /// The stage.
        stage_id: Id,
        /// The mean, MW.
        mean_mw: NonNegative,
        /// The standard deviation, MW.
        std_mw: NonNegative,
    }
}

table! {
    /// Mean and deviation of what sources have, as a part of their capacity.
    SourceStats in "scenarios/non_controllable_stats.parquet", rows |sizes| sizes.by_stage(sizes.sources), {
        /// The source.
        ncs_id: Id,
        /// The stage.
        stage_id: Id,
        /// The mean, of the capacity.
        mean: NonNegative,
        /// The standard deviation, of the capacity.
        std: NonNegative,
    }
}

table! {
    /// Scenarios of inflows that paths can follow.
    ExternalInflow in "scenarios/external_inflow_scenarios.parquet", rows |sizes| sizes.by_scenario(sizes.hydros), {
        /// The stage.
        stage_id: Id,
        /// The scenario, such as a year; all rows are of one scenario if left out.
        scenario_id: Option<Id>,
        /// The plant.
        hydro_id: Id,
        /// The inflow, m³/s.
        value_m3s: Number,
    }
}

table! {
    /// Scenarios of load that paths can follow.
    ExternalLoad in "scenarios/external_load_scenarios.parquet", rows |sizes| sizes.by_scenario(sizes.buses), {
        /// The stage.
        stage_id: Id,
        /// The scenario; all rows are of one scenario if left out.
        scenario_id: Option<Id>,
        /// The bus.
        bus_id: Id,
        /// The load, MW.
        value_mw: NonNegative,
    }
}

table! {
    /// Scenarios of available energy of sources that paths can follow.
    ExternalSources in "scenarios/external_ncs_scenarios.parquet", rows |sizes| sizes.by_scenario(sizes.sources), {
        /// The stage.
        stage_id: Id,
        /// The scenario; all rows are of one scenario if left out.
        scenario_id: Option<Id>,
        /// The source.
        ncs_id: Id,
        /// The available part of the capacity; above 1 it is 1.
        value: NonNegative,
    }
}

object! {
    /// Factors of load by block.
    LoadFactors {
        /// Factors by bus and stage; 1 where there are none.
        load_factors: Vec<LoadFactor>,
    }
}

object! {
    /// Factors of the load of a bus in a stage, by block.
    LoadFactor {
        /// The bus.
        bus_id: Id,
        /// The stage.
        stage_id: Id,
        /// The factors; 1 for blocks that have none.
        block_factors: Vec<BlockFactor>,
    }
}

object! {
    /// The factor of a block.
    BlockFactor {
        /// The block.
        block_id: Id,
        /// The factor by which the value of the stage is multiplied.
        factor: NonNegative,
    }
}

object! {
    /// Factors of available energy of sources by block.
    SourceFactors {
        /// Factors by source and stage; 1 where there are none.
        non_controllable_factors: Vec<SourceFactor>,
    }
}

object! {
    /// Factors of the available energy of a source in a stage, by block.
    SourceFactor {
        /// The source.
        ncs_id: Id,
        /// The stage.
        stage_id: Id,
        /// The factors; 1 for blocks that have none.
        block_factors: Vec<BlockFactor>,
    }
}

choice! {
    /// The factorisation of a correlation matrix.
    Factorization {
        /// Cholesky: the matrix must be positive definite.
        Cholesky = "cholesky",
        /// By eigenvalues: those below zero are taken as zero.
        Spectral = "spectral",
    }
}

choice! {
    /// The correlated series.
    SeriesKind {
        /// The inflow of a hydro plant.
        Inflow = "inflow",
        /// The load of a bus.
        Load = "load",
        /// Available energy of a non-controllable source.
        Ncs = "ncs",
    }
}

object! {
    /// Which series move together.
    Correlation {
        /// The factorisation of matrices.
        method: Factorization,
        /// Named sets of groups.
        profiles: Profiles,
        /// The profile of each stage that does not have the default one.
        schedule: Option<Vec<ScheduleEntry>>,
    }
}

object! {
    /// Groups that hold at the same time.
    Profile {
        /// The groups; a series is in one of them at most.
        correlation_groups: Vec<CorrelationGroup>,
    }
}

object! {
    /// Series that move together.
    CorrelationGroup {
        /// Its name.
        name: String,
        /// The series, in the order of the matrix.
        entities: Vec<Series>,
        /// The correlation matrix, row by row.
        matrix: Vec<Vec<Number>>,
    }
}

object! {
    /// A series.
    Series {
        /// The kind of the series.
        r#type: SeriesKind,
        /// The plant, bus or source.
        id: Id,
    }
}

object! {
    /// The profile of a stage.
    ScheduleEntry {
        /// The stage.
        stage_id: Id,
        /// The profile.
        profile_name: String,
    }
}

/// Profiles by name.
#[derive(Debug, Clone)]
pub(crate) struct Profiles(pub(crate) Vec<(String, Profile)>);

impl Read for Profiles {
    fn read(json: &Json, at: &Place, findings: &mut Findings) -> Option<Self> {
        Object::open(json, at, findings)?.all().map(Self)
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"$schema": {"type": "string"}},
            "additionalProperties": Profile::schema(),
        })
    }
}
