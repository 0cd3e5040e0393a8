//! The basis that a solve works on.
//!
//! Its rows are all equalities and those inequalities and cuts that are tight. Every row has a
//! variable of its own, what is above its right-hand side: fixed at 0 for equalities, at least 0
//! for the rest. An inequality whose own variable enters the basis leaves it with its row.

use super::curve::Mark;
use super::cut_table::CutTable;
use super::inverse::{Inverse, Singular, padded};
use super::program::Program;
use super::ratio::Candidates;
use super::simplex::Trouble;
use super::tolerance;

/// Not among the rows.
pub(super) const NO_ROW: u32 = u32::MAX;

/// What is solved: a program with its cuts and right-hand sides.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) program: &'a Program,
    pub(super) cuts: &'a CutTable,
    /// By row of the program.
    pub(super) rhs: &'a [f64],
}

/// A basis with all that follows from it. Variables are columns and then, by row of the basis, the
/// rows' own.
#[derive(Debug)]
pub(super) struct Basis {
    /// By position: the variable, its bounds and cost, and its value.
    pub(super) head: Vec<u32>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) cost: Vec<f64>,
    pub(super) values: Vec<f64>,
    /// By row: a row of the program, or after those a cut by its place; and its dual value.
    pub(super) rows: Vec<u32>,
    pub(super) duals: Vec<f64>,
    /// By row of the program, the row here.
    pub(super) row_places: Vec<u32>,
    pub(super) inverse: Inverse,
    /// By plain column: 1 at the lower bound, −1 at the upper, 0 basic or free at zero.
    pub(super) sense: Vec<f64>,
    pub(super) reduced: Vec<f64>,
    /// By curve.
    pub(super) marks: Vec<Mark>,
    /// What columns at bounds put into each row of the program, and what they cost.
    pub(super) activity: Vec<f64>,
    pub(super) bound_cost: f64,
    /// Pivots since the inverse was computed.
    pub(super) age: u32,
    /// The decided states and the cost to go, as last computed.
    pub(super) state: Vec<f64>,
    pub(super) future: f64,
    /// How often a new inverse had to help, and pivots, of all solves.
    pub(super) refactored: u64,
    pub(super) pivots: u64,
    pub(super) scratch: Scratch,
}

/// Room for what is computed on the way.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) rhs: Vec<f64>,
    pub(super) pivot_row: Vec<f64>,
    pub(super) pivot_column: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    pub(super) entering: Vec<(usize, f64)>,
    pub(super) shift: Vec<f64>,
    pub(super) activity: Vec<f64>,
    pub(super) candidates: Candidates,
    pub(super) chosen: Vec<u32>,
    pub(super) flips: Vec<u32>,
    /// Columns of curves that go on or off.
    pub(super) switches: Vec<(usize, bool)>,
    matrix: Vec<f64>,
}

impl Basis {
    /// Room for any basis of the program.
    pub(super) fn new(program: &Program) -> Self {
        let most = program.largest_basis();
        let length = padded(most);
        let zeros = || vec![0.0; length];
        let columns = || vec![0.0; program.plain];
        Self {
            head: vec![0; length],
            lower: zeros(),
            upper: zeros(),
            cost: zeros(),
            values: zeros(),
            rows: Vec::with_capacity(length),
            duals: zeros(),
            row_places: vec![NO_ROW; program.rows],
            inverse: Inverse::new(most),
            sense: columns(),
            reduced: columns(),
            marks: program.start_marks.clone(),
            activity: vec![0.0; program.rows],
            bound_cost: 0.0,
            age: 0,
            state: vec![0.0; program.carriers.len()],
            future: 0.0,
            refactored: 0,
            pivots: 0,
            scratch: Scratch {
                rhs: zeros(),
                pivot_row: zeros(),
                pivot_column: zeros(),
                alpha: columns(),
                shift: zeros(),
                activity: vec![0.0; program.rows],
                candidates: Candidates::new(program.plain + program.curves.len() + length),
                chosen: vec![0; program.plain],
                ..Scratch::default()
            },
        }
    }

