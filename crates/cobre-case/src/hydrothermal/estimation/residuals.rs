//! Residuals of inflow models over their history, and the correlation of them.

use super::tables::PlantEstimate;
use super::{History, ResolutionHistory};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::scenarios::Series as SeriesName;
use crate::hydrothermal::files::scenarios::{
    Correlation, CorrelationGroup, Factorization, Profile, Profiles, ScheduleEntry, SeriesKind,
};
use crate::hydrothermal::number::{Id, Number};
use crate::hydrothermal::system::SeasonTimeline;

/// Dates of a season that every pair of plants must have in common for a correlation of its own.
const ENOUGH_DATES: usize = 30;

/// Residuals by resolution, plant and period: what the model leaves of inflows divided by their deviation.
#[derive(Debug)]
pub(crate) struct Residuals<'a> {
    history: &'a History,
    pub(crate) values: Vec<Vec<Vec<Option<f64>>>>,
}

impl<'a> Residuals<'a> {
    pub(crate) fn new(history: &'a History, fits: &[Vec<PlantEstimate>]) -> Self {
        let values = history.resolutions.iter().zip(fits);
        let values = values.map(|(own, fits)| {
            let plants = 0..own.plants.len();
            plants
                .map(|plant| of_plant(own, plant, &fits[plant]))
                .collect()
        });
        Self {
            values: values.collect(),
            history,
        }
    }

    /// A profile for each season with enough dates, one for all others; none without two plants that vary.
    pub(crate) fn correlation(
        &self,
        files: &Files,
        timeline: &SeasonTimeline,
    ) -> Option<Correlation> {
        let ids: Vec<Id> = files.hydros.hydros.iter().map(|plant| plant.id).collect();
        let mut profiles: Vec<(String, Profile)> = Vec::new();
        let mut schedule = Vec::new();
        let stages = timeline.stages.iter().zip(&files.stages.stages);
        for ((_, _, period), stage) in stages {
            let mut own = self.history.resolutions.iter();
            let resolution = own.position(|own| own.resolution == period.resolution)?;
            let season = timeline.seasons.place(period);
            let own = self.matrix(resolution, &ids, Some(season));
            let (name, group) = match own {
                Some(group) => (
                    format!("season{}", period.season.unwrap_or(-1)),
                    Some(group),
                ),
                None => (pooled_name(resolution), self.matrix(resolution, &ids, None)),
            };
            let group = group?;
            if profiles.iter().all(|(known, _)| *known != name) {
                let profile = Profile {
                    correlation_groups: vec![group],
                };
                profiles.push((name.clone(), profile));
            }
            schedule.push(ScheduleEntry {
                stage_id: stage.id,
                profile_name: name,
            });
        }
        Some(Correlation {
            method: Factorization::Spectral,
            profiles: Profiles(profiles),
            schedule: Some(schedule),
        })
    }

    /// The correlation of plants that vary, over the dates of a season or over all; none if a pair has too few.
    fn matrix(
        &self,
        resolution: usize,
        ids: &[Id],
        season: Option<usize>,
    ) -> Option<CorrelationGroup> {
        let own = &self.history.resolutions[resolution];
        let places = own.record.season_of.iter().enumerate();
        let places = places.filter(|(_, of)| season.is_none_or(|season| season == **of));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let values = |plant: usize| {
            let all = &self.values[resolution][plant];
            places.iter().map(|place| all[*place]).collect::<Vec<_>>()
        };
        let series: Vec<(Id, Vec<Option<f64>>)> = ids
            .iter()
            .enumerate()
            .map(|(plant, id)| (*id, values(plant)))
            .filter(|(_, values)| values.iter().any(Option::is_some))
            .collect();
        let least = if season.is_some() { ENOUGH_DATES } else { 2 };
        if series.len() < 2 {
            return None;
        }
        let mut matrix = vec![vec![Number(1.0); series.len()]; series.len()];
        for row in 0..series.len() {
            for column in 0..row {
                let value = pearson(&series[row].1, &series[column].1, least)?;
                matrix[row][column] = Number(value);
                matrix[column][row] = Number(value);
            }
        }
        let entities = series.iter().map(|(id, _)| SeriesName {
            r#type: SeriesKind::Inflow,
            id: *id,
        });
        Some(CorrelationGroup {
            name: "inflows".to_owned(),
            entities: entities.collect(),
            matrix,
        })
    }
}

fn pooled_name(resolution: usize) -> String {
    match resolution {
        0 => "default".to_owned(),
        other => format!("default_resolution{}", other + 1),
    }
}

/// The residuals of a plant.
fn of_plant(own: &ResolutionHistory, plant: usize, estimate: &PlantEstimate) -> Vec<Option<f64>> {
    let (record, series) = (&own.record, &own.plants[plant]);
    let residual = |place: usize| {
        let fit = &estimate.seasons[record.season_of[place]];
        let mut value = series.standardised(place, record)?;
        for (number, coefficient) in fit.coefficients.iter().enumerate() {
            let earlier = place.checked_sub(number + 1)?;
            // A season that counts as constant adds nothing.
            let deviation = series.deviation(earlier)?;
            let scale = series.moments[record.season_of[earlier]].deviation;
            if scale > 0.0 {
                value -= coefficient * deviation / scale;
            }
        }
        if let (Some(coefficient), Some(annual)) = (fit.annual, &estimate.annual) {
            value -= coefficient * annual.standardised(place, record)?;
        }
        Some(value)
    };
    (0..record.periods.len()).map(residual).collect()
}

/// The correlation over dates that both have; none if they are fewer than `least`.
fn pearson(one: &[Option<f64>], other: &[Option<f64>], least: usize) -> Option<f64> {
    let pairs = one
        .iter()
        .zip(other)
        .filter_map(|(one, other)| one.zip(*other));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    if pairs.len() < least {
        return None;
    }
    let count = pairs.len() as f64;
    let means = pairs
        .iter()
        .fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let means = (means.0 / count, means.1 / count);
    let mut sums = (0.0, 0.0, 0.0);
    for (one, other) in pairs {
        let (one, other) = (one - means.0, other - means.1);
        sums.0 += one * one;
        sums.1 += other * other;
        sums.2 += one * other;
    }
    let scale = (sums.0 * sums.1).sqrt();
    Some(if scale > 0.0 {
        (sums.2 / scale).clamp(-1.0, 1.0)
    } else {
        0.0
    })
}
