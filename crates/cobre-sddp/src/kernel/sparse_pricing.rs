//! Rows and weights of a basis with sparse factors: inequalities are added several at a time, a row
//! whose slack has entered stays until the factors are computed anew, and leaving variables are
//! priced with devex weights.

use super::basis::{Basis, StageInput};
use super::basis_rows::row_terms;
use super::factorization::{DROP, Factorization};
#[cfg(test)]
use super::fault::Fault;
use super::index_list::IndexList;
use super::reduced_lp::ReducedLp;
use super::simplex::is_cost;
use super::tolerance;
use cobre_simd::vectorized;

/// Violated inequalities that are added at a time.
const ROWS_AT_ONCE: usize = 20;
/// Pivots between two searches for violated cuts, with hyperplanes.
const PIVOTS_PER_CHECK: u64 = 20;
/// The largest weight: beyond it all weights start anew, or no infeasibility would count any more.
const LARGEST_WEIGHT: f64 = 1e6;
/// The score of a variable that is within its bounds.
const FEASIBLE: f64 = -1.0;
/// Partial maxima of scores.
const LANES: usize = 4;

/// Writes the squared infeasibility of each position over its weight to `scores`.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn score(values: &[f64], lower: &[f64], upper: &[f64], weights: &[f64], scores: &mut [f64]) {
    let bounds = lower.iter().zip(upper);
    let positions = values.iter().zip(bounds).zip(weights);
    for (((&value, (&lower, &upper)), &weight), score) in positions.zip(scores) {
        let (below, above) = (lower - value, value - upper);
        let is_below = below > above;
        let beyond = if is_below { below } else { above };
        let bound = if is_below { lower } else { upper };
        let scaled = beyond * beyond / weight;
        let is_infeasible = beyond > tolerance::primal(bound);
        *score = if is_infeasible { scaled } else { FEASIBLE };
    }
}

/// The largest score.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn largest(scores: &[f64]) -> f64 {
    let mut most = [FEASIBLE; LANES];
    let groups = scores.chunks_exact(LANES);
    let rest = groups.remainder();
    for group in groups {
        for lane in 0..LANES {
            most[lane] = if group[lane] > most[lane] {
                group[lane]
            } else {
                most[lane]
            };
        }
    }
    let all = most.iter().chain(rest);
    all.fold(
        FEASIBLE,
        |most, &score| if score > most { score } else { most },
    )
}

/// Lists the elements that are larger than `least`.
pub(super) fn find_nonzero(elements: &[f64], least: f64, list: &mut IndexList) {
    let places = list.places(elements.len() + cobre_simd::SPARE_PLACES);
    let count = cobre_simd::places_above(elements, least, places);
    list.set_count(count);
}

impl Basis {
    /// True if no row can be added.
    pub(super) fn is_full(&self) -> bool {
        match &self.factors {
            Factorization::Dense(inverse) => inverse.is_full(),
            Factorization::Sparse(_) => self.size() == self.head.len(),
        }
    }

    /// True if a violated cut is to be added although variables of the basis are infeasible: with hyperplanes, many
    /// pivots would be made for a relaxation that is far from the linear program.
    pub(super) fn is_cut_check_due(&self, lp: &ReducedLp) -> bool {
        Self::prices_outside(lp) && self.pivots >= self.next_cut_check
    }

    /// Adds the most violated cut or the bound of its slack.
    pub(super) fn add_violated_cut(&mut self, input: StageInput<'_>) {
        self.next_cut_check = self.pivots + PIVOTS_PER_CHECK;
        if let Some((row, value)) = self.violated(input)
            && self.price_basic_slack(input.lp, row, value).is_none()
            && !self.rows.contains(&row)
            && !self.is_full()
        {
            self.add_row(input, row, value);
        }
    }

    /// Adds the most violated inequalities that are not in a basis with sparse factors; returns
    /// whether there are any.
    pub(super) fn add_violated_rows(&mut self, input: StageInput<'_>) -> bool {
        let lp = input.lp;
        if lp.is_dense || lp.rows == lp.equalities || Self::prices_outside(lp) {
            return false;
        }
        self.compute_activity(lp);
        let mut violated = std::mem::take(&mut self.scratch.violated_rows);
        violated.clear();
        violated.extend(self.violations(input));
        let order = |one: &(f64, u32, f64), other: &(f64, u32, f64)| {
            other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
        };
        let most = ROWS_AT_ONCE.min(self.head.len() - self.size());
        if violated.len() > most {
            violated.select_nth_unstable_by(most, order);
            violated.truncate(most);
        }
        violated.sort_unstable_by(order);
        for &(_, row, value) in &violated {
            self.add_row(input, row, value);
        }
        let found = !violated.is_empty();
        self.scratch.violated_rows = violated;
        found
    }

