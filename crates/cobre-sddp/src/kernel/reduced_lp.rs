//! The linear program of a node that presolve leaves to the simplex method.
//!
//! Its rows are equalities, and then inequalities Σ coefficient × column ≥ right-hand side, one per
//! side. Right-hand sides, the values of removed columns and the constant of the objective are
//! [`Affine`].

use super::SizeLimits;
use super::affine::{Affine, DERIVED};
use super::curve::{Curve, CurveState, Segment};
use super::hyperplanes::{self, HyperplaneGroup, HyperplaneGroups};
use super::postsolve::{RowSource, Substitution};
use super::presolve::{LiftColumn, ParametricTemplate, PositivePart, Presolved};
use super::sparse::Sparse;
use crate::lp::NodeView;
use crate::problem::Template;

/// The artificial bound of a column whose cost drives it where it has none. A solution at such a
/// bound is rejected.
const ARTIFICIAL_BOUND: f64 = 1e8;

/// The most hyperplane groups of a node with a dense inverse, which does not profit from their references.
const MOST_DENSE_GROUPS: usize = 20;
/// The fewest columns of a curve.
const MIN_CURVE: usize = 3;
/// The smallest coefficient of a curve's column in its row, relative to the largest there.
const MIN_SEGMENT: f64 = 1e-3;

/// A condition that presolve leaves: `what` is between `lower` and `upper`, or the linear program
/// is infeasible.
#[derive(Debug, Clone)]
pub(super) struct FeasibilityCheck {
    pub(super) value: Affine,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// The source of the value of a column of the template.
#[derive(Debug, Clone)]
pub(super) enum ColumnSource {
    /// The column of this number in the reduced linear program.
    Kept(usize),
    /// The value that presolve found.
    Removed(Affine),
}

/// The linear program of a node that presolve leaves to the simplex method.
#[derive(Debug, Clone)]
pub(super) struct ReducedLp {
    /// The number of equalities, which are the first rows.
    pub(super) equalities: usize,
    /// The number of rows, without cuts.
    pub(super) rows: usize,
    /// True if bases have a dense inverse, false if they have sparse factors.
    pub(super) is_dense: bool,
    /// Without the columns of curves.
    pub(super) by_row: Sparse,
    pub(super) by_column: Sparse,
    pub(super) cost: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) ranges: Vec<f64>,
    /// The number of plain columns; those of curves follow.
    pub(super) plain: usize,
    pub(super) curves: Vec<Curve>,
    /// By column after the plain ones.
    pub(super) segments: Vec<Segment>,
    pub(super) start_curve_states: Vec<CurveState>,
    /// The bound each plain column is at before the first pivot: 1 the lower, −1 the upper, 0 none.
    pub(super) start: Vec<f64>,
    /// Columns without bounds and without cost.
    pub(super) free: Vec<usize>,
    /// Columns with an artificial bound.
    pub(super) artificial: Vec<usize>,
    /// The activity of the columns at `start` in each row, and their cost.
    pub(super) start_activity: Vec<f64>,
    pub(super) start_cost: f64,
    /// The right-hand side of each row.
    pub(super) rhs: Vec<Affine>,
    /// One over the Euclidean norm of each row.
    pub(super) row_scale: Vec<f64>,
    /// Conditions on removed columns and empty rows.
    pub(super) feasibility_checks: Vec<FeasibilityCheck>,
    /// The part of the objective from removed columns.
    pub(super) fixed_cost: Affine,
    /// The column of the cost to go.
    pub(super) future: Option<usize>,
    /// Outgoing states that the solve decides: state and column.
    pub(super) free_states: Vec<(usize, usize)>,
    /// The position of each column in `free_states`.
    pub(super) free_state_of: Vec<Option<u32>>,
    /// Outgoing states that presolve fixes.
    pub(super) fixed_states: Vec<(usize, Affine)>,
    /// By column of the template.
    pub(super) column_sources: Vec<ColumnSource>,
    /// The sources of rows, and the substitutions of presolve, the last first.
    pub(super) row_sources: Vec<RowSource>,
    pub(super) substitutions: Vec<Substitution>,
    pub(super) template_rows: usize,
    /// The number of incoming states, the first parameters.
    pub(super) states: usize,
    /// For each parameter after the states, its index among the values of an opening.
    pub(super) parameters: Vec<usize>,
    /// Parameters after those, which are derived, and the columns that lift some of them to zero.
    pub(super) derived: Vec<PositivePart>,
    pub(super) lifts: Vec<LiftColumn>,
    /// The hyperplane groups; coefficients are transformed by their references.
    pub(super) hyperplanes: HyperplaneGroups,
    /// The largest cost, at least 1: the scale of dual tolerances.
    pub(super) cost_scale: f64,
    /// The unit of the cost to go and of the slacks of cuts beside that of other variables: the power of two below
    /// `cost_scale`, and 1 with sparse factors.
    pub(super) cut_unit: f64,
}

