//! The working basis of a solve.
//!
//! Its rows are all equalities and the inequalities and cuts that are tight. Every row has a slack
//! variable, the amount by which it exceeds its right-hand side: fixed at 0 for equalities, at
//! least 0 for the others. An inequality whose slack enters the basis leaves the basis with its
//! row.

use std::sync::Arc;

use super::curve::CurveState;
use super::cut_table::CutTable;
use super::factorization::Factorization;
#[cfg(test)]
use super::fault::Fault;
use super::inverse::{Singular, padded};
use super::lu::Factorizer;
use super::ratio::Candidates;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;
use super::sparse::Sparse;
use super::tolerance;

/// Marks a row of the linear program that is not a row of the basis.
pub(super) const NO_ROW: u32 = u32::MAX;

/// The input of a solve: the linear program of a stage with its cuts and right-hand sides.
#[derive(Clone, Copy)]
pub(super) struct StageInput<'a> {
    pub(super) lp: &'a ReducedLp,
    pub(super) cuts: &'a CutTable,
    /// By row of the linear program.
    pub(super) rhs: &'a [f64],
}

/// A basis with its inverse, values, dual values and reduced costs. Variables are numbered: columns
/// first, then the slacks of the rows of the basis.
#[derive(Debug)]
pub(super) struct Basis {
    /// By position: the variable, its bounds and cost, and its value.
    pub(super) head: Vec<u32>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) cost: Vec<f64>,
    pub(super) values: Vec<f64>,
    /// By row: a row of the linear program, or after those a cut by its place; and its dual value.
    pub(super) rows: Vec<u32>,
    pub(super) duals: Vec<f64>,
    /// By row of the linear program, its row in the basis.
    pub(super) row_places: Vec<u32>,
    /// By row: true if its slack is basic. Known with sparse factors alone: with a dense inverse
    /// such a row leaves the basis, with sparse factors it stays until they are computed anew.
    pub(super) basic_slack: Vec<bool>,
    pub(super) factors: Factorization,
    /// By position, the devex weight with sparse factors.
    pub(super) weights: Vec<f64>,
    /// True if rows were dropped since the factors were computed: they must be loaded anew.
    pub(super) stale: bool,
    /// By plain column: 1 at the lower bound, −1 at the upper, 0 basic or free at zero.
    pub(super) sense: Vec<f64>,
    pub(super) reduced: Vec<f64>,
    /// By curve.
    pub(super) curve_states: Vec<CurveState>,
    /// The activity of each row of the linear program from columns at bounds, and their cost.
    pub(super) activity: Vec<f64>,
    pub(super) bound_cost: f64,
    /// Pivots since the inverse was computed.
    pub(super) age: u32,
    /// The free states and the cost to go, as last computed.
    pub(super) state: Vec<f64>,
    pub(super) future: f64,
    /// Refactorisations forced by numerical trouble, and pivots, over all solves.
    pub(super) refactored: u64,
    pub(super) pivots: u64,
    pub(super) scratch: Scratch,
}

/// Work space.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) rhs: Vec<f64>,
    pub(super) pivot_row: Vec<f64>,
    pub(super) pivot_column: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    /// With sparse factors, the columns whose element of `alpha` is set, and the same as marks.
    pub(super) touched: Vec<u32>,
    pub(super) is_touched: Vec<bool>,
    pub(super) entering: Vec<(usize, f64)>,
    pub(super) shift: Vec<f64>,
    pub(super) activity: Vec<f64>,
    pub(super) candidates: Candidates,
    pub(super) chosen: Vec<u32>,
    pub(super) flips: Vec<u32>,
    /// Segments of curves whose bound is flipped, and whether they are on afterwards.
    pub(super) flipped_segments: Vec<(usize, bool)>,
    matrix: Vec<f64>,
    column_matrix: Sparse,
    /// By plain column; zeros but while a row is added.
    row_coefficients: Vec<f64>,
    factorizer: Factorizer,
    pub(super) column_of: Vec<u32>,
    permuted: Vec<f64>,
    pub(super) violated_rows: Vec<(f64, u32, f64)>,
}

impl Scratch {
    /// Sets the touched elements of `alpha` to zero.
    pub(super) fn clear_alpha(&mut self) {
        for &column in &self.touched {
            self.alpha[column as usize] = 0.0;
            self.is_touched[column as usize] = false;
        }
        self.touched.clear();
    }
}

