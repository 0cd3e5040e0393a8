//! Inflows: a periodic autoregressive model of each plant.
//!
//! With mean μ and standard deviation s of each stage, coefficients φ of deviations divided by
//! their standard deviation, and the deviation σ of what is new,
//!
//! zₜ = μₜ + Σₗ φₜₗ · sₜ / sₜ₋ₗ · (zₜ₋ₗ − μₜ₋ₗ) + σₜ · ηₜ.

use std::collections::HashMap;

use super::buses::{Spread, spread};
use super::index::{Index, complete};
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::initial;
use crate::hydrothermal::files::scenarios::{ArCoefficients, InflowStats};
use crate::hydrothermal::number::Id;
use crate::hydrothermal::sampling::BoundedNoise;
use crate::hydrothermal::table::Row;

/// The inflow of a plant.
#[derive(Debug, Default)]
pub(crate) struct Inflow {
    /// By stage.
    pub(crate) stages: Vec<InflowModel>,
    /// Past inflows that are handed from stage to stage, m³/s, the most recent first: their values
    /// before the first stage.
    pub(crate) past: Vec<f64>,
    /// True if there are data at all; they may lack some stages, which is an error.
    pub(crate) known: bool,
}

/// The inflow of a stage: constant + Σ coefficient · past inflow + deviation · η.
#[derive(Debug, Clone, Default)]
pub(crate) struct InflowModel {
    /// m³/s.
    pub(crate) constant: f64,
    /// Of past inflows, the most recent first.
    pub(crate) coefficients: Vec<f64>,
    /// m³/s.
    pub(crate) deviation: f64,
    /// Mean and standard deviation without regard to the past, m³/s.
    pub(crate) overall: Option<Spread>,
    /// Of past inflows divided by their deviations, and the part of the own deviation that is new: as the file
    /// has them.
    pub(crate) standardised: Vec<f64>,
    pub(crate) residual: f64,
    /// The noise, where it has a lower bound: that of method `bounded_noise`.
    pub(crate) bounded: Option<BoundedNoise>,
}

impl InflowModel {
    /// The inflow without its part from the past, for a standard normal number.
    pub(crate) fn drawn(&self, drawn: f64) -> f64 {
        match self.bounded {
            // The bound is where this is zero, but for rounding.
            Some(noise) => (self.constant + self.deviation * noise.of(drawn)).max(0.0),
            None => self.constant + self.deviation * drawn,
        }
    }

    /// The part of the inflow that comes from past inflows.
    pub(crate) fn of_past(&self, past: &[f64]) -> f64 {
        let terms = self.coefficients.iter().zip(past);
        terms.map(|(factor, past)| factor * past).sum()
    }

    /// Gives the noise a lower bound, if one exists for every past.
    pub(crate) fn bound_noise(&mut self) {
        if self.deviation > 0.0 {
            self.bounded = BoundedNoise::new(-self.constant / self.deviation);
        }
    }

    /// True if the inflow is not below zero after inflows that are not.
    pub(crate) fn stays_above(&self) -> bool {
        let base = self.bounded.is_some() || self.deviation == 0.0 && self.constant >= 0.0;
        base && self.coefficients.iter().all(|factor| *factor >= 0.0)
    }
}

/// Statistics by plant and number of the stage.
type Stats = HashMap<(usize, Id), Spread>;

