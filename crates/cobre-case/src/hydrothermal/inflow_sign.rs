//! Inflows below zero: what can still be, and what may not be asked for.

use cobre_sddp::Risk;

use super::files::config::{self, NonNegativity};
use super::files::scenarios::InflowStats;
use super::sampling::OpeningSampler;
use super::system::{Hydro, InflowModel, System};
use super::table::Row;
use crate::Options;
use crate::finding::{Findings, Place};

/// Inflows this far below zero are rounding errors, m³/s.
const NOISE: f64 = 1e-9;
/// The part of outcomes at the bound from which it is worth a warning.
const MANY: f64 = 0.25;

/// The first risk measure of a stage that is no expectation.
pub(super) fn risk_measure(system: &System, options: &Options) -> Option<Risk> {
    let risks = system.stages.iter();
    let mut risks = risks.map(|stage| options.risk.unwrap_or(stage.risk));
    risks.find(|risk| !risk.is_expectation())
}

/// Refuses truncation that depends on the past under a risk measure: its price, which nobody pays, would decide
/// which outcomes count as the worst.
pub(super) fn refuse(system: &System, options: &Options, findings: &mut Findings) {
    let remembers = system
        .hydros
        .iter()
        .find(|plant| !plant.inflow.past.is_empty());
    let (Some(plant), Some(risk)) = (remembers, risk_measure(system, options)) else {
        return;
    };
    if system.non_negativity == NonNegativity::Truncation {
        let at = Place::file(config::FILE).key("modeling.inflow_non_negativity.method");
        let message = format!(
            "truncation with AR coefficients (plant {}) needs a price that nobody pays, and under {risk} that price would \
             decide which outcomes are the worst: use \"bounded_noise\", which needs none",
            plant.label
        );
        findings.wrong(&at, message);
    }
}

/// By plant and stage, a bound that no inflow of bounded noise is below; 0 where none can be below zero.
pub(super) fn lowest(system: &System, sampling: &OpeningSampler) -> Vec<Vec<f64>> {
    let mut found = vec![vec![0.0; system.stages.len()]; system.hydros.len()];
    if system.non_negativity != NonNegativity::BoundedNoise {
        return found;
    }
    let safe = |plant: &Hydro| {
        let mut stages = 0..system.stages.len();
        stages.all(|stage| plant.inflow.models(stage).all(InflowModel::stays_above))
    };
    if system.hydros.iter().all(safe) {
        return found;
    }
    let stages = 0..system.stages.len();
    let drawn: Vec<_> = stages.map(|stage| sampling.draw(system, stage)).collect();
    for (place, plant) in system.hydros.iter().enumerate() {
        if safe(plant) {
            continue;
        }
        let past = plant.inflow.past.iter();
        let mut past: Vec<[f64; 2]> = past.map(|past| [*past; 2]).collect();
        for (stage, model) in plant.inflow.stages.iter().enumerate() {
            let models = plant.inflow.models(stage);
            let outcomes = models.flat_map(|model| {
                let drawn = drawn[stage].iter();
                drawn.map(|drawn| model.drawn(drawn[place]))
            });
            let mut range = outcomes.fold([f64::INFINITY, f64::NEG_INFINITY], |range, value| {
                [range[0].min(value), range[1].max(value)]
            });
            for (factor, past) in model.coefficients.iter().zip(&past) {
                let ends = past.map(|past| factor * past);
                range[0] += ends[0].min(ends[1]);
                range[1] += ends[0].max(ends[1]);
            }
            if range[0] < -NOISE {
                found[place][stage] = range[0];
            }
            past = model
                .carried
                .iter()
                .map(|carried| carried.range(&past, range))
                .collect();
        }
    }
    found
}

/// Says what bounded noise does not achieve: inflows that can be below zero nevertheless, outcomes that are mostly at the
/// bound, and deviations that are not kept.
pub(super) fn warn(
    system: &System,
    things: &[String],
    lowest: &[Vec<f64>],
    findings: &mut Findings,
) {
    if system.non_negativity != NonNegativity::BoundedNoise {
        return;
    }
    for ((plant, thing), lowest) in system.hydros.iter().zip(things).zip(lowest) {
        let at = Place::file(InflowStats::FILE).rows(thing);
        let below = lowest.iter().zip(&system.stages).enumerate();
        let mut below = below.filter(|(_, (least, _))| **least < 0.0);
        if let Some((number, (_, stage))) = below.next() {
            let model = &plant.inflow.stages[number];
            let negative = model.coefficients.iter().position(|factor| *factor < 0.0);
            let why = match negative {
                Some(place) => format!("the coefficient of lag {} is negative", place + 1),
                None if model.constant <= 0.0 => {
                    "what the past leaves of the mean is not above zero".to_owned()
                }
                None => "inflows before it can be".to_owned(),
            };
            let least = lowest.iter().copied().fold(0.0, f64::min);
            let message = format!(
                "inflows can still be below zero in stage {} ({why}) and {} other stages, and not below {least:.6} m³/s; \
                 water is added to them at a cost, as by method penalty",
                stage.id,
                below.count()
            );
            findings.doubtful(&at, message);
        }
        let bounded = plant.inflow.stages.iter().zip(&system.stages);
        let bounded = bounded.filter_map(|(model, stage)| Some((model.bounded?, stage)));
        let mut many = bounded.filter(|(noise, _)| noise.at_bound > MANY);
        if let Some((noise, stage)) = many.next() {
            let message = format!(
                "{:.0} % of the outcomes of stage {} are at the lower bound of the noise, so that inflows stay above zero \
                 (and many in {} other stages): means are kept, the deviation of the noise is {:.0} % of what is asked for",
                100.0 * noise.at_bound,
                stage.id,
                many.count(),
                100.0 * noise.deviation
            );
            findings.doubtful(&at, message);
        }
    }
}