    /// Rows.
    pub(super) fn size(&self) -> usize {
        self.rows.len()
    }

    /// The value of a column that is not basic.
    #[inline]
    pub(super) fn at_bound(&self, program: &Program, column: usize) -> f64 {
        let Some(&sense) = self.sense.get(column) else {
            let (piece, on) = self.piece(program, column);
            return on.map_or(0.0, |on| program.pieces[piece].value(on));
        };
        if sense > 0.0 {
            program.lower[column]
        } else if sense < 0.0 {
            program.upper[column]
        } else {
            0.0
        }
    }

    /// A column of a curve: its number among pieces, and whether it is on, or nothing if it is
    /// basic.
    #[inline]
    pub(super) fn piece(&self, program: &Program, column: usize) -> (usize, Option<bool>) {
        let number = column - program.plain;
        let curve = program.pieces[number].curve;
        let (place, mark) = (
            column - program.curves[curve].columns.start,
            self.marks[curve],
        );
        let on = mark.on as usize;
        let basic = mark.basic && place == on;
        (number, (!basic).then_some(place < on))
    }

    /// Every row's own variable basic, every column at the bound its cost prefers.
    pub(super) fn start_cold(&mut self, program: &Program) {
        let rows = program.equalities;
        self.rows.clear();
        self.rows.extend(0..rows as u32);
        self.find_rows(program);
        for row in 0..rows {
            self.put(program, row, program.columns() + row);
        }
        self.inverse.set_to_minus_identity(rows);
        self.duals.fill(0.0);
        self.sense.copy_from_slice(&program.start);
        self.reduced.copy_from_slice(&program.cost[..program.plain]);
        self.marks.copy_from_slice(&program.start_marks);
        self.activity.copy_from_slice(&program.start_activity);
        self.bound_cost = program.start_cost;
        self.age = 0;
    }

    /// Writes down where the rows of the program are.
    pub(super) fn find_rows(&mut self, program: &Program) {
        self.row_places[program.equalities..].fill(NO_ROW);
        for (place, &row) in self.rows.iter().enumerate() {
            if (row as usize) < program.rows {
                self.row_places[row as usize] = place as u32;
            }
        }
    }

    /// Puts a variable into a position.
    pub(super) fn put(&mut self, program: &Program, position: usize, variable: usize) {
        self.head[position] = variable as u32;
        let columns = program.columns();
        if variable < columns {
            self.lower[position] = program.lower[variable];
            self.upper[position] = program.upper[variable];
            self.cost[position] = program.cost[variable];
        } else {
            let equality = variable - columns < program.equalities;
            self.lower[position] = 0.0;
            self.upper[position] = if equality { 0.0 } else { f64::INFINITY };
            self.cost[position] = 0.0;
        }
    }

    /// The entries of a column in the rows of the basis.
    pub(super) fn column(
        scene: Scene<'_>,
        rows: &[u32],
        row_places: &[u32],
        column: usize,
        into: &mut Vec<(usize, f64)>,
    ) {
        let program = scene.program;
        into.clear();
        for &(row, value) in program.by_column.list(column) {
            let place = row_places[row as usize];
            if place != NO_ROW {
                into.push((place as usize, value));
            }
        }
        let carrier = program.carrier_of[column];
        if carrier.is_none() && program.future != Some(column) {
            return;
        }
        for (place, &row) in rows.iter().enumerate().skip(program.equalities) {
            if let Some(cut) = (row as usize).checked_sub(program.rows) {
                let value = carrier.map_or(1.0, |carrier| {
                    -scene.cuts.slope(program, cut, carrier as usize)
                });
                into.push((place, value));
            }
        }
    }

