//! Periodic autoregressive models by the Yule-Walker equations of each season.

use super::annual::Annual;
use super::linear;
use super::series::{ObservedInflows, ObservedPeriods};

/// Partial autocorrelations beyond this, divided by the square root of the number of observations, are no chance.
const SIGNIFICANT: f64 = 1.96;

/// The choices of an estimation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EstimationOptions {
    pub(crate) max_order: usize,
    pub(crate) annual: bool,
    pub(crate) least_observations: usize,
    pub(crate) largest_coefficient: Option<f64>,
}

/// The model of a season.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SeasonFit {
    /// Of deviations divided by standard deviations, from lag 1.
    pub(crate) coefficients: Vec<f64>,
    /// The same of the annual mean.
    pub(crate) annual: Option<f64>,
    /// The part of the standard deviation that is new.
    pub(crate) residual: f64,
}

impl SeasonFit {
    /// A season that does not depend on the past.
    pub(crate) fn independent() -> Self {
        Self {
            coefficients: Vec::new(),
            annual: None,
            residual: 1.0,
        }
    }
}

/// The estimation of a plant.
pub(crate) struct Estimator<'a> {
    pub(crate) record: &'a ObservedPeriods,
    pub(crate) series: &'a ObservedInflows,
    pub(crate) annual: Option<&'a Annual>,
    pub(crate) options: EstimationOptions,
}

