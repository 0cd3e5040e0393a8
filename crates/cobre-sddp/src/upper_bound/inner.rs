//! The linear program of a node with an inner approximation of its cost to go.

use super::slopes::Slopes;
use crate::problem::{Fictitious, Graph, LpColumn, LpRow, PathSources, Problem, Template};

/// A problem of one node: its linear program, with weights of states in the place of the cost to go.
///
/// The outgoing state is a convex combination of states with known upper bounds, plus what moves it up or down at the
/// slopes of the cost to go. The cost to go is the combination of the bounds and the cost of moving.
#[derive(Debug)]
pub(super) struct InnerProblem {
    pub(super) problem: Problem,
    /// Part of the cost that is the same for all weights.
    pub(super) shift: f64,
}

impl InnerProblem {
    /// The approximation from these states and the bounds at them, which are finite; there is at least one.
    pub(super) fn new(
        problem: &Problem,
        node: usize,
        states: &[(&[f64], f64)],
        slopes: &Slopes,
    ) -> Self {
        let shift = states.iter().map(|(_, value)| *value);
        let shift = shift.fold(f64::INFINITY, f64::min);
        let template = template(problem.template(node), states, shift, slopes);
        let mut own = problem.nodes[node].clone();
        own.template = 0;
        own.terminal.clear();
        let graph = Graph::single();
        let problem = Problem {
            sense: problem.sense,
            states: problem.states.clone(),
            templates: vec![template],
            nodes: vec![own],
            graph,
            risk: problem.risk,
            values: Vec::new(),
            validation: Vec::new(),
            given: Vec::new(),
            paths: PathSources::default(),
            fictitious: Fictitious::default(),
            lifts: vec![Vec::new()],
        };
        Self { problem, shift }
    }
}

fn template(own: &Template, states: &[(&[f64], f64)], shift: f64, slopes: &Slopes) -> Template {
    let mut lp = own.clone();
    let column = |cost: f64| LpColumn {
        name: String::new(),
        cost,
        lower: 0.0,
        upper: f64::INFINITY,
    };
    let weights = lp.columns.len();
    lp.columns
        .extend(states.iter().map(|(_, value)| column(value - shift)));
    for (number, state) in own.states.iter().enumerate() {
        let mut terms = vec![(state.outgoing, 1.0)];
        for (place, (point, _)) in states.iter().enumerate() {
            if point[number] != 0.0 {
                terms.push((weights + place, -point[number]));
            }
        }
        for (slope, sign) in [(slopes.up[number], -1.0), (slopes.down[number], 1.0)] {
            if slope.is_finite() {
                terms.push((lp.columns.len(), sign));
                lp.columns.push(column(slope));
            }
        }
        lp.rows.push(LpRow {
            name: String::new(),
            lower: 0.0,
            upper: 0.0,
            terms,
        });
    }
    lp.rows.push(LpRow {
        name: String::new(),
        lower: 1.0,
        upper: 1.0,
        terms: (0..states.len())
            .map(|place| (weights + place, 1.0))
            .collect(),
    });
    lp
}
