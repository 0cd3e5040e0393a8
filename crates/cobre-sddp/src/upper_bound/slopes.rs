//! Slopes that the cost to go of a node never exceeds, proved by directions of its successors' linear programs.
//!
//! If decisions can absorb one more unit of an incoming state by moving along a direction that every bound allows
//! without end, the cost to go rises by at most the cost of that direction, wherever it is. The cheapest direction is
//! the optimum of a linear program: that of the node with bounds that are finite at zero, and the outgoing state
//! priced at the slopes of its own cost to go. Where there is no such direction the slope is infinite, and nothing is
//! claimed.

use std::collections::HashSet;

use crate::fingerprint::Fingerprint;
use crate::lp::{in_place, least_costs};
use crate::problem::{Edge, LpColumn, LpRow, Problem, StateColumns, Template};
use crate::rank_work::TrainingState;
use crate::ranks::Backend;

/// The margin for the tolerances of the solver, relative to a slope.
const MARGIN: f64 = 1e-7;

/// The steps around a cycle in which slopes become smaller.
const ROUNDS: usize = 3;
/// The most steps in which slopes grow.
const MOST_STEPS: usize = 400;
/// The margin of slopes that have grown, relative to them.
const GROWTH: f64 = 1e-6;

/// By state, the most that the cost to go rises per unit: of a larger state, and of a smaller one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slopes {
    pub(super) up: Vec<f64>,
    pub(super) down: Vec<f64>,
}

impl Slopes {
    /// Those of a cost to go that no state changes.
    fn none(states: usize) -> Self {
        Self {
            up: vec![0.0; states],
            down: vec![0.0; states],
        }
    }

    /// True if there is one in every direction.
    pub(super) fn are_finite(&self) -> bool {
        self.up
            .iter()
            .chain(&self.down)
            .all(|slope| slope.is_finite())
    }

    /// Those of the terminal value of a node.
    fn terminal(problem: &Problem, node: usize) -> Self {
        let mut slopes = Self::none(problem.states.len());
        for cut in &problem.nodes[node].terminal {
            for (state, slope) in cut.gradient.iter().enumerate() {
                slopes.up[state] = slopes.up[state].max(*slope);
                slopes.down[state] = slopes.down[state].max(-slope);
            }
        }
        slopes
    }
}

/// The slopes of the cost to go of every node.
pub(super) fn of_nodes<C: Backend>(shared: &TrainingState<'_, C>) -> Vec<Slopes> {
    let (problem, graph) = (shared.problem, &shared.problem.graph);
    let mut slopes: Vec<Slopes> = (0..problem.nodes.len())
        .map(|node| Slopes::terminal(problem, node))
        .collect();
    // By node, the slopes of its own cost by the incoming state.
    let mut incoming: Vec<Option<Slopes>> = vec![None; problem.nodes.len()];
    for level in 1..graph.depth() {
        for node in (0..problem.nodes.len()).filter(|&node| graph.level(node) == level) {
            let own = following(graph.successors(node), problem.states.len(), |next| {
                incoming[next]
                    .get_or_insert_with(|| of_incoming(shared, next, &slopes[next]))
                    .clone()
            });
            slopes[node] = own;
        }
    }
    slopes
}

/// The same in a graph with cycles. Infinite slopes claim nothing and hold; what follows from slopes that hold, holds too.
pub(super) fn of_cycles<C: Backend>(shared: &TrainingState<'_, C>) -> Vec<Slopes> {
    let mut slopes = ends(shared.problem, f64::INFINITY);
    for _ in 0..ROUNDS {
        let mut next = step(shared, &slopes);
        least(&mut next, &slopes);
        if std::mem::replace(&mut slopes, next) == slopes {
            break;
        }
    }
    slopes
}

/// The same where states have ranges without an end: slopes that grow from zero, and that no further step exceeds, hold as
/// well. Those of all finite horizons are below them.
pub(super) fn of_endless_ranges<C: Backend>(shared: &TrainingState<'_, C>, known: &mut [Slopes]) {
    if let Some(grown) = grown(shared) {
        least(known, &grown);
    }
}

/// Slopes that grow from zero, with a margin that a further step stays within.
fn grown<C: Backend>(shared: &TrainingState<'_, C>) -> Option<Vec<Slopes>> {
    let mut slopes = ends(shared.problem, 0.0);
    for _ in 0..MOST_STEPS {
        let next = step(shared, &slopes);
        let stands = numbers(&slopes)
            .zip(numbers(&next))
            .all(|(old, new)| old == new || new - old <= 0.01 * GROWTH * (1.0 + new));
        slopes = next;
        if stands {
            break;
        }
    }
    for slope in slopes
        .iter_mut()
        .flat_map(|own| own.up.iter_mut().chain(&mut own.down))
    {
        *slope += GROWTH * (1.0 + *slope);
    }
    // Around a cycle, if not in one step: a step without a discount leaves no room for the margin of the solver.
    let mut next = slopes.clone();
    let mut around = (0..=slopes.len()).map(|_| {
        next = step(shared, &next);
        let mut pairs = numbers(&next).zip(numbers(&slopes));
        pairs.all(|(next, own)| next <= own)
    });
    around.any(|holds| holds).then_some(slopes)
}

