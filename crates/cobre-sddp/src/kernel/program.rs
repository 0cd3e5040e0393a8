//! A node's linear program in the form the simplex works on.
//!
//! Columns that are known before the solve are gone. The rows that are left are equalities, and
//! then inequalities Σ coefficient × column ≥ right-hand side, one per side. Right-hand sides,
//! the values of known columns and the constant of the objective are [`Linear`].

use super::SizeLimits;
use super::curve::{Curve, Mark, Piece};
use super::known::{Ground, Known};
use super::linear::Linear;
use super::sparse::Sparse;
use super::worth::{Given, Side};
use crate::lp::NodeView;
use crate::problem::Template;

/// The bound invented for a column whose cost pulls it where it has none. A solution that needs it
/// is no solution.
const BOX: f64 = 1e8;

/// The fewest columns that make a curve.
const LEAST_CURVE: usize = 3;
/// The smallest entry of a curve's column in its row, relative to the largest there.
const LEAST_PIECE: f64 = 1e-3;

/// A row that has no columns left: `what` is from `lower` to `upper`, or there is no solution.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) what: Linear,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// Where the value of a column of the template comes from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// The column of this number here.
    Decided(usize),
    Known(Linear),
}

/// A node's linear program in the form the simplex works on.
#[derive(Debug)]
pub(super) struct Program {
    /// The first rows are equalities.
    pub(super) equalities: usize,
    /// All rows, those of cuts not among them.
    pub(super) rows: usize,
    /// Without the columns of curves.
    pub(super) by_row: Sparse,
    pub(super) by_column: Sparse,
    pub(super) cost: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) ranges: Vec<f64>,
    /// The last columns, from this number on, are those of curves.
    pub(super) plain: usize,
    pub(super) curves: Vec<Curve>,
    /// By column after the plain ones.
    pub(super) pieces: Vec<Piece>,
    pub(super) start_marks: Vec<Mark>,
    /// The bound each plain column is at before the first pivot: 1 the lower, −1 the upper, 0 none.
    pub(super) start: Vec<f64>,
    /// Columns without bounds and without cost.
    pub(super) free: Vec<usize>,
    /// Columns with an invented bound.
    pub(super) boxed: Vec<usize>,
    /// What the columns at `start` put into each row, and what they cost.
    pub(super) start_activity: Vec<f64>,
    pub(super) start_cost: f64,
    /// The right-hand side of each row.
    pub(super) rhs: Vec<Linear>,
    /// One over the length of each row.
    pub(super) row_scale: Vec<f64>,
    /// Known columns and empty rows that bounds must hold for.
    pub(super) guards: Vec<Guard>,
    /// The part of the objective that is known.
    pub(super) known_cost: Linear,
    /// The column of the cost to go.
    pub(super) future: Option<usize>,
    /// Outgoing states that are decided: state and column.
    pub(super) carriers: Vec<(usize, usize)>,
    /// The place of each column in `carriers`.
    pub(super) carrier_of: Vec<Option<u32>>,
    /// Outgoing states that are known.
    pub(super) known_states: Vec<(usize, Linear)>,
    /// Columns of the template.
    pub(super) origins: Vec<Origin>,
    /// Where rows of the template went, and those that have made a column known, the last first.
    pub(super) sides: Vec<Side>,
    pub(super) given: Vec<Given>,
    pub(super) template_rows: usize,
    /// Number of incoming states: the first parameters.
    pub(super) states: usize,
    /// For each parameter after the states, its place among the values of an opening.
    pub(super) parameters: Vec<usize>,
    /// What a cost is measured by.
    pub(super) cost_scale: f64,
}

impl Program {
    /// The program of a node; `None` if the kernel does not take it.
    pub(super) fn new(view: &NodeView<'_>, limits: SizeLimits) -> Option<Self> {
        let mut ground = Ground::new(view)?;
        let known = Known::find(&mut ground);
        let mut build = Build::default();
        build.columns(&mut ground, &known);
        let future = view.problem.has_future(view.node).then(|| {
            let bound = view.problem.nodes[view.node].future_bound;
            build.column(1.0, bound, f64::INFINITY)
        });
        build.rows(&ground, &known);
        let equalities = build.equalities.len();
        let rows = equalities + build.inequalities.len();
        let fits = equalities <= limits.equalities && rows <= limits.rows;
        fits.then(|| build.finish(view, &ground, known, future))
    }

