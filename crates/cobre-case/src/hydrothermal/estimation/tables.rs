//! Tables of an inflow model, as given or as estimated.

use std::borrow::Cow;

use super::residuals::Residuals;
use super::{
    Annual, Estimator, History, InflowDiagnostics, MONTHS, ResolutionHistory, SeasonFit,
    diagnostics, enough, options,
};
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::inflow::AnnualComponent;
use crate::hydrothermal::files::scenarios::{ArCoefficients, Correlation, InflowStats};
use crate::hydrothermal::number::{Id, NonNegative, Number};
use crate::hydrothermal::system::{Period, SeasonTimeline};
use crate::hydrothermal::table::Row;

/// The tables of the inflow model of a case.
#[derive(Debug)]
pub(crate) struct InflowTables<'f> {
    pub(crate) stats: Cow<'f, [InflowStats]>,
    pub(crate) coefficients: Cow<'f, [ArCoefficients]>,
    pub(crate) annual: Cow<'f, [AnnualComponent]>,
    /// The correlation of residuals, where anything is estimated.
    pub(crate) correlation: Option<Correlation>,
    /// True if statistics, or coefficients, are estimated.
    pub(crate) estimated: [bool; 2],
    /// By resolution and plant, the models of seasons; empty if nothing is estimated.
    pub(crate) fits: Vec<Vec<PlantEstimate>>,
}

/// The model of a plant in the seasons of a resolution.
#[derive(Debug)]
pub(crate) struct PlantEstimate {
    pub(crate) seasons: Vec<SeasonFit>,
    pub(crate) annual: Option<Annual>,
}

impl<'f> InflowTables<'f> {
    /// The tables that are given, and estimates in place of those that are not: statistics, coefficients, and their correlation.
    pub(crate) fn resolve(
        files: &'f Files,
        history: &History,
        timeline: Option<&SeasonTimeline>,
        findings: &mut Findings,
    ) -> Self {
        let (stats, lags) = (
            !files.inflow_stats.is_empty(),
            !files.ar_coefficients.is_empty(),
        );
        let mut tables = Self {
            stats: Cow::Borrowed(&files.inflow_stats),
            coefficients: Cow::Borrowed(&files.ar_coefficients),
            annual: Cow::Borrowed(&files.annual_component),
            correlation: None,
            estimated: [false; 2],
            fits: Vec::new(),
        };
        if !files.annual_component.is_empty() && !lags {
            let at = Place::file(AnnualComponent::FILE);
            let message = format!("it needs {}, which is missing", ArCoefficients::FILE);
            findings.wrong(&at, message);
            return tables;
        }
        let given = files.inflow_history.is_empty() || (stats && lags);
        if given || !enough(files, history, timeline, findings) {
            return tables;
        }
        let Some(timeline) = timeline else {
            return tables;
        };
        tables.estimated = [!stats, !lags];
        let writer = TableWriter {
            files,
            history,
            timeline,
        };
        tables.fits = history
            .resolutions
            .iter()
            .map(|own| writer.estimate(own, lags))
            .collect();
        if !lags {
            (tables.coefficients, tables.annual) = writer.coefficients(&tables.fits);
        }
        if !stats {
            tables.stats = Cow::Owned(writer.statistics(&tables.fits));
        }
        if files.correlation.is_none() {
            let residuals = Residuals::new(history, &tables.fits);
            tables.correlation = residuals.correlation(files, timeline);
        }
        tables
    }
}

impl InflowTables<'_> {
    /// The diagnostics of the models of a resolution, by plant.
    pub(crate) fn diagnostics(
        &self,
        history: &History,
        resolution: usize,
    ) -> Vec<InflowDiagnostics> {
        let residuals = Residuals::new(history, &self.fits);
        let own = &history.resolutions[resolution];
        let plants = own.plants.iter().zip(&self.fits[resolution]);
        let plants = plants.zip(&residuals.values[resolution]);
        plants
            .map(|((series, estimate), residuals)| {
                diagnostics::diagnose(&own.record, series, estimate, residuals)
            })
            .collect()
    }
}

struct TableWriter<'a> {
    files: &'a Files,
    history: &'a History,
    timeline: &'a SeasonTimeline,
}

