//! Inflows: their history, its estimation, the annual component, and given openings.

use crate::hydrothermal::date::Date;
use crate::hydrothermal::json::{choice, object};
use crate::hydrothermal::number::{Count, Id, ModelOrder, NonNegative, Number, Positive};
use crate::hydrothermal::table::{Sizes, table};

table! {
    /// Observed inflows.
    InflowHistory in "scenarios/inflow_history.parquet", rows |sizes| Sizes::by_observation(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// A day of the season that was observed; in CSV as 2026-01-31.
        date: Date,
        /// The mean inflow, m³/s.
        value_m3s: Number,
    }
}

table! {
    /// The dependence of inflows on the mean of the twelve months before: PAR(p)-A.
    AnnualComponent in "scenarios/inflow_annual_component.parquet", rows |sizes| sizes.by_stage(sizes.hydros), {
        /// The plant.
        hydro_id: Id,
        /// The stage.
        stage_id: Id,
        /// The coefficient of the annual mean's deviation divided by its standard deviation.
        annual_coefficient: Number,
        /// The mean of the annual mean that ends with the season before, m³/s; nothing reads it.
        annual_mean_m3s: Number,
        /// Its standard deviation, m³/s.
        annual_std_m3s: NonNegative,
    }
}

table! {
    /// Openings that are given, for all stages or none.
    NoiseOpenings in "scenarios/noise_openings.parquet", rows |sizes| sizes.by_opening(), {
        /// The stage.
        stage_id: Id,
        /// The opening, from 0.
        opening_index: Id,
        /// The series: hydro plants by id, then buses with uncertain load by id, then sources by id.
        entity_index: Id,
        /// The noise η, of mean 0 and deviation 1; correlation is in it.
        value: Number,
    }
}

object! {
    /// The estimation of inflow models from scenarios/inflow_history.parquet.
    Estimation {
        /// The highest order; 6 if left out, and 0 for inflows that do not depend on the past.
        max_order: Option<ModelOrder>,
        /// The choice of the order of each season; pacf if left out.
        order_selection: Option<OrderSelection>,
        /// Observations of a season below which validate warns; 30 if left out.
        min_observations_per_season: Option<Count>,
        /// A season with a larger coefficient gets order 0; no limit if left out.
        max_coefficient_magnitude: Option<Positive>,
    }
}

choice! {
    /// The choice of orders.
    OrderSelection {
        /// By partial autocorrelation: PAR(p).
        Pacf = "pacf",
        /// The same given the mean of the twelve months before: PAR(p)-A.
        PacfAnnual = "pacf_annual",
    }
}

choice! {
    /// Kinds of years of seasons.
    CycleType {
        /// Calendar months: a season is that of its month_start.
        Monthly = "monthly",
        /// ISO weeks: season 0 is week 1, and week 53 belongs to season 51.
        Weekly = "weekly",
        /// Days of the year, from start to end.
        Custom = "custom",
    }
}

object! {
    /// Seasons of inflows: lags count them.
    SeasonDefinitions {
        /// The kind of seasons.
        cycle_type: CycleType,
        /// The seasons.
        seasons: Vec<Season>,
    }
}

/// The most months and days of a month.
type Month = Count<12>;
type Day = Count<31>;

object! {
    /// A season.
    Season {
        /// Its number.
        id: Id,
        /// Its name.
        label: Option<String>,
        /// Its first month, from 1; weekly seasons need none.
        month_start: Option<Month>,
        /// custom: its first day of that month; 1 if left out.
        day_start: Option<Day>,
        /// custom: its last month; that of the start if left out.
        month_end: Option<Month>,
        /// custom: its last day of that month, which belongs to it; the last of the month if left out.
        day_end: Option<Day>,
    }
}

object! {
    /// The inflow of a plant over some days before the first stage.
    RecentObservation {
        /// The plant.
        hydro_id: Id,
        /// The first day.
        start_date: Date,
        /// The day after the last; not after the start of the first stage.
        end_date: Date,
        /// The mean inflow, m³/s.
        value_m3s: Number,
    }
}
