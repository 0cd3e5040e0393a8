//! Diagnostics of an estimated inflow model: what is left in its residuals, and what it makes when it runs.

use cobre_sddp::{Noise, Purpose};

use super::series::Moments;
use super::tables::PlantEstimate;
use super::{MONTHS, ObservedInflows, ObservedPeriods};
use crate::hydrothermal::sampling::quantile;

/// Lags whose autocorrelation is told.
const LAGS: usize = 12;
/// Years that are simulated, after those that forget the start.
const YEARS: usize = 1000;
const FORGET: usize = 20;
/// Years over which the growth of a deviation is measured.
const GROWTH_YEARS: usize = 200;

/// Diagnostics of the inflow model of a plant.
#[derive(Debug, Clone, PartialEq)]
pub struct InflowDiagnostics {
    /// Autocorrelation of standardised inflows, from lag 1.
    pub autocorrelation: Vec<f64>,
    /// The same of residuals.
    pub residual_autocorrelation: Vec<f64>,
    /// Autocorrelations within this of zero can be chance, at 95 %.
    pub chance: f64,
    /// Residuals that there are.
    pub residuals: usize,
    /// Skewness of the residuals; 0 if they are normal.
    pub skewness: f64,
    /// Excess kurtosis of the residuals; 0 if they are normal.
    pub kurtosis: f64,
    /// The probability that normal residuals have a Jarque-Bera statistic as large.
    pub normality: f64,
    /// The factor by which a deviation from the means grows in a year; the model is stationary below 1.
    pub growth: f64,
    /// By season: mean and standard deviation of simulated inflows, m³/s, with inflows below zero as they come.
    pub simulated: Vec<(f64, f64)>,
}

/// The diagnostics of a plant.
pub(super) fn diagnose(
    record: &ObservedPeriods,
    series: &ObservedInflows,
    estimate: &PlantEstimate,
    residuals: &[Option<f64>],
) -> InflowDiagnostics {
    let standardised: Vec<Option<f64>> = (0..record.periods.len())
        .map(|place| series.standardised(place, record))
        .collect();
    let scaled = residuals.iter().zip(&record.season_of);
    let scaled: Vec<Option<f64>> = scaled
        .map(|(value, season)| {
            let scale = estimate.seasons[*season].residual;
            value.filter(|_| scale > 0.0).map(|value| value / scale)
        })
        .collect();
    let there: Vec<f64> = scaled.iter().flatten().copied().collect();
    let (skewness, kurtosis) = shape(&there);
    let count = there.len() as f64;
    let statistic = count / 6.0 * (skewness * skewness + kurtosis * kurtosis / 4.0);
    let model = StandardisedModel::new(series, estimate);
    InflowDiagnostics {
        autocorrelation: autocorrelation(&standardised),
        residual_autocorrelation: autocorrelation(&scaled),
        chance: 1.96 / count.max(1.0).sqrt(),
        residuals: there.len(),
        skewness,
        kurtosis,
        // Chi squared of two degrees of freedom.
        normality: libm::exp(-0.5 * statistic),
        growth: model.growth(),
        simulated: model.simulated(series),
    }
}

fn autocorrelation(values: &[Option<f64>]) -> Vec<f64> {
    let there: Vec<f64> = values.iter().flatten().copied().collect();
    let Moments {
        mean, deviation, ..
    } = Moments::of(&there);
    let at_lag = |lag: usize| {
        let pairs = values.iter().zip(values.iter().skip(lag));
        let pairs = pairs.filter_map(|(one, other)| one.zip(*other));
        let products = pairs.map(|(one, other)| (one - mean) * (other - mean));
        let products: Vec<f64> = products.collect();
        let sum: f64 = products.iter().sum();
        if products.is_empty() || deviation == 0.0 {
            0.0
        } else {
            sum / products.len() as f64 / (deviation * deviation)
        }
    };
    (1..=LAGS).map(at_lag).collect()
}

