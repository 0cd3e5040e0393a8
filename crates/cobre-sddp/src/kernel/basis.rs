//! The working basis of a solve.
//!
//! Its rows are all equalities and the inequalities and cuts that are tight. Every row has a slack
//! variable, the amount by which it exceeds its right-hand side: fixed at 0 for equalities, at
//! least 0 for the others. An inequality whose slack enters the basis leaves the basis with its
//! row.

use super::basis_rows::add_row;
use super::curve::CurveState;
use super::cut_table::CutTable;
use super::factorization::Factorization;
use super::index_list::IndexList;
use super::inverse::{Singular, padded};
use super::lu::Factorizer;
use super::outside_rows::OutsideRows;
use super::ratio::Candidates;
use super::reduced_lp::ReducedLp;
use super::sparse::Sparse;
use super::tolerance;

/// Marks a row of the linear program that is not a row of the basis.
pub(super) const NO_ROW: u32 = u32::MAX;

/// The input of a solve: the linear program of a stage with its cuts and right-hand sides.
#[derive(Clone, Copy)]
pub(super) struct StageInput<'a> {
    pub(super) lp: &'a ReducedLp,
    pub(super) cuts: CutTable<'a>,
    /// By row of the linear program.
    pub(super) rhs: &'a [f64],
}

/// The sizes of a linear program that decide those of a basis.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Dimensions {
    rows: usize,
    plain: usize,
    curves: usize,
    free_states: usize,
    is_dense: bool,
}

impl Dimensions {
    fn of(lp: &ReducedLp) -> Self {
        Self {
            rows: lp.rows,
            plain: lp.plain,
            curves: lp.curves.len(),
            free_states: lp.free_states.len(),
            is_dense: lp.is_dense,
        }
    }
}

/// A basis with its inverse, values, dual values and reduced costs. Variables are numbered: columns
/// first, then the slacks of the rows of the basis.
#[derive(Debug, Default)]
pub(super) struct Basis {
    /// Those that it has room for.
    dimensions: Option<Dimensions>,
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
    /// The cuts among its rows, in order: the row in the basis, and the place of the cut.
    pub(super) cuts: Vec<(u32, u32)>,
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
    /// Pivots at the next search for violated cuts.
    pub(super) next_cut_check: u64,
    /// With hyperplane groups, the rows outside the basis.
    pub(super) outside: OutsideRows,
    pub(super) scratch: Scratch,
}

/// Work space.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) rhs: Vec<f64>,
    pub(super) pivot_row: Vec<f64>,
    pub(super) pivot_column: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    /// With sparse factors: the columns whose element of `alpha` is set, and the nonzero elements of `pivot_row` and
    /// `pivot_column`.
    pub(super) touched: IndexList,
    /// With sparse factors, by plain column: 1 if it is touched or basic, else 0.
    pub(super) marks: Vec<u8>,
    pub(super) row_list: IndexList,
    pub(super) column_list: IndexList,
    /// With sparse factors, by position: the score of the infeasibility.
    pub(super) scores: Vec<f64>,
    pub(super) entering: Vec<(usize, f64)>,
    pub(super) shift: Vec<f64>,
    pub(super) activity: Vec<f64>,
    pub(super) candidates: Candidates,
    pub(super) chosen: IndexList,
    pub(super) flips: Vec<u32>,
    /// Segments of curves whose bound is flipped, and whether they are on afterwards.
    pub(super) flipped_segments: Vec<(usize, bool)>,
    pub(super) matrix: Vec<f64>,
    pub(super) column_matrix: Sparse,
    /// By plain column: its position, and the count of pivots for which that holds.
    pub(super) positions: Vec<u32>,
    pub(super) positions_at: Option<u64>,
    pub(super) factorizer: Factorizer,
    pub(super) column_of: Vec<u32>,
    pub(super) permuted: Vec<f64>,
    pub(super) violated_places: IndexList,
    pub(super) violated_rows: Vec<(f64, u32, f64)>,
}

impl Scratch {
    /// Sets the touched elements of `alpha` to zero.
    pub(super) fn clear_alpha(&mut self) {
        for &column in &*self.touched {
            self.alpha[column as usize] = 0.0;
            self.marks[column as usize] = 0;
        }
        self.touched.clear();
    }
}