pub(super) fn resolve(
    files: &Files,
    plants: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> Vec<Inflow> {
    let stats = statistics(files, plants, stage_index, findings);
    let past = past_inflows(files, plants, findings);
    let mut lags = lags(files, plants, stage_index, findings);
    let mut found = Vec::new();
    for (place, plant) in files.hydros.hydros.iter().enumerate() {
        let thing = format!("hydro plant {} ({})", plant.id, plant.name);
        let own = stages
            .iter()
            .map(|stage| stats.get(&(place, stage.id)).copied());
        let own: Vec<Option<Spread>> = own.collect();
        let own = complete(&own, InflowStats::FILE, &thing, stage_index, findings);
        let file = Place::file(InflowStats::FILE).rows(&thing);
        let Some(own) = own else {
            let known = any(&stats, place, stages);
            if !lags[place].is_empty() && !known {
                findings.wrong(
                    &file,
                    "there are AR coefficients, but no mean and deviation",
                );
            }
            found.push(Inflow {
                stages: vec![InflowModel::default(); stages.len()],
                known,
                ..Inflow::default()
            });
            continue;
        };
        let history = History {
            files,
            place,
            stats: &stats,
            own: &own,
            stages,
            seasons: past.get(&place).map_or(&[][..], |past| &past.1),
        };
        let models = std::mem::take(&mut lags[place]);
        found.push(history.inflow(
            models,
            past.get(&place).map_or(&[][..], |past| &past.0),
            &thing,
            findings,
        ));
    }
    found
}

fn any(stats: &Stats, plant: usize, stages: &[Stage]) -> bool {
    stages
        .iter()
        .any(|stage| stats.contains_key(&(plant, stage.id)))
}

/// Statistics as rows give them; stages before the first have numbers below 0.
fn statistics(files: &Files, plants: &Index, stages: &Index, findings: &mut Findings) -> Stats {
    let mut found = Stats::new();
    for (number, row) in files.inflow_stats.iter().enumerate() {
        let at = Place::file(InflowStats::FILE).row(number);
        let plant = plants.find(row.hydro_id, &at, findings);
        if row.stage_id >= 0 {
            stages.find(row.stage_id, &at, findings);
        }
        let value = spread(row.mean_m3s.0, row.std_m3s.0);
        if let Some(plant) = plant
            && found.insert((plant, row.stage_id), value).is_some()
        {
            let message = format!(
                "there is a row of hydro plant {}, stage {} already",
                row.hydro_id, row.stage_id
            );
            findings.wrong(&at, message);
        }
    }
    found
}

/// Coefficients of a stage, from lag 1, and the part of the deviation that is new.
type Lags = HashMap<Id, (Vec<f64>, f64)>;

/// By plant, the coefficients of the stages that have some.
fn lags(files: &Files, plants: &Index, stages: &Index, findings: &mut Findings) -> Vec<Lags> {
    let mut rows: HashMap<(usize, Id), Vec<(usize, &ArCoefficients)>> = HashMap::new();
    for (number, row) in files.ar_coefficients.iter().enumerate() {
        let at = Place::file(ArCoefficients::FILE).row(number);
        let plant = plants.find(row.hydro_id, &at, findings);
        let stage = stages.find(row.stage_id, &at, findings);
        if let (Some(plant), Some(_)) = (plant, stage) {
            rows.entry((plant, row.stage_id))
                .or_default()
                .push((number, row));
        }
    }
    let mut found = vec![Lags::new(); plants.len()];
    let mut keys: Vec<_> = rows.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let mut of_stage = rows.remove(&key).unwrap_or_default();
        of_stage.sort_by_key(|(number, row)| (row.lag, *number));
        for (place, (number, row)) in of_stage.iter().enumerate() {
            let at = Place::file(ArCoefficients::FILE).row(*number);
            if usize::try_from(row.lag) != Ok(place + 1) {
                let message = format!(
                    "lag {} of hydro plant {}, stage {} is found where lag {} is expected",
                    row.lag,
                    row.hydro_id,
                    row.stage_id,
                    place + 1
                );
                findings.wrong(&at, message);
            }
            if row.residual_std_ratio != of_stage[0].1.residual_std_ratio {
                findings.wrong(&at, "residual_std_ratio differs from that of lag 1");
            }
        }
        let coefficients = of_stage.iter().map(|(_, row)| row.coefficient.0).collect();
        let ratio = of_stage
            .first()
            .map_or(1.0, |(_, row)| row.residual_std_ratio.0);
        found[key.0].insert(key.1, (coefficients, ratio));
    }
    found
}

/// Past inflows by plant, the most recent first, and their seasons where they are given.
fn past_inflows(
    files: &Files,
    plants: &Index,
    findings: &mut Findings,
) -> HashMap<usize, (Vec<f64>, Vec<Id>)> {
    let mut found = HashMap::new();
    let list = Place::file(initial::FILE).key("past_inflows");
    for (place, entry) in files.initial.past_inflows.iter().flatten().enumerate() {
        let at = list.index(place);
        let Some(plant) = plants.find(entry.hydro_id, &at.key("hydro_id"), findings) else {
            continue;
        };
        let values: Vec<f64> = entry.values_m3s.iter().map(|value| value.0).collect();
        let seasons = entry.season_ids.clone().unwrap_or_default();
        if !seasons.is_empty() && seasons.len() != values.len() {
            let message = format!("there are {} for {} values", seasons.len(), values.len());
            findings.wrong(&at.key("season_ids"), message);
        }
        if found.insert(plant, (values, seasons)).is_some() {
            let message = format!("hydro plant {} has an entry already", entry.hydro_id);
            findings.wrong(&at.key("hydro_id"), message);
        }
    }
    found
}

