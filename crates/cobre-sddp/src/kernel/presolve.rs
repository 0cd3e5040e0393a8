//! Presolve: removes the columns whose values are known before a solve: incoming states, fixed
//! columns, and columns that an equality row determines from those. The lags of PAR(p) inflows are
//! of this kind, and on nodes with sparse factors inflows that are truncated at zero.

use super::affine::{Affine, DERIVED};
use super::reduced_lp::FeasibilityCheck;
use crate::lp::NodeView;
use crate::problem::Template;

/// The value of an infinite bound.
const NEVER: f64 = 1e30;

/// A row of the template, with bounds that may depend on the opening.
pub(super) struct ParametricRow {
    pub(super) terms: Vec<(usize, f64)>,
    /// True if the bounds are equal in every opening.
    pub(super) equality: bool,
    pub(super) has_lower: bool,
    pub(super) has_upper: bool,
    pub(super) lower: Affine,
    pub(super) upper: Affine,
}

/// The template of a node, with the values that its openings change as parameters.
pub(super) struct ParametricTemplate<'a> {
    pub(super) template: &'a Template,
    view: NodeView<'a>,
    /// The number of openings, steps of given paths and ranges.
    openings: usize,
    pub(super) rows: Vec<ParametricRow>,
    pub(super) costs: Vec<f64>,
    pub(super) constant: Affine,
    /// The index of each parameter among the values of an opening.
    pub(super) parameters: Vec<usize>,
    /// For columns whose bounds openings change, the indices of the two.
    bounds: Vec<Option<(usize, usize)>>,
}

impl<'a> ParametricTemplate<'a> {
    /// The parametric template of a node; `None` if openings change costs or coefficients.
    pub(super) fn new(view: &NodeView<'a>) -> Option<Self> {
        let problem = view.problem;
        let (node, template) = (&problem.nodes[view.node], problem.template(view.node));
        let places = &node.places;
        let (rows, columns) = (places.rows.len(), places.columns.len());
        let mut bounds = vec![None; template.columns.len()];
        for (at, &column) in places.columns.iter().enumerate() {
            bounds[column] = Some((2 * rows + at, 2 * rows + columns + at));
        }
        let mut source = Self {
            template,
            view: view.clone(),
            openings: node.value_rows,
            rows: Vec::new(),
            costs: template.columns.iter().map(|column| column.cost).collect(),
            constant: Affine::default(),
            parameters: Vec::new(),
            bounds,
        };
        let first_cost = 2 * (rows + columns);
        for (at, &column) in places.costs.iter().enumerate() {
            source.costs[column] = source.common(first_cost + at)?;
        }
        let first_coefficient = first_cost + places.costs.len();
        let mut changed = Vec::new();
        for (at, &entry) in places.coefficients.iter().enumerate() {
            changed.push((entry, source.common(first_coefficient + at)?));
        }
        source.constant = source.number(places.width() - 1);
        for number in 0..template.rows.len() {
            let row = source.row(number, &changed);
            source.rows.push(row);
        }
        Some(source)
    }