impl TableWriter<'_> {
    /// The models of all plants, as estimated, or with the given coefficients.
    fn estimate(&self, own: &ResolutionHistory, given: bool) -> Vec<PlantEstimate> {
        let options = options(self.files.config.estimation.as_ref());
        let plants = own.plants.iter().zip(&self.files.hydros.hydros);
        plants
            .map(|(series, plant)| {
                let with_annual = if given {
                    let mut rows = self.files.annual_component.iter();
                    rows.any(|row| row.hydro_id == plant.id)
                } else {
                    options.annual
                };
                let annual = with_annual.then(|| Annual::new(series, &own.record));
                let estimator = Estimator {
                    record: &own.record,
                    series,
                    annual: annual.as_ref(),
                    options,
                };
                PlantEstimate {
                    seasons: if given {
                        self.given(own, plant.id)
                    } else {
                        estimator.fit()
                    },
                    annual,
                }
            })
            .collect()
    }

    /// The coefficients of each season as the file gives them for its first stage.
    fn given(&self, own: &ResolutionHistory, plant: Id) -> Vec<SeasonFit> {
        let mut found = vec![SeasonFit::independent(); own.record.seasons];
        let stages = self.timeline.stages.iter().zip(&self.files.stages.stages);
        for ((_, _, period), stage) in stages.rev() {
            if period.resolution != own.resolution {
                continue;
            }
            let of_stage = |id: Id, at: Id| id == plant && at == stage.id;
            let rows = self.files.ar_coefficients.iter();
            let rows = rows.filter(|row| of_stage(row.hydro_id, row.stage_id));
            let mut rows: Vec<&ArCoefficients> = rows.collect();
            rows.sort_by_key(|row| row.lag);
            let mut annual = self.files.annual_component.iter();
            let annual = annual.find(|row| of_stage(row.hydro_id, row.stage_id));
            found[self.timeline.seasons.place(period)] = SeasonFit {
                coefficients: rows.iter().map(|row| row.coefficient.0).collect(),
                annual: annual.map(|row| row.annual_coefficient.0),
                residual: rows.first().map_or(1.0, |row| row.residual()),
            };
        }
        found
    }

    /// The stages with their numbers and places of resolution and season.
    fn stages(&self) -> impl Iterator<Item = (Id, usize, usize)> {
        let stages = self.timeline.stages.iter().zip(&self.files.stages.stages);
        stages.filter_map(|((_, _, period), stage)| {
            let (resolution, season) = self.places(period)?;
            Some((stage.id, resolution, season))
        })
    }

    fn places(&self, period: &Period) -> Option<(usize, usize)> {
        let mut all = self.history.resolutions.iter();
        let resolution = all.position(|own| own.resolution == period.resolution)?;
        Some((resolution, self.timeline.seasons.place(period)))
    }

    /// Mean and deviation of every stage, and of the seasons before the first that lags go back to.
    fn statistics(&self, fits: &[Vec<PlantEstimate>]) -> Vec<InflowStats> {
        let mut rows = Vec::new();
        for (place, plant) in self.files.hydros.hydros.iter().enumerate() {
            let depth = fits.iter().map(|fits| depth(&fits[place])).max();
            let before = (1..=depth.unwrap_or(0)).rev().filter_map(|lag| {
                let (resolution, season) = self.places(&self.timeline.before(0, lag)?)?;
                Some((-Id::try_from(lag).ok()?, resolution, season))
            });
            for (stage, resolution, season) in before.chain(self.stages()) {
                let moments = self.history.resolutions[resolution].plants[place].moments[season];
                rows.push(InflowStats {
                    hydro_id: plant.id,
                    stage_id: stage,
                    mean_m3s: Number(moments.mean),
                    std_m3s: NonNegative(moments.deviation),
                });
            }
        }
        rows
    }

    /// Coefficients of every stage, and its annual component.
    fn coefficients<'f>(
        &self,
        fits: &[Vec<PlantEstimate>],
    ) -> (Cow<'f, [ArCoefficients]>, Cow<'f, [AnnualComponent]>) {
        let (mut rows, mut annual_rows) = (Vec::new(), Vec::new());
        for (place, plant) in self.files.hydros.hydros.iter().enumerate() {
            for (stage, resolution, season) in self.stages() {
                let estimate = &fits[resolution][place];
                let fit = &estimate.seasons[season];
                for (number, coefficient) in fit.coefficients.iter().enumerate() {
                    rows.push(ArCoefficients {
                        hydro_id: plant.id,
                        stage_id: stage,
                        lag: Id::try_from(number + 1).unwrap_or(Id::MAX),
                        coefficient: Number(*coefficient),
                        residual_std_ratio: Some(NonNegative(fit.residual)),
                    });
                }
                if let (Some(coefficient), Some(annual)) = (fit.annual, &estimate.annual) {
                    let moments = annual.before(season);
                    annual_rows.push(AnnualComponent {
                        hydro_id: plant.id,
                        stage_id: stage,
                        annual_coefficient: Number(coefficient),
                        annual_mean_m3s: Number(moments.mean),
                        annual_std_m3s: NonNegative(moments.deviation),
                    });
                }
            }
        }
        (Cow::Owned(rows), Cow::Owned(annual_rows))
    }
}

/// The seasons that the model of a plant goes back.
fn depth(estimate: &PlantEstimate) -> usize {
    let orders = estimate.seasons.iter().map(|fit| {
        let annual = if fit.annual.is_some() { MONTHS } else { 0 };
        fit.coefficients.len().max(annual)
    });
    orders.max().unwrap_or(0)
}
