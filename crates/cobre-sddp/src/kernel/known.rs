//! Which columns are known before a solve: incoming states, columns that are fixed, and columns
//! that an equality row gives from those. Inflow lags are of this kind.

use super::linear::Linear;
use super::program::{Guard, Refusal};
use crate::lp::NodeView;
use crate::problem::Template;

/// What stands for a bound that an opening takes away.
const NEVER: f64 = 1e30;

/// A row of the template, with bounds that may depend on the opening.
pub(super) struct GroundRow {
    pub(super) terms: Vec<(usize, f64)>,
    /// Whether both bounds are one number, whatever the opening.
    pub(super) equality: bool,
    pub(super) has_lower: bool,
    pub(super) has_upper: bool,
    pub(super) lower: Linear,
    pub(super) upper: Linear,
}

/// A node's template with what its openings change as parameters.
pub(super) struct Ground<'a> {
    pub(super) template: &'a Template,
    view: NodeView<'a>,
    /// Openings, those of validation scenarios among them.
    openings: usize,
    pub(super) rows: Vec<GroundRow>,
    pub(super) costs: Vec<f64>,
    pub(super) constant: Linear,
    /// The place of each parameter among the values of an opening.
    pub(super) parameters: Vec<usize>,
    /// For columns whose bounds openings change, the places of the two.
    bounds: Vec<Option<(usize, usize)>>,
}

impl<'a> Ground<'a> {
    pub(super) fn new(view: &NodeView<'a>) -> Result<Self, Refusal> {
        let problem = view.problem;
        let (node, template) = (&problem.nodes[view.node], problem.template(view.node));
        let steps = problem.validation.iter().flatten();
        let openings = steps
            .filter(|step| step.node == view.node)
            .map(|step| step.opening + 1)
            .fold(node.probabilities.len(), usize::max);
        let places = &node.places;
        let (rows, columns) = (places.rows.len(), places.columns.len());
        let mut bounds = vec![None; template.columns.len()];
        for (at, &column) in places.columns.iter().enumerate() {
            bounds[column] = Some((2 * rows + at, 2 * rows + columns + at));
        }
        let mut ground = Self {
            template,
            view: view.clone(),
            openings,
            rows: Vec::new(),
            costs: template.columns.iter().map(|column| column.cost).collect(),
            constant: Linear::default(),
            parameters: Vec::new(),
            bounds,
        };
        let first_cost = 2 * (rows + columns);
        for (at, &column) in places.costs.iter().enumerate() {
            let cost = ground.common(first_cost + at).ok_or(Refusal::Costs)?;
            ground.costs[column] = cost;
        }
        let first_coefficient = first_cost + places.costs.len();
        let mut changed = Vec::new();
        for (at, &entry) in places.coefficients.iter().enumerate() {
            let value = ground.common(first_coefficient + at);
            changed.push((entry, value.ok_or(Refusal::Coefficients)?));
        }
        ground.constant = ground.number(places.width() - 1);
        for number in 0..template.rows.len() {
            let row = ground.row(number, &changed);
            ground.rows.push(row);
        }
        Ok(ground)
    }

    fn row(&mut self, number: usize, changed: &[((usize, usize), f64)]) -> GroundRow {
        let row = &self.template.rows[number];
        let mut terms = row.terms.clone();
        for &((column, _), value) in changed.iter().filter(|((_, row), _)| *row == number) {
            terms.retain(|term| term.0 != column);
            terms.push((column, value));
        }
        terms.retain(|term| term.1 != 0.0);
        terms.sort_unstable_by_key(|term| term.0);
        let rows = &self.view.problem.nodes[self.view.node].places.rows;
        let count = rows.len();
        let Ok(at) = rows.binary_search(&number) else {
            return GroundRow {
                terms,
                equality: row.lower == row.upper,
                has_lower: row.lower.is_finite(),
                has_upper: row.upper.is_finite(),
                lower: Linear::constant(row.lower),
                upper: Linear::constant(row.upper),
            };
        };
        let all = |test: fn(f64, f64) -> bool| {
            (0..self.openings)
                .all(|opening| test(self.raw(opening, at), self.raw(opening, count + at)))
        };
        GroundRow {
            equality: all(|lower, upper| lower == upper),
            has_lower: !all(|lower, _| lower == f64::NEG_INFINITY),
            has_upper: !all(|_, upper| upper == f64::INFINITY),
            terms,
            lower: self.number(at),
            upper: self.number(count + at),
        }
    }

    fn raw(&self, opening: usize, at: usize) -> f64 {
        let problem = self.view.problem;
        problem.opening(self.view.values, self.view.node, opening)[at]
    }