    /// Columns.
    pub(super) fn columns(&self) -> usize {
        self.cost.len()
    }

    /// The pieces of a curve.
    #[inline]
    pub(super) fn members(&self, curve: &Curve) -> &[Piece] {
        &self.pieces[curve.columns.start - self.plain..curve.columns.end - self.plain]
    }

    /// The most rows a basis can have: each inequality row once, and as many cuts as are
    /// independent, with one more for the row that enters.
    pub(super) fn largest_basis(&self) -> usize {
        self.rows + self.carriers.len() + 2
    }
}

type Terms = Vec<(u32, f64)>;
type Carriers = Vec<(usize, usize)>;
type KnownStates = Vec<(usize, Linear)>;

/// The parts of a program in the making.
#[derive(Default)]
struct Build {
    cost: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// By column of the template, the column here.
    numbers: Vec<Option<usize>>,
    equalities: Vec<(Terms, Linear)>,
    inequalities: Vec<(Terms, Linear)>,
    /// The row of the template that equalities and inequalities come from, and the sign it has there.
    of_equalities: Vec<(usize, f64)>,
    of_inequalities: Vec<Option<(usize, f64)>>,
    guards: Vec<Guard>,
}

impl Build {
    fn column(&mut self, cost: f64, lower: f64, upper: f64) -> usize {
        self.cost.push(cost);
        self.lower.push(lower);
        self.upper.push(upper);
        self.cost.len() - 1
    }

    /// Takes over the columns that are not known. Where openings change bounds, a column has the
    /// widest of them, and rows for the rest.
    fn columns(&mut self, ground: &mut Ground<'_>, known: &Known) {
        for number in 0..ground.template.columns.len() {
            if known.values[number].is_some() {
                self.numbers.push(None);
                continue;
            }
            let cost = ground.costs[number];
            let (lower, upper) = ground.widest_bounds(number);
            let column = self.column(cost, lower, upper);
            self.numbers.push(Some(column));
            let (least, most) = ground.column_bounds(number);
            if !least.terms.is_empty() {
                let terms = vec![(column as u32, 1.0)];
                self.inequalities.push((terms, least));
                self.of_inequalities.push(None);
            }
            if !most.terms.is_empty() {
                let terms = vec![(column as u32, -1.0)];
                self.inequalities.push((terms, most.times(-1.0)));
                self.of_inequalities.push(None);
            }
        }
    }

    fn rows(&mut self, ground: &Ground<'_>, known: &Known) {
        for (number, row) in ground.rows.iter().enumerate() {
            if known.used_rows[number] {
                continue;
            }
            let (mut terms, mut from_known) = (Terms::new(), Linear::default());
            for &(column, value) in &row.terms {
                match (self.numbers[column], &known.values[column]) {
                    (Some(column), _) => terms.push((column as u32, value)),
                    (None, Some(known)) => from_known.add(value, known),
                    (None, None) => {}
                }
            }
            let mut side = |bound: &Linear, sign: f64, equal: bool| {
                let mut rhs = bound.times(sign);
                rhs.add(-sign, &from_known);
                let terms = terms.iter().map(|&(at, value)| (at, sign * value));
                let terms: Terms = terms.collect();
                if terms.is_empty() {
                    let lower = if equal { 0.0 } else { f64::NEG_INFINITY };
                    self.guards.push(Guard {
                        what: rhs,
                        lower,
                        upper: 0.0,
                    });
                } else if equal {
                    self.equalities.push((terms, rhs));
                    self.of_equalities.push((number, sign));
                } else {
                    self.inequalities.push((terms, rhs));
                    self.of_inequalities.push(Some((number, sign)));
                }
            };
            if row.equality {
                side(&row.lower, 1.0, true);
            } else {
                if row.has_lower {
                    side(&row.lower, 1.0, false);
                }
                if row.has_upper {
                    side(&row.upper, -1.0, false);
                }
            }
        }
    }

