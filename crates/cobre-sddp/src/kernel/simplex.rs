//! The dual simplex method, from a dual feasible basis to an optimal one. Costs never change, so
//! every basis found before is dual feasible.

use super::basis::{Basis, NO_ROW, StageInput};
use super::basis_rows::add_row;
use super::curve::CurveState;
use super::factorization::{DROP, Factorization};
#[cfg(test)]
use super::fault::Fault;
use super::inverse::{Singular, dot, padded};
use super::ratio::{Candidate, Candidates};
use super::reduced_lp::ReducedLp;
use super::sparse_pricing::find_nonzero;
use super::tolerance;

/// The reason why a solve ended without a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SolveError {
    /// The ratio test finds no entering variable: the linear program is infeasible, or the inverse is
    /// inexact.
    Infeasible,
    /// The pivot element computed by row differs from that computed by column.
    Unstable,
    /// The basis is singular.
    Singular,
    /// The iteration limit is reached.
    IterationLimit,
    /// An artificial bound is active: the linear program may be unbounded.
    ArtificialBound,
    /// The solution fails its check.
    CheckFailed,
}

impl From<Singular> for SolveError {
    fn from(Singular: Singular) -> Self {
        Self::Singular
    }
}

/// The state of a solve that has made no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SolveState {
    /// The basis is optimal.
    Optimal,
    /// The sparse factors have many updates: they are to be computed anew before the solve goes on.
    Long,
}

/// The accuracy of the values of basic variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueState {
    /// Updated by pivots.
    Updated,
    /// Computed from the inverse.
    Computed,
    /// Computed from the inverse, and refined until the rows of the basis hold.
    Refined,
}

impl Basis {
    /// Solves, and counts pivots. At the optimum, values, the state and the cost to go are computed; dual values and
    /// reduced costs are as pivots left them.
    #[inline]
    pub(super) fn solve(
        &mut self,
        input: StageInput<'_>,
        pivots: &mut usize,
    ) -> Result<SolveState, SolveError> {
        let most = tolerance::MAX_PIVOTS + tolerance::PIVOTS_PER_ROW * input.lp.largest_basis();
        let (mut values, mut new) = (ValueState::Computed, *pivots > 0);
        self.scratch.positions_at = None;
        self.next_cut_check = self.pivots;
        self.compute_values(input);
        loop {
            if self.factors.is_long() {
                return Ok(SolveState::Long);
            }
            if self.is_cut_check_due(input.lp) {
                self.add_violated_cut(input);
            }
            let position = if let Some(position) = self.leaving(input) {
                position
            } else if self.add_violated_rows(input) {
                continue;
            } else if let Some((row, value)) = self.violated(input) {
                if let Some(position) = self.price_basic_slack(input.lp, row, value) {
                    position
                } else if self.rows.contains(&row) || self.is_full() {
                    new = self.mend_values(input, values, new)?;
                    values = ValueState::Refined;
                    continue;
                } else {
                    self.add_row(input, row, value);
                    self.size() - 1
                }
            } else if values == ValueState::Refined
                || values == ValueState::Computed && self.rows_hold(input)
            {
                return self.artificial(input).map(|()| SolveState::Optimal);
            } else {
                let old = !input.lp.artificial.is_empty() || self.age > tolerance::MAX_AGE;
                if values == ValueState::Updated && old {
                    self.refactor(input)?;
                    new = true;
                }
                new = self.refine_or_refactor(input, new)?;
                values = ValueState::Refined;
                continue;
            };
            *pivots += 1;
            if *pivots > most {
                return Err(SolveError::IterationLimit);
            }
            match self.pivot(input, position) {
                Ok(()) => (values, new) = (ValueState::Updated, false),
                Err(error) if new => return Err(error),
                Err(_) => {
                    self.refactor_and_refine(input)?;
                    (values, new) = (ValueState::Refined, true);
                }
            }
        }
    }

    /// Mends values that break a row of the basis, by a new inverse if they are refined; returns whether the inverse
    /// is new.
    fn mend_values(
        &mut self,
        input: StageInput<'_>,
        values: ValueState,
        new: bool,
    ) -> Result<bool, SolveError> {
        if new {
            return Err(SolveError::Unstable);
        }
        if values == ValueState::Refined {
            self.refactor_and_refine(input)?;
            return Ok(true);
        }
        self.refine_or_refactor(input, new)
    }