    /// The value at this place if all openings have the same there.
    fn common(&self, at: usize) -> Option<f64> {
        let first = self.raw(0, at);
        let same = (1..self.openings).all(|opening| self.raw(opening, at) == first);
        same.then_some(first)
    }

    /// The value at this place of an opening: a constant if it is one, else a parameter.
    fn number(&mut self, at: usize) -> Linear {
        if let Some(value) = self.common(at) {
            return Linear::constant(value);
        }
        let known = self.parameters.iter().position(|&other| other == at);
        let number = known.unwrap_or_else(|| {
            self.parameters.push(at);
            self.parameters.len() - 1
        });
        Linear::parameter(self.view.problem.states.len() + number)
    }

    /// The bounds of a column.
    pub(super) fn column_bounds(&mut self, column: usize) -> (Linear, Linear) {
        let Some((lower, upper)) = self.bounds[column] else {
            let column = &self.template.columns[column];
            return (
                Linear::constant(column.lower),
                Linear::constant(column.upper),
            );
        };
        (self.number(lower), self.number(upper))
    }

    /// The widest bounds a column has in any opening.
    pub(super) fn widest_bounds(&self, column: usize) -> (f64, f64) {
        let Some((lower, upper)) = self.bounds[column] else {
            let column = &self.template.columns[column];
            return (column.lower, column.upper);
        };
        let all = |at: usize| (0..self.openings).map(move |opening| self.raw(opening, at));
        (
            all(lower).fold(f64::INFINITY, f64::min),
            all(upper).fold(f64::NEG_INFINITY, f64::max),
        )
    }

    /// The value of a column whose bounds are one number in every opening.
    fn fixed(&mut self, column: usize) -> Option<Linear> {
        let Some((lower, upper)) = self.bounds[column] else {
            let column = &self.template.columns[column];
            return (column.lower == column.upper).then(|| Linear::constant(column.lower));
        };
        let same = |opening| self.raw(opening, lower) == self.raw(opening, upper);
        (0..self.openings).all(same).then(|| self.number(lower))
    }
}

/// The value of a parameter, given what an opening has at its place: a bound that is infinite stands at [`NEVER`].
/// Every finite number of a problem is far below it (`crate::problem::LARGEST`).
pub(super) fn parameter(value: f64) -> f64 {
    value.clamp(-NEVER, NEVER)
}

/// The columns that are known.
pub(super) struct Known {
    /// By column of the template.
    pub(super) values: Vec<Option<Linear>>,
    /// Rows that have made a column known.
    pub(super) used_rows: Vec<bool>,
    /// Those rows in the order they did, each with its column.
    pub(super) given: Vec<(usize, usize)>,
    /// The bounds of columns that rows have made known.
    pub(super) guards: Vec<Guard>,
}

impl Known {
    pub(super) fn find(ground: &mut Ground<'_>) -> Self {
        let template = ground.template;
        let mut values = vec![None; template.columns.len()];
        for (state, at) in template.states.iter().enumerate() {
            values[at.incoming] = Some(Linear::parameter(state));
        }
        for (column, value) in values.iter_mut().enumerate() {
            if value.is_none() {
                *value = ground.fixed(column);
            }
        }
        let mut known = Self {
            values,
            used_rows: vec![false; ground.rows.len()],
            given: Vec::new(),
            guards: Vec::new(),
        };
        while known.one_more(ground) {}
        known
    }

    /// Looks for rows that give one column each from known ones.
    fn one_more(&mut self, ground: &Ground<'_>) -> bool {
        let mut found = false;
        for (number, row) in ground.rows.iter().enumerate() {
            if self.used_rows[number] || !row.equality {
                continue;
            }
            let mut unknown = row
                .terms
                .iter()
                .filter(|term| self.values[term.0].is_none());
            let (Some(&(column, coefficient)), None) = (unknown.next(), unknown.next()) else {
                continue;
            };
            if ground.bounds[column].is_some() {
                continue;
            }
            let mut value = row.lower.times(1.0 / coefficient);
            for &(other, factor) in &row.terms {
                if let Some(known) = &self.values[other] {
                    value.add(-factor / coefficient, known);
                }
            }
            let (lower, upper) = ground.widest_bounds(column);
            if lower.is_finite() || upper.is_finite() {
                self.guards.push(Guard {
                    what: value.clone(),
                    lower,
                    upper,
                });
            }
            self.values[column] = Some(value);
            self.used_rows[number] = true;
            self.given.push((number, column));
            found = true;
        }
        found
    }
}