impl ReducedLp {
    /// The reduced linear program of a node; `None` if it is not one for the kernel.
    pub(super) fn new(view: &NodeView<'_>, limits: SizeLimits) -> Option<Self> {
        let mut source = ParametricTemplate::new(view)?;
        let mut presolved = Presolved::find(&mut source);
        let (mut build, mut future) = Build::new(view, &mut source, &presolved);
        let groups = build.find_hyperplanes(source.template, future).len();
        let is_dense = groups <= MOST_DENSE_GROUPS
            && SizeLimits::is_dense(build.equalities.len(), build.rows_built());
        if !is_dense {
            presolved.remove_truncated(&source);
            (build, future) = Build::new(view, &mut source, &presolved);
            if !limits.hold(build.equalities.len(), build.rows_built()) {
                return None;
            }
        }
        let lp = build.finish(view, &source, presolved, future, is_dense);
        (lp.largest_basis() < usize::from(u16::MAX)).then_some(lp)
    }

    /// Makes these hyperplanes the references of their groups.
    pub(super) fn refer(&mut self, references: &[u8]) {
        self.hyperplanes
            .refer(references, &mut self.by_row, &mut self.by_column);
    }

    /// True if solves change it: the references of hyperplane groups.
    pub(super) fn has_references(&self) -> bool {
        !self.hyperplanes.groups.is_empty()
    }

    /// The number of columns.
    pub(super) fn columns(&self) -> usize {
        self.cost.len()
    }

    /// The segments of a curve.
    #[inline]
    pub(super) fn members(&self, curve: &Curve) -> &[Segment] {
        &self.segments[curve.columns.start - self.plain..curve.columns.end - self.plain]
    }

    /// The most rows of a basis: each row once, and as many cuts as are independent, with one more
    /// for the row that enters.
    pub(super) fn largest_basis(&self) -> usize {
        self.rows + self.free_states.len() + 2
    }
}

type Terms = Vec<(u32, f64)>;
type FreeStates = Vec<(usize, usize)>;
type FixedStates = Vec<(usize, Affine)>;

/// A reduced linear program under construction.
#[derive(Default)]
struct Build {
    cost: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// By column of the template, its column here if it is kept.
    numbers: Vec<Option<usize>>,
    equalities: Vec<(Terms, Affine)>,
    inequalities: Vec<(Terms, Affine)>,
    /// The rows of the template that equalities and inequalities come from, and their signs.
    equality_sources: Vec<(usize, f64)>,
    inequality_sources: Vec<Option<(usize, f64)>>,
    feasibility_checks: Vec<FeasibilityCheck>,
}

impl Build {
    /// The columns and rows that presolve keeps, and the column of the cost to go.
    fn new(
        view: &NodeView<'_>,
        source: &mut ParametricTemplate<'_>,
        presolved: &Presolved,
    ) -> (Self, Option<usize>) {
        let mut build = Self::default();
        build.columns(source, presolved);
        let future = view.problem.has_future(view.node).then(|| {
            let bound = view.problem.nodes[view.node].future_bound;
            build.column(1.0, bound, f64::INFINITY)
        });
        build.rows(source, presolved);
        (build, future)
    }

    fn rows_built(&self) -> usize {
        self.equalities.len() + self.inequalities.len()
    }

    fn column(&mut self, cost: f64, lower: f64, upper: f64) -> usize {
        self.cost.push(cost);
        self.lower.push(lower);
        self.upper.push(upper);
        self.cost.len() - 1
    }