    /// Refines values, with a refactorisation if the inverse, unless it is new, is not exact
    /// enough; returns whether the inverse is new.
    fn refine_or_refactor(&mut self, input: StageInput<'_>, new: bool) -> Result<bool, SolveError> {
        match self.refine_values(input) {
            Ok(()) => Ok(new),
            Err(error) if new => Err(error),
            Err(_) => self.refactor_and_refine(input).map(|()| true),
        }
    }

    /// Refactors because of numerical trouble, and refines the values.
    fn refactor_and_refine(&mut self, input: StageInput<'_>) -> Result<(), SolveError> {
        self.refactored += 1;
        self.refactor(input)?;
        self.refine_values(input)
    }

    /// Checks that no artificial bound is active.
    fn artificial(&self, input: StageInput<'_>) -> Result<(), SolveError> {
        let lp = input.lp;
        let held = |&column: &usize| self.sense[column] == lp.start[column];
        if lp.artificial.iter().any(held) {
            return Err(SolveError::ArtificialBound);
        }
        Ok(())
    }

    /// The leaving position: the one with the largest infeasibility, by dual steepest edge unless
    /// the basis is small, and by devex weights with sparse factors.
    #[inline]
    fn leaving(&mut self, input: StageInput<'_>) -> Option<usize> {
        let Factorization::Dense(inverse) = &self.factors else {
            if Self::prices_outside(input.lp) {
                return self.leaving_of_all(input);
            }
            return self.leaving_by_weights();
        };
        let (mut most, mut found) = (0.0, None);
        let size = self.size();
        let by_edges = size > tolerance::SMALL;
        // Ranges and slices of one length: no bounds are checked in the loop, and no overflow.
        let values = (0..size).zip(&self.values[..size]);
        let bounds = self.lower[..size].iter().zip(&self.upper[..size]);
        for ((position, &value), (&lower, &upper)) in values.zip(bounds) {
            let (below, above) = (lower - value, value - upper);
            let (beyond, bound) = if below > above {
                (below, lower)
            } else {
                (above, upper)
            };
            if beyond > 0.0 && beyond > tolerance::primal(bound) {
                let score = if by_edges {
                    let row = inverse.row(position);
                    beyond * beyond / dot(row, row)
                } else {
                    beyond
                };
                // Whatever its weight, an infeasibility is never overlooked.
                if found.is_none() || score > most {
                    (most, found) = (score, Some(position));
                }
            }
        }
        found
    }

    /// The most violated row of the linear program that is not in the basis, or else the most
    /// violated cut; with the value of its slack.
    #[inline]
    pub(super) fn violated(&mut self, input: StageInput<'_>) -> Option<(u32, f64)> {
        let lp = input.lp;
        if lp.rows > lp.equalities
            && lp.is_dense
            && let Some(found) = self.violated_row(input)
        {
            return Some(found);
        }
        self.compute_state(lp);
        lp.future?;
        #[cfg(test)]
        if Fault::OverlookedCuts.is_on() {
            return None;
        }
        let (cut, above) = input.cuts.most_violated(&self.state, self.future)?;
        Some(((lp.rows + cut) as u32, -above))
    }

    /// Computes the activity of each row of the linear program.
    #[inline]
    pub(super) fn compute_activity(&mut self, lp: &ReducedLp) {
        let activity = &mut self.scratch.activity;
        activity.copy_from_slice(&self.activity);
        for (&variable, &value) in self.head[..self.rows.len()].iter().zip(&self.values) {
            if (variable as usize) < lp.columns() {
                for &(row, coefficient) in lp.by_column.list(variable as usize) {
                    activity[row as usize] += coefficient * value;
                }
            }
        }
    }

    fn violated_row(&mut self, input: StageInput<'_>) -> Option<(u32, f64)> {
        let lp = input.lp;
        self.compute_activity(lp);
        let (mut most, mut found) = (0.0, None);
        for (score, row, value) in self.violations(input) {
            if score > most {
                (most, found) = (score, Some((row, value)));
            }
        }
        found
    }

    /// The violated inequalities that are not in the basis, by the activity last computed: the violation scaled by the
    /// norm of the row, the row, and the value of its slack.
    #[inline]
    pub(super) fn violations(
        &mut self,
        input: StageInput<'_>,
    ) -> impl Iterator<Item = (f64, u32, f64)> {
        let lp = input.lp;
        let scratch = &mut self.scratch;
        let (activity, first) = (&scratch.activity, lp.equalities);
        let inequalities = activity[first..].iter().zip(&input.rhs[first..]);
        // Without a branch for each row.
        let violated = &mut scratch.violated_places;
        let (mut count, places) = (0, violated.places(lp.rows - first + 1));
        for (place, (activity, &rhs)) in (0..).zip(inequalities) {
            places[count] = place;
            count += usize::from(rhs - activity > tolerance::primal(rhs));
        }
        violated.set_count(count);
        let row_places = &self.row_places;
        violated.iter().filter_map(move |&place| {
            let row = first + place as usize;
            let below = input.rhs[row] - activity[row];
            let is_outside = row_places[row] == NO_ROW;
            is_outside.then(|| (below * lp.row_scale[row], row as u32, -below))
        })
    }