impl Estimator<'_> {
    /// The models of all seasons.
    pub(crate) fn fit(&self) -> Vec<SeasonFit> {
        let seasons = self.record.seasons;
        let mut most = vec![self.options.max_order; seasons];
        let mut fits: Vec<SeasonFit> = (0..seasons)
            .map(|season| self.season(season, most[season]))
            .collect();
        loop {
            let negative = |season: &usize| {
                let contributions = contributions(*season, &fits, |season| self.scale(season));
                contributions.iter().any(|contribution| *contribution < 0.0)
            };
            let Some(season) = (0..seasons).find(negative) else {
                return fits;
            };
            most[season] -= 1;
            fits[season] = self.season(season, most[season]);
        }
    }

    fn scale(&self, season: usize) -> f64 {
        self.series.moments[season].deviation
    }

    /// The model of a season with an order up to `most`.
    fn season(&self, season: usize, most: usize) -> SeasonFit {
        let order = self.order(season, most);
        let Some(fit) = self.solve(season, order).filter(|_| order > 0) else {
            return SeasonFit::independent();
        };
        let beyond = |most: f64| fit.coefficients.iter().any(|value| value.abs() > most);
        let too_large = self.options.largest_coefficient.is_some_and(beyond);
        if too_large || fit.coefficients[0] < 0.0 {
            return SeasonFit::independent();
        }
        fit
    }

    fn order(&self, season: usize, most: usize) -> usize {
        let moments = self.series.moments[season];
        if moments.deviation == 0.0 {
            return 0;
        }
        let limit = SIGNIFICANT / (moments.count as f64).sqrt();
        let partial = |order: usize| match self.annual {
            None => self
                .solve(season, order)
                .map(|fit| fit.coefficients[order - 1]),
            Some(_) => self.partial_given_annual(season, order),
        };
        let significant = |order: &usize| partial(*order).is_some_and(|value| value.abs() > limit);
        let order = (1..=most).rev().find(significant).unwrap_or(0);
        let depends = self.annual.is_some() && partial(1).is_some_and(|value| value != 0.0);
        if depends {
            order.max(1).min(most)
        } else {
            order
        }
    }

    /// The correlation of a season with the one `lag` seasons earlier.
    pub(crate) fn correlation(&self, season: usize, lag: usize) -> f64 {
        if lag == 0 {
            return 1.0;
        }
        let seasons = self.record.seasons;
        let earlier = (season + seasons * lag - lag) % seasons;
        let scale = self.scale(season) * self.scale(earlier);
        let own =
            (lag..self.record.periods.len()).filter(|at| self.record.season_of[*at] == season);
        let products = own.filter_map(|at| {
            let earlier = self.series.deviation(at - lag)?;
            Some(self.series.deviation(at)? * earlier)
        });
        let products: Vec<f64> = products.collect();
        if products.is_empty() || scale == 0.0 {
            return 0.0;
        }
        let mean = products.iter().sum::<f64>() / products.len() as f64;
        (mean / scale).clamp(-1.0, 1.0)
    }

    /// Correlations between the season, its lags up to `order`, and the annual mean where there is one.
    fn correlations(&self, season: usize, order: usize) -> Vec<Vec<f64>> {
        let seasons = self.record.seasons;
        let back = |lag: usize| (season + seasons * lag - lag) % seasons;
        let size = order + 1 + usize::from(self.annual.is_some());
        // The annual mean comes after the lags.
        let entry = |row: usize, column: usize| {
            let (near, far) = (row.min(column), row.max(column));
            match self.annual {
                _ if near == far => 1.0,
                Some(annual) if far > order => {
                    annual.correlation(self.record, self.series, season, near)
                }
                _ => self.correlation(back(near), far - near),
            }
        };
        let row = |row: usize| (0..size).map(|column| entry(row, column)).collect();
        (0..size).map(row).collect()
    }

    /// The solution of the Yule-Walker equations of an order.
    fn solve(&self, season: usize, order: usize) -> Option<SeasonFit> {
        let all = self.correlations(season, order);
        let matrix: Vec<Vec<f64>> = all[1..].iter().map(|row| row[1..].to_vec()).collect();
        let with: Vec<f64> = all[1..].iter().map(|row| row[0]).collect();
        let mut solution = linear::solve(matrix, with.clone())?;
        let terms = solution.iter().zip(&with);
        let explained: f64 = terms.map(|(value, with)| value * with).sum();
        let annual = self.annual.and_then(|_| solution.pop());
        Some(SeasonFit {
            coefficients: solution,
            annual,
            residual: (1.0 - explained).max(0.0).sqrt(),
        })
    }

    /// The correlation of a season with the one `order` seasons earlier, given those between and the annual mean.
    fn partial_given_annual(&self, season: usize, order: usize) -> Option<f64> {
        let all = self.correlations(season, order);
        let given: Vec<usize> = (1..order).chain([order + 1]).collect();
        let matrix: Vec<Vec<f64>> = given
            .iter()
            .map(|row| given.iter().map(|column| all[*row][*column]).collect())
            .collect();
        let pair = [0, order];
        let with = pair.map(|of| given.iter().map(|row| all[*row][of]).collect::<Vec<f64>>());
        let solved = [
            linear::solve(matrix.clone(), with[0].clone())?,
            linear::solve(matrix, with[1].clone())?,
        ];
        let rest = |one: usize, other: usize| {
            let terms = with[one].iter().zip(&solved[other]);
            all[pair[one]][pair[other]] - terms.map(|(with, value)| with * value).sum::<f64>()
        };
        let scale = (rest(0, 0) * rest(1, 1)).sqrt();
        (scale > 0.0).then(|| rest(0, 1) / scale)
    }
}

/// The effect of each lag of a season on it, over the seasons between included.
pub(super) fn contributions(
    season: usize,
    fits: &[SeasonFit],
    scale: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let seasons = fits.len();
    let order = fits[season].coefficients.len();
    let direct = |season: usize, lag: usize| {
        let earlier = (season + seasons * lag - lag) % seasons;
        let coefficient = fits[season]
            .coefficients
            .get(lag - 1)
            .copied()
            .unwrap_or(0.0);
        if scale(earlier) == 0.0 {
            0.0
        } else {
            coefficient * scale(season) / scale(earlier)
        }
    };
    let mut row: Vec<f64> = (1..=order).map(|lag| direct(season, lag)).collect();
    let mut found = Vec::new();
    for back in 1..=order {
        found.push(row[0]);
        let earlier = (season + seasons * back - back) % seasons;
        let first = row[0];
        row = (1..=order)
            .map(|lag| first * direct(earlier, lag) + row.get(lag).copied().unwrap_or(0.0))
            .collect();
    }
    found
}
