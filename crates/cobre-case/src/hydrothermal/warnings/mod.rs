//! Warnings: input that is legal but suspicious.

mod equipment;
mod terminal;

use cobre_sddp::{Magnitudes, Problem};

use super::files::config::NonNegativity;
use super::files::scenarios::{ArCoefficients, InflowStats, LoadStats, SourceStats};
use super::files::system as names;
use super::files::{Files, config, initial, stages};
use super::hydraulic_warnings;
use super::model;
use super::system::{Hydro, Stage, System};
use super::table::Row;
use super::{inflow_sign, inflow_variance};
use crate::finding::{Findings, Place};

/// The largest reservoir on earth has 180,000 hm³.
const LARGEST_RESERVOIR_HM3: f64 = 1e6;
/// The largest river on earth carries 200,000 m³/s.
const LARGEST_RIVER_M3S: f64 = 1e6;
/// Deviations below the mean at which an inflow of zero is no surprise: one outcome in fifty.
const DEVIATIONS: f64 = 2.0;
/// Hours of blocks may differ from the days of the stage by this part.
const HOURS: f64 = 0.1;
/// Coefficients further apart than this make linear programs hard to solve.
const SCALE: f64 = 1e9;

/// Says what looks wrong with a system, given what inflows are never below.
pub(crate) fn find(files: &Files, system: &System, lowest: &[Vec<f64>], findings: &mut Findings) {
    let things = files.hydros.hydros.iter();
    let things = things.map(|file| format!("hydro plant {} ({})", file.id, file.name));
    let things: Vec<String> = things.collect();
    inflow_sign::warn(system, &things, lowest, findings);
    for (place, thing) in things.iter().enumerate() {
        let plant = &system.hydros[place];
        inflows(system, plant, thing, findings);
        cheap_water(system, place, (thing, &lowest[place]), findings);
        hydraulic_warnings::find(files, system, place, findings);
        let at = Place::file(names::HYDROS).rows(thing);
        let most = plant
            .limits
            .iter()
            .map(|limits| limits.max_storage)
            .fold(0.0, f64::max);
        if most > LARGEST_RESERVOIR_HM3 {
            let message =
                format!("the reservoir has {most} hm³, more than any on earth; is it in m³?");
            findings.doubtful(&at, message);
        }
    }
    empty_reservoirs(files, system, &things, findings);
    load(system, findings);
    sources(files, system, findings);
    discount(files, findings);
    dear_plants(files, system, findings);
    hours(files, system, findings);
    equipment::find(files, system, findings);
    terminal::find(files, system, findings);
}