    /// One pivot: the variable at `position` leaves.
    fn pivot(&mut self, input: StageInput<'_>, position: usize) -> Result<(), SolveError> {
        let below = self.values[position] < self.lower[position];
        let bound = if below {
            self.lower[position]
        } else {
            self.upper[position]
        };
        let infeasible = (self.values[position] - bound).abs();
        self.compute_pivot_row(input, position);
        let entering = self.ratio_test(input, position, below, infeasible);
        let entering = entering.ok_or(SolveError::Infeasible)?;
        let alpha = self.compute_pivot_column(input, entering);
        if !input.lp.is_dense {
            let scratch = &mut self.scratch;
            let column = &scratch.pivot_column[..self.rows.len()];
            find_nonzero(column, DROP, &mut scratch.column_list);
        }
        let pivot = self.scratch.pivot_column[position];
        let leaving = self.head[position] as usize;
        let unit = self.unit(input.lp, entering) / self.unit(input.lp, leaving);
        let (unit, is_dense) = (unit.max(1.0), input.lp.is_dense);
        if self.age > 0 && !tolerance::is_safe_pivot(is_dense, unit * alpha, unit * pivot) {
            return Err(SolveError::Unstable);
        }
        #[cfg(test)]
        if Fault::MissedFlips.is_on() {
            self.scratch.flips.clear();
        }
        self.flip_bounds(input);
        self.update_duals(input, position, entering, alpha);
        self.update_basis(input, position, entering, bound, below);
        self.age += 1;
        self.pivots += 1;
        Ok(())
    }

    /// Computes the pivot row: the leaving variable as a function of every column.
    #[inline]
    fn compute_pivot_row(&mut self, input: StageInput<'_>, position: usize) {
        let scratch = &mut self.scratch;
        self.factors.inverse_row(position, &mut scratch.pivot_row);
        if !input.lp.is_dense {
            self.compute_sparse_pivot_row(input);
            return;
        }
        scratch.alpha.fill(0.0);
        for (&row, &factor) in self.rows.iter().zip(&scratch.pivot_row) {
            add_row(input, row, factor, &mut scratch.alpha);
        }
    }

    /// The entering variable; leaves the columns to be flipped in `flips`.
    #[inline]
    fn ratio_test(
        &mut self,
        input: StageInput<'_>,
        position: usize,
        below: bool,
        infeasible: f64,
    ) -> Option<usize> {
        let lp = input.lp;
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        let mut flips = std::mem::take(&mut self.scratch.flips);
        let slack = tolerance::DUAL_STEP * lp.cost_scale;
        candidates.clear();
        self.column_candidates(input, below, slack, &mut candidates);
        for (number, curve) in lp.curves.iter().enumerate() {
            let (mark, factor) = (self.curve_states[number], self.scratch.pivot_row[curve.row]);
            let basic = mark.basic.then(|| curve.columns.start + mark.on as usize);
            if basic.is_some_and(|column| column != self.head[position] as usize) {
                continue;
            }
            let rises = (factor < 0.0) == below;
            if let Some((column, _)) = curve.next(mark, rises)
                && factor.abs() * lp.segments[column - lp.plain].factor.abs() > tolerance::PIVOT
            {
                candidates.push(self.candidate(input, column, rises), slack);
            }
        }
        self.row_candidates(input, position, below, slack, &mut candidates);
        let after = |id: usize| {
            let segment = lp.segments.get(id.checked_sub(lp.plain)?)?;
            let curve = &lp.curves[segment.curve];
            let rises = (self.scratch.pivot_row[curve.row] < 0.0) == below;
            let next = if rises { id + 1 } else { id.wrapping_sub(1) };
            let inside = curve.columns.contains(&next);
            inside.then(|| self.candidate(input, next, rises))
        };
        let entering = candidates.choose(infeasible, slack, &mut flips, after);
        (self.scratch.candidates, self.scratch.flips) = (candidates, flips);
        entering
    }