/// All slopes, one after the other.
fn numbers(slopes: &[Slopes]) -> impl Iterator<Item = f64> {
    slopes
        .iter()
        .flat_map(|own| own.up.iter().chain(&own.down))
        .copied()
}

/// The smaller slopes of both.
fn least(slopes: &mut [Slopes], others: &[Slopes]) {
    for (own, other) in slopes.iter_mut().zip(others) {
        for (own, other) in [(&mut own.up, &other.up), (&mut own.down, &other.down)] {
            for (slope, other) in own.iter_mut().zip(other) {
                *slope = slope.min(*other);
            }
        }
    }
}

/// The slopes of the nodes that nothing follows, and this one for all others.
fn ends(problem: &Problem, other: f64) -> Vec<Slopes> {
    let states = problem.states.len();
    let of_node = |node: usize| {
        if problem.has_successors(node) {
            Slopes {
                up: vec![other; states],
                down: vec![other; states],
            }
        } else {
            Slopes::terminal(problem, node)
        }
    };
    (0..problem.nodes.len()).map(of_node).collect()
}

/// The slopes of all nodes, where these are the slopes of what follows them; those of later nodes are new already.
fn step<C: Backend>(shared: &TrainingState<'_, C>, before: &[Slopes]) -> Vec<Slopes> {
    let (problem, graph) = (shared.problem, &shared.problem.graph);
    let mut slopes = before.to_vec();
    let mut incoming: Vec<Option<Slopes>> = vec![None; problem.nodes.len()];
    for node in (0..problem.nodes.len()).rev() {
        if problem.has_successors(node) {
            slopes[node] = following(graph.successors(node), problem.states.len(), |next| {
                incoming[next]
                    .get_or_insert_with(|| of_incoming(shared, next, &slopes[next]))
                    .clone()
            });
            incoming[node] = None;
        }
    }
    slopes
}

/// The slopes of a node with these successors, given those of a successor's cost by its incoming state.
fn following(edges: &[Edge], states: usize, mut incoming: impl FnMut(usize) -> Slopes) -> Slopes {
    let mut own = Slopes::none(states);
    let discount: f64 = edges.iter().map(|edge| edge.probability).sum();
    for edge in edges {
        let of_next = incoming(edge.node);
        for (into, found) in [(&mut own.up, &of_next.up), (&mut own.down, &of_next.down)] {
            for (slope, next) in into.iter_mut().zip(found) {
                *slope = slope.max(discount.min(1.0) * next);
            }
        }
    }
    own
}

/// The slopes of a node's cost, its cost to go included, by its incoming state: the largest of all openings.
fn of_incoming<C: Backend>(shared: &TrainingState<'_, C>, node: usize, future: &Slopes) -> Slopes {
    let view = shared.view(node);
    let count = shared.problem.states.len();
    let zero = vec![0.0; count];
    let mut slopes = Slopes::none(count);
    let mut seen = HashSet::new();
    for opening in 0..shared.problem.nodes[node].probabilities.len() {
        let lp = directions(&in_place(&view, &zero, opening), future);
        // Most openings change nothing but right-hand sides.
        if !seen.insert(Fingerprint::of(&lp).to_string()) {
            continue;
        }
        let columns: Vec<usize> = lp.states.iter().map(|state| state.incoming).collect();
        for (into, sign) in [(&mut slopes.up, 1.0), (&mut slopes.down, -1.0)] {
            let costs = least_costs(&lp, &columns, sign);
            for (slope, cost) in into.iter_mut().zip(costs) {
                // A gain is not counted: both directions of a state together must not gain.
                *slope = slope.max(cost + MARGIN * cost.abs());
            }
        }
    }
    slopes
}

/// The linear program whose solutions are directions of the one given, with the cost of the future by its slopes.
fn directions(own: &Template, future: &Slopes) -> Template {
    let mut lp = own.clone();
    lp.constant = 0.0;
    let open = |lower: &mut f64, upper: &mut f64| {
        for bound in [lower, upper] {
            if bound.is_finite() {
                *bound = 0.0;
            }
        }
    };
    for column in &mut lp.columns {
        open(&mut column.lower, &mut column.upper);
        column.name.clear();
    }
    for row in &mut lp.rows {
        open(&mut row.lower, &mut row.upper);
        row.name.clear();
    }
    for (number, &StateColumns { outgoing, .. }) in own.states.iter().enumerate() {
        let mut terms = vec![(outgoing, 1.0)];
        for (slope, sign) in [(future.up[number], -1.0), (future.down[number], 1.0)] {
            if slope.is_finite() {
                terms.push((lp.columns.len(), sign));
                lp.columns.push(LpColumn {
                    name: String::new(),
                    cost: slope,
                    lower: 0.0,
                    upper: f64::INFINITY,
                });
            }
        }
        lp.rows.push(LpRow {
            name: String::new(),
            lower: 0.0,
            upper: 0.0,
            terms,
        });
    }
    lp
}
