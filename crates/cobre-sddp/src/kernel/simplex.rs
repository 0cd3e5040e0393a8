//! The dual simplex method, from a basis whose reduced costs have the right signs to one whose
//! values are within their bounds. Costs never change, so every basis found before is a start.

use super::basis::{Basis, NO_ROW, Scene, add_row};
use super::curve::Mark;
#[cfg(test)]
use super::fault::Fault;
use super::inverse::{Singular, dot, padded};
use super::program::Program;
use super::ratio::{Candidate, Candidates};
use super::tolerance;

/// Why a solve did not end with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No variable can enter: the linear program has no solution, or the inverse is off.
    Stuck,
    /// A pivot has two values.
    Unstable,
    /// The basis has no inverse.
    Singular,
    /// There were too many pivots.
    Long,
    /// An invented bound is needed: the linear program may have no lower limit.
    Boxed,
    /// The answer fails its check.
    Wrong,
}

impl From<Singular> for Trouble {
    fn from(Singular: Singular) -> Self {
        Self::Singular
    }
}

/// Where the values of basic variables come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Pivots have moved them.
    Moved,
    /// The inverse.
    Computed,
    /// The inverse, and corrections until they keep the rows of the basis.
    Corrected,
}

impl Basis {
    /// Solves; returns the number of pivots. Values, the state and the cost to go are computed;
    /// dual values and reduced costs are as pivots left them.
    #[inline]
    pub(super) fn solve(&mut self, scene: Scene<'_>) -> Result<usize, Trouble> {
        let most =
            tolerance::MOST_PIVOTS + tolerance::PIVOTS_PER_ROW * scene.program.largest_basis();
        let mut pivots = 0;
        self.compute_values(scene);
        let (mut values, mut new) = (Values::Computed, false);
        loop {
            let position = if let Some(position) = self.leaving() {
                position
            } else if let Some((row, value)) = self.violated(scene) {
                if self.rows.contains(&row) || self.inverse.is_full() {
                    if new {
                        return Err(Trouble::Unstable);
                    }
                    if values == Values::Corrected {
                        self.renew(scene)?;
                        new = true;
                    } else {
                        new = self.settle(scene, new)?;
                    }
                    values = Values::Corrected;
                    continue;
                }
                self.add_row(scene, row, value);
                self.size() - 1
            } else if values == Values::Corrected
                || values == Values::Computed && self.keeps_rows(scene)
            {
                return self.boxed(scene).map(|()| pivots);
            } else {
                let old = !scene.program.boxed.is_empty() || self.age > tolerance::MOST_AGE;
                if values == Values::Moved && old {
                    self.refactor(scene)?;
                    new = true;
                }
                new = self.settle(scene, new)?;
                values = Values::Corrected;
                continue;
            };
            pivots += 1;
            if pivots > most {
                return Err(Trouble::Long);
            }
            match self.pivot(scene, position) {
                Ok(()) => (values, new) = (Values::Moved, false),
                Err(trouble) if new => return Err(trouble),
                Err(_) => {
                    self.renew(scene)?;
                    (values, new) = (Values::Corrected, true);
                }
            }
        }
    }

    /// Computes values, with a new inverse if the present one, unless it is new, is not exact
    /// enough; returns whether the inverse is new.
    fn settle(&mut self, scene: Scene<'_>, new: bool) -> Result<bool, Trouble> {
        match self.correct_values(scene) {
            Ok(()) => Ok(new),
            Err(trouble) if new => Err(trouble),
            Err(_) => self.renew(scene).map(|()| true),
        }
    }

    /// Computes everything anew because something is off.
    fn renew(&mut self, scene: Scene<'_>) -> Result<(), Trouble> {
        self.refactored += 1;
        self.refactor(scene)?;
        self.correct_values(scene)
    }

    /// Invented bounds hold nothing.
    fn boxed(&self, scene: Scene<'_>) -> Result<(), Trouble> {
        let program = scene.program;
        let held = |&column: &usize| self.sense[column] == program.start[column];
        if program.boxed.iter().any(held) {
            return Err(Trouble::Boxed);
        }
        Ok(())
    }

    /// The position that leaves: the one furthest outside its bounds, measured along the edge that
    /// it moves on unless the basis is small.
    #[inline]
    fn leaving(&self) -> Option<usize> {
        let (mut most, mut found) = (0.0, None);
        let size = self.size();
        let by_edges = size > tolerance::SMALL;
        let bounds = self.lower[..size].iter().zip(&self.upper[..size]);
        for (position, (&value, (&lower, &upper))) in self.values.iter().zip(bounds).enumerate() {
            let (below, above) = (lower - value, value - upper);
            let (beyond, bound) = if below > above {
                (below, lower)
            } else {
                (above, upper)
            };
            if beyond > 0.0 && beyond > tolerance::primal(bound) {
                let score = if by_edges {
                    let row = self.inverse.row(position);
                    beyond * beyond / dot(row, row)
                } else {
                    beyond
                };
                if score > most {
                    (most, found) = (score, Some(position));
                }
            }
        }
        found
    }