    /// The candidate of a segment as the dual value of its row rises or falls.
    #[inline]
    fn candidate(&self, input: StageInput<'_>, column: usize, rises: bool) -> Candidate {
        let lp = input.lp;
        let segment = &lp.segments[column - lp.plain];
        let row = lp.curves[segment.curve].row;
        let reduced = segment.reduced(self.duals[row]);
        Candidate {
            id: column,
            reduced: if rises { reduced } else { -reduced },
            size: (self.scratch.pivot_row[row] * segment.factor).abs(),
            range: lp.ranges[column],
        }
    }

    /// Writes to `chosen` the columns whose reduced cost shrinks.
    #[inline]
    fn choose_columns(&mut self, lp: &ReducedLp, below: bool) {
        let scratch = &mut self.scratch;
        let direction = if below { -1.0 } else { 1.0 };
        #[cfg(test)]
        let is_wrong = Fault::WrongSign.is_on();
        let shrinks = |alpha: f64, sense: f64| {
            #[cfg(test)]
            let sense = if is_wrong { sense.abs() } else { sense };
            direction * sense * alpha > tolerance::PIVOT
        };
        // Without a branch for each column: the choice is unpredictable.
        let (mut count, chosen) = (0, scratch.chosen.places(lp.plain + 1));
        if lp.is_dense {
            // Ranges and slices of one length: no bounds are checked in the loop, and no overflow.
            let columns = (0..lp.plain as u32).zip(&scratch.alpha).zip(&self.sense);
            for ((column, &alpha), &sense) in columns {
                chosen[count] = column;
                count += usize::from(shrinks(alpha, sense));
            }
        } else {
            for &column in &*scratch.touched {
                let at = column as usize;
                chosen[count] = column;
                count += usize::from(shrinks(scratch.alpha[at], self.sense[at]));
            }
        }
        scratch.chosen.set_count(count);
    }

    #[inline]
    fn column_candidates(
        &mut self,
        input: StageInput<'_>,
        below: bool,
        slack: f64,
        candidates: &mut Candidates,
    ) {
        let lp = input.lp;
        let rounding = tolerance::ROUNDING * lp.cost_scale;
        self.choose_columns(lp, below);
        let scratch = &mut self.scratch;
        for &column in &*scratch.chosen {
            let column = column as usize;
            let candidate = Candidate {
                id: column,
                reduced: self.sense[column] * self.reduced[column],
                size: scratch.alpha[column].abs(),
                range: lp.ranges[column],
            };
            // A small cost must not vanish in the tolerance of large ones.
            let (cost, reduced) = (lp.cost[column], self.reduced[column]);
            let own = tolerance::OWN_STEP * (cost.abs() + (cost - reduced).abs());
            candidates.push(candidate, slack.min(rounding + own));
        }
        for &column in &lp.free {
            let size = scratch.alpha[column].abs();
            let basic = || self.head[..self.rows.len()].contains(&(column as u32));
            if size > tolerance::PIVOT && self.sense[column] == 0.0 && !basic() {
                let candidate = Candidate {
                    id: column,
                    reduced: 0.0,
                    size,
                    range: f64::INFINITY,
                };
                candidates.push(candidate, slack);
            }
        }
    }

    /// The unit of a variable, in which pivot elements are compared.
    #[inline]
    fn unit(&self, lp: &ReducedLp, variable: usize) -> f64 {
        if is_cost(lp, &self.rows, variable) {
            lp.cut_unit
        } else {
            1.0
        }
    }

    /// The candidates among slacks of inequalities and cuts.
    #[inline]
    fn row_candidates(
        &self,
        input: StageInput<'_>,
        position: usize,
        below: bool,
        slack: f64,
        candidates: &mut Candidates,
    ) {
        let lp = input.lp;
        let direction = if below { 1.0 } else { -1.0 };
        let leaving = self.head[position] as usize;
        let own = lp.columns();
        let leaving_unit = self.unit(lp, leaving);
        let mut consider = |row: usize| {
            let element = direction * self.scratch.pivot_row[row];
            if element <= 0.0 {
                return;
            }
            let is_cut = self.rows[row] as usize >= lp.rows;
            let (unit, least) = if is_cut && lp.is_dense {
                (lp.cut_unit, leaving_unit * tolerance::CUT_PIVOT)
            } else {
                (1.0, tolerance::PIVOT)
            };
            let size = unit * element;
            if size > least && leaving != own + row && !self.basic_slack[row] {
                let candidate = Candidate {
                    id: own + row,
                    reduced: unit * self.duals[row],
                    size,
                    range: f64::INFINITY,
                };
                let slack = if is_cut {
                    unit * tolerance::CUT_STEP
                } else {
                    slack
                };
                candidates.push(candidate, slack);
            }
        };
        if lp.is_dense {
            (lp.equalities..self.rows.len()).for_each(consider);
        } else {
            let rows = self.scratch.row_list.iter().map(|&row| row as usize);
            let inequalities = rows.skip_while(|&row| row < lp.equalities);
            for row in inequalities {
                consider(row);
            }
        }
    }

