//! Inflows: a periodic autoregressive model of each plant.
//!
//! With mean μ and standard deviation s of each stage, coefficients φ of deviations divided by
//! their standard deviation, and the deviation σ of what is new,
//!
//! zₜ = μₜ + Σₗ φₜₗ · sₜ / sₜ₋ₗ · (zₜ₋ₗ − μₜ₋ₗ) + σₜ · ηₜ.
//!
//! Lags are seasons where the case defines them, else stages.

use std::collections::{BTreeMap, HashMap};

use super::buses::{Spread, spread};
use super::index::{Index, by_stage, complete};
use super::inflow_lags::SeasonTimeline;
use super::plant_inflow::PlantInflow;
use super::recent;
use super::time::Stage;
use crate::finding::{Findings, Place};
use crate::hydrothermal::estimation::{History, InflowTables};
use crate::hydrothermal::files::Files;
use crate::hydrothermal::files::inflow::AnnualComponent;
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
    /// The names of these states, without the plant.
    pub(crate) names: Vec<String>,
    /// True if there are data at all; they may lack some stages, which is an error.
    pub(crate) known: bool,
    /// By regime and stage, where a regime has inflows of its own. The past counts as it does without regimes.
    pub(crate) regimes: BTreeMap<(Id, usize), InflowModel>,
}

impl Inflow {
    /// The model of a regime, where that has inflows of its own.
    pub(crate) fn of_regime(&self, regime: Option<Id>, stage: usize) -> Option<&InflowModel> {
        self.regimes.get(&(regime?, stage))
    }

    /// The model of a stage in a regime.
    pub(crate) fn model(&self, regime: Option<Id>, stage: usize) -> &InflowModel {
        self.of_regime(regime, stage).unwrap_or(&self.stages[stage])
    }

    /// The models of a stage: without a regime, and in each.
    pub(crate) fn models(&self, stage: usize) -> impl Iterator<Item = &InflowModel> {
        let regimes = self.regimes.iter();
        let regimes = regimes.filter(move |((_, own), _)| *own == stage);
        std::iter::once(&self.stages[stage]).chain(regimes.map(|(_, model)| model))
    }

    /// All models.
    pub(super) fn all_models(&mut self) -> impl Iterator<Item = &mut InflowModel> {
        self.stages.iter_mut().chain(self.regimes.values_mut())
    }
}

/// The inflow of a stage: constant + Σ coefficient · past inflow + deviation · η.
#[derive(Debug, Clone, Default)]
pub(crate) struct InflowModel {
    /// m³/s.
    pub(crate) constant: f64,
    /// Of past inflows, in the order of [`Inflow::past`].
    pub(crate) coefficients: Vec<f64>,
    /// The same by lag, from 1.
    pub(crate) by_lag: Vec<f64>,
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
    /// The past inflows after the stage, in the order of [`Inflow::past`].
    pub(crate) carried: Vec<CarriedInflow>,
}

/// A past inflow as it is handed on: a sum over those handed to the stage, and a part of its own inflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CarriedInflow {
    /// Places and factors of past inflows.
    pub(crate) past: Vec<(usize, f64)>,
    /// The factor of the inflow of the stage.
    pub(crate) own: f64,
}

impl CarriedInflow {
    /// The inflow of the stage as it is.
    pub(crate) fn newest() -> Self {
        Self {
            past: Vec::new(),
            own: 1.0,
        }
    }

    /// A past inflow as it is.
    pub(crate) fn kept(place: usize) -> Self {
        Self {
            past: vec![(place, 1.0)],
            own: 0.0,
        }
    }

    /// The least and the most that it can be, given those of the past and of the inflow of the stage.
    pub(crate) fn range(&self, past: &[[f64; 2]], inflow: [f64; 2]) -> [f64; 2] {
        let kept = self
            .past
            .iter()
            .map(|(place, factor)| (past[*place], *factor));
        let terms = kept.chain((self.own != 0.0).then_some((inflow, self.own)));
        terms.fold([0.0; 2], |sum, (range, factor)| {
            let ends = range.map(|end| factor * end);
            [sum[0] + ends[0].min(ends[1]), sum[1] + ends[0].max(ends[1])]
        })
    }

