//! Estimation of inflow models from a history: PAR(p) and PAR(p)-A.
//!
//! [`series`] sorts observations into seasons, [`fit`] solves the Yule-Walker equations and chooses orders, [`annual`]
//! adds the mean of twelve months, [`residuals`] correlates what models leave. The result are tables as the format has
//! them: what is estimated and what is given take the same way from here.

mod annual;
mod diagnostics;
mod fit;
mod linear;
mod residuals;
mod series;
mod tables;

pub(crate) use self::annual::{Annual, MONTHS};
pub use self::diagnostics::InflowDiagnostics;
pub(crate) use self::fit::{EstimationOptions, Estimator, SeasonFit};
pub(crate) use self::series::{ObservedInflows, ObservedPeriods};
pub(crate) use self::tables::InflowTables;

use super::files::inflow::{Estimation, InflowHistory, OrderSelection};
use super::files::{Files, config, stages};
use super::number::Id;
use super::system::{Index, Period, SeasonTimeline};
use super::table::Row;
use crate::finding::{Findings, Place};

/// The fewest observations of a season that have a deviation.
const FEWEST: usize = 2;

/// The settings of a case.
pub(crate) fn options(estimation: Option<&Estimation>) -> EstimationOptions {
    let count = |value: Option<usize>, other: usize| value.unwrap_or(other);
    EstimationOptions {
        max_order: count(estimation.and_then(|own| Some(own.max_order?.0)), 6),
        annual: estimation.and_then(|own| own.order_selection) == Some(OrderSelection::PacfAnnual),
        least_observations: count(
            estimation.and_then(|own| Some(own.min_observations_per_season?.0)),
            30,
        ),
        largest_coefficient: estimation.and_then(|own| Some(own.max_coefficient_magnitude?.0)),
    }
}

/// The history of all plants, by resolution of stages.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) resolutions: Vec<ResolutionHistory>,
}

/// The history in the periods of one resolution.
#[derive(Debug)]
pub(crate) struct ResolutionHistory {
    pub(crate) resolution: usize,
    pub(crate) record: ObservedPeriods,
    /// By plant; without observations if it has none.
    pub(crate) plants: Vec<ObservedInflows>,
}

impl History {
    /// The history of a case; says which observations are of no plant, or come twice.
    pub(crate) fn resolve(
        files: &Files,
        plants: &Index,
        timeline: Option<&SeasonTimeline>,
        findings: &mut Findings,
    ) -> Self {
        let rows = &files.inflow_history;
        check(rows, plants, findings);
        let Some(timeline) = timeline else {
            return Self::default();
        };
        let resolutions = timeline.resolutions().into_iter();
        let resolutions = resolutions.filter_map(|resolution| {
            let record = ObservedPeriods::new(rows, timeline, resolution)?;
            let of_plant = |plant: &super::files::system::Hydro| {
                ObservedInflows::new(record.values(rows, plant.id, timeline), &record)
            };
            Some(ResolutionHistory {
                resolution,
                plants: files.hydros.hydros.iter().map(of_plant).collect(),
                record,
            })
        });
        Self {
            resolutions: resolutions.collect(),
        }
    }

    /// The history of the resolution of a period.
    pub(crate) fn of(&self, period: &Period) -> Option<&ResolutionHistory> {
        let mut own = self.resolutions.iter();
        own.find(|own| own.resolution == period.resolution)
    }

    /// The inflow of a plant in a period: as observed, else the mean of the season, and whether it is observed.
    pub(crate) fn inflow(
        &self,
        plant: usize,
        period: &Period,
        timeline: &SeasonTimeline,
    ) -> Option<(f64, bool)> {
        let own = self.of(period)?;
        let series = &own.plants[plant];
        let observed = own.record.place(period);
        if let Some(value) = observed.and_then(|place| series.values[place]) {
            return Some((value, true));
        }
        let moments = series.moments[timeline.seasons.place(period)];
        (moments.count > 0).then_some((moments.mean, false))
    }
}

/// Says which rows of the history are of no plant, or come twice.
fn check(rows: &[InflowHistory], plants: &Index, findings: &mut Findings) {
    let mut seen = std::collections::HashSet::new();
    for (number, row) in rows.iter().enumerate() {
        let at = Place::file(InflowHistory::FILE).row(number);
        plants.find(row.hydro_id, &at, findings);
        if !seen.insert((row.hydro_id, row.date.0)) {
            let message = format!(
                "there is a row of hydro plant {}, {} already",
                row.hydro_id, row.date
            );
            findings.wrong(&at, message);
        }
    }
}

/// Says what a history lacks to estimate from; true if it lacks nothing.
pub(super) fn enough(
    files: &Files,
    history: &History,
    timeline: Option<&SeasonTimeline>,
    findings: &mut Findings,
) -> bool {
    let before = findings.errors();
    let at = Place::file(InflowHistory::FILE);
    let Some(timeline) = timeline else {
        let at = Place::file(stages::FILE).key("season_definitions");
        let message = format!(
            "the key is missing; estimation from {} needs it",
            InflowHistory::FILE
        );
        findings.wrong(&at, message);
        return false;
    };
    let options = options(files.config.estimation.as_ref());
    if options.annual && !timeline.seasons.are_months() {
        let at = Place::file(config::FILE).key("estimation.order_selection");
        findings.wrong(&at, "pacf_annual needs seasons of cycle_type monthly");
    }
    for (place, plant) in files.hydros.hydros.iter().enumerate() {
        let at = at.rows(format!("hydro plant {} ({})", plant.id, plant.name));
        for own in &history.resolutions {
            let few = few_observations(own, place, timeline);
            if own.plants[place].values.iter().all(Option::is_none) {
                findings.wrong(&at, "there is no observation; every plant needs some");
                break;
            }
            if let Some((season, count)) = few.filter(|(_, count)| *count < FEWEST) {
                let message = format!(
                    "season {season} has {count} observations; {FEWEST} are the fewest that have a deviation"
                );
                findings.wrong(&at, message);
            } else if let Some((season, count)) = few
                && count < options.least_observations
            {
                let message = format!(
                    "season {season} has {count} observations, fewer than min_observations_per_season, {}: what is \
                     estimated from them is uncertain",
                    options.least_observations
                );
                findings.doubtful(&at, message);
            }
        }
    }
    findings.errors() == before
}

/// The season of a stage with the fewest observations, and their number.
fn few_observations(
    own: &ResolutionHistory,
    plant: usize,
    timeline: &SeasonTimeline,
) -> Option<(Id, usize)> {
    let stages = timeline.stages.iter().map(|(_, _, period)| period);
    let stages = stages.filter(|period| period.resolution == own.resolution);
    let counts = stages.filter_map(|period| {
        let moments = own.plants[plant].moments[timeline.seasons.place(period)];
        Some((period.season?, moments.count))
    });
    counts.min_by_key(|(season, count)| (*count, *season))
}