    /// Computes the pivot column of a variable; returns its entry in the pivot row.
    #[inline]
    fn compute_pivot_column(&mut self, input: StageInput<'_>, entering: usize) -> f64 {
        let columns = input.lp.columns();
        let scratch = &mut self.scratch;
        if entering < columns {
            let list = &mut scratch.entering;
            Self::column(input, &self.cuts, &self.row_places, entering, list);
            self.factors.ftran_sparse(list, &mut scratch.pivot_column);
            scratch.alpha.get(entering).copied().unwrap_or_else(|| {
                let segment = &input.lp.segments[entering - input.lp.plain];
                let row = input.lp.curves[segment.curve].row;
                scratch.pivot_row[row] * segment.factor
            })
        } else {
            let row = entering - columns;
            self.factors
                .ftran_sparse(&[(row, -1.0)], &mut scratch.pivot_column);
            -scratch.pivot_row[row]
        }
    }

    /// Flips the columns that the ratio test has passed to their other bounds.
    #[inline]
    fn flip_bounds(&mut self, input: StageInput<'_>) {
        self.scratch.flipped_segments.clear();
        if self.scratch.flips.is_empty() {
            return;
        }
        let (lp, size) = (input.lp, self.size());
        self.scratch.shift[..padded(size)].fill(0.0);
        let flips = std::mem::take(&mut self.scratch.flips);
        for &column in &flips {
            let column = column as usize;
            if column >= lp.columns() {
                // A slack has no other bound; numbers of a damaged checkpoint may claim one.
                continue;
            }
            if column >= lp.plain {
                self.flip_segment(lp, column);
                continue;
            }
            let sense = self.sense[column];
            self.sense[column] = -sense;
            let step = sense * lp.ranges[column];
            self.move_by(lp, column, step);
            let scratch = &mut self.scratch;
            let list = &mut scratch.entering;
            Self::column(input, &self.cuts, &self.row_places, column, list);
            for &(row, value) in &*list {
                scratch.shift[row] += value * step;
            }
        }
        self.scratch.flips = flips;
        let scratch = &mut self.scratch;
        scratch.entering.clear();
        for (row, &shift) in scratch.shift[..size].iter().enumerate() {
            if shift != 0.0 {
                scratch.entering.push((row, shift));
            }
        }
        let change = &mut scratch.shift;
        self.factors.ftran_sparse(&scratch.entering, change);
        for (value, change) in self.values[..size].iter_mut().zip(&*change) {
            *value -= change;
        }
        if Self::prices_outside(lp) {
            self.flip_outside(lp);
        }
    }

    /// Flips a segment to its other bound.
    #[inline]
    fn flip_segment(&mut self, lp: &ReducedLp, column: usize) {
        let (segment, on) = self.segment(lp, column);
        let (segment, on) = (&lp.segments[segment], on == Some(true));
        let step = segment.value(!on) - segment.value(on);
        let row = lp.curves[segment.curve].row;
        self.bound_cost += segment.cost * step;
        self.activity[row] += segment.factor * step;
        self.scratch.shift[row] += segment.factor * step;
        self.scratch.flipped_segments.push((column, !on));
    }