    /// The curves there are: row, and columns by ascending price.
    fn find_curves(&self, template: &Template, future: Option<usize>) -> Vec<(usize, Vec<usize>)> {
        let mut rows_of = vec![0; self.cost.len()];
        for (terms, _) in self.equalities.iter().chain(&self.inequalities) {
            for &(column, _) in terms {
                rows_of[column as usize] += 1;
            }
        }
        for column in template.states.iter().map(|state| state.outgoing) {
            if let Some(column) = self.numbers[column] {
                rows_of[column] = 0;
            }
        }
        if let Some(column) = future {
            rows_of[column] = 0;
        }
        let mut curves = Vec::new();
        for (row, (terms, _)) in self.equalities.iter().enumerate() {
            let alone = terms.iter().filter(|term| rows_of[term.0 as usize] == 1);
            let largest = alone
                .clone()
                .fold(0.0, |most: f64, term| most.max(term.1.abs()));
            // The ratio test looks at one piece at a time: none must be too small for it.
            let alone = alone.filter(|term| term.1.abs() >= LEAST_PIECE * largest);
            let pieces = alone.map(|&(column, factor)| {
                let column = column as usize;
                (column, self.piece(column, curves.len(), factor))
            });
            let mut pieces: Vec<(usize, Piece)> = pieces.filter(|piece| piece.1.fits()).collect();
            pieces.sort_by(|one, other| one.1.price().total_cmp(&other.1.price()));
            if pieces.len() >= LEAST_CURVE {
                curves.push((row, pieces.into_iter().map(|piece| piece.0).collect()));
            }
        }
        curves
    }

    fn piece(&self, column: usize, curve: usize, factor: f64) -> Piece {
        let bounds = (self.lower[column], self.upper[column]);
        Piece::new(curve, factor, self.cost[column], bounds.0, bounds.1)
    }

    /// Puts the columns of curves after all others; returns where each column went.
    fn reorder(&mut self, curves: &[(usize, Vec<usize>)]) -> Vec<usize> {
        let count = self.cost.len();
        let last: Vec<usize> = curves.iter().flat_map(|curve| curve.1.clone()).collect();
        let mut order: Vec<usize> = (0..count).filter(|at| !last.contains(at)).collect();
        order.extend(last);
        let mut places = vec![0; count];
        for (new, &old) in order.iter().enumerate() {
            places[old] = new;
        }
        for list in [&mut self.cost, &mut self.lower, &mut self.upper] {
            *list = order.iter().map(|&old| list[old]).collect();
        }
        for number in self.numbers.iter_mut().flatten() {
            *number = places[*number];
        }
        for (terms, _) in self.equalities.iter_mut().chain(&mut self.inequalities) {
            for (column, _) in &mut *terms {
                *column = places[*column as usize] as u32;
            }
            terms.sort_unstable_by_key(|term| term.0);
        }
        places
    }

    fn finish(
        mut self,
        view: &NodeView<'_>,
        ground: &Ground<'_>,
        known: Known,
        future: Option<usize>,
    ) -> Program {
        let template = ground.template;
        let columns = self.cost.len();
        let found = self.find_curves(template, future);
        let places = self.reorder(&found);
        let future = future.map(|column| places[column]);
        let (mut pieces, mut curves, mut start_marks) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = columns - found.iter().map(|curve| curve.1.len()).sum::<usize>();
        let plain = next;
        for (row, members) in found {
            let factor = |column: usize| {
                let terms = &self.equalities[row].0;
                let found = terms.iter().find(|term| term.0 as usize == column);
                found.map_or(0.0, |term| term.1)
            };
            let all = next..next + members.len();
            let own = all
                .clone()
                .map(|column| self.piece(column, curves.len(), factor(column)));
            let own: Vec<Piece> = own.collect();
            start_marks.push(Curve::start(&own));
            curves.push(Curve::new(row, all, &own));
            next += own.len();
            pieces.extend(own);
        }
        let (start, free, boxed) = self.start(plain);
        let (sides, given) = (self.sides(), Given::of(ground, &known));
        let mut known_cost = ground.constant.clone();
        for (cost, value) in ground.costs.iter().zip(&known.values) {
            if let Some(value) = value {
                known_cost.add(*cost, value);
            }
        }
        let (carriers, known_states) = self.outgoing(template, &known);
        self.guards.extend(known.guards);
        let mut carrier_of = vec![None; columns];
        for (place, (_, column)) in carriers.iter().enumerate() {
            carrier_of[*column] = Some(place as u32);
        }
        let origins = self.numbers.iter().zip(known.values);
        let origins = origins.map(|(number, value)| {
            number.map_or_else(|| Origin::Known(value.unwrap_or_default()), Origin::Decided)
        });
        let equalities = self.equalities.len();
        self.equalities.append(&mut self.inequalities);
        let (terms, rhs): (Vec<Terms>, Vec<Linear>) = self.equalities.into_iter().unzip();
        let all_by_row = Sparse::new(&terms);
        let of_plain = |row: &Terms| {
            let terms = row.iter().filter(|term| (term.0 as usize) < plain);
            terms.copied().collect()
        };
        let by_row = Sparse::new(&terms.iter().map(of_plain).collect::<Vec<Terms>>());
        let bounds = self.lower.iter().zip(&self.upper);
        let ranges = bounds.map(|(lower, upper)| upper - lower).collect();
        let length = |row: &Terms| {
            let squares: f64 = row.iter().map(|(_, value)| value * value).sum();
            1.0 / squares.sqrt()
        };
        let mut program = Program {
            equalities,
            rows: terms.len(),
            by_column: all_by_row.turned(columns),
            by_row,
            cost_scale: self
                .cost
                .iter()
                .fold(1.0, |most, cost| cost.abs().max(most)),
            cost: self.cost,
            lower: self.lower,
            upper: self.upper,
            ranges,
            plain,
            curves,
            pieces,
            start_marks,
            start,
            free,
            boxed,
            start_activity: vec![0.0; terms.len()],
            start_cost: 0.0,
            rhs,
            row_scale: terms.iter().map(length).collect(),
            guards: self.guards,
            known_cost,
            future,
            carriers,
            carrier_of,
            known_states,
            origins: origins.collect(),
            sides,
            given,
            template_rows: template.rows.len(),
            states: view.problem.states.len(),
            parameters: ground.parameters.clone(),
        };
        program.put_at_start();
        program
    }