/// Skewness and excess kurtosis.
fn shape(values: &[f64]) -> (f64, f64) {
    let Moments {
        count,
        mean,
        deviation,
    } = Moments::of(values);
    if count == 0 || deviation == 0.0 {
        return (0.0, 0.0);
    }
    let power = |exponent: i32| {
        let powers = values
            .iter()
            .map(|value| ((value - mean) / deviation).powi(exponent));
        powers.sum::<f64>() / count as f64
    };
    (power(3), power(4) - 3.0)
}

/// A model of deviations divided by the standard deviations of their seasons.
struct StandardisedModel {
    /// By season: coefficients from lag 1, and the part that is new.
    seasons: Vec<(Vec<f64>, f64)>,
    order: usize,
}

impl StandardisedModel {
    fn new(series: &ObservedInflows, estimate: &PlantEstimate) -> Self {
        let count = estimate.seasons.len();
        let seasons = estimate.seasons.iter().enumerate();
        let seasons: Vec<(Vec<f64>, f64)> = seasons
            .map(|(season, fit)| {
                let mut factors = fit.coefficients.clone();
                if let (Some(coefficient), Some(annual)) = (fit.annual, &estimate.annual) {
                    factors.resize(factors.len().max(MONTHS), 0.0);
                    let scale = annual.before(season).deviation * MONTHS as f64;
                    for (place, factor) in factors.iter_mut().enumerate().take(MONTHS) {
                        let lag = place + 1;
                        let earlier = (season + count * lag - lag) % count;
                        if scale > 0.0 {
                            *factor += coefficient * series.moments[earlier].deviation / scale;
                        }
                    }
                }
                (factors, fit.residual)
            })
            .collect();
        let order = seasons.iter().map(|(factors, _)| factors.len()).max();
        Self {
            order: order.unwrap_or(0),
            seasons,
        }
    }

    /// The next deviation; `past` has the newest first.
    fn step(&self, season: usize, past: &mut [f64], noise: f64) -> f64 {
        let (factors, residual) = &self.seasons[season];
        let known: f64 = factors
            .iter()
            .zip(&*past)
            .map(|(factor, past)| factor * past)
            .sum();
        let next = known + residual * noise;
        if !past.is_empty() {
            past.rotate_right(1);
            past[0] = next;
        }
        next
    }

    fn growth(&self) -> f64 {
        if self.order == 0 {
            return 0.0;
        }
        let mut past = vec![1.0; self.order];
        let mut growth = 0.0;
        for year in 0..GROWTH_YEARS {
            for season in 0..self.seasons.len() {
                self.step(season, &mut past, 0.0);
            }
            let norm = past.iter().map(|value| value * value).sum::<f64>().sqrt();
            if norm == 0.0 {
                return 0.0;
            }
            for value in &mut past {
                *value /= norm;
            }
            if year >= GROWTH_YEARS / 2 {
                growth += libm::log(norm);
            }
        }
        libm::exp(growth / (GROWTH_YEARS - GROWTH_YEARS / 2) as f64)
    }

    fn simulated(&self, series: &ObservedInflows) -> Vec<(f64, f64)> {
        let noise = Noise::new(0, Purpose::Fictitious);
        let mut past = vec![0.0; self.order];
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); self.seasons.len()];
        for year in 0..FORGET + YEARS {
            for (season, values) in values.iter_mut().enumerate() {
                let [level, _] = noise.draw(0, year, season);
                let next = self.step(season, &mut past, quantile(level));
                if year >= FORGET {
                    values.push(next);
                }
            }
        }
        let seasons = values.iter().zip(&series.moments);
        seasons
            .map(|(values, historical)| {
                let simulated = Moments::of(values);
                let scale = historical.deviation;
                (
                    historical.mean + scale * simulated.mean,
                    scale * simulated.deviation,
                )
            })
            .collect()
    }
}