    /// A row of the program that is no row of the basis and is violated most, or else such a cut;
    /// with how far its own variable is below zero.
    #[inline]
    fn violated(&mut self, scene: Scene<'_>) -> Option<(u32, f64)> {
        let program = scene.program;
        if program.rows > program.equalities
            && let Some(found) = self.violated_row(scene)
        {
            return Some(found);
        }
        self.compute_state(program);
        program.future?;
        #[cfg(test)]
        if Fault::OverlookedCuts.is_on() {
            return None;
        }
        let (cut, above) = scene.cuts.most_violated(&self.state, self.future)?;
        Some(((program.rows + cut) as u32, -above))
    }

    fn violated_row(&mut self, scene: Scene<'_>) -> Option<(u32, f64)> {
        let program = scene.program;
        let activity = &mut self.scratch.activity;
        activity.copy_from_slice(&self.activity);
        for (&variable, &value) in self.head[..self.rows.len()].iter().zip(&self.values) {
            if (variable as usize) < program.columns() {
                for &(row, coefficient) in program.by_column.list(variable as usize) {
                    activity[row as usize] += coefficient * value;
                }
            }
        }
        let (mut most, mut found) = (0.0, None);
        let rows = activity.iter().enumerate().skip(program.equalities);
        for (row, activity) in rows {
            let below = scene.rhs[row] - activity;
            if below > tolerance::primal(scene.rhs[row]) && self.row_places[row] == NO_ROW {
                let score = below * program.row_scale[row];
                if score > most {
                    (most, found) = (score, Some((row as u32, -below)));
                }
            }
        }
        found
    }

    /// One pivot: the variable at `position` leaves.
    fn pivot(&mut self, scene: Scene<'_>, position: usize) -> Result<(), Trouble> {
        let below = self.values[position] < self.lower[position];
        let bound = if below {
            self.lower[position]
        } else {
            self.upper[position]
        };
        let infeasible = (self.values[position] - bound).abs();
        self.price(scene, position);
        let entering = self.choose(scene, position, below, infeasible);
        let entering = entering.ok_or(Trouble::Stuck)?;
        let alpha = self.transform(scene, entering);
        let pivot = self.scratch.pivot_column[position];
        let apart = (alpha - pivot).abs() > tolerance::PIVOT_GAP * (1e-3 + alpha.abs());
        if (apart || alpha.abs() < tolerance::SAFE_PIVOT) && self.age > 0 {
            return Err(Trouble::Unstable);
        }
        #[cfg(test)]
        if Fault::MissedFlips.is_on() {
            self.scratch.flips.clear();
        }
        self.flip(scene);
        self.change_duals(scene, position, entering, alpha);
        self.change_basis(scene, position, entering, bound, below);
        self.age += 1;
        self.pivots += 1;
        Ok(())
    }

    /// The pivot row: how the leaving variable depends on every column.
    #[inline]
    fn price(&mut self, scene: Scene<'_>, position: usize) {
        let scratch = &mut self.scratch;
        let row = self.inverse.row(position);
        scratch.pivot_row[..row.len()].copy_from_slice(row);
        scratch.alpha.fill(0.0);
        for (&row, &factor) in self.rows.iter().zip(&scratch.pivot_row) {
            add_row(scene, row, factor, &mut scratch.alpha);
        }
    }

    /// The variable that enters; the columns to be flipped are left in `flips`.
    #[inline]
    fn choose(
        &mut self,
        scene: Scene<'_>,
        position: usize,
        below: bool,
        infeasible: f64,
    ) -> Option<usize> {
        let program = scene.program;
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        let mut flips = std::mem::take(&mut self.scratch.flips);
        let slack = tolerance::DUAL_STEP * program.cost_scale;
        candidates.clear();
        self.gather_columns(scene, below, slack, &mut candidates);
        for (number, curve) in program.curves.iter().enumerate() {
            let (mark, factor) = (self.marks[number], self.scratch.pivot_row[curve.row]);
            let basic = mark.basic.then(|| curve.columns.start + mark.on as usize);
            if basic.is_some_and(|column| column != self.head[position] as usize) {
                continue;
            }
            let rises = (factor < 0.0) == below;
            if let Some((column, _)) = curve.next(mark, rises)
                && factor.abs() * program.pieces[column - program.plain].factor.abs()
                    > tolerance::PIVOT
            {
                candidates.push(self.candidate(scene, column, rises), slack);
            }
        }
        self.gather_rows(scene, position, below, slack, &mut candidates);
        let after = |id: usize| {
            let piece = program.pieces.get(id.checked_sub(program.plain)?)?;
            let curve = &program.curves[piece.curve];
            let rises = (self.scratch.pivot_row[curve.row] < 0.0) == below;
            let next = if rises { id + 1 } else { id.wrapping_sub(1) };
            let inside = curve.columns.contains(&next);
            inside.then(|| self.candidate(scene, next, rises))
        };
        let entering = candidates.choose(infeasible, slack, &mut flips, after);
        (self.scratch.candidates, self.scratch.flips) = (candidates, flips);
        entering
    }