    /// Computes the inverse and all that follows from it anew.
    pub(super) fn refactor(&mut self, scene: Scene<'_>) -> Result<(), Singular> {
        let (program, size) = (scene.program, self.size());
        let columns = program.columns();
        self.find_rows(program);
        let matrix = &mut self.scratch.matrix;
        matrix.clear();
        matrix.resize(size * size, 0.0);
        for position in 0..size {
            let variable = self.head[position] as usize;
            if variable < columns {
                let entering = &mut self.scratch.entering;
                Self::column(scene, &self.rows, &self.row_places, variable, entering);
                for &(row, value) in &*entering {
                    matrix[row * size + position] = value;
                }
            } else {
                matrix[(variable - columns) * size + position] = -1.0;
            }
        }
        self.inverse.invert(size, matrix)?;
        self.age = 0;
        self.compute_duals(scene);
        self.turn(program);
        self.activity.fill(0.0);
        self.bound_cost = 0.0;
        for (curve, mark) in program.curves.iter().zip(&self.marks) {
            let (activity, cost) = curve.at_bounds(program.members(curve), *mark);
            self.activity[curve.row] += activity;
            self.bound_cost += cost;
        }
        for column in 0..program.plain {
            self.move_by(program, column, self.at_bound(program, column));
        }
        Ok(())
    }

    /// Puts columns whose reduced costs have the wrong sign to their other bounds.
    fn turn(&mut self, program: &Program) {
        let most = tolerance::DUAL * program.cost_scale;
        let columns = self.sense.iter_mut().zip(&self.reduced);
        for ((sense, reduced), range) in columns.zip(&program.ranges) {
            if *sense * reduced < -most && range.is_finite() {
                *sense = -*sense;
            }
        }
    }

    /// Changes the value of a column at a bound by `step`.
    #[inline]
    pub(super) fn move_by(&mut self, program: &Program, column: usize, step: f64) {
        if step != 0.0 {
            self.bound_cost += program.cost[column] * step;
            for &(row, value) in program.by_column.list(column) {
                self.activity[row as usize] += value * step;
            }
        }
    }

    /// Computes dual values and reduced costs from the inverse.
    pub(super) fn compute_duals(&mut self, scene: Scene<'_>) {
        let size = self.size();
        self.inverse.times_left(&self.cost[..size], &mut self.duals);
        self.compute_reduced(scene);
    }

    /// Computes reduced costs from dual values, after taking those of inequalities to be right in
    /// sign.
    fn compute_reduced(&mut self, scene: Scene<'_>) {
        let (program, size) = (scene.program, self.size());
        let mut changed = false;
        for dual in &mut self.duals[program.equalities..size] {
            if *dual < 0.0 {
                *dual = 0.0;
                changed = true;
            }
        }
        if changed {
            self.balance_cuts(program);
        }
        self.reduced.copy_from_slice(&program.cost[..program.plain]);
        for (&row, &dual) in self.rows.iter().zip(&self.duals) {
            add_row(scene, row, -dual, &mut self.reduced);
        }
    }

    /// How large the numbers are that a plain column's reduced cost is the sum of.
    pub(super) fn terms(&mut self, scene: Scene<'_>, column: usize) -> f64 {
        let list = &mut self.scratch.entering;
        Self::column(scene, &self.rows, &self.row_places, column, list);
        let cost = scene.program.cost[column].abs();
        let terms = list.iter().map(|&(row, value)| value * self.duals[row]);
        terms.fold(cost, |sum, term| sum + term.abs())
    }