fn inflows(system: &System, plant: &Hydro, thing: &str, findings: &mut Findings) {
    let at = Place::file(InflowStats::FILE).rows(thing);
    if !plant.inflow.known {
        findings.doubtful(&at, "there is no inflow; it is taken as 0");
        return;
    }
    let regimes = plant.inflow.regimes.iter();
    let regimes = regimes.map(|((_, stage), model)| (model, &system.stages[*stage]));
    let stages = plant.inflow.stages.iter().zip(&system.stages);
    let stages = stages.chain(regimes);
    let overall = stages.filter_map(|(model, stage)| Some((model.overall?, stage)));
    // With a lower bound of the noise there is more to say: see `inflow_sign`.
    let judged = system.non_negativity != NonNegativity::BoundedNoise;
    let mut negative = overall.clone().filter(|(inflow, _)| {
        let uncertain = inflow.deviation > 0.0 && inflow.mean < DEVIATIONS * inflow.deviation;
        judged && (uncertain || inflow.mean < 0.0)
    });
    if let Some((inflow, stage)) = negative.next() {
        let what = match system.non_negativity {
            NonNegativity::None => {
                "and nothing is done about them: see modeling.inflow_non_negativity of config.json"
            }
            NonNegativity::Penalty => "and water is added at a cost",
            NonNegativity::Truncation
            | NonNegativity::TruncationWithPenalty
            | NonNegativity::BoundedNoise => "and are truncated",
        };
        let message = format!(
            "negative inflows are likely in stage {} (mean {}, deviation {}) and {} other stages, {what}",
            stage.id,
            inflow.mean,
            inflow.deviation,
            negative.count()
        );
        findings.doubtful(&at, message);
    }
    if let Some((inflow, stage)) = overall
        .clone()
        .find(|(inflow, _)| inflow.mean > LARGEST_RIVER_M3S)
    {
        let message = format!(
            "the mean of stage {} is {} m³/s, more than any river carries",
            stage.id, inflow.mean
        );
        findings.doubtful(&at, message);
    }
    if let Some((number, share)) = inflow_variance::contradiction(&plant.inflow.stages) {
        let stage = system.stages[number].id;
        let told = if share.is_finite() {
            format!("{:.0} % of", 100.0 * share)
        } else {
            "without limit instead of".to_owned()
        };
        let message = format!(
            "coefficients and residual_std_ratio contradict each other: with them the variance of inflows is {told} what \
             std_m3s gives (stage {stage}, where it is furthest off); the ratio must leave what the coefficients do not \
             explain"
        );
        findings.doubtful(&Place::file(ArCoefficients::FILE).rows(thing), message);
    }
    let explosive = plant.inflow.stages.iter().zip(&system.stages);
    let mut explosive =
        explosive.filter(|(model, _)| model.coefficients.iter().sum::<f64>().abs() >= 1.5);
    if let Some((model, stage)) = explosive.next() {
        let message = format!(
            "inflows of stage {} grow with those before: the coefficients sum to {}",
            stage.id,
            model.coefficients.iter().sum::<f64>()
        );
        findings.doubtful(&Place::file(ArCoefficients::FILE).rows(thing), message);
    }
}

/// Water that can be added to an inflow above zero, for less than it saves.
fn cheap_water(
    system: &System,
    place: usize,
    (thing, lowest): (&str, &[f64]),
    findings: &mut Findings,
) {
    let plant = &system.hydros[place];
    let costs = plant.costs.iter().map(|costs| costs.added_water);
    let cost = costs.fold(f64::INFINITY, f64::min);
    let saving = model::saving(system, place);
    let unlimited = !plant.inflow.past.is_empty();
    let adds = match system.non_negativity {
        NonNegativity::None | NonNegativity::Truncation => false,
        NonNegativity::Penalty | NonNegativity::TruncationWithPenalty => true,
        NonNegativity::BoundedNoise => lowest.iter().any(|least| *least < 0.0),
    };
    if adds && unlimited && cost < saving {
        let at = Place::file(config::FILE).key("modeling.inflow_non_negativity");
        let message = format!(
            "water can be added to the inflow of {thing} for {cost} $/(m³/s·h), and may save {saving}: where energy is \
             short it is bought, though no inflow is below zero; raise penalty_cost, or use truncation"
        );
        findings.doubtful(&at, message);
    }
}

/// Reservoirs that start empty because nobody has said how full they are.
fn empty_reservoirs(files: &Files, system: &System, things: &[String], findings: &mut Findings) {
    let given = |id| {
        let initial = &files.initial;
        let mut storage = initial.storage.iter().chain(&initial.filling_storage);
        storage.any(|entry| entry.hydro_id == id)
    };
    let plants = system.hydros.iter().zip(&files.hydros.hydros).zip(things);
    for ((plant, file), thing) in plants {
        if plant.stores() && !given(file.id) {
            let at = Place::file(initial::FILE).key("storage");
            let message = format!(
                "{thing} has a reservoir and no entry: it starts empty; if it does, say so by \
                 {{\"hydro_id\": {}, \"value_hm3\": 0}}",
                file.id
            );
            findings.doubtful(&at, message);
        }
    }
}

/// Sources that have more than they can.
fn sources(files: &Files, system: &System, findings: &mut Findings) {
    let named = files
        .sources
        .iter()
        .flat_map(|file| &file.non_controllable_sources);
    for (source, file) in system.sources.iter().zip(named) {
        let mut means = source.availability.iter().map(|share| share.mean);
        if let Some(mean) = means.find(|mean| *mean > 1.0) {
            let thing = format!("source {} ({})", file.id, file.name);
            let message =
                format!("the mean is a part of the capacity, but {mean} is found; is it in MW?");
            findings.doubtful(&Place::file(SourceStats::FILE).rows(thing), message);
        }
    }
}

