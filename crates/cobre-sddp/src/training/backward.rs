//! The backward pass at one step: cuts from the solutions of the successors at the trial points.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::SddpError;
use crate::lp::{Detail, LpFailure, NodeSolution, Visit};
use crate::path::TrialPoint;
use crate::policy::NewCut;
use crate::problem::Problem;
use crate::rank_work::{NodeSolvers, RankWork, TrainingState};
use crate::ranks::{Backend, Ranks};
use crate::solver::{Solver, WarmStart};
use crate::team::lock;

/// A step of the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackwardStep {
    /// The nodes of a level of an acyclic graph.
    Level(usize),
    /// The visits of paths through a cyclic graph at a place, from 0.
    Visit(usize),
    /// The root, whose cost to go is the bound.
    Root,
}

/// A unit of the backward pass: a block of openings of a node, at the trial point of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitKey {
    pub(crate) pass: usize,
    pub(crate) node: usize,
    pub(crate) openings: Range<usize>,
}

/// A unit with its warm start and its latest solutions.
pub(crate) struct BackwardUnit {
    pub(crate) key: UnitKey,
    pub(crate) warm_start: WarmStart,
    /// By opening; zeros where the node does not follow that of the pass.
    bounds: Vec<f64>,
    /// The gradients of the bounds.
    gradients: Vec<f64>,
    /// At the root, the outgoing states.
    pub(crate) outgoing: Vec<f64>,
}

/// All units of one level, the same list on every rank: the problem alone decides it. The units of a pass at a node
/// spread over those of the pass, so that ranks share any node's evenly where a graph has cycles: all nodes with
/// successors are one level there, and a step is at one of them.
pub(crate) fn units(
    problem: &Problem,
    solver: Solver,
    level: usize,
    passes: usize,
) -> Vec<UnitKey> {
    let graph = &problem.graph;
    let (followers, passes) = if level == graph.depth() {
        let mut first: Vec<usize> = graph.root.iter().map(|edge| edge.node).collect();
        first.sort_unstable();
        (first, 1)
    } else {
        (graph.followers_of_level(level), passes)
    };
    let mut of_pass = Vec::new();
    for &node in &followers {
        let openings = problem.nodes[node].probabilities.len();
        let blocks: Vec<_> = blocks(openings, solver.openings_per_block()).collect();
        let count = blocks.len();
        let block = blocks.into_iter().enumerate();
        of_pass
            .extend(block.map(|(number, openings)| (number * MOST_BLOCKS / count, node, openings)));
    }
    if graph.is_cyclic() {
        of_pass.sort_by_key(|(place, node, _)| (*place, *node));
    }
    let pass = |pass: usize| {
        let units = of_pass.iter();
        units.map(move |(_, node, openings)| UnitKey {
            pass,
            node: *node,
            openings: openings.clone(),
        })
    };
    (0..passes).flat_map(pass).collect()
}

/// More than a node has blocks of openings.
const MOST_BLOCKS: usize = 1 << 31;

/// Splits openings into a number of even blocks that is a power of two.
fn blocks(openings: usize, least: usize) -> impl Iterator<Item = Range<usize>> {
    let most = (openings / least).max(1);
    let count = 1 << most.ilog2();
    (0..count).map(move |block| block * openings / count..(block + 1) * openings / count)
}

