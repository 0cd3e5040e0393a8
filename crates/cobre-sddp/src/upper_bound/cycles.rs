//! Upper bounds on a graph with cycles: value iteration over inner approximations.
//!
//! Solving all nodes with inner approximations from bounds at their states gives new bounds; the true costs to go are never
//! above the fixed point of that operator T, which is a monotone contraction. If T raises the bounds of node n by at most
//! δ(n), and shifts c satisfy c ≥ δ + R(c), where R(c) is the risk-adjusted shift of what follows, discounted, then bounds
//! raised by c are raised no more by T: measures of risk are subadditive. So T(bounds) + R(c) holds after every round,
//! however few there are, and further rounds make it smaller.

use super::inner::InnerProblem;
use super::level::InnerPoint;
use super::{BatchSize, Fixed};
use crate::error::SddpError;
use crate::events::Observer;
use crate::problem::{Edge, Problem};
use crate::ranks::Backend;
use crate::training::Trainer;

/// The most rounds of an evaluation. What they leave out makes the bound larger, not wrong.
const MOST_ROUNDS: usize = 200;
/// The change of bounds, relative to the largest, that ends the rounds.
const SETTLED: f64 = 1e-8;
/// The most rounds in which shifts are found, each a sum per node.
const MOST_SUMS: usize = 100_000;
/// The change of shifts, relative to the largest, that ends these.
const EXACT: f64 = 1e-9;

/// A bound at a state.
type PointBound = (InnerPoint, f64);

/// The inner approximation of each node that has bounds.
pub(super) fn approximations(
    problem: &Problem,
    fixed: &Fixed,
    bounds: &[PointBound],
) -> Vec<Option<InnerProblem>> {
    let of_node = |node: usize| {
        let own = bounds
            .iter()
            .filter(|(point, _)| point.parent == Some(node));
        let own: Vec<(&[f64], f64)> = own
            .map(|(point, value)| (&point.state[..], *value))
            .collect();
        let there = !own.is_empty();
        there.then(|| InnerProblem::new(problem, node, &own, &fixed.slopes[node]))
    };
    (0..problem.nodes.len()).map(of_node).collect()
}

impl<C: Backend> Trainer<'_, '_, '_, C> {
    /// The inner approximations of the nodes of a graph with cycles, from at most `most` visited states of each. None if a
    /// rank was asked to end.
    pub(super) fn approximate_cycles(
        &mut self,
        fixed: &Fixed,
        most: usize,
        batches: &mut BatchSize,
        observer: &mut dyn Observer,
    ) -> Result<Option<Vec<Option<InnerProblem>>>, SddpError> {
        let problem = self.work.read().problem;
        let points = self.points(fixed, 1, most);
        let mut bounds = self.by_cuts(points);
        let (mut rounds, mut holds) = (0, false);
        let steps = steps(problem);
        while rounds < MOST_ROUNDS && !bounds.is_empty() && steps.is_some() {
            let inner = approximations(problem, fixed, &bounds);
            let points = bounds.iter().map(|(point, _)| point.clone()).collect();
            let Some((found, _)) = self.values_at(points, inner, batches, observer)? else {
                return Ok(None);
            };
            rounds += 1;
            if found.iter().any(|(_, value)| !value.is_finite()) {
                // Nothing bounds these: the others have to do without them.
                bounds = found;
                bounds.retain(|(_, value)| value.is_finite());
                (rounds, holds) = (0, false);
                continue;
            }
            let shifts = steps
                .as_ref()
                .and_then(|steps| shifts(problem, steps, &raised(problem, &bounds, &found)));
            let Some(shifts) = shifts else {
                break;
            };
            let after = found.into_iter().map(|(point, value)| {
                let shift = point.parent.map_or(0.0, |node| shifts[node]);
                (point, value + shift)
            });
            let after: Vec<PointBound> = after.collect();
            let settled = settled(&bounds, &after);
            bounds = after;
            holds = true;
            if settled {
                break;
            }
        }
        if !holds {
            bounds.clear();
        }
        Ok(Some(approximations(problem, fixed, &bounds)))
    }

    /// The values of the cuts in use at these states: where rounds begin.
    fn by_cuts(&self, points: Vec<InnerPoint>) -> Vec<PointBound> {
        let shared = self.work.read();
        let of_point = |point: InnerPoint| {
            let value = point.parent.map_or(0.0, |node| {
                let cuts = shared.pool.cuts(shared.problem, node);
                let values = cuts.slots().iter();
                let values = values.map(|&slot| cuts.value(slot, &point.state));
                values.fold(f64::NEG_INFINITY, f64::max)
            });
            (point, if value.is_finite() { value } else { 0.0 })
        };
        points.into_iter().map(of_point).collect()
    }
}