    /// Outgoing states that are decided, each with its column, and those that are known, with their value.
    fn outgoing(&self, template: &Template, known: &Known) -> (Carriers, KnownStates) {
        let (mut carriers, mut known_states) = (Vec::new(), Vec::new());
        for (state, at) in template.states.iter().enumerate() {
            match (self.numbers[at.outgoing], &known.values[at.outgoing]) {
                (Some(column), _) => carriers.push((state, column)),
                (None, value) => {
                    known_states.push((state, value.clone().unwrap_or_default()));
                }
            }
        }
        (carriers, known_states)
    }

    /// Where rows of the template went.
    fn sides(&self) -> Vec<Side> {
        let equalities = self.of_equalities.iter().copied().map(Some);
        let all = equalities.chain(self.of_inequalities.iter().copied());
        let sides = all.enumerate().filter_map(|(row, from)| {
            let (of, sign) = from?;
            Some(Side { of, row, sign })
        });
        sides.collect()
    }

    /// Where each plain column starts; invents bounds where a cost pulls a column that has none.
    fn start(&mut self, plain: usize) -> (Vec<f64>, Vec<usize>, Vec<usize>) {
        let (mut start, mut free, mut boxed) = (Vec::new(), Vec::new(), Vec::new());
        for column in 0..plain {
            let (cost, lower, upper) = (self.cost[column], self.lower[column], self.upper[column]);
            let side = if cost > 0.0 || (cost == 0.0 && lower.is_finite()) {
                1.0
            } else if cost < 0.0 || upper.is_finite() {
                -1.0
            } else {
                free.push(column);
                0.0
            };
            if side > 0.0 && !lower.is_finite() {
                self.lower[column] = upper.min(0.0) - BOX;
                boxed.push(column);
            } else if side < 0.0 && !upper.is_finite() {
                self.upper[column] = lower.max(0.0) + BOX;
                boxed.push(column);
            }
            start.push(side);
        }
        (start, free, boxed)
    }
}

impl Program {
    fn put_at_start(&mut self) {
        for (curve, mark) in self.curves.iter().zip(&self.start_marks) {
            let (activity, cost) = curve.at_bounds(self.members(curve), *mark);
            self.start_activity[curve.row] += activity;
            self.start_cost += cost;
        }
        for column in 0..self.plain {
            let value = match self.start[column] {
                side if side > 0.0 => self.lower[column],
                side if side < 0.0 => self.upper[column],
                _ => 0.0,
            };
            self.start_cost += self.cost[column] * value;
            for &(row, coefficient) in self.by_column.list(column) {
                self.start_activity[row as usize] += coefficient * value;
            }
        }
    }
}