    fn row(&mut self, number: usize, changed: &[((usize, usize), f64)]) -> ParametricRow {
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
            return ParametricRow {
                terms,
                equality: row.lower == row.upper,
                has_lower: row.lower.is_finite(),
                has_upper: row.upper.is_finite(),
                lower: Affine::constant(row.lower),
                upper: Affine::constant(row.upper),
            };
        };
        let all = |test: fn(f64, f64) -> bool| {
            (0..self.openings)
                .all(|opening| test(self.raw(opening, at), self.raw(opening, count + at)))
        };
        ParametricRow {
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

    /// The value at an index if all openings have the same there.
    fn common(&self, at: usize) -> Option<f64> {
        let first = self.raw(0, at);
        let same = (1..self.openings).all(|opening| self.raw(opening, at) == first);
        same.then_some(first)
    }

    /// The value at an index: a constant if all openings have the same there, else a parameter.
    fn number(&mut self, at: usize) -> Affine {
        if let Some(value) = self.common(at) {
            return Affine::constant(value);
        }
        let existing = self.parameters.iter().position(|&other| other == at);
        let number = existing.unwrap_or_else(|| {
            self.parameters.push(at);
            self.parameters.len() - 1
        });
        Affine::parameter(self.view.problem.states.len() + number)
    }

    /// The bounds of a column.
    pub(super) fn column_bounds(&mut self, column: usize) -> (Affine, Affine) {
        let Some((lower, upper)) = self.bounds[column] else {
            let column = &self.template.columns[column];
            return (
                Affine::constant(column.lower),
                Affine::constant(column.upper),
            );
        };
        (self.number(lower), self.number(upper))
    }

    /// The widest bounds of a column over all openings.
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

    /// The value of a column that is fixed in every opening.
    fn fixed(&mut self, column: usize) -> Option<Affine> {
        let Some((lower, upper)) = self.bounds[column] else {
            let column = &self.template.columns[column];
            return (column.lower == column.upper).then(|| Affine::constant(column.lower));
        };
        let same = |opening| self.raw(opening, lower) == self.raw(opening, upper);
        (0..self.openings).all(same).then(|| self.number(lower))
    }
}

/// The value of a parameter, from the value of an opening: a bound that is infinite stands at [`NEVER`].
/// Every finite number of a problem is far below it (`crate::problem::LARGEST`).
pub(super) fn parameter(value: f64) -> f64 {
    value.clamp(-NEVER, NEVER)
}

/// A parameter that is derived from others: the positive part of `sign` × `of`.
#[derive(Debug, Clone)]
pub(super) struct PositivePart {
    pub(super) of: Affine,
    pub(super) sign: f64,
}

/// An equality that determines a column from those removed before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Determined {
    pub(super) row: usize,
    pub(super) column: usize,
    /// If the column is truncated at zero: the column that lifts it there.
    pub(super) lift: Option<LiftColumn>,
}

/// The column t ≥ 0 of cost c by which x = r + `factor` × t is lifted to zero: x is the positive part
/// of r, and t that of −r over the factor, as long as no more of x is worth its price.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiftColumn {
    pub(super) factor: f64,
    /// The coefficient of t in the row, and its cost.
    pub(super) coefficient: f64,
    pub(super) cost: f64,
    /// What a unit of x costs in columns that are removed.
    pub(super) fixed_cost: f64,
    /// The parameter that is x; the next one is the positive part of −r.
    pub(super) derived: usize,
}

/// The columns that presolve removes.
pub(super) struct Presolved {
    /// By column of the template, its value if it is removed.
    pub(super) values: Vec<Option<Affine>>,
    /// Rows that have determined a column.
    pub(super) used_rows: Vec<bool>,
    /// Those rows in the order of their use.
    pub(super) determined: Vec<Determined>,
    /// Derived parameters.
    pub(super) derived: Vec<PositivePart>,
    /// The bounds of columns that rows determine.
    pub(super) feasibility_checks: Vec<FeasibilityCheck>,
}

impl Presolved {
    pub(super) fn find(source: &mut ParametricTemplate<'_>) -> Self {
        let template = source.template;
        let mut values = vec![None; template.columns.len()];
        for (state, at) in template.states.iter().enumerate() {
            values[at.incoming] = Some(Affine::parameter(state));
        }
        for (column, value) in values.iter_mut().enumerate() {
            if value.is_none() {
                *value = source.fixed(column);
            }
        }
        let mut presolved = Self {
            values,
            used_rows: vec![false; source.rows.len()],
            determined: Vec::new(),
            derived: Vec::new(),
            feasibility_checks: Vec::new(),
        };
        while presolved.remove_determined(source) {}
        presolved
    }