/// The most by which the bounds of each node rise; no change where it has none.
fn raised(problem: &Problem, before: &[PointBound], after: &[PointBound]) -> Vec<f64> {
    let mut most = vec![f64::NEG_INFINITY; problem.nodes.len()];
    for ((point, before), (_, after)) in before.iter().zip(after) {
        if let Some(node) = point.parent {
            most[node] = most[node].max(after - before);
        }
    }
    let known = |change: f64| if change.is_finite() { change } else { 0.0 };
    most.into_iter().map(known).collect()
}

/// True if no bound has changed by much.
fn settled(before: &[PointBound], after: &[PointBound]) -> bool {
    let largest = after
        .iter()
        .fold(1.0, |most, (_, value)| value.abs().max(most));
    let mut pairs = before.iter().zip(after);
    pairs.all(|((_, before), (_, after))| (after - before).abs() <= SETTLED * largest)
}

/// The risk-adjusted shift of what follows a node, discounted.
fn following(problem: &Problem, node: usize, shifts: &[f64]) -> f64 {
    let edges: &[Edge] = problem.graph.successors(node);
    let probabilities: Vec<f64> = edges.iter().map(|edge| edge.probability).collect();
    let of_edges: Vec<f64> = edges.iter().map(|edge| shifts[edge.node]).collect();
    let mut weights = Vec::new();
    let risk = problem.nodes[node].risk;
    risk.weights(&probabilities, &of_edges, &mut weights);
    let terms = weights.iter().zip(&of_edges);
    terms.map(|(weight, shift)| weight * shift).sum()
}

/// δ + R(c), for all nodes that something follows.
fn sum(problem: &Problem, raised: &[f64], shifts: &[f64]) -> Vec<f64> {
    let nodes = raised.iter().enumerate();
    let sums = nodes.map(|(node, raised)| {
        if problem.has_successors(node) {
            raised + following(problem, node, shifts)
        } else {
            0.0
        }
    });
    sums.collect()
}

fn largest_difference(one: &[f64], other: &[f64]) -> f64 {
    let differences = one
        .iter()
        .zip(other)
        .map(|(one, other)| (one - other).abs());
    differences.fold(0.0, f64::max)
}

/// Shifts e ≥ 1/2 + R(e): about the steps that paths go on for, under the worst weights. None if they have hardly an end.
fn steps(problem: &Problem) -> Option<Vec<f64>> {
    let raised = vec![1.0; problem.nodes.len()];
    let mut steps = vec![0.0; problem.nodes.len()];
    for _ in 0..MOST_SUMS {
        let next = sum(problem, &raised, &steps);
        let change = largest_difference(&next, &steps);
        steps = next;
        if change <= 0.4 {
            return Some(steps);
        }
    }
    None
}

/// R(c) of shifts c ≥ δ + R(c).
fn shifts(problem: &Problem, steps: &[f64], raised: &[f64]) -> Option<Vec<f64>> {
    let mut shifts = raised.to_vec();
    let mut next = sum(problem, raised, &shifts);
    for _ in 0..MOST_SUMS {
        let change = largest_difference(&next, &shifts);
        let largest = next.iter().fold(0.0_f64, |most, own| most.max(own.abs()));
        if !change.is_finite() {
            return None;
        }
        if change <= EXACT * largest {
            break;
        }
        shifts = next;
        next = sum(problem, raised, &shifts);
    }
    let short = next.iter().zip(&shifts).map(|(next, own)| next - own);
    let short = 2.0 * short.fold(0.0, f64::max);
    for (shift, steps) in shifts.iter_mut().zip(steps) {
        *shift += short * steps;
    }
    let none = vec![0.0; shifts.len()];
    Some(sum(problem, &none, &shifts))
}