    /// A column of a curve as the dual value of its row rises or falls.
    #[inline]
    fn candidate(&self, scene: Scene<'_>, column: usize, rises: bool) -> Candidate {
        let program = scene.program;
        let piece = &program.pieces[column - program.plain];
        let row = program.curves[piece.curve].row;
        let reduced = piece.reduced(self.duals[row]);
        Candidate {
            id: column,
            reduced: if rises { reduced } else { -reduced },
            size: (self.scratch.pivot_row[row] * piece.factor).abs(),
            range: program.ranges[column],
        }
    }

    #[inline]
    fn gather_columns(
        &mut self,
        scene: Scene<'_>,
        below: bool,
        slack: f64,
        candidates: &mut Candidates,
    ) {
        let program = scene.program;
        let rounding = tolerance::ROUNDING * program.cost_scale;
        let scratch = &mut self.scratch;
        let direction = if below { -1.0 } else { 1.0 };
        // Without a branch for each column: which ones are chosen cannot be predicted.
        let mut count = 0;
        let columns = scratch.alpha.iter().zip(&self.sense).enumerate();
        for (column, (&alpha, &sense)) in columns {
            scratch.chosen[count] = column as u32;
            #[cfg(test)]
            let sense = if Fault::WrongSign.is_on() {
                sense.abs()
            } else {
                sense
            };
            count += usize::from(direction * sense * alpha > tolerance::PIVOT);
        }
        for &column in &scratch.chosen[..count] {
            let column = column as usize;
            let candidate = Candidate {
                id: column,
                reduced: self.sense[column] * self.reduced[column],
                size: scratch.alpha[column].abs(),
                range: program.ranges[column],
            };
            // A cost that is small beside others must not drown in their slack.
            let (cost, reduced) = (program.cost[column], self.reduced[column]);
            let own = tolerance::OWN_STEP * (cost.abs() + (cost - reduced).abs());
            candidates.push(candidate, slack.min(rounding + own));
        }
        for &column in &program.free {
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

    /// Inequalities and cuts that may leave the basis.
    #[inline]
    fn gather_rows(
        &self,
        scene: Scene<'_>,
        position: usize,
        below: bool,
        slack: f64,
        candidates: &mut Candidates,
    ) {
        let program = scene.program;
        let direction = if below { 1.0 } else { -1.0 };
        let leaving = self.head[position] as usize;
        let own = program.columns();
        for row in program.equalities..self.rows.len() {
            let size = direction * self.scratch.pivot_row[row];
            if size > tolerance::PIVOT && leaving != own + row {
                let candidate = Candidate {
                    id: own + row,
                    reduced: self.duals[row],
                    size,
                    range: f64::INFINITY,
                };
                let is_cut = self.rows[row] as usize >= program.rows;
                let slack = if is_cut { tolerance::CUT_STEP } else { slack };
                candidates.push(candidate, slack);
            }
        }
    }

    /// Computes the pivot column of a variable; returns its entry in the pivot row.
    #[inline]
    fn transform(&mut self, scene: Scene<'_>, entering: usize) -> f64 {
        let columns = scene.program.columns();
        let scratch = &mut self.scratch;
        if entering < columns {
            let list = &mut scratch.entering;
            Self::column(scene, &self.rows, &self.row_places, entering, list);
            self.inverse.times_sparse(list, &mut scratch.pivot_column);
            scratch.alpha.get(entering).copied().unwrap_or_else(|| {
                let piece = &scene.program.pieces[entering - scene.program.plain];
                let row = scene.program.curves[piece.curve].row;
                scratch.pivot_row[row] * piece.factor
            })
        } else {
            let row = entering - columns;
            self.inverse
                .times_sparse(&[(row, -1.0)], &mut scratch.pivot_column);
            -scratch.pivot_row[row]
        }
    }

    /// Moves the columns that the ratio test has passed to their other bounds.
    #[inline]
    fn flip(&mut self, scene: Scene<'_>) {
        self.scratch.switches.clear();
        if self.scratch.flips.is_empty() {
            return;
        }
        let (program, size) = (scene.program, self.size());
        self.scratch.shift[..padded(size)].fill(0.0);
        let flips = std::mem::take(&mut self.scratch.flips);
        for &column in &flips {
            let column = column as usize;
            if column >= program.plain {
                self.switch(program, column);
                continue;
            }
            let sense = self.sense[column];
            self.sense[column] = -sense;
            let step = sense * program.ranges[column];
            self.move_by(program, column, step);
            let scratch = &mut self.scratch;
            let list = &mut scratch.entering;
            Self::column(scene, &self.rows, &self.row_places, column, list);
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
        self.inverse.times_sparse(&scratch.entering, change);
        for (value, change) in self.values[..size].iter_mut().zip(&*change) {
            *value -= change;
        }
    }

    /// Moves a column of a curve to its other bound.
    #[inline]
    fn switch(&mut self, program: &Program, column: usize) {
        let (piece, on) = self.piece(program, column);
        let (piece, on) = (&program.pieces[piece], on == Some(true));
        let step = piece.value(!on) - piece.value(on);
        let row = program.curves[piece.curve].row;
        self.bound_cost += piece.cost * step;
        self.activity[row] += piece.factor * step;
        self.scratch.shift[row] += piece.factor * step;
        self.scratch.switches.push((column, !on));
    }

    /// Takes the step in the dual values and reduced costs.
    #[inline]
    fn change_duals(&mut self, scene: Scene<'_>, position: usize, entering: usize, alpha: f64) {
        let (program, size) = (scene.program, self.size());
        let columns = program.columns();
        let (reduced, sense) = if entering < program.plain {
            (self.reduced[entering], self.sense[entering])
        } else if entering < columns {
            let (piece, on) = self.piece(program, entering);
            let piece = &program.pieces[piece];
            let dual = self.duals[program.curves[piece.curve].row];
            let reduced = piece.cost - dual * piece.factor;
            (reduced, piece.sense(on == Some(true)))
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
            for (reduced, alpha) in self.reduced.iter_mut().zip(&self.scratch.alpha) {
                *reduced -= step * alpha;
            }
            let pivot_row = &self.scratch.pivot_row;
            for (dual, factor) in self.duals[..size].iter_mut().zip(pivot_row) {
                *dual += step * factor;
            }
        }
        if let Some(reduced) = self.reduced.get_mut(self.head[position] as usize) {
            *reduced = -step;
        }
        if let Some(reduced) = self.reduced.get_mut(entering) {
            *reduced = 0.0;
        }
    }

    /// Writes down at which bound the leaving variable is, and that the entering one is at none.
    #[inline]
    fn mark(&mut self, program: &Program, leaving: usize, entering: usize, below: bool) {
        let place = |column: usize| {
            let piece = program.pieces.get(column.checked_sub(program.plain)?)?;
            let start = program.curves[piece.curve].columns.start;
            Some((piece, (column - start) as u32))
        };
        if let Some(sense) = self.sense.get_mut(leaving) {
            *sense = if below { 1.0 } else { -1.0 };
        } else if let Some((piece, place)) = place(leaving) {
            let on = u32::from((piece.sign > 0.0) != below);
            self.marks[piece.curve] = Mark {
                on: place + on,
                basic: false,
            };
        }
        for &(column, on) in &self.scratch.switches {
            if let Some((piece, place)) = place(column) {
                let mark = &mut self.marks[piece.curve].on;
                *mark = if on {
                    (*mark).max(place + 1)
                } else {
                    (*mark).min(place)
                };
            }
        }
        if let Some(sense) = self.sense.get_mut(entering) {
            *sense = 0.0;
        } else if let Some((piece, place)) = place(entering) {
            self.marks[piece.curve] = Mark {
                on: place,
                basic: true,
            };
        }
    }

    /// Takes the step in the values, and exchanges the leaving variable for the entering one.
    #[inline]
    fn change_basis(
        &mut self,
        scene: Scene<'_>,
        position: usize,
        entering: usize,
        bound: f64,
        below: bool,
    ) {
        let (program, size) = (scene.program, self.size());
        let columns = program.columns();
        let column = &self.scratch.pivot_column;
        // The flips have moved the leaving variable nearer to its bound.
        let step = (self.values[position] - bound) / column[position];
        for (value, factor) in self.values[..size].iter_mut().zip(column) {
            *value -= step * factor;
        }
        let leaving = self.head[position] as usize;
        let mut value = step;
        if entering < columns {
            let before = self.at_bound(program, entering);
            self.move_by(program, entering, -before);
            value += before;
        }
        if leaving < columns {
            self.move_by(program, leaving, bound);
        }
        self.mark(program, leaving, entering, below);
        let scratch = &mut self.scratch;
        let column = &scratch.pivot_column[..size];
        self.inverse
            .exchange(position, column, &mut scratch.pivot_row);
        self.put(program, position, entering);
        self.values[position] = value;
        if entering >= columns {
            self.drop_row(program, entering - columns, position);
        }
    }
}