    /// Adds the columns that presolve keeps. Where openings change bounds, a column has the widest
    /// of them, and rows for the others.
    fn columns(&mut self, source: &mut ParametricTemplate<'_>, presolved: &Presolved) {
        for number in 0..source.template.columns.len() {
            if presolved.values[number].is_some() {
                self.numbers.push(None);
                continue;
            }
            let cost = source.costs[number];
            let (lower, upper) = source.widest_bounds(number);
            let column = self.column(cost, lower, upper);
            self.numbers.push(Some(column));
            let (least, most) = source.column_bounds(number);
            if !least.terms.is_empty() {
                let terms = vec![(column as u32, 1.0)];
                self.inequalities.push((terms, least));
                self.inequality_sources.push(None);
            }
            if !most.terms.is_empty() {
                let terms = vec![(column as u32, -1.0)];
                self.inequalities.push((terms, most.times(-1.0)));
                self.inequality_sources.push(None);
            }
        }
    }

    fn rows(&mut self, source: &ParametricTemplate<'_>, presolved: &Presolved) {
        for (number, row) in source.rows.iter().enumerate() {
            if presolved.used_rows[number] {
                continue;
            }
            let (mut terms, mut removed_part) = (Terms::new(), Affine::default());
            for &(column, value) in &row.terms {
                match (self.numbers[column], &presolved.values[column]) {
                    (Some(column), _) => terms.push((column as u32, value)),
                    (None, Some(removed)) => removed_part.add(value, removed),
                    (None, None) => {}
                }
            }
            let mut side = |bound: &Affine, sign: f64, equal: bool| {
                let mut rhs = bound.times(sign);
                rhs.add(-sign, &removed_part);
                let terms = terms.iter().map(|&(at, value)| (at, sign * value));
                let terms: Terms = terms.collect();
                if terms.is_empty() {
                    let lower = if equal { 0.0 } else { f64::NEG_INFINITY };
                    self.feasibility_checks.push(FeasibilityCheck {
                        value: rhs,
                        lower,
                        upper: 0.0,
                    });
                } else if equal {
                    self.equalities.push((terms, rhs));
                    self.equality_sources.push((number, sign));
                } else {
                    self.inequalities.push((terms, rhs));
                    self.inequality_sources.push(Some((number, sign)));
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

    /// Finds the curves: row, and columns by ascending cost per unit.
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
            // The ratio test considers one segment at a time: none must be too small for it.
            let alone = alone.filter(|term| term.1.abs() >= MIN_SEGMENT * largest);
            let segments = alone.map(|&(column, factor)| {
                let column = column as usize;
                (column, self.segment(column, curves.len(), factor))
            });
            let mut segments: Vec<(usize, Segment)> =
                segments.filter(|segment| segment.1.fits()).collect();
            segments.sort_by(|one, other| one.1.unit_cost().total_cmp(&other.1.unit_cost()));
            if segments.len() >= MIN_CURVE {
                curves.push((row, segments.into_iter().map(|segment| segment.0).collect()));
            }
        }
        curves
    }

    fn segment(&self, column: usize, curve: usize, factor: f64) -> Segment {
        let bounds = (self.lower[column], self.upper[column]);
        Segment::new(curve, factor, self.cost[column], bounds.0, bounds.1)
    }

    /// Moves the columns of curves behind all others; returns the new number of each column.
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
        source: &ParametricTemplate<'_>,
        mut presolved: Presolved,
        future: Option<usize>,
        is_dense: bool,
    ) -> ReducedLp {
        let template = source.template;
        let columns = self.cost.len();
        let found = self.find_curves(template, future);
        let places = self.reorder(&found);
        let future = future.map(|column| places[column]);
        let plain = columns - found.iter().map(|curve| curve.1.len()).sum::<usize>();
        let (curves, segments, start_curve_states) = self.curves(&found, plain);
        let groups = if is_dense {
            Vec::new()
        } else {
            self.hyperplane_groups(template, future)
        };
        let (start, free, artificial) = self.start(plain);
        let (row_sources, substitutions) =
            (self.row_sources(), Substitution::of(source, &presolved));
        let fixed_cost = presolved.cost(source);
        let (free_states, fixed_states) = self.outgoing(template, &presolved);
        self.feasibility_checks
            .append(&mut presolved.feasibility_checks);
        let mut free_state_of = vec![None; columns];
        for (place, (_, column)) in free_states.iter().enumerate() {
            free_state_of[*column] = Some(place as u32);
        }
        let values = std::mem::take(&mut presolved.values);
        let column_sources = self.numbers.iter().zip(values);
        let column_sources = column_sources.map(|(number, value)| {
            number.map_or_else(
                || ColumnSource::Removed(value.unwrap_or_default()),
                ColumnSource::Kept,
            )
        });
        let equalities = self.equalities.len();
        self.equalities.append(&mut self.inequalities);
        let (mut terms, rhs): (Vec<Terms>, Vec<Affine>) = self.equalities.into_iter().unzip();
        for group in &groups {
            for terms in &mut terms {
                group.widen(terms);
            }
        }
        let mut by_column = Sparse::new(&terms).transposed(columns);
        let mut by_row = Sparse::new(&plain_terms(&terms, plain));
        let bounds = self.lower.iter().zip(&self.upper);
        let ranges = bounds.map(|(lower, upper)| upper - lower).collect();
        let costs = self.cost.iter();
        let cost_scale = costs.fold(1.0, |most, cost| cost.abs().max(most));
        let mut lp = ReducedLp {
            equalities,
            rows: terms.len(),
            is_dense,
            hyperplanes: HyperplaneGroups::new(groups, equalities, &mut by_row, &mut by_column),
            by_column,
            by_row,
            cost_scale,
            cut_unit: if is_dense {
                power_of_two_below(cost_scale)
            } else {
                1.0
            },
            cost: self.cost,
            lower: self.lower,
            upper: self.upper,
            ranges,
            plain,
            curves,
            segments,
            start_curve_states,
            start,
            free,
            artificial,
            start_activity: vec![0.0; terms.len()],
            start_cost: 0.0,
            rhs,
            row_scale: terms.iter().map(inverse_norm).collect(),
            feasibility_checks: self.feasibility_checks,
            fixed_cost,
            future,
            free_states,
            free_state_of,
            fixed_states,
            column_sources: column_sources.collect(),
            row_sources,
            substitutions,
            template_rows: template.rows.len(),
            states: view.problem.states.len(),
            parameters: source.parameters.clone(),
            lifts: presolved
                .determined
                .iter()
                .filter_map(|one| one.lift)
                .collect(),
            derived: presolved.derived,
        };
        lp.number_derived();
        lp.put_at_start();
        lp
    }

    /// Finds the columns of hyperplane groups, and their rows among inequalities.
    fn find_hyperplanes(
        &self,
        template: &Template,
        future: Option<usize>,
    ) -> Vec<(usize, Vec<usize>)> {
        let mut eligible: Vec<bool> = self.cost.iter().map(|cost| *cost == 0.0).collect();
        let states = template.states.iter().map(|state| state.outgoing);
        let states = states.filter_map(|outgoing| self.numbers[outgoing]);
        for column in states.chain(future) {
            eligible[column] = false;
        }
        let inequalities = self.inequalities.iter().map(|row| &row.0);
        hyperplanes::find(inequalities, &eligible)
    }

    /// Makes hyperplane groups. Their columns become slacks, and get rows for their bounds.
    fn hyperplane_groups(
        &mut self,
        template: &Template,
        future: Option<usize>,
    ) -> Vec<HyperplaneGroup> {
        let mut found = self.find_hyperplanes(template, future);
        let equalities = self.equalities.len();
        let mut groups = Vec::new();
        for (column, rows) in &mut found {
            let bounds = (self.lower[*column], self.upper[*column]);
            for (bound, sign) in [(bounds.0, 1.0), (bounds.1, -1.0)] {
                if bound.is_finite() {
                    if sign < 0.0 {
                        rows.push(self.inequalities.len());
                    }
                    let terms = vec![(*column as u32, sign)];
                    let rhs = Affine::constant(sign * bound);
                    self.inequalities.push((terms, rhs));
                    self.inequality_sources.push(None);
                }
            }
            (self.lower[*column], self.upper[*column]) = (0.0, f64::INFINITY);
            let rows = rows.iter();
            let rows = rows.map(|&row| (equalities + row, &self.inequalities[row].0));
            groups.push(HyperplaneGroup::new(*column, bounds, rows));
        }
        groups
    }

    /// The curves of these rows and columns, which begin at `first`: with their segments and starting states.
    fn curves(
        &self,
        found: &[(usize, Vec<usize>)],
        first: usize,
    ) -> (Vec<Curve>, Vec<Segment>, Vec<CurveState>) {
        let (mut curves, mut segments, mut states) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = first;
        for (row, members) in found {
            let factor = |column: usize| {
                let terms = &self.equalities[*row].0;
                let found = terms.iter().find(|term| term.0 as usize == column);
                found.map_or(0.0, |term| term.1)
            };
            let columns = next..next + members.len();
            next = columns.end;
            let segment = |column| self.segment(column, curves.len(), factor(column));
            let own: Vec<Segment> = columns.clone().map(segment).collect();
            states.push(Curve::start(&own));
            curves.push(Curve::new(*row, columns, &own));
            segments.extend(own);
        }
        (curves, segments, states)
    }

    /// The outgoing states that are free, with their columns, and those that are fixed, with their
    /// values.
    fn outgoing(&self, template: &Template, presolved: &Presolved) -> (FreeStates, FixedStates) {
        let (mut free_states, mut fixed_states) = (Vec::new(), Vec::new());
        for (state, at) in template.states.iter().enumerate() {
            match (self.numbers[at.outgoing], &presolved.values[at.outgoing]) {
                (Some(column), _) => free_states.push((state, column)),
                (None, value) => {
                    fixed_states.push((state, value.clone().unwrap_or_default()));
                }
            }
        }
        (free_states, fixed_states)
    }

    /// The sources of the rows.
    fn row_sources(&self) -> Vec<RowSource> {
        let equalities = self.equality_sources.iter().copied().map(Some);
        let all = equalities.chain(self.inequality_sources.iter().copied());
        let row_sources = all.enumerate().filter_map(|(row, from)| {
            let (of, sign) = from?;
            Some(RowSource { of, row, sign })
        });
        row_sources.collect()
    }

    /// The starting bound of each plain column, the free columns, and those that get an artificial
    /// bound.
    fn start(&mut self, plain: usize) -> (Vec<f64>, Vec<usize>, Vec<usize>) {
        let (mut start, mut free, mut artificial) = (Vec::new(), Vec::new(), Vec::new());
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
                self.lower[column] = upper.min(0.0) - ARTIFICIAL_BOUND;
                artificial.push(column);
            } else if side < 0.0 && !upper.is_finite() {
                self.upper[column] = lower.max(0.0) + ARTIFICIAL_BOUND;
                artificial.push(column);
            }
            start.push(side);
        }
        (start, free, artificial)
    }
}

