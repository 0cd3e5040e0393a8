//! The backward pass at one level: new cuts from the successors' answers at the trial points.

use std::ops::Range;
use std::sync::Mutex;

use crate::error::SddpError;
use crate::lp::{Detail, LpFailure, NodeSolution, Visit};
use crate::policy::NewCut;
use crate::problem::Problem;
use crate::rank_work::{NodeSolvers, RankWork, TrainingState};
use crate::ranks::{Backend, Ranks};
use crate::solver::{Solver, WarmStart};
use crate::team::lock;

/// What a unit of work is: the openings of a block, at one node, at the trial point of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitKey {
    pub(crate) pass: usize,
    pub(crate) node: usize,
    pub(crate) openings: Range<usize>,
}

/// A unit of work with what it remembers and its latest answers.
pub(crate) struct BackwardUnit {
    pub(crate) key: UnitKey,
    pub(crate) warm_start: WarmStart,
    /// For each opening the bound and its gradient; zeros where the pass has no use for the node.
    answers: Vec<f64>,
}

/// All units of one level, the same list on every rank: the problem alone decides it.
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
    let mut units = Vec::new();
    for pass in 0..passes {
        for &node in &followers {
            for openings in blocks(
                problem.nodes[node].probabilities.len(),
                solver.openings_per_block(),
            ) {
                units.push(UnitKey {
                    pass,
                    node,
                    openings,
                });
            }
        }
    }
    units
}

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
            answers: Vec::new(),
        })
    }

    pub(crate) fn solve<C: Backend>(
        &mut self,
        shared: &TrainingState<'_, C>,
        solvers: &mut NodeSolvers,
        level: usize,
    ) -> Result<(), Box<LpFailure>> {
        let width = 1 + shared.problem.states.len();
        self.answers.clear();
        if let Some((parent, state)) = shared.trial(self.key.pass, level)
            && edge(shared.problem, parent, self.key.node).is_some()
        {
            let answers = &mut self.answers;
            let keep = &mut |_: usize, answer: &NodeSolution| {
                answers.push(answer.bound);
                answers.extend_from_slice(&answer.gradient);
            };
            let visit = Visit {
                incoming: &state,
                openings: self.key.openings.clone(),
                want: Detail::Cut,
            };
            solvers.solve(shared, self.key.node, &visit, &mut self.warm_start, keep)?;
        }
        self.answers.resize(width * self.key.openings.len(), 0.0);
        Ok(())
    }
}

/// The probability of the step from `parent`, or from the root, to `node`.
fn edge(problem: &Problem, parent: Option<usize>, node: usize) -> Option<f64> {
    let graph = &problem.graph;
    let edges = parent.map_or(&graph.root[..], |parent| graph.successors(parent));
    let found = edges.iter().find(|edge| edge.node == node);
    found.map(|edge| edge.probability)
}

/// Combines the answers of a level's units, wherever they were solved, to one value and gradient
/// per pass: `None` for a pass that was not at this level. Collective.
pub(crate) fn combine<C: Backend>(
    work: &RankWork<'_, C>,
    ranks: &Ranks<'_, C>,
    units: &[UnitKey],
    level: usize,
) -> Result<Vec<Option<NewCut>>, SddpError> {
    let shared = work.read();
    let problem = shared.problem;
    let width = 1 + problem.states.len();
    let weights = weigh(work, ranks, &shared, units, level)?;
    let mut mine = Vec::new();
    for (unit, number) in work.backward[level].iter().zip(ranks.share(units.len())) {
        let unit = lock(unit);
        let start = mine.len();
        mine.resize(start + width, 0.0);
        for (answer, weight) in unit.answers.chunks(width).zip(&weights[number]) {
            for (sum, value) in mine[start..].iter_mut().zip(answer) {
                *sum += weight * value;
            }
        }
    }
    let mut sums = Vec::new();
    ranks.gather(units.len(), |_| width, &mine, &mut sums)?;
    let passes = units.last().map_or(0, |unit| unit.pass + 1);
    let mut cuts: Vec<Option<NewCut>> = Vec::with_capacity(passes);
    for pass in 0..passes {
        cuts.push(shared.trial(pass, level).map(|(node, point)| NewCut {
            pass,
            node: node.unwrap_or(usize::MAX),
            intercept: 0.0,
            gradient: vec![0.0; problem.states.len()],
            point,
        }));
    }
    for (unit, sum) in units.iter().zip(sums.chunks(width)) {
        if let Some(cut) = &mut cuts[unit.pass] {
            cut.intercept += sum[0];
            for (slope, value) in cut.gradient.iter_mut().zip(&sum[1..]) {
                *slope += value;
            }
        }
    }
    Ok(cuts)
}

/// The weight of each opening of each unit. Where risk asks for more than probabilities, ranks
/// first tell each other the openings' values.
fn weigh<C: Backend>(
    work: &RankWork<'_, C>,
    ranks: &Ranks<'_, C>,
    shared: &TrainingState<'_, C>,
    units: &[UnitKey],
    level: usize,
) -> Result<Vec<Vec<f64>>, SddpError> {
    let problem = shared.problem;
    let mut parents: Vec<Option<Option<usize>>> = Vec::new();
    for unit in units {
        if parents.len() <= unit.pass {
            parents.push(shared.trial(unit.pass, level).map(|(parent, _)| parent));
        }
    }
    let probabilities = |unit: &UnitKey| -> Vec<f64> {
        let step = parents[unit.pass].and_then(|parent| edge(problem, parent, unit.node));
        let openings = &problem.nodes[unit.node].probabilities[unit.openings.clone()];
        openings
            .iter()
            .map(|probability| step.unwrap_or(0.0) * probability)
            .collect()
    };
    let mut weights: Vec<Vec<f64>> = units.iter().map(probabilities).collect();
    let risk = |pass: usize| match parents[pass] {
        Some(Some(node)) => problem.nodes[node].risk,
        _ => problem.risk,
    };
    if (0..parents.len()).all(|pass| risk(pass).is_expectation()) {
        return Ok(weights);
    }
    let width = 1 + problem.states.len();
    let mut mine = Vec::new();
    for unit in &work.backward[level] {
        mine.extend(lock(unit).answers.chunks(width).map(|answer| answer[0]));
    }
    let mut values = Vec::new();
    ranks.gather(
        units.len(),
        |unit| units[unit].openings.len(),
        &mine,
        &mut values,
    )?;
    let mut weighed = Vec::new();
    let mut start = 0;
    for group in units.chunk_by(|one, other| one.pass == other.pass) {
        let first = units
            .iter()
            .position(|unit| unit.pass == group[0].pass)
            .unwrap_or(0);
        let members = &mut weights[first..first + group.len()];
        let flat: Vec<f64> = members.iter().flatten().copied().collect();
        risk(group[0].pass).weights(&flat, &values[start..start + flat.len()], &mut weighed);
        start += flat.len();
        let mut rest = &weighed[..];
        for member in members {
            let (own, after) = rest.split_at(member.len());
            member.copy_from_slice(own);
            rest = after;
        }
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
