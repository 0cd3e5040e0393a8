//! Observed inflows by season and year.

use std::collections::HashMap;

use crate::hydrothermal::date::Date;
use crate::hydrothermal::files::inflow::InflowHistory;
use crate::hydrothermal::system::{Period, SeasonTimeline};

/// The part of a period's days that observations must cover to be its mean: those at the ends of a record may not.
const COVERED: f64 = 0.9;
/// Observations that differ by less are equal, m³/s.
const EQUAL: f64 = 1e-6;
/// The part of observations at one rounded value from which a series counts as constant.
const CONSTANT: f64 = 0.5;
/// The part of negative observations up to which it does.
const NEGATIVE: f64 = 0.1;

/// The periods of a history, of one resolution: the same for all plants.
#[derive(Debug)]
pub(crate) struct ObservedPeriods {
    pub(crate) periods: Vec<Period>,
    /// The number of seasons of a year, and the season of each period.
    pub(crate) seasons: usize,
    pub(crate) season_of: Vec<usize>,
    places: HashMap<i64, usize>,
}

impl ObservedPeriods {
    /// The periods from the first observation to the last.
    pub(crate) fn new(
        history: &[InflowHistory],
        timeline: &SeasonTimeline,
        resolution: usize,
    ) -> Option<Self> {
        let seasons = &timeline.seasons;
        let periods = history
            .iter()
            .filter_map(|row| period_of(row.date, timeline, resolution));
        let (mut first, mut last): (Option<Period>, Option<Period>) = (None, None);
        for period in periods {
            if first.is_none_or(|first| period.start < first.start) {
                first = Some(period);
            }
            if last.is_none_or(|last| period.start > last.start) {
                last = Some(period);
            }
        }
        let (mut next, last) = (first, last?);
        let mut periods = Vec::new();
        while let Some(period) = next.filter(|period| period.start <= last.start) {
            next = seasons.after(&period);
            periods.push(period);
        }
        let count = seasons.count(resolution);
        let first = seasons.place(periods.first()?);
        Some(Self {
            seasons: count,
            season_of: (0..periods.len())
                .map(|place| (first + place) % count)
                .collect(),
            places: (0..periods.len())
                .map(|place| (periods[place].start.0, place))
                .collect(),
            periods,
        })
    }

    /// The place of a period.
    pub(crate) fn place(&self, period: &Period) -> Option<usize> {
        self.places.get(&period.start.0).copied()
    }

    /// The values of a plant by period: means over its observations, by days of their months.
    pub(crate) fn values(
        &self,
        history: &[InflowHistory],
        hydro_id: i32,
        timeline: &SeasonTimeline,
    ) -> Vec<Option<f64>> {
        let resolution = self.periods[0].resolution;
        let mut sums = vec![(0.0, 0.0); self.periods.len()];
        for row in history.iter().filter(|row| row.hydro_id == hydro_id) {
            let period = period_of(row.date, timeline, resolution);
            if let Some(place) = period.and_then(|period| self.place(&period)) {
                let days = row.date.month().1 as f64;
                sums[place].0 += days;
                sums[place].1 += days * row.value_m3s.0;
            }
        }
        let sums = sums.into_iter().zip(&self.periods);
        sums.map(|((days, sum), period)| {
            let covered = days >= COVERED * period.days() as f64;
            covered.then(|| sum / days)
        })
        .collect()
    }
}

/// The period of an observation: that of the stage which has its day, else that of the calendar.
fn period_of(day: Date, timeline: &SeasonTimeline, resolution: usize) -> Option<Period> {
    let mut stages = timeline.stages.iter();
    let stage = stages.find(|(start, end, _)| (*start..*end).contains(&day));
    let stage = stage.map(|(_, _, period)| *period);
    let own = stage.filter(|period| period.resolution == resolution);
    own.or_else(|| timeline.seasons.at_in(resolution, day))
}

/// Mean and standard deviation of a season.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Moments {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    /// With the number of observations as divisor; 0 for a series that counts as constant.
    pub(crate) deviation: f64,
}

impl Moments {
    /// Mean and deviation of numbers.
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            count: values.len(),
            mean,
            deviation: (squares / count.max(1.0)).sqrt(),
        }
    }

    /// The same, where most observations at one value mean that there is nothing else.
    fn of_season(values: &[f64]) -> Self {
        let constant = |mean: f64| Self {
            count: values.len(),
            mean,
            deviation: 0.0,
        };
        if let Some(first) = values.first()
            && values.iter().all(|value| (value - first).abs() < EQUAL)
        {
            return constant(*first);
        }
        let negative = values.iter().filter(|value| **value < 0.0).count();
        let mut counts: HashMap<i64, usize> = HashMap::new();
        for value in values {
            *counts.entry(value.round() as i64).or_default() += 1;
        }
        let most = counts
            .iter()
            .max_by_key(|(value, count)| (**count, -**value));
        let part = |count: usize| count as f64 / values.len() as f64;
        match most {
            Some((value, count)) if part(*count) > CONSTANT && part(negative) <= NEGATIVE => {
                constant(*value as f64)
            }
            _ => Self::of(values),
        }
    }
}

/// The inflows of a plant, with mean and deviation of each season.
#[derive(Debug)]
pub(crate) struct ObservedInflows {
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) moments: Vec<Moments>,
    /// Deviations from the mean of the season; none where it counts as constant.
    deviations: Vec<Option<f64>>,
}

impl ObservedInflows {
    pub(crate) fn new(values: Vec<Option<f64>>, record: &ObservedPeriods) -> Self {
        let of_season = |season: usize| -> Vec<f64> {
            let own = values.iter().zip(&record.season_of);
            let own = own.filter(|(_, own)| **own == season);
            own.filter_map(|(value, _)| *value).collect()
        };
        let moments: Vec<Moments> = (0..record.seasons)
            .map(|season| Moments::of_season(&of_season(season)))
            .collect();
        Self::with(values, moments, record)
    }

    /// The same with moments that come from elsewhere.
    pub(crate) fn with(
        values: Vec<Option<f64>>,
        moments: Vec<Moments>,
        record: &ObservedPeriods,
    ) -> Self {
        let deviations = values.iter().zip(&record.season_of);
        let deviations = deviations.map(|(value, season)| {
            let moments = moments[*season];
            (*value).map(|value| value - moments.mean)
        });
        Self {
            deviations: deviations.collect(),
            moments,
            values,
        }
    }

    /// The deviation from the mean at a place, if there is an observation.
    pub(crate) fn deviation(&self, place: usize) -> Option<f64> {
        self.deviations.get(place).copied().flatten()
    }

    /// The deviation divided by the standard deviation of the season.
    pub(crate) fn standardised(&self, place: usize, record: &ObservedPeriods) -> Option<f64> {
        let scale = self.moments[record.season_of[place]].deviation;
        let deviation = self.deviation(place)?;
        (scale > 0.0).then(|| deviation / scale)
    }
}
