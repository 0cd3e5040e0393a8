//! Inflow models that are estimated from a history.

use std::path::PathBuf;

use cobre_case::{InflowFit, InflowFits, SeasonModel};
use cobre_comm::ErrorKind;
use cobre_report::{InflowPlant, InflowSeason, Report};
use cobre_results::ResultsError;
use serde_json::{Value, json};

use super::Args;
use crate::exit::{self, say};
use crate::terminal_table::{TerminalTable, plural};

/// The page of diagnostics, below the directory that is written.
const PAGE: &str = "inflow_models.html";

/// Writes the tables and the page where they are asked for; returns the files.
pub(super) fn write(
    args: &Args,
    fits: Option<&InflowFits>,
) -> Result<Vec<PathBuf>, (ErrorKind, String)> {
    let Some(output) = &args.output else {
        return Ok(Vec::new());
    };
    let Some(fits) = fits else {
        let told = "nothing is estimated, so there is nothing to write; see the page \"From a history to a policy\"";
        return Err((ErrorKind::Input, told.to_owned()));
    };
    if let Some(told) = cobre_case::output_inside(&args.path, output) {
        return Err((ErrorKind::Input, told));
    }
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", output.display());
    fits.files.write(output).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::AlreadyExists => ErrorKind::Input,
            _ => ErrorKind::Io,
        };
        (kind, told(&error))
    })?;
    let page = output.join(PAGE);
    let report = Report::inflow_models(&args.path, &plants(fits));
    let put = report.write_page(&page);
    put.map_err(|error| {
        let kind = match error {
            ResultsError::Io { .. } => ErrorKind::Io,
            _ => ErrorKind::Input,
        };
        (kind, told(&error))
    })?;
    let tables = fits.files.iter().map(|(path, _)| output.join(path));
    Ok(tables.chain([page]).collect())
}

/// The models as the page shows them.
fn plants(fits: &InflowFits) -> Vec<InflowPlant> {
    let plant = |fit: &InflowFit| {
        let found = &fit.diagnostics;
        let seasons = fit.seasons.iter().zip(&found.simulated).enumerate();
        let seasons = seasons.map(|(place, (season, simulated))| InflowSeason {
            name: name(season, place),
            observations: season.observations,
            observed: (season.mean_m3s, season.std_m3s),
            simulated: *simulated,
            coefficients: season.coefficients.clone(),
            annual: season.annual.map(|(factor, _, _)| factor),
            residual: season.residual_std_ratio,
        });
        InflowPlant {
            name: fit.hydro.clone(),
            seasons: seasons.collect(),
            autocorrelation: found.autocorrelation.clone(),
            residual_autocorrelation: found.residual_autocorrelation.clone(),
            chance: found.chance,
            skewness: found.skewness,
            kurtosis: found.kurtosis,
            normality: found.normality,
            growth: found.growth,
        }
    };
    fits.plants.iter().map(plant).collect()
}

fn name(season: &SeasonModel, place: usize) -> String {
    season
        .season_id
        .map_or_else(|| format!("{}.", place + 1), |id| id.to_string())
}

/// Says what was estimated, and where it is.
pub(super) fn tell(args: &Args, fits: Option<&InflowFits>, written: &[PathBuf]) {
    let path = args.path.display();
    let Some(fits) = fits else {
        say!(
            "{path}: no inflow model is estimated: the case has no history, or gives its models itself"
        );
        return;
    };
    for warning in &fits.warnings {
        exit::note("warning", &warning.to_string());
    }
    say!(
        "{path}: {}",
        plural(fits.plants.len(), "estimated inflow model")
    );
    let headings = [
        "plant",
        "orders",
        "autocorrelation",
        "in residuals",
        "normal",
        "growth in a year",
    ];
    let mut table = TerminalTable::new(headings);
    for fit in &fits.plants {
        let orders = fit.seasons.iter().map(|season| season.coefficients.len());
        let (least, most) = (orders.clone().min().unwrap_or(0), orders.max().unwrap_or(0));
        let annual = fit.seasons.iter().any(|season| season.annual.is_some());
        let found = &fit.diagnostics;
        let first = |values: &[f64]| {
            values
                .first()
                .map_or(String::new(), |value| format!("{value:.2}"))
        };
        table.row([
            fit.hydro.clone(),
            format!("{least} to {most}{}", if annual { ", annual" } else { "" }),
            first(&found.autocorrelation),
            first(&found.residual_autocorrelation),
            format!("p = {:.3}", found.normality),
            format!("{:.3}", found.growth),
        ]);
    }
    table.print();
    if written.is_empty() {
        say!("--output DIR writes them as tables of a case, with a page of diagnostics");
    }
    for path in written {
        say!("written: {}", path.display());
    }
}

/// The models as JSON.
pub(super) fn report(fits: Option<&InflowFits>) -> Value {
    let fits = fits.iter().flat_map(|fits| &fits.plants).map(|fit| {
        let seasons = fit.seasons.iter().map(|season| {
            json!({
                "season_id": season.season_id,
                "observations": season.observations,
                "mean_m3s": season.mean_m3s,
                "std_m3s": season.std_m3s,
                "coefficients": season.coefficients,
                "residual_std_ratio": season.residual_std_ratio,
                "annual_coefficient": season.annual.map(|annual| annual.0),
            })
        });
        let found = &fit.diagnostics;
        json!({
            "hydro_id": fit.hydro_id,
            "hydro": fit.hydro,
            "seasons": seasons.collect::<Vec<_>>(),
            "autocorrelation": found.autocorrelation,
            "residual_autocorrelation": found.residual_autocorrelation,
            "skewness": found.skewness,
            "excess_kurtosis": found.kurtosis,
            "normality": found.normality,
            "growth_in_a_year": found.growth,
            "simulated_m3s": found.simulated,
        })
    });
    fits.collect()
}