    /// Computes the pivot row from the nonzero elements of the row of the inverse, with a list of the
    /// columns that it touches and that are not basic; elements of basic columns are rounding errors.
    pub(super) fn compute_sparse_pivot_row(&mut self, input: StageInput<'_>) {
        self.find_positions(input.lp);
        let scratch = &mut self.scratch;
        scratch.clear_alpha();
        let elements = &mut scratch.alpha[..];
        let (mut count, touched) = (0, scratch.touched.places(elements.len() + 1));
        let marks = &mut scratch.marks[..elements.len()];
        // Without a branch; the mark tells a sum that cancels from a column that is not listed, and basic columns have one.
        let mut add = |column: usize, value: f64| {
            elements[column] += value;
            touched[count] = column as u32;
            count += usize::from(marks[column] ^ 1);
            marks[column] = 1;
        };
        find_nonzero(
            &scratch.pivot_row[..self.rows.len()],
            DROP,
            &mut scratch.row_list,
        );
        for &place in &*scratch.row_list {
            let (row, factor) = (self.rows[place as usize], scratch.pivot_row[place as usize]);
            row_terms(input, row, |column, value| add(column, factor * value));
        }
        scratch.touched.set_count(count);
    }

    /// The leaving position by devex pricing, the first of equals.
    pub(super) fn leaving_by_weights(&mut self) -> Option<usize> {
        let size = self.rows.len();
        let (values, weights) = (&self.values[..size], &self.weights[..size]);
        let (lower, upper) = (&self.lower[..size], &self.upper[..size]);
        let scores = &mut self.scratch.scores[..size];
        let most = vectorized(
            #[inline(always)]
            || {
                score(values, lower, upper, weights, scores);
                largest(scores)
            },
        );
        // Whatever its weight, an infeasibility is never overlooked.
        (most >= 0.0)
            .then(|| scores.iter().position(|&score| score == most))
            .flatten()
    }

    /// Prices the slack of a cut that is in the basis although its slack is basic; returns its position.
    pub(super) fn price_basic_slack(
        &mut self,
        lp: &ReducedLp,
        row: u32,
        value: f64,
    ) -> Option<usize> {
        if lp.is_dense {
            return None;
        }
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
        self.update_weights(lp, position);
    }

    /// The devex weight of a variable in a new reference framework: one, in the unit of the variable. The cost to go and
    /// slacks of cuts are in units of cost, or every pivot that changes them would make weights too large.
    pub(super) fn new_weight(&self, lp: &ReducedLp, variable: usize) -> f64 {
        if is_cost(lp, &self.rows, variable) {
            lp.cost_scale * lp.cost_scale
        } else {
            1.0
        }
    }

    /// The devex update: the reference framework is that of the last reset.
    fn update_weights(&mut self, lp: &ReducedLp, position: usize) {
        let size = self.rows.len();
        let column = &self.scratch.pivot_column[..size];
        let reciprocal = 1.0 / column[position];
        let own = self.weights[position] * reciprocal * reciprocal;
        let (mut largest, cost_weight) = (0.0_f64, lp.cost_scale * lp.cost_scale);
        for &at in &*self.scratch.column_list {
            let at = at as usize;
            let (weight, element) = (&mut self.weights[at], column[at]);
            *weight = weight.max(element * element * own);
            if *weight > largest {
                let is_cost = is_cost(lp, &self.rows, self.head[at] as usize);
                let scaled = *weight / if is_cost { cost_weight } else { 1.0 };
                largest = largest.max(scaled);
            }
        }
        let least = self.new_weight(lp, self.head[position] as usize);
        self.weights[position] = own.max(least);
        #[cfg(test)]
        if Fault::UnresetWeights.is_on() {
            self.weights[position] *= 1e30;
            return;
        }
        if largest.max(own / least) > LARGEST_WEIGHT {
            self.reset_weights(lp);
        }
    }

    /// Begins a new reference framework.
    fn reset_weights(&mut self, lp: &ReducedLp) {
        for at in 0..self.rows.len() {
            self.weights[at] = self.new_weight(lp, self.head[at] as usize);
        }
        self.outside.reset_weights();
    }
}
