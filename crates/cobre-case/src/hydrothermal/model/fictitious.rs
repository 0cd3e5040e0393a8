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
    let by_stage: Vec<usize> = (0..system.stages.len())
        .map(|stage| walk.outcomes(system, stage))
        .collect();
    let paths = by_stage.iter().copied().fold(1, usize::saturating_mul);
    if paths <= PATHS {
        return Fictitious {
            mean: walk.enumerate(&walk.begin, &start),
            standard_error: 0.0,
        };
    }
    let outcomes: usize = by_stage.iter().sum::<usize>() * plants.len();
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

/// Places of nodes, and their probabilities.
type Steps = [(usize, f64)];

struct InflowWalk<'s> {
    /// The nodes that paths begin in.
    begin: Vec<(usize, f64)>,
    nodes: Vec<InflowWalkNode<'s>>,
}

struct InflowWalkNode<'s> {
    openings: usize,
    next: &'s Steps,
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
        let weights = system.stages.iter().scan(1.0, |weight, stage| {
            let own = *weight;
            *weight *= stage.discount;
            Some(own)
        });
        let weights: Vec<f64> = weights.collect();
        let stages = (0..system.stages.len()).map(|stage| sampling.draw(system, stage));
        let stages: Vec<_> = stages.collect();
        let nodes = system.nodes.iter().map(|node| {
            let number = node.stage;
            let drawn = &stages[number];
            let plants = plants.iter().zip(&prices).map(|(&place, prices)| {
                let model = system.hydros[place].inflow.model(node.regime, number);
                InflowWalkPlant {
                    model,
                    price: weights[number] * prices[number],
                    drawn: drawn
                        .iter()
                        .map(|drawn| model.drawn(drawn[place]))
                        .collect(),
                }
            });
            InflowWalkNode {
                openings: drawn.len(),
                next: &node.next,
                plants: plants.collect(),
            }
        });
        let begin = system.nodes.iter().enumerate();
        let begin = begin.filter(|(_, node)| node.initial > 0.0);
        Self {
            begin: begin.map(|(place, node)| (place, node.initial)).collect(),
            nodes: nodes.collect(),
        }
    }

    /// The outcomes of a stage: the openings of all its nodes.
    fn outcomes(&self, system: &System, stage: usize) -> usize {
        let nodes = system.nodes.iter().zip(&self.nodes);
        let nodes = nodes.filter(|(node, _)| node.stage == stage);
        nodes.map(|(_, own)| own.openings).sum()
    }

    /// The mean cost of all paths that take these steps next.
    fn enumerate(&self, steps: &Steps, history: &History) -> f64 {
        let costs = steps.iter().map(|(place, probability)| {
            let node = &self.nodes[*place];
            let later = (0..node.openings).map(|opening| {
                let mut history = history.clone();
                node.advance(opening, &mut history);
                self.enumerate(node.next, &history)
            });
            probability * (node.cost(history) + later.sum::<f64>() / node.openings as f64)
        });
        costs.sum()
    }

    /// The cost of a sampled path, each stage with the mean over its openings.
    fn sample(&self, path: usize, start: &History) -> f64 {
        let noise = Noise::new(0, Purpose::Fictitious);
        let mut history = start.clone();
        let mut cost = 0.0;
        let mut steps = &self.begin[..];
        let mut number = 0;
        while !steps.is_empty() {
            let [draw, step] = noise.draw(0, path, number);
            let node = &self.nodes[chosen(steps, step)];
            cost += node.cost(&history);
            node.advance((draw * node.openings as f64) as usize, &mut history);
            steps = node.next;
            number += 1;
        }
        cost
    }
}

/// The step that a number in [0, 1) chooses.
fn chosen(steps: &Steps, draw: f64) -> usize {
    let mut left = draw;
    let found = steps.iter().find(|(_, probability)| {
        left -= probability;
        left < 0.0
    });
    found.or(steps.last()).map_or(0, |(place, _)| *place)
}

impl InflowWalkNode<'_> {
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
            plant.model.advance(past, inflow);
        }
    }
}