    /// The part of the objective from removed columns.
    pub(super) fn cost(&self, source: &ParametricTemplate<'_>) -> Affine {
        let mut sum = source.constant.clone();
        for (cost, value) in source.costs.iter().zip(&self.values) {
            if let Some(value) = value {
                sum.add(*cost, value);
            }
        }
        sum
    }

    /// Removes the columns that a row determines from those removed before; returns whether there
    /// was one.
    fn remove_determined(&mut self, source: &ParametricTemplate<'_>) -> bool {
        let mut found = false;
        for (number, row) in source.rows.iter().enumerate() {
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
            if source.bounds[column].is_some() {
                continue;
            }
            let mut value = row.lower.times(1.0 / coefficient);
            for &(other, factor) in &row.terms {
                if let Some(removed) = &self.values[other] {
                    value.add(-factor / coefficient, removed);
                }
            }
            let (lower, upper) = source.widest_bounds(column);
            if lower.is_finite() || upper.is_finite() {
                self.feasibility_checks.push(FeasibilityCheck {
                    value: value.clone(),
                    lower,
                    upper,
                });
            }
            self.values[column] = Some(value);
            self.used_rows[number] = true;
            self.determined.push(Determined {
                row: number,
                column,
                lift: None,
            });
            found = true;
        }
        found
    }

    /// Removes the columns that a row determines from those removed before and that are truncated at
    /// zero, such as inflows, and then what follows from these.
    pub(super) fn remove_truncated(&mut self, source: &ParametricTemplate<'_>) {
        let mut rows_of = vec![0; source.costs.len()];
        for row in &source.rows {
            for term in &row.terms {
                rows_of[term.0] += 1;
            }
        }
        for state in &source.template.states {
            rows_of[state.outgoing] = usize::MAX;
        }
        for number in 0..source.rows.len() {
            self.remove_pair(source, &rows_of, number);
        }
        while self.remove_determined(source) {}
    }

    /// Removes the two columns that a row leaves if one lifts the other to zero.
    fn remove_pair(&mut self, source: &ParametricTemplate<'_>, rows_of: &[usize], number: usize) {
        let row = &source.rows[number];
        if self.used_rows[number] || !row.equality {
            return;
        }
        let unknown = row.terms.iter();
        let mut unknown = unknown.filter(|term| self.values[term.0].is_none());
        let (Some(&one), Some(&other), None) = (unknown.next(), unknown.next(), unknown.next())
        else {
            return;
        };
        let is_lift = |column: usize| rows_of[column] == 1 && source.costs[column] > 0.0;
        let ((column, coefficient), lift) = match (is_lift(one.0), is_lift(other.0)) {
            (false, true) => (one, other),
            (true, false) => (other, one),
            _ => return,
        };
        let from_zero = |column: usize| {
            let bounds = source.widest_bounds(column);
            source.bounds[column].is_none() && bounds == (0.0, f64::INFINITY)
        };
        let factor = -lift.1 / coefficient;
        if !from_zero(column) || !from_zero(lift.0) || factor <= 0.0 {
            return;
        }
        let mut rest = row.lower.times(1.0 / coefficient);
        for &(known, value) in &row.terms {
            if let Some(removed) = &self.values[known] {
                rest.add(-value / coefficient, removed);
            }
        }
        let derived = DERIVED + self.derived.len();
        self.values[column] = Some(Affine::parameter(derived));
        self.values[lift.0] = Some(Affine::parameter(derived + 1).times(1.0 / factor));
        for (of, sign) in [(rest.clone(), 1.0), (rest, -1.0)] {
            self.derived.push(PositivePart { of, sign });
        }
        self.used_rows[number] = true;
        self.determined.push(Determined {
            row: number,
            column,
            lift: Some(LiftColumn {
                factor,
                coefficient: lift.1,
                cost: source.costs[lift.0],
                fixed_cost: 0.0,
                derived,
            }),
        });
    }
}
