//! The mean of the last twelve months: the annual component of PAR(p)-A.

use super::series::{Moments, ObservedInflows, ObservedPeriods};

/// The months of the mean.
pub(crate) const MONTHS: usize = 12;

/// Annual means by the period that they end with.
#[derive(Debug)]
pub(crate) struct Annual {
    means: Vec<Option<f64>>,
    /// By season of the last month.
    pub(crate) moments: Vec<Moments>,
}

impl Annual {
    /// The annual means of a series. The last window is left out: no season follows it.
    pub(crate) fn new(series: &ObservedInflows, record: &ObservedPeriods) -> Self {
        let count = record.periods.len();
        let mean = |last: usize| {
            let first = (last + 1).checked_sub(MONTHS)?;
            let months = series.values[first..=last].iter().copied();
            let months: Option<Vec<f64>> = months.collect();
            let months = months.filter(|_| last + 1 < count)?;
            Some(months.iter().sum::<f64>() / MONTHS as f64)
        };
        let means: Vec<Option<f64>> = (0..count).map(mean).collect();
        let of_season = |season: usize| -> Vec<f64> {
            let own = means.iter().zip(&record.season_of);
            let own = own.filter(|(_, own)| **own == season);
            own.filter_map(|(mean, _)| *mean).collect()
        };
        Self {
            moments: (0..record.seasons)
                .map(|season| Moments::of(&of_season(season)))
                .collect(),
            means,
        }
    }

    /// Its season before another.
    pub(crate) fn before(&self, season: usize) -> Moments {
        let seasons = self.moments.len();
        self.moments[(season + seasons - 1) % seasons]
    }

    /// The deviation of the annual mean before a period, divided by its standard deviation.
    pub(crate) fn standardised(&self, place: usize, record: &ObservedPeriods) -> Option<f64> {
        let before = place.checked_sub(1)?;
        let moments = self.moments[record.season_of[before]];
        let mean = self.means[before]?;
        (moments.deviation > 0.0).then(|| (mean - moments.mean) / moments.deviation)
    }

    /// The correlation of the annual mean before a season with the inflow `lag` seasons before that season.
    pub(super) fn correlation(
        &self,
        record: &ObservedPeriods,
        series: &ObservedInflows,
        season: usize,
        lag: usize,
    ) -> f64 {
        let seasons = record.seasons;
        let earlier = (season + seasons * lag - lag) % seasons;
        let (annual, inflow) = (self.before(season), series.moments[earlier]);
        let scale = annual.deviation * inflow.deviation;
        let own = (lag.max(1)..=record.periods.len()).filter(|at| {
            let at = at - 1;
            (record.season_of[at] + 1) % seasons == season
        });
        let products = own.filter_map(|at| {
            let mean = self.means[at - 1]?;
            Some((mean - annual.mean) * series.deviation(at.checked_sub(lag)?)?)
        });
        let divisor = annual.count.max(inflow.count);
        if divisor == 0 || scale == 0.0 {
            return 0.0;
        }
        (products.sum::<f64>() / divisor as f64 / scale).clamp(-1.0, 1.0)
    }
}
