//! The mean of what truncation of inflows that depend on the past costs: a price that nobody pays.
//!
//! Inflows do not depend on decisions, so it is found without solving anything: exactly where there are few
//! paths, else from sampled paths with all openings of each stage on the way.

use cobre_sddp::{Fictitious, Noise, Purpose};

use super::water_worth;
use crate::hydrothermal::files::config::NonNegativity;
use crate::hydrothermal::sampling::OpeningSampler;
use crate::hydrothermal::system::{InflowModel, System};

/// The most paths that are sampled; as many are enumerated.
const PATHS: usize = 4096;
/// The fewest.
const FEWEST: usize = 256;
/// The outcomes to look at: paths are fewer where stages have many plants and openings.
const OUTCOMES: usize = 20_000_000;

/// The mean for a system.
pub(super) fn mean(system: &System, sampling: &OpeningSampler) -> Fictitious {
    let remembers = |place: &usize| !system.hydros[*place].inflow.past.is_empty();
    let plants: Vec<usize> = (0..system.hydros.len()).filter(remembers).collect();
    if system.non_negativity != NonNegativity::Truncation || plants.is_empty() {
        return Fictitious::default();
    }
    let walk = InflowWalk::new(system, &plants, sampling);
    let start: History = plants
        .iter()
        .map(|&place| system.hydros[place].inflow.past.clone())
        .collect();
    let counts = walk.stages.iter().map(|stage| stage.openings);
    let paths = counts.clone().fold(1, usize::saturating_mul);
    if paths <= PATHS {
        return Fictitious {
            mean: walk.enumerate(0, &start),
            standard_error: 0.0,
        };
    }
    let outcomes: usize = counts.sum::<usize>() * plants.len();
    let paths = (OUTCOMES / outcomes.max(1)).clamp(FEWEST, PATHS);
    let costs: Vec<f64> = (0..paths).map(|path| walk.sample(path, &start)).collect();
    let count = costs.len() as f64;
    let mean = costs.iter().sum::<f64>() / count;
    let squares: f64 = costs.iter().map(|cost| (cost - mean).powi(2)).sum();
    Fictitious {
        mean,
        standard_error: (squares / (count - 1.0) / count).sqrt(),
    }
}

/// Past inflows by plant, the most recent first.
type History = Vec<Vec<f64>>;

struct InflowWalk<'s> {
    stages: Vec<InflowWalkStage<'s>>,
}

struct InflowWalkStage<'s> {
    openings: usize,
    /// By plant.
    plants: Vec<InflowWalkPlant<'s>>,
}

struct InflowWalkPlant<'s> {
    model: &'s InflowModel,
    /// The price of 1 m³/s, discounted.
    price: f64,
    /// By opening, the inflow without its part from the past.
    drawn: Vec<f64>,
}

impl<'s> InflowWalk<'s> {
    fn new(system: &'s System, plants: &[usize], sampling: &OpeningSampler) -> Self {
        let prices = plants.iter();
        let prices = prices.map(|&place| water_worth::prices(system, place));
        let prices: Vec<Vec<f64>> = prices.collect();
        let mut weight = 1.0;
        let stages = (0..system.stages.len()).map(|number| {
            let drawn = sampling.draw(system, number);
            let plants = plants.iter().zip(&prices).map(|(&place, prices)| {
                let model = &system.hydros[place].inflow.stages[number];
                InflowWalkPlant {
                    model,
                    price: weight * prices[number],
                    drawn: drawn
                        .iter()
                        .map(|drawn| model.drawn(drawn[place]))
                        .collect(),
                }
            });
            let stage = InflowWalkStage {
                openings: drawn.len(),
                plants: plants.collect(),
            };
            weight *= system.stages[number].discount;
            stage
        });
        Self {
            stages: stages.collect(),
        }
    }

    /// The mean cost of all paths from a stage on.
    fn enumerate(&self, number: usize, history: &History) -> f64 {
        let Some(stage) = self.stages.get(number) else {
            return 0.0;
        };
        let later = (0..stage.openings).map(|opening| {
            let mut history = history.clone();
            stage.advance(opening, &mut history);
            self.enumerate(number + 1, &history)
        });
        stage.cost(history) + later.sum::<f64>() / stage.openings as f64
    }

    /// The cost of a sampled path, each stage with the mean over its openings.
    fn sample(&self, path: usize, start: &History) -> f64 {
        let noise = Noise::new(0, Purpose::Fictitious);
        let mut history = start.clone();
        let mut cost = 0.0;
        for (number, stage) in self.stages.iter().enumerate() {
            cost += stage.cost(&history);
            let [draw, _] = noise.draw(0, path, number);
            stage.advance((draw * stage.openings as f64) as usize, &mut history);
        }
        cost
    }
}

impl InflowWalkStage<'_> {
    /// The mean cost over the openings.
    fn cost(&self, history: &History) -> f64 {
        let costs = self.plants.iter().zip(history).map(|(plant, past)| {
            let past = plant.model.of_past(past);
            let lifted = plant.drawn.iter().map(|drawn| (-past - drawn).max(0.0));
            plant.price * lifted.sum::<f64>()
        });
        costs.sum::<f64>() / self.openings as f64
    }

    /// Lets an opening happen.
    fn advance(&self, opening: usize, history: &mut History) {
        for (plant, past) in self.plants.iter().zip(history) {
            let inflow = (plant.model.of_past(past) + plant.drawn[opening]).max(0.0);
            past.rotate_right(1);
            past[0] = inflow;
        }
    }
}