impl Basis {
    /// A basis with room for any basis of the linear program.
    pub(super) fn new(lp: &ReducedLp) -> Self {
        let most = lp.largest_basis();
        let length = padded(most);
        let zeros = || vec![0.0; length];
        let columns = || vec![0.0; lp.plain];
        Self {
            head: vec![0; length],
            lower: zeros(),
            upper: zeros(),
            cost: zeros(),
            values: zeros(),
            rows: Vec::with_capacity(length),
            duals: zeros(),
            row_places: vec![NO_ROW; lp.rows],
            basic_slack: vec![false; length],
            factors: Factorization::new(lp),
            weights: vec![1.0; length],
            stale: false,
            sense: columns(),
            reduced: columns(),
            curve_states: lp.start_curve_states.clone(),
            activity: vec![0.0; lp.rows],
            bound_cost: 0.0,
            age: 0,
            state: vec![0.0; lp.free_states.len()],
            future: 0.0,
            refactored: 0,
            pivots: 0,
            scratch: Scratch {
                rhs: zeros(),
                pivot_row: zeros(),
                pivot_column: zeros(),
                alpha: columns(),
                is_touched: vec![false; lp.plain],
                row_coefficients: columns(),
                shift: zeros(),
                activity: vec![0.0; lp.rows],
                candidates: Candidates::new(lp.plain + lp.curves.len() + length),
                chosen: vec![0; lp.plain],
                ..Scratch::default()
            },
        }
    }

    /// The number of rows.
    pub(super) fn size(&self) -> usize {
        self.rows.len()
    }

    /// The value of a column that is not basic.
    #[inline]
    pub(super) fn at_bound(&self, lp: &ReducedLp, column: usize) -> f64 {
        let Some(&sense) = self.sense.get(column) else {
            let (segment, on) = self.segment(lp, column);
            return on.map_or(0.0, |on| lp.segments[segment].value(on));
        };
        if sense > 0.0 {
            lp.lower[column]
        } else if sense < 0.0 {
            lp.upper[column]
        } else {
            0.0
        }
    }

    /// The segment of a column, and whether it is on; `None` if it is basic.
    #[inline]
    pub(super) fn segment(&self, lp: &ReducedLp, column: usize) -> (usize, Option<bool>) {
        let number = column - lp.plain;
        let curve = lp.segments[number].curve;
        let (place, mark) = (
            column - lp.curves[curve].columns.start,
            self.curve_states[curve],
        );
        let on = mark.on as usize;
        let basic = mark.basic && place == on;
        (number, (!basic).then_some(place < on))
    }

    /// Starts cold: every slack basic, every column at the bound that its cost prefers.
    pub(super) fn start_cold(&mut self, lp: &ReducedLp) {
        let rows = lp.equalities;
        self.rows.clear();
        self.rows.extend(0..rows as u32);
        self.find_rows(lp);
        for row in 0..rows {
            self.put(lp, row, lp.columns() + row);
        }
        self.basic_slack[..rows].fill(true);
        self.factors.set_to_minus_identity(rows);
        self.weights.fill(1.0);
        self.stale = false;
        self.duals.fill(0.0);
        self.sense.copy_from_slice(&lp.start);
        self.reduced.copy_from_slice(&lp.cost[..lp.plain]);
        self.curve_states.copy_from_slice(&lp.start_curve_states);
        self.activity.copy_from_slice(&lp.start_activity);
        self.bound_cost = lp.start_cost;
        self.age = 0;
    }

    /// Updates the row of the basis of each row of the linear program.
    pub(super) fn find_rows(&mut self, lp: &ReducedLp) {
        self.row_places[lp.equalities..].fill(NO_ROW);
        for (place, &row) in self.rows.iter().enumerate() {
            if (row as usize) < lp.rows {
                self.row_places[row as usize] = place as u32;
            }
        }
    }

    /// Makes a variable basic at a position.
    pub(super) fn put(&mut self, lp: &ReducedLp, position: usize, variable: usize) {
        self.head[position] = variable as u32;
        let columns = lp.columns();
        if variable < columns {
            self.lower[position] = lp.lower[variable];
            self.upper[position] = lp.upper[variable];
            self.cost[position] = lp.cost[variable];
        } else {
            let equality = variable - columns < lp.equalities;
            self.lower[position] = 0.0;
            self.upper[position] = if equality { 0.0 } else { f64::INFINITY };
            self.cost[position] = 0.0;
        }
    }