impl Basis {
    /// Makes room for any basis of the linear program; loads and cold starts fill it.
    pub(super) fn fit(&mut self, lp: &ReducedLp) {
        self.stale = false;
        let dimensions = Some(Dimensions::of(lp));
        if self.dimensions == dimensions {
            return;
        }
        self.dimensions = dimensions;
        let length = padded(lp.largest_basis());
        self.rows.clear();
        self.rows.reserve(length);
        self.head.resize(length, 0);
        self.row_places.resize(lp.rows, NO_ROW);
        self.basic_slack.resize(length, false);
        let states = lp.start_curve_states.len();
        self.curve_states.resize(states, CurveState::default());
        self.factors.fit(lp);
        let scratch = &mut self.scratch;
        // Elements that are not touched are zero.
        scratch.clear_alpha();
        scratch.marks.resize(lp.plain, 0);
        scratch.positions.resize(lp.plain, NO_ROW);
        scratch.positions_at = None;
        self.outside.fit(lp);
        let candidates = lp.plain + lp.curves.len() + length;
        scratch.candidates.fit(candidates);
        self.fit_numbers(lp, length);
    }

    fn fit_numbers(&mut self, lp: &ReducedLp, length: usize) {
        let scratch = &mut self.scratch;
        for by_position in [
            &mut self.lower,
            &mut self.upper,
            &mut self.cost,
            &mut self.values,
            &mut self.duals,
            &mut self.weights,
            &mut scratch.rhs,
            &mut scratch.pivot_row,
            &mut scratch.pivot_column,
            &mut scratch.scores,
            &mut scratch.shift,
        ] {
            by_position.resize(length, 0.0);
        }
        for by_column in [&mut self.sense, &mut self.reduced, &mut scratch.alpha] {
            by_column.resize(lp.plain, 0.0);
        }
        for by_row in [&mut self.activity, &mut scratch.activity] {
            by_row.resize(lp.rows, 0.0);
        }
        self.state.resize(lp.free_states.len(), 0.0);
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
        self.outside.reset_weights();
        self.stale = false;
        self.duals.fill(0.0);
        self.sense.copy_from_slice(&lp.start);
        self.reduced.copy_from_slice(&lp.cost[..lp.plain]);
        self.curve_states.copy_from_slice(&lp.start_curve_states);
        self.activity.copy_from_slice(&lp.start_activity);
        self.bound_cost = lp.start_cost;
        self.age = 0;
    }

    /// Makes a variable basic at a position.
    #[inline]
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
    #[inline]
    pub(super) fn column(
        input: StageInput<'_>,
        cuts: &[(u32, u32)],
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
        let of_cuts = Self::column_of_cuts(input, cuts, column);
        into.extend(of_cuts.map(|(place, value)| (place as usize, value)));
    }

    /// The entries of a column in the rows of cuts.
    #[inline]
    pub(super) fn column_of_cuts<'a>(
        input: StageInput<'a>,
        cuts: &'a [(u32, u32)],
        column: usize,
    ) -> impl Iterator<Item = (u32, f64)> + 'a {
        let lp = input.lp;
        let free_state = lp.free_state_of[column];
        let is_in_cuts = free_state.is_some() || lp.future == Some(column);
        let cuts = if is_in_cuts { cuts } else { &[] };
        cuts.iter().map(move |&(place, cut)| {
            let value = free_state.map_or(1.0, |free_state| {
                -input.cuts.slope(lp, cut as usize, free_state as usize)
            });
            (place, value)
        })
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
        self.compute_bound_activity(lp);
        Ok(())
    }

    /// Computes the activity of rows from columns at bounds, and the cost of these.
    pub(super) fn compute_bound_activity(&mut self, lp: &ReducedLp) {
        self.activity.fill(0.0);
        self.bound_cost = 0.0;
        for (curve, mark) in lp.curves.iter().zip(&self.curve_states) {
            let (activity, cost) = curve.at_bounds(lp.members(curve), *mark);
            self.activity[curve.row] += activity;
            self.bound_cost += cost;
        }
        for column in 0..lp.plain {
            let (sense, lower, upper) = (self.sense[column], lp.lower[column], lp.upper[column]);
            // Without a branch: the processor would not foresee the sense.
            let bound = if sense > 0.0 { lower } else { upper };
            self.move_by(lp, column, if sense == 0.0 { 0.0 } else { bound });
        }
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
                Self::column(input, &self.cuts, &self.row_places, variable, entering);
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
    pub(super) fn compute_reduced(&mut self, input: StageInput<'_>) {
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
        self.outside.set_stale();
        self.factors.ftran(&rhs[..padded(size)], &mut self.values);
    }

    /// Computes the free states and the cost to go, with zero for those that are basic.
    #[inline]
    pub(super) fn bound_state(&mut self, lp: &ReducedLp) {
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