/// A discount that halves costs within a year.
fn discount(files: &Files, findings: &mut Findings) {
    let rate = files.stages.policy_graph.annual_discount_rate.0;
    if rate >= 1.0 {
        let at = Place::file(stages::FILE).key("policy_graph.annual_discount_rate");
        let message = format!("{rate} is {} % per year; 0.12 is 12 %", 100.0 * rate);
        findings.doubtful(&at, message);
    }
}

/// No load at all, or load that all plants together cannot serve.
fn load(system: &System, findings: &mut Findings) {
    let mut loads = system.buses.iter().flat_map(|bus| &bus.load);
    if loads.all(|load| load.mean == 0.0 && load.deviation == 0.0) {
        findings.doubtful(&Place::file(LoadStats::FILE), "no bus has any load");
    }
    for (number, stage) in system.stages.iter().enumerate() {
        for block in 0..stage.hours.len() {
            let load = system.buses.iter();
            let load: f64 = load
                .map(|bus| bus.load[number].mean * bus.factors[number][block])
                .sum();
            let hydro = system.hydros.iter().map(|plant| plant.capacity(number));
            let thermal = system
                .thermals
                .iter()
                .map(|plant| plant.limits[number][block].max);
            let sources = system
                .sources
                .iter()
                .map(|source| source.available(number, block, 1.0));
            let others = equipment::capacity(system, number, block);
            let capacity: f64 = hydro.chain(thermal).chain(sources).sum::<f64>() + others;
            if load > capacity {
                let at = Place::file(LoadStats::FILE).rows(format!(
                    "stage {}, block {}",
                    stage.id, stage.block_labels[block]
                ));
                let message = format!(
                    "the load of all buses, {load:.6} MW, is above the capacity of all plants, {capacity:.6} MW: \
                     some is never served"
                );
                findings.doubtful(&at, message);
                return;
            }
        }
    }
}

/// Thermal plants that cost more than not to serve the load.
fn dear_plants(files: &Files, system: &System, findings: &mut Findings) {
    for (plant, file) in system.thermals.iter().zip(&files.thermals.thermals) {
        let short = system.buses[plant.bus]
            .deficit
            .iter()
            .map(|(_, cost)| *cost);
        let short = short.fold(0.0, f64::max);
        let cost = plant.cheapest();
        if cost > short {
            let at = Place::file(names::THERMALS)
                .rows(format!("thermal plant {} ({})", file.id, file.name));
            let message = format!(
                "its energy costs {cost} $/MWh, more than load that is not served, {short} $/MWh"
            );
            findings.doubtful(&at, message);
        }
    }
}

/// Stages whose blocks are not as long as their days.
fn hours(files: &Files, system: &System, findings: &mut Findings) {
    for (stage, file) in system.stages.iter().zip(&files.stages.stages) {
        let days = (file.end_date.0 - file.start_date.0) as f64;
        let hours = stage.total_hours();
        if (hours / (24.0 * days) - 1.0).abs() > HOURS {
            let at = Place::file(stages::FILE).rows(format!("stage {}", stage.id));
            let message = format!(
                "its blocks have {hours} hours, its {days} days have {}",
                24.0 * days
            );
            findings.doubtful(&at, message);
            return;
        }
    }
}

/// Says whether the numbers of the linear programs are too far apart.
pub(crate) fn scale(problem: &Problem, findings: &mut Findings) {
    let size = problem.summary();
    let wide = |range: Magnitudes| range.largest > 0.0 && range.largest / range.smallest > SCALE;
    for (what, range) in [("coefficients", size.matrix), ("costs", size.costs)] {
        if wide(range) {
            let message = format!(
                "{what} of the linear programs go from {:.0e} to {:.0e}; such programs are hard to solve",
                range.smallest, range.largest
            );
            findings.doubtful(&Place::file("."), message);
        }
    }
}
