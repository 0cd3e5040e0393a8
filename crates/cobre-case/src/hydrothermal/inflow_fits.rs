//! Estimated inflow models of a case, for people to judge and for files.

use std::path::Path;

use serde_json::{Value, json};

use super::estimation::{History, InflowDiagnostics, InflowTables};
use super::files::Files;
use super::files::inflow::AnnualComponent;
use super::files::scenarios::{ArCoefficients, CORRELATION, Correlation, InflowStats};
use super::system::{Index, SeasonTimeline};
use super::table::Row;
use crate::finding::{Finding, Findings};
use crate::template::{CaseFiles, TemplateColumn};

/// The inflow models that are estimated from the history of a case.
#[derive(Debug, Clone)]
pub struct InflowFits {
    /// By resolution of the case's seasons, and by plant.
    pub plants: Vec<InflowFit>,
    /// The estimated tables, as files of a case.
    pub files: CaseFiles,
    /// Warnings.
    pub warnings: Vec<Finding>,
}

/// The estimated inflow model of a plant.
#[derive(Debug, Clone, PartialEq)]
pub struct InflowFit {
    /// The number of the plant.
    pub hydro_id: i32,
    /// Its name.
    pub hydro: String,
    /// The models of the seasons, in the order of the year.
    pub seasons: Vec<SeasonModel>,
    /// The residuals that are left, and the inflows that the model makes.
    pub diagnostics: InflowDiagnostics,
}

/// The estimated inflow model of a season.
#[derive(Debug, Clone, PartialEq)]
pub struct SeasonModel {
    /// The number of the season, if a stage has it.
    pub season_id: Option<i32>,
    /// Observations.
    pub observations: usize,
    /// m³/s.
    pub mean_m3s: f64,
    /// m³/s.
    pub std_m3s: f64,
    /// Of deviations divided by standard deviations, from lag 1.
    pub coefficients: Vec<f64>,
    /// The part of the standard deviation that is new.
    pub residual_std_ratio: f64,
    /// Of the annual mean: coefficient, and mean and standard deviation of those that end with the season, m³/s.
    pub annual: Option<(f64, f64, f64)>,
}

/// The estimates of the case in a directory, or everything that is wrong with it; none if nothing is estimated.
pub(crate) fn read(path: &Path) -> Result<Option<InflowFits>, Vec<Finding>> {
    let (files, system, findings) = super::resolve_system(path, None)?;
    // What is wrong elsewhere spoils the estimate as well.
    if findings.any_wrong() {
        return Err(findings.sorted());
    }
    let Some(timeline) = &system.timeline else {
        return Ok(None);
    };
    let (history, index) = (&system.history, &system.indices.hydros);
    let estimated = told(&files, history, index, timeline);
    Ok(estimated.map(|(plants, files)| InflowFits {
        plants,
        files,
        warnings: findings.sorted(),
    }))
}

fn told(
    files: &Files,
    history: &History,
    plants: &Index,
    timeline: &SeasonTimeline,
) -> Option<(Vec<InflowFit>, CaseFiles)> {
    let tables = InflowTables::resolve(files, history, Some(timeline), &mut Findings::default());
    if tables.fits.is_empty() {
        return None;
    }
    let mut found = Vec::new();
    for (number, own) in history.resolutions.iter().enumerate() {
        let diagnostics = tables.diagnostics(history, number);
        let fits = tables.fits[number].iter().zip(diagnostics);
        for (place, (estimate, diagnostics)) in fits.enumerate() {
            let plant = &files.hydros.hydros[place];
            let seasons = (0..own.record.seasons).map(|season| {
                let mut periods = own.record.periods.iter().zip(&own.record.season_of);
                let period = periods.find(|(_, of)| **of == season);
                let moments = own.plants[place].moments[season];
                let fit = &estimate.seasons[season];
                let annual = estimate
                    .annual
                    .as_ref()
                    .map(|annual| annual.moments[season]);
                SeasonModel {
                    season_id: period.and_then(|(period, _)| period.season),
                    observations: moments.count,
                    mean_m3s: moments.mean,
                    std_m3s: moments.deviation,
                    coefficients: fit.coefficients.clone(),
                    residual_std_ratio: fit.residual,
                    annual: annual
                        .zip(fit.annual)
                        .map(|(annual, factor)| (factor, annual.mean, annual.deviation)),
                }
            });
            found.push(InflowFit {
                hydro_id: plant.id,
                hydro: plants.labels[place].clone(),
                seasons: seasons.collect(),
                diagnostics,
            });
        }
    }
    Some((found, written(&tables)))
}

