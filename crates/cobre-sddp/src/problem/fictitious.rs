//! Fictitious cost: prices that keep a cost to go convex, and that nobody pays.
//!
//! It is part of every linear program and cut, and of no figure that people see: what a path costs is without
//! it, and so is the bound, by its mean.

use super::Problem;
use super::template::Template;

/// The mean of the fictitious cost of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Fictitious {
    /// The mean, discounted.
    pub mean: f64,
    /// Its standard error; 0 if it is exact.
    pub standard_error: f64,
}

/// A column that lifts the left-hand side of a row to zero, at a price that nobody pays: its value is what the
/// row's bound and the incoming state lack to zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lift {
    row: usize,
    price: f64,
    /// The row's terms of incoming states, by number of the state.
    terms: Vec<(usize, f64)>,
}

impl Lift {
    /// The lifts of a template whose states are known.
    pub(super) fn of(template: &Template) -> Vec<Self> {
        let lifts = template.fictitious.iter().map(|&(column, row)| {
            let state = |column: usize| {
                let mut states = template.states.iter();
                states.position(|state| state.incoming == column)
            };
            let terms = template.rows[row].terms.iter();
            Self {
                row,
                price: template.columns[column].cost,
                terms: terms
                    .filter_map(|&(column, factor)| Some((state(column)?, factor)))
                    .collect(),
            }
        });
        lifts.collect()
    }
}

impl Problem {
    /// The fictitious cost of `node` under the values of an opening.
    pub(crate) fn fictitious_cost(&self, values: &[f64], node: usize, incoming: &[f64]) -> f64 {
        let lifts = &self.lifts[self.nodes[node].template];
        if lifts.is_empty() {
            return 0.0;
        }
        let places = &self.nodes[node].places;
        let parts = places.split(values);
        let costs = lifts.iter().map(|lift| {
            let own = self.template(node).rows[lift.row].lower;
            let changed = places.rows.binary_search(&lift.row);
            let drawn = changed.map_or(own, |at| parts.row_lower[at]);
            let past = lift.terms.iter();
            let past: f64 = past.map(|(state, factor)| factor * incoming[*state]).sum();
            lift.price * (past - drawn).max(0.0)
        });
        costs.sum()
    }
}
