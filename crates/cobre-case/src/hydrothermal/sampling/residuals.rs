//! Residuals of past years as openings: those of all plants together, as they happened.

use cobre_sddp::Noise;

use super::shared::SharedNoise;
use crate::finding::Findings;
use crate::hydrothermal::files::inflow::InflowHistory;
use crate::hydrothermal::files::stages::SamplingMethod;
use crate::hydrothermal::system::System;
use crate::hydrothermal::table::Row;

/// Numbers of series above these are no series of a case.
const ORDER: usize = usize::MAX >> 1;

/// Says which stages ask for residuals of years that no history has.
pub(super) fn check(system: &System, findings: &mut Findings) {
    for (number, stage) in system.stages.iter().enumerate() {
        if stage.sampling == SamplingMethod::HistoricalResiduals
            && by_year(system, number).is_empty()
        {
            let message = format!(
                "historical_residuals needs a year in which {} has the season of the stage and its lags for every plant, \
                 and season_definitions",
                InflowHistory::FILE
            );
            findings.wrong(&stage.at.key("sampling_method"), message);
        }
    }
}

/// The noise of each past year in the season of a stage, by plant; years that lack something are left out.
pub(super) fn by_year(system: &System, stage: usize) -> Vec<Vec<f64>> {
    let timeline = system.timeline.as_ref();
    let Some(period) = timeline.map(|timeline| timeline.stages[stage].2) else {
        return Vec::new();
    };
    let Some(own) = system.history.of(&period) else {
        return Vec::new();
    };
    let season = timeline.map(|timeline| timeline.seasons.place(&period));
    let places = own.record.season_of.iter().enumerate();
    let places = places.filter(|(_, of)| Some(**of) == season);
    let years = places.map(|(place, _)| {
        let plants = system.hydros.iter().enumerate();
        plants
            .map(|(plant, hydro)| {
                let model = &hydro.inflow.stages[stage];
                if model.deviation == 0.0 {
                    return Some(0.0);
                }
                let values = &own.plants[plant].values;
                let mut own_part = values[place]?;
                for (number, factor) in model.by_lag.iter().enumerate() {
                    own_part -= factor * values[place.checked_sub(number + 1)?]?;
                }
                model.noise_of(own_part)
            })
            .collect::<Option<Vec<f64>>>()
    });
    years.flatten().collect()
}

/// The year of each opening: every year once, in random order, before any comes again.
pub(super) fn order(noise: Noise, group: SharedNoise, years: usize) -> Vec<usize> {
    let mut found = Vec::new();
    while found.len() < group.openings && years > 0 {
        let round = found.len();
        let mut order: Vec<usize> = (0..years).collect();
        order.sort_by(|a, b| {
            let key = |year: usize| noise.draw(ORDER, round + year, group.first)[0];
            key(*a).total_cmp(&key(*b)).then(a.cmp(b))
        });
        found.extend(order);
    }
    found.truncate(group.openings);
    found
}