    /// Its value after a stage with this past and this inflow.
    pub(super) fn value(&self, past: &[f64], inflow: f64) -> f64 {
        let kept = self.past.iter();
        let kept: f64 = kept.map(|(place, factor)| factor * past[*place]).sum();
        if self.own == 0.0 {
            kept
        } else {
            kept + self.own * inflow
        }
    }
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

    /// The part of an inflow that does not come from past inflows: the right-hand side that makes it happen.
    /// The inverse of [`drawn`](Self::drawn) without its bounds.
    pub(crate) fn own_part(&self, inflow: f64, past: &[f64]) -> f64 {
        inflow - self.of_past(past)
    }

    /// The standard normal number η for which [`drawn`](Self::drawn) is this; none if nothing is uncertain.
    pub(crate) fn noise_of(&self, own_part: f64) -> Option<f64> {
        let noise = (own_part - self.constant) / self.deviation;
        let uncertain = self.deviation > 0.0;
        uncertain.then(|| {
            self.bounded
                .map_or(noise, |bounded| bounded.drawn_of(noise))
        })
    }

    /// Past inflows after the stage, given its inflow.
    pub(crate) fn advance(&self, past: &mut Vec<f64>, inflow: f64) {
        *past = self
            .carried
            .iter()
            .map(|carried| carried.value(past, inflow))
            .collect();
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
pub(super) type Stats = HashMap<(usize, Id), Spread>;

/// Where inflow models come from.
pub(super) struct InflowSources<'a> {
    pub(super) tables: &'a InflowTables<'a>,
    pub(super) history: &'a History,
    pub(super) timeline: Option<&'a SeasonTimeline>,
}

pub(super) fn resolve(
    files: &Files,
    sources: &InflowSources<'_>,
    plants: &Index,
    stages: &[Stage],
    stage_index: &Index,
    findings: &mut Findings,
) -> Vec<Inflow> {
    let stats = statistics(&sources.tables.stats, plants, stage_index, findings);
    let past = past_inflows(files, plants, findings);
    let recent = recent::resolve(files, plants, stages, sources.timeline, findings);
    let mut lags = lags(&sources.tables.coefficients, plants, stage_index, findings);
    let annual = by_stage(
        &sources.tables.annual,
        AnnualComponent::FILE,
        plants,
        stage_index,
        |row| (row.hydro_id, row.stage_id, *row),
        findings,
    );
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
        let past = past.get(&place);
        let inflow = PlantInflow {
            files,
            sources,
            place,
            stats: &stats,
            own: &own,
            stages,
            seasons: past.map_or(&[][..], |past| &past.1),
            past: past.map_or(&[][..], |past| &past.0),
            recent: &recent[place],
            annual: &annual[place],
            thing: &thing,
        };
        let models = std::mem::take(&mut lags[place]);
        found.push(inflow.resolve(models, findings));
    }
    found
}

fn any(stats: &Stats, plant: usize, stages: &[Stage]) -> bool {
    stages
        .iter()
        .any(|stage| stats.contains_key(&(plant, stage.id)))
}
/// Statistics as rows give them; stages before the first have numbers below 0.
fn statistics(
    rows: &[InflowStats],
    plants: &Index,
    stages: &Index,
    findings: &mut Findings,
) -> Stats {
    let mut found = Stats::new();
    for (number, row) in rows.iter().enumerate() {
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
pub(super) type Lags = HashMap<Id, (Vec<f64>, f64)>;

/// By plant, the coefficients of the stages that have some.
fn lags(
    given: &[ArCoefficients],
    plants: &Index,
    stages: &Index,
    findings: &mut Findings,
) -> Vec<Lags> {
    let mut rows: HashMap<(usize, Id), Vec<(usize, &ArCoefficients)>> = HashMap::new();
    for (number, row) in given.iter().enumerate() {
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
        let ratio = of_stage.first().map_or(1.0, |(_, row)| row.residual());
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
