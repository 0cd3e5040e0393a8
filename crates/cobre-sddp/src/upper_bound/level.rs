//! The work of an upper bound at one level: successors at the states that the nodes of the level were left in.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use super::inner::InnerProblem;
use crate::lp::{Detail, HighsBasis, HighsNode, NodeSolution, NodeView, Visit};
use crate::policy::Cuts;
use crate::problem::Problem;
use crate::rank_work::TrainingState;
use crate::ranks::Backend;
use crate::team::lock;

/// Consecutive points of a unit, each warm-started from the basis of the one before.
const POINTS_PER_UNIT: usize = 8;
/// No linear program is written here: one without a solution means that nothing bounds its point.
const NOWHERE: &str = "/dev/null/none";

/// A state at which an upper bound is wanted, left by a node or by the root.
#[derive(Debug, Clone)]
pub(super) struct InnerPoint {
    pub(super) parent: Option<usize>,
    pub(super) state: Vec<f64>,
}

/// A unit: a successor at some consecutive points of one parent.
#[derive(Debug, Clone)]
pub(super) struct InnerUnit {
    node: usize,
    points: Range<usize>,
}

/// All units of a level, the same list on every rank.
pub(super) struct LevelPlan {
    pub(super) units: Vec<InnerUnit>,
}

impl LevelPlan {
    pub(super) fn new(problem: &Problem, points: &[InnerPoint]) -> Self {
        let mut units = Vec::new();
        let mut start = 0;
        for group in points.chunk_by(|one, other| one.parent == other.parent) {
            let end = start + group.len();
            for edge in edges(problem, group[0].parent) {
                for first in (start..end).step_by(POINTS_PER_UNIT) {
                    units.push(InnerUnit {
                        node: edge.node,
                        points: first..end.min(first + POINTS_PER_UNIT),
                    });
                }
            }
            start = end;
        }
        Self { units }
    }

    /// The values of a unit: one for each point and opening.
    pub(super) fn width(&self, problem: &Problem, unit: usize) -> usize {
        let unit = &self.units[unit];
        unit.points.len() * problem.nodes[unit.node].probabilities.len()
    }

    /// The risk-adjusted value at each point, given those of all units; infinite where nothing bounds it.
    pub(super) fn combine(
        &self,
        problem: &Problem,
        points: &[InnerPoint],
        values: &[f64],
    ) -> Vec<f64> {
        let mut outcomes: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); points.len()];
        let mut rest = values;
        for (number, unit) in self.units.iter().enumerate() {
            let (own, after) = rest.split_at(self.width(problem, number));
            rest = after;
            let openings = &problem.nodes[unit.node].probabilities;
            for (point, costs) in unit.points.clone().zip(own.chunks(openings.len())) {
                let edges = edges(problem, points[point].parent).iter();
                let step = edges.filter(|edge| edge.node == unit.node);
                let step: f64 = step.map(|edge| edge.probability).sum();
                let (probabilities, all) = &mut outcomes[point];
                probabilities.extend(openings.iter().map(|opening| step * opening));
                all.extend_from_slice(costs);
            }
        }
        let mut weights = Vec::new();
        let adjusted = points
            .iter()
            .zip(outcomes)
            .map(|(point, (chances, costs))| {
                let risk = match point.parent {
                    Some(node) => problem.nodes[node].risk,
                    None => problem.risk,
                };
                let mut possible = chances
                    .iter()
                    .zip(&costs)
                    .filter(|(chance, _)| **chance > 0.0);
                if possible.any(|(_, cost)| !cost.is_finite()) {
                    return f64::INFINITY;
                }
                risk.weights(&chances, &costs, &mut weights);
                let terms = weights
                    .iter()
                    .zip(&costs)
                    .filter(|(weight, _)| **weight != 0.0);
                terms.map(|(weight, cost)| weight * cost).sum()
            });
        adjusted.collect()
    }
}

/// The steps from a node, or from the root.
fn edges(problem: &Problem, parent: Option<usize>) -> &[crate::problem::Edge] {
    let graph = &problem.graph;
    parent.map_or(&graph.root[..], |node| graph.successors(node))
}

/// The units of this rank at one level, with their values.
#[derive(Default)]
pub(crate) struct InnerLevel {
    points: Vec<InnerPoint>,
    /// By node.
    inner: Vec<Option<InnerProblem>>,
    units: Vec<(InnerUnit, Mutex<Vec<f64>>)>,
}

impl InnerLevel {
    pub(super) fn new(points: Vec<InnerPoint>, inner: Vec<Option<InnerProblem>>) -> Self {
        Self {
            points,
            inner,
            units: Vec::new(),
        }
    }

    /// Sets the units of the next batch.
    pub(super) fn set_units(&mut self, units: &[InnerUnit]) {
        let units = units.iter().map(|unit| (unit.clone(), Mutex::default()));
        self.units = units.collect();
    }

    pub(crate) fn count_units(&self) -> usize {
        self.units.len()
    }

    /// The values of the units, one after the other.
    pub(super) fn values(&self) -> Vec<f64> {
        let units = self.units.iter();
        units.flat_map(|(_, values)| lock(values).clone()).collect()
    }

    /// The points and the inner approximations.
    pub(super) fn take(self) -> (Vec<InnerPoint>, Vec<Option<InnerProblem>>) {
        (self.points, self.inner)
    }

    /// Solves a unit; returns the number of linear programs.
    pub(crate) fn solve<C: Backend>(&self, shared: &TrainingState<'_, C>, unit: usize) -> u64 {
        let (unit, values) = &self.units[unit];
        let problem = shared.problem;
        let openings = problem.nodes[unit.node].probabilities.len();
        let mut found = Vec::with_capacity(unit.points.len() * openings);
        let inner = self.inner[unit.node].as_ref();
        // Without points nothing bounds what follows.
        if inner.is_some() || !problem.has_successors(unit.node) {
            self.solve_points(shared, unit, inner, &mut found);
        }
        found.resize(unit.points.len() * openings, f64::INFINITY);
        let solved = found.iter().filter(|value| value.is_finite()).count();
        *lock(values) = found;
        solved as u64
    }

    fn solve_points<C: Backend>(
        &self,
        shared: &TrainingState<'_, C>,
        unit: &InnerUnit,
        inner: Option<&InnerProblem>,
        found: &mut Vec<f64>,
    ) {
        let own = shared.view(unit.node);
        let view = match inner {
            Some(inner) => NodeView {
                problem: &inner.problem,
                values: own.values,
                given: None,
                node: 0,
                cuts: Cuts::none(&inner.problem.templates[0].states),
                failures: Path::new(NOWHERE),
            },
            None => NodeView {
                failures: Path::new(NOWHERE),
                ..own
            },
        };
        let shift = inner.map_or(0.0, |inner| inner.shift);
        let openings = view.problem.nodes[view.node].probabilities.len();
        let Ok(mut solver) = HighsNode::load_tight(&view) else {
            return;
        };
        let mut basis = HighsBasis::default();
        for point in unit.points.clone() {
            let end = found.len() + openings;
            let visit = Visit {
                incoming: &self.points[point].state,
                openings: 0..openings,
                detail: Detail::State,
            };
            let keep = &mut |_: usize, answer: &NodeSolution| {
                found.push(answer.cost + answer.future + shift);
            };
            if solver.solve(&view, &visit, &mut basis, keep).is_err() {
                basis = HighsBasis::default();
            }
            found.resize(end, f64::INFINITY);
        }
    }
}
