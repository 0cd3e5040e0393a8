//! Rows and weights of a basis with sparse factors: inequalities are added several at a time, a row
//! whose slack has entered stays until the factors are computed anew, and leaving variables are
//! priced with devex weights.

use super::basis::{Basis, StageInput, row_terms};
use super::factorization::Factorization;
use super::inverse::Singular;
use super::reduced_lp::ReducedLp;

/// Violated inequalities that are added at a time.
const ROWS_AT_ONCE: usize = 20;
/// The largest weight: beyond it all weights start anew, or no infeasibility would count any more.
const LARGEST_WEIGHT: f64 = 1e6;

impl Basis {
    /// True if no row can be added.
    pub(super) fn is_full(&self) -> bool {
        match &self.factors {
            Factorization::Dense(inverse) => inverse.is_full(),
            Factorization::Sparse(_) => self.size() == self.head.len(),
        }
    }

    /// Adds the most violated inequalities that are not in a basis with sparse factors; returns
    /// whether there are any.
    pub(super) fn add_violated_rows(&mut self, input: StageInput<'_>) -> bool {
        let lp = input.lp;
        if self.factors.sparse().is_none() || lp.rows == lp.equalities {
            return false;
        }
        self.compute_activity(lp);
        let mut violated = std::mem::take(&mut self.scratch.violated_rows);
        violated.clear();
        violated.extend(self.violations(input));
        violated.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let room = self.head.len() - self.size();
        violated.truncate(ROWS_AT_ONCE.min(room));
        for &(_, row, value) in &violated {
            self.add_row(input, row, value);
        }
        let found = !violated.is_empty();
        self.scratch.violated_rows = violated;
        found
    }

    /// Computes the pivot row from the nonzero elements of the row of the inverse, with a list of the
    /// columns that it touches.
    pub(super) fn compute_sparse_pivot_row(&mut self, input: StageInput<'_>) {
        let scratch = &mut self.scratch;
        scratch.clear_alpha();
        let mut add = |column: usize, value: f64| {
            scratch.alpha[column] += value;
            // A sum that cancels must not be listed twice.
            if !scratch.is_touched[column] {
                scratch.is_touched[column] = true;
                scratch.touched.push(column as u32);
            }
        };
        for (&row, &factor) in self.rows.iter().zip(&scratch.pivot_row) {
            if factor != 0.0 {
                row_terms(input, row, |column, value| add(column, factor * value));
            }
        }
    }

    /// Computes the factors anew if they have many updates; returns whether they had.
    pub(super) fn refactor_if_long(&mut self, input: StageInput<'_>) -> Result<bool, Singular> {
        let long = self.factors.is_long();
        if long {
            self.refactor(input)?;
            self.compute_values(input);
        }
        Ok(long)
    }

    /// Prices the slack of a cut that is in the basis although its slack is basic; returns its position.
    pub(super) fn price_basic_slack(
        &mut self,
        lp: &ReducedLp,
        row: u32,
        value: f64,
    ) -> Option<usize> {
        self.factors.sparse()?;
        let place = self.rows.iter().position(|&other| other == row)?;
        if !self.basic_slack[place] {
            return None;
        }
        let slack = (lp.columns() + place) as u32;
        let position = self.head[..self.size()]
            .iter()
            .position(|&variable| variable == slack)?;
        // One that is priced already is a violation that pivots do not mend.
        if self.lower[position] != f64::NEG_INFINITY {
            return None;
        }
        (self.lower[position], self.values[position]) = (0.0, value);
        Some(position)
    }

    /// Updates slacks and weights after `leaving` has left `position` for the slack of row `entering`,
    /// or for a column.
    pub(super) fn update_slacks(
        &mut self,
        lp: &ReducedLp,
        position: usize,
        leaving: usize,
        entering: Option<usize>,
    ) {
        if let Some(row) = leaving.checked_sub(lp.columns()) {
            self.basic_slack[row] = false;
        }
        if let Some(row) = entering {
            self.basic_slack[row] = true;
            self.duals[row] = 0.0;
            if self.rows[row] as usize >= lp.rows {
                // Cuts are looked up: the value of the slack has rounding errors of the cost to go.
                self.lower[position] = f64::NEG_INFINITY;
            }
        }
        self.update_weights(position);
    }

    /// The devex update: the reference framework is that of the last reset.
    fn update_weights(&mut self, position: usize) {
        let size = self.rows.len();
        let column = &self.scratch.pivot_column[..size];
        let reciprocal = 1.0 / column[position];
        let own = self.weights[position] * reciprocal * reciprocal;
        let mut largest = own;
        for (weight, &element) in self.weights[..size].iter_mut().zip(column) {
            let other = element * element * own;
            if other > *weight {
                *weight = other;
                largest = largest.max(other);
            }
        }
        self.weights[position] = own.max(1.0);
        if largest > LARGEST_WEIGHT {
            self.weights[..size].fill(1.0);
        }
    }
}
