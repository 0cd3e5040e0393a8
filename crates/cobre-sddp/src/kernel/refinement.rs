//! Iterative refinement: primal values by the residuals of rows, dual values by the reduced costs of basic variables.

use super::basis::{Basis, NO_ROW, StageInput};
use super::inverse::padded;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;
use super::tolerance;

impl Basis {
    /// The magnitude of the terms that a plain column's reduced cost is the sum of.
    pub(super) fn terms(&mut self, input: StageInput<'_>, column: usize) -> f64 {
        let list = &mut self.scratch.entering;
        Self::column(input, &self.cuts, &self.row_places, column, list);
        let cost = input.lp.cost[column].abs();
        let terms = list.iter().map(|&(row, value)| value * self.duals[row]);
        terms.fold(cost, |sum, term| sum + term.abs())
    }

    /// Scales the dual values of cuts to a sum of one where the cost to go is basic: an error there
    /// weighs as much as the cost to go is large.
    pub(super) fn balance_cuts(&mut self, lp: &ReducedLp) {
        let basic = lp.future.is_some_and(|at| self.sense[at] == 0.0);
        let is_cut = |row: u32| row as usize >= lp.rows;
        let cuts = self.rows.iter().zip(&self.duals);
        let sum: f64 = cuts.filter(|cut| is_cut(*cut.0)).map(|cut| cut.1).sum();
        if basic && sum > 0.0 {
            for (&row, dual) in self.rows.iter().zip(&mut self.duals) {
                if is_cut(row) {
                    *dual /= sum;
                }
            }
        }
    }

    /// Computes dual values and reduced costs, and refines them by the reduced costs of basic
    /// variables, which are zero but for errors of the inverse. An error weighs as much as its
    /// variable is large: the cost to go most of all.
    pub(super) fn refine_duals(&mut self, input: StageInput<'_>) {
        self.compute_duals(input);
        for _ in 0..tolerance::MAX_REFINEMENTS {
            if self.dual_residual(input.lp) <= tolerance::DUAL_RESIDUAL * (1.0 + self.value().abs())
            {
                return;
            }
            let size = self.size();
            let scratch = &mut self.scratch;
            let (slips, change) = (&scratch.shift[..size], &mut scratch.pivot_row);
            self.factors.btran(slips, change);
            for (dual, change) in self.duals[..size].iter_mut().zip(change) {
                *dual += *change;
            }
            self.compute_reduced(input);
        }
    }

    /// Writes the reduced costs of basic variables to `shift`; returns the most that they add to
    /// the objective.
    fn dual_residual(&mut self, lp: &ReducedLp) -> f64 {
        let mut sum = 0.0;
        let variables = self.head[..self.rows.len()].iter().zip(&self.values);
        for ((&variable, &value), dual_residual) in variables.zip(&mut self.scratch.shift) {
            let variable = variable as usize;
            *dual_residual = if let Some(reduced) = self.reduced.get(variable) {
                *reduced
            } else if let Some(segment) = lp.segments.get(variable - lp.plain) {
                segment.cost - self.duals[lp.curves[segment.curve].row] * segment.factor
            } else {
                self.duals[variable - lp.columns()]
            };
            sum += (*dual_residual * value).abs();
        }
        sum
    }

    /// Computes the values of basic variables from the inverse, and refines them until the rows of
    /// the basis hold: only then is their cost the objective value of a solution.
    #[inline]
    pub(super) fn refine_values(&mut self, input: StageInput<'_>) -> Result<(), SolveError> {
        self.compute_values(input);
        let mut left = tolerance::MAX_REFINEMENTS;
        loop {
            self.compute_state(input.lp);
            if self.rows_hold(input) {
                return Ok(());
            }
            left = left.checked_sub(1).ok_or(SolveError::Unstable)?;
            let length = padded(self.size());
            let scratch = &mut self.scratch;
            let (open, change) = (&scratch.shift[..length], &mut scratch.pivot_column);
            self.factors.ftran(open, change);
            for (value, change) in self.values[..self.rows.len()].iter_mut().zip(change) {
                *value += *change;
            }
        }
    }

    /// Checks the rows of the basis for the values, with the state and the cost to go that belong
    /// to them; writes the residuals to `shift`.
    #[inline]
    pub(super) fn rows_hold(&mut self, input: StageInput<'_>) -> bool {
        let (lp, size) = (input.lp, self.size());
        let open = &mut self.scratch.shift;
        open[size..padded(size)].fill(0.0);
        for (open, &row) in open.iter_mut().zip(&self.rows) {
            let row = row as usize;
            *open = match row.checked_sub(lp.rows) {
                None => input.rhs[row] - self.activity[row],
                Some(cut) => input.cuts.above(lp, cut, &self.state, self.future),
            };
        }
        for (&variable, &value) in self.head[..size].iter().zip(&self.values) {
            let variable = variable as usize;
            if variable < lp.columns() {
                for &(row, coefficient) in lp.by_column.list(variable) {
                    let place = self.row_places[row as usize];
                    if place != NO_ROW {
                        open[place as usize] -= coefficient * value;
                    }
                }
            } else {
                open[variable - lp.columns()] += value;
            }
        }
        let least = input.cuts.tolerance(self.future);
        let mut rows = self.rows.iter().zip(&*open);
        rows.all(|(&row, open)| {
            let rhs = input.rhs.get(row as usize);
            open.abs() <= rhs.map_or(least, |&rhs| tolerance::primal(rhs))
        })
    }
}