impl BackwardUnit {
    pub(crate) fn new(key: UnitKey) -> Mutex<Self> {
        Mutex::new(Self {
            key,
            warm_start: WarmStart::default(),
            bounds: Vec::new(),
            gradients: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Adds the weighted sum of its gradients to `gradient`; returns that of its bounds.
    fn weighted_sum(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let mut value = 0.0;
        for (opening, (weight, bound)) in weights.iter().zip(&self.bounds).enumerate() {
            value += weight * bound;
            let slopes = &self.gradients[opening * gradient.len()..][..gradient.len()];
            for (sum, slope) in gradient.iter_mut().zip(slopes) {
                *sum += weight * slope;
            }
        }
        value
    }

    /// Solves its openings at the trial point of its pass.
    pub(crate) fn solve<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        step: BackwardStep,
    ) -> Result<(), Box<LpFailure>> {
        let openings = self.key.openings.len();
        self.bounds.clear();
        self.gradients.clear();
        self.outgoing.clear();
        // The first stage is solved once, and its decision may be asked for.
        let is_root = step == BackwardStep::Root;
        if let Some(trial) = shared.trial(self.key.pass, step)
            && edge(shared.problem, trial.node, self.key.node).is_some()
        {
            let (bounds, gradients) = (&mut self.bounds, &mut self.gradients);
            let outgoing = &mut self.outgoing;
            let keep = &mut |_: usize, answer: &NodeSolution| {
                bounds.push(answer.bound);
                gradients.extend_from_slice(&answer.gradient);
                if is_root {
                    outgoing.extend_from_slice(&answer.outgoing);
                }
            };
            let visit = Visit {
                incoming: &trial.state,
                openings: self.key.openings.clone(),
                detail: if is_root { Detail::State } else { Detail::Cut },
            };
            solvers.solve(shared, self.key.node, &visit, &mut self.warm_start, keep)?;
        }
        self.bounds.resize(openings, 0.0);
        let states = shared.problem.states.len();
        self.gradients.resize(openings * states, 0.0);
        Ok(())
    }
}

/// The probability of the edge from `parent`, or from the root, to `node`.
fn edge(problem: &Problem, parent: Option<usize>, node: usize) -> Option<f64> {
    let graph = &problem.graph;
    let edges = parent.map_or(&graph.root[..], |parent| graph.successors(parent));
    let found = edges.iter().find(|edge| edge.node == node);
    found.map(|edge| edge.probability)
}

/// The risk-adjusted cost to go at the trial point of a pass.
pub(crate) struct CostToGo {
    pass: usize,
    trial: TrialPoint,
    pub(crate) value: f64,
    gradient: Vec<f64>,
}

impl CostToGo {
    /// The cut of the node at the trial point; the root has none.
    pub(crate) fn cut(self, step: BackwardStep) -> Option<NewCut> {
        let terms = self.gradient.iter().zip(&self.trial.state);
        let at_point: f64 = terms.map(|(slope, value)| slope * value).sum();
        self.trial.node.map(|node| NewCut {
            pass: self.pass,
            visit: match step {
                BackwardStep::Visit(place) => place,
                BackwardStep::Level(_) | BackwardStep::Root => 0,
            },
            node,
            intercept: self.value - at_point,
            gradient: self.gradient,
            point: self.trial.state,
        })
    }
}

/// The units of a step that have a part in it: of a level all, whatever paths visited, and else those that follow the
/// nodes that paths visited. Ranks own those of their share of all units.
struct StepUnits<'u> {
    units: Vec<&'u UnitKey>,
    /// The number of them that each rank owns.
    counts: Vec<usize>,
    /// The place of each that this rank owns among all that it owns.
    own: Vec<usize>,
}

impl<'u> StepUnits<'u> {
    fn new<C: Backend>(
        problem: &Problem,
        ranks: &Ranks<'_, C>,
        (all, step): (&'u [UnitKey], BackwardStep),
        costs: &[Option<CostToGo>],
    ) -> Self {
        let takes_part = |unit: &UnitKey| {
            let cost = costs[unit.pass].as_ref();
            !matches!(step, BackwardStep::Visit(_))
                || cost.is_some_and(|cost| edge(problem, cost.trial.node, unit.node).is_some())
        };
        let mut found = Self {
            units: Vec::new(),
            counts: Vec::new(),
            own: Vec::new(),
        };
        for rank in 0..ranks.size() {
            let share = ranks.share_of(rank, all.len());
            let there = all[share].iter().enumerate();
            let there: Vec<_> = there.filter(|(_, unit)| takes_part(unit)).collect();
            found.counts.push(there.len());
            if rank == ranks.rank() {
                found.own = there.iter().map(|(place, _)| *place).collect();
            }
            found.units.extend(there.into_iter().map(|(_, unit)| unit));
        }
        found
    }

    /// Those of the ranks before this one.
    fn before<C: Backend>(&self, ranks: &Ranks<'_, C>) -> &[&'u UnitKey] {
        &self.units[..self.counts[..ranks.rank()].iter().sum()]
    }
}

/// Combines the solutions of a step's units, wherever they were solved, to one cost to go per pass: `None`
/// for a pass that was not there. Collective.
pub(crate) fn combine<C: Backend>(
    work: &RankWork<'_, C>,
    ranks: &Ranks<'_, C>,
    step: BackwardStep,
) -> Result<Vec<Option<CostToGo>>, SddpError> {
    let shared = work.read();
    let (problem, states) = (shared.problem, shared.problem.states.len());
    let all = &work.units[work.list(step)];
    let passes = 0..all.last().map_or(0, |unit| unit.pass + 1);
    let costs = passes.map(|pass| {
        shared.trial(pass, step).map(|trial| CostToGo {
            pass,
            trial,
            value: 0.0,
            gradient: vec![0.0; states],
        })
    });
    let mut costs: Vec<Option<CostToGo>> = costs.collect();
    let units = &StepUnits::new(problem, ranks, (all, step), &costs);
    let own = &work.backward[work.list(step)];
    let weights = weigh(problem, ranks, units, own, &costs)?;
    let mut weights = &weights[count_openings(units.before(ranks))..];
    let (mut own_values, mut own_gradients) = (Vec::new(), Vec::new());
    for &place in &units.own {
        let unit = lock(&own[place]);
        let (of_unit, rest) = weights.split_at(unit.bounds.len());
        weights = rest;
        let start = own_gradients.len();
        own_gradients.resize(start + states, 0.0);
        own_values.push(unit.weighted_sum(of_unit, &mut own_gradients[start..]));
    }
    let (mut values, mut gradients) = (Vec::new(), Vec::new());
    ranks.gather_pair(
        &units.counts,
        (1, states),
        (&own_values, &own_gradients),
        (&mut values, &mut gradients),
    )?;
    for (number, unit) in units.units.iter().enumerate() {
        if let Some(cost) = &mut costs[unit.pass] {
            cost.value += values[number];
            let slopes = &gradients[number * states..][..states];
            for (sum, slope) in cost.gradient.iter_mut().zip(slopes) {
                *sum += slope;
            }
        }
    }
    Ok(costs)
}

fn count_openings(units: &[&UnitKey]) -> usize {
    units.iter().map(|unit| unit.openings.len()).sum()
}

/// The weights of the openings of all units, one unit after the other. Under a risk measure other than the
/// expectation, ranks first exchange the openings' bounds.
fn weigh<C: Backend>(
    problem: &Problem,
    ranks: &Ranks<'_, C>,
    StepUnits { units, counts, own }: &StepUnits<'_>,
    solved: &[Mutex<BackwardUnit>],
    costs: &[Option<CostToGo>],
) -> Result<Vec<f64>, SddpError> {
    let mut weights: Vec<f64> = Vec::new();
    for unit in units {
        let cost = costs[unit.pass].as_ref();
        let step = cost.and_then(|cost| edge(problem, cost.trial.node, unit.node));
        let openings = &problem.nodes[unit.node].probabilities[unit.openings.clone()];
        weights.extend(openings.iter().map(|opening| step.unwrap_or(0.0) * opening));
    }
    let risk = |pass: usize| match costs[pass].as_ref().and_then(|cost| cost.trial.node) {
        Some(node) => problem.nodes[node].risk,
        None => problem.risk,
    };
    if (0..costs.len()).all(|pass| risk(pass).is_expectation()) {
        return Ok(weights);
    }
    let mut mine = Vec::new();
    for &place in own {
        mine.extend_from_slice(&lock(&solved[place]).bounds);
    }
    let (mut bounds, mut adjusted, mut start) = (Vec::new(), Vec::new(), 0);
    let width = |unit: usize| units[unit].openings.len();
    ranks.gather_counted(counts, width, &mine, &mut bounds)?;
    for of_pass in units.chunk_by(|one, other| one.pass == other.pass) {
        let end = start + count_openings(of_pass);
        let risk = risk(of_pass[0].pass);
        risk.weights(&weights[start..end], &bounds[start..end], &mut adjusted);
        weights[start..end].copy_from_slice(&adjusted);
        start = end;
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_cover_all_openings_and_are_even() {
        for openings in 1..200 {
            let found: Vec<_> = blocks(openings, 5).collect();
            assert!(found.len().is_power_of_two());
            assert_eq!((found[0].start, found[found.len() - 1].end), (0, openings));
            assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(found.len() == 1 || found.iter().all(|block| block.len() >= 5));
        }
    }
}