    /// Makes the dual values of cuts add up to one again where the cost to go is basic: to be off
    /// there costs as much as the cost to go is large.
    fn balance_cuts(&mut self, program: &Program) {
        let basic = program.future.is_some_and(|at| self.sense[at] == 0.0);
        let is_cut = |row: u32| row as usize >= program.rows;
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

    /// Computes dual values and reduced costs, and corrects them by the reduced costs of basic
    /// variables, which are zero but for errors of the inverse. One that is off matters as much as
    /// its variable is large: the cost to go most of all.
    pub(super) fn compute_exact_duals(&mut self, scene: Scene<'_>) {
        self.compute_duals(scene);
        for _ in 0..tolerance::MOST_CORRECTIONS {
            if self.slip(scene.program) <= tolerance::SLIP * (1.0 + self.value().abs()) {
                return;
            }
            let size = self.size();
            let scratch = &mut self.scratch;
            let (slips, change) = (&scratch.shift[..size], &mut scratch.pivot_row);
            self.inverse.times_left(slips, change);
            for (dual, change) in self.duals[..size].iter_mut().zip(change) {
                *dual += *change;
            }
            self.compute_reduced(scene);
        }
    }

    /// The reduced costs of basic variables, into `shift`; returns what they add to the value at
    /// most.
    fn slip(&mut self, program: &Program) -> f64 {
        let mut sum = 0.0;
        let variables = self.head[..self.rows.len()].iter().zip(&self.values);
        for ((&variable, &value), slip) in variables.zip(&mut self.scratch.shift) {
            let variable = variable as usize;
            *slip = if let Some(reduced) = self.reduced.get(variable) {
                *reduced
            } else if let Some(piece) = program.pieces.get(variable - program.plain) {
                piece.cost - self.duals[program.curves[piece.curve].row] * piece.factor
            } else {
                self.duals[variable - program.columns()]
            };
            sum += (*slip * value).abs();
        }
        sum
    }

    /// Computes the values of basic variables from the inverse, and corrects them until they keep
    /// the rows of the basis: only then is what they cost the value of a solution.
    #[inline]
    pub(super) fn correct_values(&mut self, scene: Scene<'_>) -> Result<(), Trouble> {
        self.compute_values(scene);
        let mut left = tolerance::MOST_CORRECTIONS;
        loop {
            self.compute_state(scene.program);
            if self.keeps_rows(scene) {
                return Ok(());
            }
            left = left.checked_sub(1).ok_or(Trouble::Unstable)?;
            let length = padded(self.size());
            let scratch = &mut self.scratch;
            let (open, change) = (&scratch.shift[..length], &mut scratch.pivot_column);
            self.inverse.times(open, change);
            for (value, change) in self.values[..self.rows.len()].iter_mut().zip(change) {
                *value += *change;
            }
        }
    }

    /// Whether the values, and the state and the cost to go that go with them, keep the rows of the
    /// basis; what is open in each goes into `shift`.
    #[inline]
    pub(super) fn keeps_rows(&mut self, scene: Scene<'_>) -> bool {
        let (program, size) = (scene.program, self.size());
        let open = &mut self.scratch.shift;
        open[size..padded(size)].fill(0.0);
        for (open, &row) in open.iter_mut().zip(&self.rows) {
            let row = row as usize;
            *open = match row.checked_sub(program.rows) {
                None => scene.rhs[row] - self.activity[row],
                Some(cut) => scene.cuts.above(program, cut, &self.state, self.future),
            };
        }
        for (&variable, &value) in self.head[..size].iter().zip(&self.values) {
            let variable = variable as usize;
            if variable < program.columns() {
                for &(row, coefficient) in program.by_column.list(variable) {
                    let place = self.row_places[row as usize];
                    if place != NO_ROW {
                        open[place as usize] -= coefficient * value;
                    }
                }
            } else {
                open[variable - program.columns()] += value;
            }
        }
        let least = scene.cuts.tolerance(self.future);
        let mut rows = self.rows.iter().zip(&*open);
        rows.all(|(&row, open)| {
            let rhs = scene.rhs.get(row as usize);
            open.abs() <= rhs.map_or(least, |&rhs| tolerance::primal(rhs))
        })
    }

    /// Computes the values of basic variables from the inverse.
    #[inline]
    pub(super) fn compute_values(&mut self, scene: Scene<'_>) {
        let (program, size) = (scene.program, self.size());
        self.bound_state(program);
        let rhs = &mut self.scratch.rhs;
        for (rhs, &row) in rhs.iter_mut().zip(&self.rows) {
            let row = row as usize;
            *rhs = match row.checked_sub(program.rows) {
                None => scene.rhs[row] - self.activity[row],
                Some(cut) => scene.cuts.above(program, cut, &self.state, self.future),
            };
        }
        rhs[size..padded(size)].fill(0.0);
        self.inverse.times(&rhs[..padded(size)], &mut self.values);
    }

    /// The decided states and the cost to go, with zero for those that are basic.
    #[inline]
    fn bound_state(&mut self, program: &Program) {
        for place in 0..self.state.len() {
            let column = program.carriers[place].1;
            self.state[place] = self.at_bound(program, column);
        }
        self.future = program
            .future
            .map_or(0.0, |column| self.at_bound(program, column));
    }

    /// Computes the decided states and the cost to go.
    #[inline]
    pub(super) fn compute_state(&mut self, program: &Program) {
        self.bound_state(program);
        let columns = program.columns();
        for (&variable, &value) in self.head[..self.rows.len()].iter().zip(&self.values) {
            let column = variable as usize;
            if column < columns {
                if let Some(place) = program.carrier_of[column] {
                    self.state[place as usize] = value;
                } else if program.future == Some(column) {
                    self.future = value;
                }
            }
        }
    }

    /// Adds a row of the program or a cut, with its own variable basic at `value`.
    pub(super) fn add_row(&mut self, scene: Scene<'_>, row: u32, value: f64) {
        let (program, size) = (scene.program, self.size());
        let columns = program.columns();
        // Columns of curves stand in equalities only.
        let coefficients = &mut self.scratch.alpha;
        coefficients.fill(0.0);
        add_row(scene, row, 1.0, coefficients);
        let border = &mut self.scratch.pivot_column;
        for (border, &variable) in border.iter_mut().zip(&self.head[..size]) {
            let coefficient = coefficients.get(variable as usize);
            *border = coefficient.copied().unwrap_or(0.0);
        }
        self.inverse.border(&border[..size]);
        self.rows.push(row);
        if (row as usize) < program.rows {
            self.row_places[row as usize] = size as u32;
        }
        self.duals[size] = 0.0;
        self.put(program, size, columns + size);
        self.values[size] = value;
    }

    /// Drops a row whose own variable is basic at `position`.
    pub(super) fn drop_row(&mut self, program: &Program, row: usize, position: usize) {
        let (last, columns) = (self.size() - 1, program.columns());
        self.inverse.drop(position, row);
        let gone = self.rows[row] as usize;
        if gone < program.rows {
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
            if moved < program.rows {
                self.row_places[moved] = row as u32;
            }
            let own = |variable: &&mut u32| **variable as usize == columns + last;
            if let Some(variable) = self.head[..last].iter_mut().find(own) {
                *variable = (columns + row) as u32;
            }
        }
    }

    /// The value of the objective.
    #[inline]
    pub(super) fn value(&self) -> f64 {
        let costs = self.cost.iter().zip(&self.values);
        let basic = costs.take(self.rows.len());
        basic.fold(self.bound_cost, |sum, (cost, value)| sum + cost * value)
    }

    /// The values of all columns.
    pub(super) fn column_values(&self, program: &Program, into: &mut Vec<f64>) {
        into.clear();
        into.extend((0..program.columns()).map(|column| self.at_bound(program, column)));
        for (&variable, &value) in self.head[..self.size()].iter().zip(&self.values) {
            if let Some(column) = into.get_mut(variable as usize) {
                *column = value;
            }
        }
    }
}

/// Adds `factor` × the coefficients of a row of the program, or of a cut, to `into`.
#[inline]
pub(super) fn add_row(scene: Scene<'_>, row: u32, factor: f64, into: &mut [f64]) {
    if factor == 0.0 {
        return;
    }
    let program = scene.program;
    match (row as usize).checked_sub(program.rows) {
        None => {
            for &(column, value) in program.by_row.list(row as usize) {
                into[column as usize] += factor * value;
            }
        }
        Some(cut) => {
            if let Some(future) = program.future {
                into[future] += factor;
            }
            let slopes = scene.cuts.slopes(program, cut);
            for (slope, &(_, column)) in slopes.zip(&program.carriers) {
                into[column] -= factor * slope;
            }
        }
    }
}