/// The tables that were estimated, as files.
fn written(tables: &InflowTables<'_>) -> CaseFiles {
    let mut files = CaseFiles::default();
    let [statistics, coefficients] = tables.estimated;
    if statistics {
        files.table(InflowStats::FILE, &stats_columns(&tables.stats));
    }
    if coefficients && !tables.coefficients.is_empty() {
        files.table(ArCoefficients::FILE, &lag_columns(&tables.coefficients));
    }
    if coefficients && !tables.annual.is_empty() {
        files.table(AnnualComponent::FILE, &annual_columns(&tables.annual));
    }
    if let Some(correlation) = &tables.correlation {
        files.insert(CORRELATION, format!("{:#}\n", as_json(correlation)));
    }
    files
}

/// A column of whole numbers.
fn ids<R>(name: &'static str, rows: &[R], of: fn(&R) -> i32) -> (&'static str, TemplateColumn) {
    (name, TemplateColumn::Ids(rows.iter().map(of).collect()))
}

/// A column of numbers.
fn numbers<R>(name: &'static str, rows: &[R], of: fn(&R) -> f64) -> (&'static str, TemplateColumn) {
    (name, TemplateColumn::Numbers(rows.iter().map(of).collect()))
}

fn stats_columns(rows: &[InflowStats]) -> [(&'static str, TemplateColumn); 4] {
    [
        ids("hydro_id", rows, |row| row.hydro_id),
        ids("stage_id", rows, |row| row.stage_id),
        numbers("mean_m3s", rows, |row| row.mean_m3s.0),
        numbers("std_m3s", rows, |row| row.std_m3s.0),
    ]
}

fn lag_columns(rows: &[ArCoefficients]) -> [(&'static str, TemplateColumn); 5] {
    [
        ids("hydro_id", rows, |row| row.hydro_id),
        ids("stage_id", rows, |row| row.stage_id),
        ids("lag", rows, |row| row.lag),
        numbers("coefficient", rows, |row| row.coefficient.0),
        numbers("residual_std_ratio", rows, ArCoefficients::residual),
    ]
}

fn annual_columns(rows: &[AnnualComponent]) -> [(&'static str, TemplateColumn); 5] {
    [
        ids("hydro_id", rows, |row| row.hydro_id),
        ids("stage_id", rows, |row| row.stage_id),
        numbers("annual_coefficient", rows, |row| row.annual_coefficient.0),
        numbers("annual_mean_m3s", rows, |row| row.annual_mean_m3s.0),
        numbers("annual_std_m3s", rows, |row| row.annual_std_m3s.0),
    ]
}

fn as_json(correlation: &Correlation) -> Value {
    let mut profiles = serde_json::Map::new();
    for (name, profile) in &correlation.profiles.0 {
        let groups = profile.correlation_groups.iter().map(|group| {
            let entities = group.entities.iter();
            let entities = entities.map(|entity| json!({"type": "inflow", "id": entity.id}));
            let rows = group.matrix.iter().map(|row| {
                let values = row.iter().map(|value| value.0);
                values.collect::<Vec<f64>>()
            });
            json!({
                "name": group.name,
                "entities": entities.collect::<Vec<Value>>(),
                "matrix": rows.collect::<Vec<_>>(),
            })
        });
        let groups: Vec<Value> = groups.collect();
        profiles.insert(name.clone(), json!({"correlation_groups": groups}));
    }
    let schedule = correlation.schedule.iter().flatten();
    let schedule = schedule
        .map(|entry| json!({"stage_id": entry.stage_id, "profile_name": entry.profile_name}));
    json!({
        "method": "spectral",
        "profiles": profiles,
        "schedule": schedule.collect::<Vec<Value>>(),
    })
}