/// The inflow data of one plant.
struct History<'a> {
    files: &'a Files,
    place: usize,
    stats: &'a Stats,
    /// By stage.
    own: &'a [Spread],
    stages: &'a [Stage],
    /// The seasons of past inflows, the most recent first.
    seasons: &'a [Id],
}

impl History<'_> {
    fn inflow(&self, mut lags: Lags, past: &[f64], thing: &str, findings: &mut Findings) -> Inflow {
        let mut models = Vec::new();
        let (mut carried, mut needed) = (0, 0);
        for (number, stage) in self.stages.iter().enumerate() {
            let (coefficients, ratio) = lags.remove(&stage.id).unwrap_or((Vec::new(), 1.0));
            carried = carried.max(coefficients.len());
            needed = needed.max(coefficients.len().saturating_sub(number));
            models.push(self.model(number, &coefficients, ratio, thing, findings));
        }
        if past.len() < needed {
            let at = Place::file(initial::FILE).key("past_inflows");
            let message = format!(
                "{thing} needs {needed} past inflows, the most recent first; it has {}",
                past.len()
            );
            findings.wrong(&at, message);
        }
        let mut past = past.to_vec();
        past.resize(carried, 0.0);
        Inflow {
            stages: models,
            past,
            known: true,
        }
    }

    fn model(
        &self,
        number: usize,
        coefficients: &[f64],
        ratio: f64,
        thing: &str,
        findings: &mut Findings,
    ) -> InflowModel {
        let own = self.own[number];
        let mut model = InflowModel {
            constant: own.mean,
            coefficients: Vec::new(),
            deviation: own.deviation * ratio,
            overall: Some(own),
            standardised: coefficients.to_vec(),
            residual: ratio,
            bounded: None,
        };
        for (place, coefficient) in coefficients.iter().enumerate() {
            let lag = place + 1;
            let stage = self.stages[number].id;
            let at = Place::file(InflowStats::FILE).rows(thing);
            let Some(before) = self.before(number, lag) else {
                let message = format!(
                    "lag {lag} of stage {stage} needs mean and deviation of a stage before the first: add a row for \
                     stage {}, or its season to pre_study_stages of stages.json",
                    number.cast_signed() - lag.cast_signed()
                );
                findings.wrong(&at, message);
                model.coefficients.push(0.0);
                continue;
            };
            if before.deviation == 0.0 && *coefficient != 0.0 {
                let message = format!(
                    "std_m3s is 0, {lag} stages before stage {stage}; lag {lag} is in units of it and has no meaning"
                );
                findings.wrong(&at, message);
            }
            let scaled = if before.deviation == 0.0 {
                0.0
            } else {
                coefficient * own.deviation / before.deviation
            };
            model.constant -= scaled * before.mean;
            model.coefficients.push(scaled);
        }
        model
    }

    /// The statistics of the stage that is `lag` stages before this one.
    fn before(&self, number: usize, lag: usize) -> Option<Spread> {
        if lag <= number {
            return Some(self.own[number - lag]);
        }
        let back = lag - number;
        let id = Id::try_from(back).ok().map(|back| -back);
        if let Some(given) = id.and_then(|id| self.stats.get(&(self.place, id))) {
            return Some(*given);
        }
        let before = self.files.stages.pre_study_stages.iter().flatten();
        let mut before = before.filter(|stage| usize::try_from(-i64::from(stage.id)) == Ok(back));
        let season = before.next().and_then(|stage| stage.season_id);
        let season = season.or_else(|| self.seasons.get(back - 1).copied())?;
        let same = self
            .stages
            .iter()
            .position(|stage| stage.season == Some(season))?;
        Some(self.own[same])
    }
}