    /// The entries of a column in the rows of the basis.
    pub(super) fn column(
        input: StageInput<'_>,
        rows: &[u32],
        row_places: &[u32],
        column: usize,
        into: &mut Vec<(usize, f64)>,
    ) {
        let lp = input.lp;
        into.clear();
        for &(row, value) in lp.by_column.list(column) {
            let place = row_places[row as usize];
            if place != NO_ROW {
                into.push((place as usize, value));
            }
        }
        let free_state = lp.free_state_of[column];
        if free_state.is_none() && lp.future != Some(column) {
            return;
        }
        for (place, &row) in rows.iter().enumerate().skip(lp.equalities) {
            if let Some(cut) = (row as usize).checked_sub(lp.rows) {
                let value = free_state.map_or(1.0, |free_state| {
                    -input.cuts.slope(lp, cut, free_state as usize)
                });
                into.push((place, value));
            }
        }
    }

    /// Computes the factors of the basis matrix and everything that follows from them.
    pub(super) fn refactor(&mut self, input: StageInput<'_>) -> Result<(), Singular> {
        let lp = input.lp;
        match self.factors {
            Factorization::Dense(_) => self.invert(input)?,
            Factorization::Sparse(_) => self.factorize(input)?,
        }
        self.age = 0;
        self.compute_duals(input);
        self.flip_wrong_signs(lp);
        self.activity.fill(0.0);
        self.bound_cost = 0.0;
        for (curve, mark) in lp.curves.iter().zip(&self.curve_states) {
            let (activity, cost) = curve.at_bounds(lp.members(curve), *mark);
            self.activity[curve.row] += activity;
            self.bound_cost += cost;
        }
        for column in 0..lp.plain {
            self.move_by(lp, column, self.at_bound(lp, column));
        }
        Ok(())
    }

    /// Computes the dense inverse.
    fn invert(&mut self, input: StageInput<'_>) -> Result<(), Singular> {
        let (lp, size) = (input.lp, self.size());
        let columns = lp.columns();
        self.find_rows(lp);
        let matrix = &mut self.scratch.matrix;
        matrix.clear();
        matrix.resize(size * size, 0.0);
        for position in 0..size {
            let variable = self.head[position] as usize;
            if variable < columns {
                let entering = &mut self.scratch.entering;
                Self::column(input, &self.rows, &self.row_places, variable, entering);
                for &(row, value) in &*entering {
                    matrix[row * size + position] = value;
                }
            } else {
                matrix[(variable - columns) * size + position] = -1.0;
            }
        }
        match &mut self.factors {
            Factorization::Dense(inverse) => inverse.invert(size, matrix),
            Factorization::Sparse(_) => Ok(()),
        }
    }

    /// Computes the sparse factors, without rows whose slack is basic. Variables move to the
    /// positions that the factors give them: `column_of` has their positions before, by row.
    pub(super) fn factorize(&mut self, input: StageInput<'_>) -> Result<(), Singular> {
        let lp = input.lp;
        self.drop_basic_slacks(lp);
        self.find_rows(lp);
        let (size, columns) = (self.size(), lp.columns());
        let scratch = &mut self.scratch;
        scratch.column_matrix.clear();
        for &variable in &self.head[..size] {
            let (variable, list) = (variable as usize, &mut scratch.entering);
            if variable < columns {
                Self::column(input, &self.rows, &self.row_places, variable, list);
            } else {
                list.clear();
                list.push((variable - columns, -1.0));
            }
            let nonzero = list.iter().filter(|entry| entry.1 != 0.0);
            let nonzero = nonzero.map(|&(row, value)| (row as u32, value));
            scratch.column_matrix.push(nonzero);
        }
        let rows = &self.rows;
        let is_cut = |row: usize| rows[row] as usize >= lp.rows;
        let (matrix, column_of) = (&scratch.column_matrix, &mut scratch.column_of);
        let lu = scratch.factorizer.factorize(matrix, is_cut, column_of)?;
        let column_of = std::mem::take(&mut self.scratch.column_of);
        self.permute(&column_of);
        self.scratch.column_of = column_of;
        if let Factorization::Sparse(factors) = &mut self.factors {
            factors.set(Arc::new(lu));
        }
        self.stale = false;
        Ok(())
    }

    /// Moves variables to the positions of the rows where they are pivoted.
    pub(super) fn permute(&mut self, column_of: &[u32]) {
        #[cfg(test)]
        if Fault::WrongPermutation.is_on() {
            return;
        }
        let head = column_of.iter().map(|&at| self.head[at as usize]);
        let head: Vec<u32> = head.collect();
        self.head[..head.len()].copy_from_slice(&head);
        let permuted = &mut self.scratch.permuted;
        for list in [
            &mut self.lower,
            &mut self.upper,
            &mut self.cost,
            &mut self.values,
            &mut self.weights,
        ] {
            permuted.clear();
            permuted.extend(column_of.iter().map(|&at| list[at as usize]));
            list[..permuted.len()].copy_from_slice(permuted);
        }
    }