/// The terms of plain columns.
fn plain_terms(rows: &[Terms], plain: usize) -> Vec<Terms> {
    let of_plain = |row: &Terms| {
        let terms = row.iter().filter(|term| (term.0 as usize) < plain);
        terms.copied().collect()
    };
    rows.iter().map(of_plain).collect()
}

/// The largest power of two that is at most `number`: its bits without those of the fraction.
fn power_of_two_below(number: f64) -> f64 {
    f64::from_bits(number.to_bits() & f64::INFINITY.to_bits())
}

/// One over the Euclidean norm of a row.
fn inverse_norm(row: &Terms) -> f64 {
    let squares: f64 = row.iter().map(|(_, value)| value * value).sum();
    1.0 / squares.sqrt()
}

impl ReducedLp {
    /// The first derived parameter.
    pub(super) fn first_derived(&self) -> usize {
        self.states + self.parameters.len()
    }

    /// The number of parameters.
    pub(super) fn parameter_count(&self) -> usize {
        self.first_derived() + self.derived.len()
    }

    /// Numbers derived parameters after all others.
    fn number_derived(&mut self) {
        let first = self.first_derived();
        let checks = self.feasibility_checks.iter_mut();
        let fixed_states = self.fixed_states.iter_mut();
        let sources = self.column_sources.iter_mut();
        let removed = sources.filter_map(|source| match source {
            ColumnSource::Kept(_) => None,
            ColumnSource::Removed(value) => Some(value),
        });
        let all = self.rhs.iter_mut().chain([&mut self.fixed_cost]);
        let all = all.chain(checks.map(|check| &mut check.value));
        let all = all.chain(fixed_states.map(|state| &mut state.1));
        let all = all.chain(self.derived.iter_mut().map(|part| &mut part.of));
        for affine in all.chain(removed) {
            affine.number_derived(first);
        }
        for lift in &mut self.lifts {
            let parameter = first + lift.derived - DERIVED;
            let mut terms = self.fixed_cost.terms.iter();
            let own = terms.find(|term| term.0 == parameter);
            lift.fixed_cost = own.map_or(0.0, |term| term.1);
        }
    }

    fn put_at_start(&mut self) {
        for (curve, mark) in self.curves.iter().zip(&self.start_curve_states) {
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