    /// Updates dual values and reduced costs by the dual step.
    #[inline]
    fn update_duals(
        &mut self,
        input: StageInput<'_>,
        position: usize,
        entering: usize,
        alpha: f64,
    ) {
        let (lp, size) = (input.lp, self.size());
        let columns = lp.columns();
        let (reduced, sense) = if entering < lp.plain {
            (self.reduced[entering], self.sense[entering])
        } else if entering < columns {
            let (segment, on) = self.segment(lp, entering);
            let segment = &lp.segments[segment];
            let dual = self.duals[lp.curves[segment.curve].row];
            let reduced = segment.cost - dual * segment.factor;
            (reduced, segment.sense(on == Some(true)))
        } else {
            (self.duals[entering - columns], 1.0)
        };
        // A reduced cost that is beyond zero already, within the tolerance, makes no step back.
        let step = if reduced * sense < 0.0 {
            0.0
        } else {
            reduced / alpha
        };
        if step != 0.0 {
            let alpha = &self.scratch.alpha;
            if lp.is_dense {
                for (reduced, alpha) in self.reduced.iter_mut().zip(alpha) {
                    *reduced -= step * alpha;
                }
            } else {
                for &column in &*self.scratch.touched {
                    self.reduced[column as usize] -= step * alpha[column as usize];
                }
            }
            let pivot_row = &self.scratch.pivot_row;
            if lp.is_dense {
                for (dual, factor) in self.duals[..size].iter_mut().zip(pivot_row) {
                    *dual += step * factor;
                }
            } else {
                for &row in &*self.scratch.row_list {
                    self.duals[row as usize] += step * pivot_row[row as usize];
                }
            }
        }
        if let Some(reduced) = self.reduced.get_mut(self.head[position] as usize) {
            *reduced = -step;
        }
        if let Some(reduced) = self.reduced.get_mut(entering) {
            *reduced = 0.0;
        }
    }

    /// Updates the bound of the leaving variable, and the status of the entering one.
    #[inline]
    fn mark(&mut self, lp: &ReducedLp, leaving: usize, entering: usize, below: bool) {
        let place = |column: usize| {
            let segment = lp.segments.get(column.checked_sub(lp.plain)?)?;
            let start = lp.curves[segment.curve].columns.start;
            Some((segment, (column - start) as u32))
        };
        if let Some(sense) = self.sense.get_mut(leaving) {
            *sense = if below { 1.0 } else { -1.0 };
        } else if let Some((segment, place)) = place(leaving) {
            let on = u32::from((segment.sign > 0.0) != below);
            self.curve_states[segment.curve] = CurveState {
                on: place + on,
                basic: false,
            };
        }
        for &(column, on) in &self.scratch.flipped_segments {
            if let Some((segment, place)) = place(column) {
                let mark = &mut self.curve_states[segment.curve].on;
                *mark = if on {
                    (*mark).max(place + 1)
                } else {
                    (*mark).min(place)
                };
            }
        }
        if let Some(sense) = self.sense.get_mut(entering) {
            *sense = 0.0;
        } else if let Some((segment, place)) = place(entering) {
            self.curve_states[segment.curve] = CurveState {
                on: place,
                basic: true,
            };
        }
    }

    /// Updates the values by the primal step, and exchanges the leaving variable for the entering
    /// one.
    #[inline]
    fn update_basis(
        &mut self,
        input: StageInput<'_>,
        position: usize,
        entering: usize,
        bound: f64,
        below: bool,
    ) {
        let (lp, size) = (input.lp, self.size());
        let columns = lp.columns();
        let column = &self.scratch.pivot_column;
        // The flips have moved the leaving variable nearer to its bound.
        let step = (self.values[position] - bound) / column[position];
        if lp.is_dense {
            for (value, factor) in self.values[..size].iter_mut().zip(column) {
                *value -= step * factor;
            }
        } else {
            for &at in &*self.scratch.column_list {
                self.values[at as usize] -= step * column[at as usize];
            }
        }
        if Self::prices_outside(lp) {
            self.step_outside(lp, position, entering, step);
        }
        let leaving = self.head[position] as usize;
        let mut value = step;
        if entering < columns {
            let before = self.at_bound(lp, entering);
            self.move_by(lp, entering, -before);
            value += before;
        }
        if leaving < columns {
            self.move_by(lp, leaving, bound);
        }
        self.mark(lp, leaving, entering, below);
        self.move_position(leaving, entering, position);
        let scratch = &self.scratch;
        let column = (&scratch.pivot_column[..size], &scratch.column_list[..]);
        self.factors.exchange(position, column);
        self.put(lp, position, entering);
        self.values[position] = value;
        let entering = entering.checked_sub(columns);
        if !lp.is_dense {
            self.update_slacks(lp, position, leaving, entering);
        } else if let Some(row) = entering {
            self.drop_row(lp, row, position);
        }
    }
}

/// True if a variable is the cost to go or the slack of a cut, for the rows of the basis.
#[inline]
pub(super) fn is_cost(lp: &ReducedLp, rows: &[u32], variable: usize) -> bool {
    match variable.checked_sub(lp.columns()) {
        None => lp.future == Some(variable),
        Some(row) => rows[row] as usize >= lp.rows,
    }
}