    /// Drops the inequalities and cuts whose slack is basic.
    pub(super) fn drop_basic_slacks(&mut self, lp: &ReducedLp) {
        let (size, columns) = (self.size(), lp.columns());
        let first = lp.equalities;
        if !self.basic_slack[first..size].contains(&true) {
            return;
        }
        let mut kept = 0;
        for position in 0..size {
            let row = (self.head[position] as usize).checked_sub(columns);
            if row.is_none_or(|row| row < first || !self.basic_slack[row]) {
                self.head[kept] = self.head[position];
                for list in [
                    &mut self.lower,
                    &mut self.upper,
                    &mut self.cost,
                    &mut self.values,
                    &mut self.weights,
                ] {
                    list[kept] = list[position];
                }
                kept += 1;
            }
        }
        let mut next = first;
        for row in first..size {
            if !self.basic_slack[row] {
                self.rows[next] = self.rows[row];
                self.duals[next] = self.duals[row];
                next += 1;
            }
        }
        self.rows.truncate(next);
        self.duals[next..].fill(0.0);
        self.basic_slack[first..size].fill(false);
        self.find_rows(lp);
        self.stale = true;
    }

    /// Flips columns whose reduced costs have the wrong sign to their other bounds.
    fn flip_wrong_signs(&mut self, lp: &ReducedLp) {
        let most = tolerance::DUAL * lp.cost_scale;
        let columns = self.sense.iter_mut().zip(&self.reduced);
        for ((sense, reduced), range) in columns.zip(&lp.ranges) {
            if *sense * reduced < -most && range.is_finite() {
                *sense = -*sense;
            }
        }
    }

    /// Moves a column at a bound by `step`.
    #[inline]
    pub(super) fn move_by(&mut self, lp: &ReducedLp, column: usize, step: f64) {
        if step != 0.0 {
            self.bound_cost += lp.cost[column] * step;
            for &(row, value) in lp.by_column.list(column) {
                self.activity[row as usize] += value * step;
            }
        }
    }

    /// Computes dual values and reduced costs from the inverse.
    pub(super) fn compute_duals(&mut self, input: StageInput<'_>) {
        let size = self.size();
        self.factors.btran(&self.cost[..size], &mut self.duals);
        self.compute_reduced(input);
    }

    /// Computes reduced costs from dual values, after setting negative dual values of inequalities
    /// to zero.
    fn compute_reduced(&mut self, input: StageInput<'_>) {
        let (lp, size) = (input.lp, self.size());
        let mut changed = false;
        for dual in &mut self.duals[lp.equalities..size] {
            if *dual < 0.0 {
                *dual = 0.0;
                changed = true;
            }
        }
        if changed {
            self.balance_cuts(lp);
        }
        self.reduced.copy_from_slice(&lp.cost[..lp.plain]);
        for (&row, &dual) in self.rows.iter().zip(&self.duals) {
            add_row(input, row, -dual, &mut self.reduced);
        }
    }

    /// The magnitude of the terms that a plain column's reduced cost is the sum of.
    pub(super) fn terms(&mut self, input: StageInput<'_>, column: usize) -> f64 {
        let list = &mut self.scratch.entering;
        Self::column(input, &self.rows, &self.row_places, column, list);
        let cost = input.lp.cost[column].abs();
        let terms = list.iter().map(|&(row, value)| value * self.duals[row]);
        terms.fold(cost, |sum, term| sum + term.abs())
    }

    /// Scales the dual values of cuts to a sum of one where the cost to go is basic: an error there
    /// weighs as much as the cost to go is large.
    fn balance_cuts(&mut self, lp: &ReducedLp) {
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

    /// Computes the values of basic variables from the inverse.
    #[inline]
    pub(super) fn compute_values(&mut self, input: StageInput<'_>) {
        let (lp, size) = (input.lp, self.size());
        self.bound_state(lp);
        let rhs = &mut self.scratch.rhs;
        for (rhs, &row) in rhs.iter_mut().zip(&self.rows) {
            let row = row as usize;
            *rhs = match row.checked_sub(lp.rows) {
                None => input.rhs[row] - self.activity[row],
                Some(cut) => input.cuts.above(lp, cut, &self.state, self.future),
            };
        }
        rhs[size..padded(size)].fill(0.0);
        self.factors.ftran(&rhs[..padded(size)], &mut self.values);
    }

    /// Computes the free states and the cost to go, with zero for those that are basic.
    #[inline]
    fn bound_state(&mut self, lp: &ReducedLp) {
        for place in 0..self.state.len() {
            let column = lp.free_states[place].1;
            self.state[place] = self.at_bound(lp, column);
        }
        self.future = lp.future.map_or(0.0, |column| self.at_bound(lp, column));
    }

    /// Computes the free states and the cost to go.
    #[inline]
    pub(super) fn compute_state(&mut self, lp: &ReducedLp) {
        self.bound_state(lp);
        let columns = lp.columns();
        for (&variable, &value) in self.head[..self.rows.len()].iter().zip(&self.values) {
            let column = variable as usize;
            if column < columns {
                if let Some(place) = lp.free_state_of[column] {
                    self.state[place as usize] = value;
                } else if lp.future == Some(column) {
                    self.future = value;
                }
            }
        }
    }

    /// Adds a row of the linear program or a cut, with its slack basic at `value`.
    pub(super) fn add_row(&mut self, input: StageInput<'_>, row: u32, value: f64) {
        let (lp, size) = (input.lp, self.size());
        let columns = lp.columns();
        // Columns of curves are in equalities only.
        let coefficients = &mut self.scratch.row_coefficients;
        row_terms(input, row, |column, value| coefficients[column] += value);
        let border = &mut self.scratch.pivot_column;
        for (border, &variable) in border.iter_mut().zip(&self.head[..size]) {
            let coefficient = coefficients.get(variable as usize);
            *border = coefficient.copied().unwrap_or(0.0);
        }
        row_terms(input, row, |column, _| coefficients[column] = 0.0);
        self.factors.add_row(&border[..size]);
        self.basic_slack[size] = self.factors.sparse().is_some();
        self.weights[size] = 1.0;
        self.rows.push(row);
        if (row as usize) < lp.rows {
            self.row_places[row as usize] = size as u32;
        }
        self.duals[size] = 0.0;
        self.put(lp, size, columns + size);
        self.values[size] = value;
    }

    /// Drops a row whose slack is basic at `position`.
    pub(super) fn drop_row(&mut self, lp: &ReducedLp, row: usize, position: usize) {
        let (last, columns) = (self.size() - 1, lp.columns());
        if let Factorization::Dense(inverse) = &mut self.factors {
            inverse.drop(position, row);
        }
        let gone = self.rows[row] as usize;
        if gone < lp.rows {
            self.row_places[gone] = NO_ROW;
        }
        self.head[position] = self.head[last];
        for list in [
            &mut self.lower,
            &mut self.upper,
            &mut self.cost,
            &mut self.values,
        ] {
            list[position] = list[last];
        }
        self.rows.swap_remove(row);
        self.duals[row] = self.duals[last];
        self.duals[last] = 0.0;
        if row != last {
            let moved = self.rows[row] as usize;
            if moved < lp.rows {
                self.row_places[moved] = row as u32;
            }
            let own = |variable: &&mut u32| **variable as usize == columns + last;
            if let Some(variable) = self.head[..last].iter_mut().find(own) {
                *variable = (columns + row) as u32;
            }
        }
    }

    /// The objective value.
    #[inline]
    pub(super) fn value(&self) -> f64 {
        let costs = self.cost.iter().zip(&self.values);
        let basic = costs.take(self.rows.len());
        basic.fold(self.bound_cost, |sum, (cost, value)| sum + cost * value)
    }

    /// The values of all columns.
    pub(super) fn column_values(&self, lp: &ReducedLp, into: &mut Vec<f64>) {
        into.clear();
        into.extend((0..lp.columns()).map(|column| self.at_bound(lp, column)));
        for (&variable, &value) in self.head[..self.size()].iter().zip(&self.values) {
            if let Some(column) = into.get_mut(variable as usize) {
                *column = value;
            }
        }
    }
}

/// Adds `factor` × the coefficients of a row of the linear program, or of a cut, to `into`.
#[inline]
pub(super) fn add_row(input: StageInput<'_>, row: u32, factor: f64, into: &mut [f64]) {
    if factor != 0.0 {
        row_terms(input, row, |column, value| into[column] += factor * value);
    }
}

/// Passes on the columns and coefficients of a row of the linear program, or of a cut.
#[inline]
pub(super) fn row_terms(input: StageInput<'_>, row: u32, mut term: impl FnMut(usize, f64)) {
    let lp = input.lp;
    match (row as usize).checked_sub(lp.rows) {
        None => {
            for &(column, value) in lp.by_row.list(row as usize) {
                term(column as usize, value);
            }
        }
        Some(cut) => {
            if let Some(future) = lp.future {
                term(future, 1.0);
            }
            let slopes = input.cuts.slopes(lp, cut);
            for (slope, &(_, column)) in slopes.zip(&lp.free_states) {
                term(column, -slope);
            }
        }
    }
}
