//! A cached basis: its variables, its objective value as an affine function of the parameters of a solve, and, while
//! it is in use, its inverse.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::affine::Affine;
use super::basis::{Basis, StageInput};
use super::curve::{Curve, CurveState};
use super::cut_table::CutTable;
use super::factorization::Factorization;
#[cfg(test)]
use super::fault::Fault;
use super::hyperplanes::NewReference;
use super::inverse::{Inverse, LANES, dot, padded};
use super::lu::Lu;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;
use super::tolerance;

/// Marks the slot of a cut among the rows of a cached basis.
const CUT: u32 = 1 << 31;

/// Elements that are not much memory.
const FEW: usize = 8;

/// A basis that was optimal once. It is dual feasible for any right-hand sides, so its objective
/// value is a lower bound for every solve of the node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CachedBasis {
    head: Vec<u32>,
    /// Rows after the equalities: rows of the linear program, and cuts by slot with [`CUT`] set.
    rows: Vec<u32>,
    /// By plain column: 1 at the lower bound, −1 at the upper, 0 basic or free at zero.
    sense: Vec<i8>,
    curve_states: Vec<CurveState>,
    /// The objective value is `constant` + `slopes` · parameters; `at_visit` is its part from the
    /// incoming states.
    constant: f64,
    #[serde(with = "crate::packing")]
    slopes: Vec<f64>,
    at_visit: f64,
    /// With sparse factors, the devex weights by position.
    weights: Box<[f32]>,
    /// With hyperplane groups, the devex weights of rows outside it.
    row_weights: Box<[u8]>,
    /// By hyperplane group, its reference.
    references: Box<[u8]>,
    factors: Option<Factors>,
    /// The sparse factors, and by row the position that is pivoted there: computed when the basis is first loaded, a
    /// function of the basis alone. Their bytes are known after they were read, too.
    #[serde(skip)]
    lu: Option<(Arc<Lu>, Box<[u32]>)>,
    lu_bytes: u32,
    /// Visits since it was last used.
    pub(super) idle: u32,
}

/// The numbers of a basis that a refactorisation computes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Factors {
    /// Dual values and reduced costs, and with a dense inverse activities of rows and the inverse: one allocation of their
    /// size.
    #[serde(with = "crate::packing")]
    numbers: Vec<f64>,
    bound_cost: f64,
    age: u32,
}

impl CachedBasis {
    /// Makes it a copy of the working basis, after refining its dual values; checks that it is dual feasible, and stays
    /// as it is if not. Where a hyperplane is tight that is not the reference of its group, it is the reference in the
    /// copy.
    pub(super) fn store(
        &mut self,
        input: StageInput<'_>,
        basis: &mut Basis,
    ) -> Result<(), SolveError> {
        let lp = input.lp;
        basis.refine_duals(input);
        basis.drop_basic_slacks(lp);
        let bounds = bound_part(input, basis)?;
        self.store_value(input, basis, bounds);
        let size = basis.size();
        let tight = lp.hyperplanes.tight(basis);
        let marked = if tight.is_empty() { 0 } else { size };
        let (mut goes_row, mut goes_position) = (vec![false; marked], vec![false; marked]);
        let references = lp.hyperplanes.references();
        if !references.is_empty() || !self.references.is_empty() {
            self.references = references.into();
        }
        empty(&mut self.sense, lp.plain);
        let sense = basis.sense.iter().map(|&sense| sense as i8);
        self.sense.extend(sense);
        for new in &tight {
            goes_row[new.place] = true;
            goes_position[new.position] = true;
            self.references[new.group] = new.number;
            #[cfg(test)]
            if Fault::WrongReference.is_on() {
                self.references[new.group] = 0;
            }
            self.sense[lp.hyperplanes.groups[new.group].column] = 1;
        }
        // The copy is another basis than the working one, with the same values.
        basis.stale |= !tight.is_empty();
        let stays = |goes: &[bool], at: usize| !goes.get(at).copied().unwrap_or(false);
        empty(&mut self.rows, size - lp.equalities - tight.len());
        for (place, &row) in basis.rows.iter().enumerate().skip(lp.equalities) {
            if stays(&goes_row, place) {
                let cut = (row as usize).checked_sub(lp.rows);
                let row = cut.map_or(row, |cut| CUT | input.cuts.slot(cut));
                self.rows.push(row);
            }
        }
        let positions = (0..size).filter(|&position| stays(&goes_position, position));
        empty(&mut self.head, size - tight.len());
        self.head.extend(positions.clone().map(|at| basis.head[at]));
        empty(&mut self.curve_states, basis.curve_states.len());
        self.curve_states.extend_from_slice(&basis.curve_states);
        self.weights = if lp.is_dense {
            Box::default()
        } else {
            positions.map(|at| basis.weights[at] as f32).collect()
        };
        self.row_weights = basis.outside.rounded_weights();
        let factors = self.factors.get_or_insert_default();
        factors.store(lp, basis, (&tight, &goes_row));
        (self.lu, self.lu_bytes, self.idle) = (None, 0, 0);
        Ok(())
    }

    /// Stores the objective value of the working basis, whose dual values are refined, as an affine function of the
    /// parameters of a solve. `bounds` is its part from column bounds.
    fn store_value(&mut self, input: StageInput<'_>, basis: &Basis, bounds: f64) {
        let lp = input.lp;
        (self.constant, self.at_visit) = (bounds, 0.0);
        empty(&mut self.slopes, lp.parameter_count());
        self.slopes.resize(lp.parameter_count(), 0.0);
        for (&row, &dual) in basis.rows.iter().zip(&basis.duals) {
            let row = row as usize;
            let Some(cut) = row.checked_sub(lp.rows) else {
                self.add(dual, &lp.rhs[row]);
                continue;
            };
            self.constant += dual * input.cuts.intercept(cut);
            for (number, (_, state)) in lp.fixed_states.iter().enumerate() {
                self.add(dual * input.cuts.fixed_slope(lp, cut, number), state);
            }
        }
        for (row, dual) in lp.hyperplanes.dual_values(basis) {
            self.add(dual, &lp.rhs[row]);
        }
    }

    /// Adds `dual` × a right-hand side to the objective value.
    fn add(&mut self, dual: f64, rhs: &Affine) {
        self.constant += dual * rhs.constant;
        for &(parameter, coefficient) in &rhs.terms {
            self.slopes[parameter] += dual * coefficient;
        }
    }

    /// The pivots of its inverse since it was computed.
    pub(super) fn age(&self) -> u32 {
        self.factors.as_ref().map_or(0, |factors| factors.age)
    }

    /// Drops what its memory is not kept for when it is gone.
    pub(super) fn drop_lu(&mut self) {
        (self.lu, self.lu_bytes) = (None, 0);
    }

    /// By hyperplane group, its reference.
    pub(super) fn references(&self) -> &[u8] {
        &self.references
    }

    /// True if a cut in it is not in use any more.
    pub(super) fn is_gone(&self, cuts: CutTable<'_>) -> bool {
        let gone = |row: &u32| row & CUT != 0 && cuts.place(row ^ CUT).is_none();
        self.rows.iter().any(gone)
    }

    /// Evaluates the objective value at the incoming states.
    pub(super) fn evaluate(&mut self, states: &[f64]) {
        let terms = self.slopes.iter().zip(states);
        self.at_visit = terms.fold(self.constant, |sum, (slope, value)| sum + slope * value);
    }

    /// The objective value at the incoming states of the visit, and its slopes by parameter of the opening.
    pub(super) fn at_visit(&self, lp: &ReducedLp) -> (f64, &[f64]) {
        (self.at_visit, &self.slopes[lp.states..])
    }

    /// The objective value, at the incoming states of the visit.
    #[inline]
    pub(super) fn value(&self, lp: &ReducedLp, parameters: &[f64]) -> f64 {
        let states = lp.states;
        let (slopes, parameters) = (&self.slopes[states..], &parameters[states..]);
        if lp.is_dense {
            let terms = slopes.iter().zip(parameters);
            return terms.fold(self.at_visit, |sum, (slope, value)| sum + slope * value);
        }
        // By lanes, and one by one what they leave.
        let whole = slopes.len() - slopes.len() % LANES;
        let terms = slopes[whole..].iter().zip(&parameters[whole..]);
        let rest = terms.fold(self.at_visit, |sum, (slope, value)| sum + slope * value);
        rest + dot(&slopes[..whole], &parameters[..whole])
    }

    /// The gradient of the objective value by parameter.
    pub(super) fn slopes(&self) -> &[f64] {
        &self.slopes
    }

    /// True if it has an inverse.
    pub(super) fn is_factored(&self) -> bool {
        self.factors.is_some()
    }

    /// Drops the inverse, which a load then computes anew.
    pub(super) fn drop_factors(&mut self) {
        self.factors = None;
        self.lu = None;
        self.lu_bytes = 0;
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let factors = self.factors.as_ref();
        let factors = factors.map_or(0, |factors| size_of_val(&*factors.numbers));
        size_of::<Self>()
            + size_of_val(&*self.head)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.sense)
            + size_of_val(&*self.curve_states)
            + size_of_val(&*self.slopes)
            + size_of_val(&*self.weights)
            + size_of_val(&*self.row_weights)
            + size_of_val(&*self.references)
            + self.lu_bytes as usize
            + factors
    }

    /// Keeps the inverse of the working basis, which is this one, if it has none.
    pub(super) fn factor(&mut self, lp: &ReducedLp, basis: &Basis) {
        if self.factors.is_none() {
            let factors = self.factors.insert(Factors::default());
            factors.store(lp, basis, (&[], &[]));
        }
    }

    /// Copies it to the working basis, with a new inverse if it has none; returns true if its inverse was too old, and is
    /// computed anew.
    pub(super) fn load(
        &mut self,
        input: StageInput<'_>,
        basis: &mut Basis,
    ) -> Result<bool, SolveError> {
        let lp = input.lp;
        basis.rows.clear();
        basis.rows.extend(0..lp.equalities as u32);
        for &row in &self.rows {
            let cut = (row & CUT != 0).then(|| input.cuts.place(row ^ CUT));
            basis.rows.push(match cut {
                None => row,
                Some(place) => (lp.rows + place.ok_or(SolveError::CheckFailed)?) as u32,
            });
        }
        basis.find_rows(lp);
        for (position, &variable) in self.head.iter().enumerate() {
            basis.put(lp, position, variable as usize);
        }
        for (sense, &own) in basis.sense.iter_mut().zip(&self.sense) {
            *sense = f64::from(own);
        }
        basis.curve_states.copy_from_slice(&self.curve_states);
        basis.basic_slack[lp.equalities..].fill(false);
        for (weight, &own) in basis.weights.iter_mut().zip(&self.weights) {
            *weight = f64::from(own);
        }
        basis.outside.load_weights(&self.row_weights);
        if self.factors.is_some() && !lp.is_dense {
            self.load_lu(input, basis)?;
        }
        let Some(factors) = &self.factors else {
            basis.refactor(input)?;
            return Ok(false);
        };
        factors.load(self.head.len(), lp, basis);
        if factors.age > tolerance::MAX_AGE {
            basis.refactor(input)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Copies the sparse factors to the working basis, which is this one.
    fn load_lu(&mut self, input: StageInput<'_>, basis: &mut Basis) -> Result<(), SolveError> {
        if let Some((lu, column_of)) = &self.lu {
            basis.permute(column_of);
            if let Factorization::Sparse(factors) = &mut basis.factors {
                factors.set(Arc::clone(lu));
            }
            basis.stale = false;
            return Ok(());
        }
        basis.factorize(input)?;
        if let Some(factors) = basis.factors.sparse() {
            let (lu, column_of) = (factors.lu(), &basis.scratch.column_of);
            self.lu_bytes = (lu.bytes() + size_of_val(&**column_of)) as u32;
            self.lu = Some((Arc::clone(lu), column_of[..].into()));
        }
        Ok(())
    }

    /// True if the columns in the head are those that are marked basic; lengths and indices are right.
    fn marks_agree(&self, lp: &ReducedLp) -> bool {
        let mut basic = vec![false; lp.columns()];
        for &variable in &self.head {
            if let Some(basic) = basic.get_mut(variable as usize) {
                *basic = true;
            }
        }
        let (plain, of_curves) = basic.split_at(lp.plain);
        // A free column that is not basic is at zero, and has no bound to be at either.
        let mut columns = plain.iter().zip(&self.sense).zip(&lp.start);
        let mut curves = lp.curves.iter().zip(&self.curve_states);
        columns.all(|((&basic, &sense), &start)| match sense {
            0 => basic || start == 0.0,
            _ => !basic,
        }) && curves.all(|(curve, mark)| {
            let columns = curve.columns.start - lp.plain..curve.columns.end - lp.plain;
            let marked = |(place, &basic): (usize, &bool)| {
                basic == (mark.basic && place == mark.on as usize)
            };
            of_curves[columns].iter().enumerate().all(marked)
        })
    }

    /// Checks that one that was read belongs to this linear program: lengths, and every index.
    pub(super) fn fits(&self, lp: &ReducedLp) -> bool {
        let most = lp.largest_basis();
        let size = lp.equalities + self.rows.len();
        let finite = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        let distinct = |numbers: &[u32]| {
            let mut sorted = numbers.to_vec();
            sorted.sort_unstable();
            sorted.windows(2).all(|pair| pair[0] != pair[1])
        };
        let is_row =
            |row: &u32| row & CUT != 0 || (lp.equalities..lp.rows).contains(&(*row as usize));
        let is_mark = |(mark, curve): (&CurveState, &Curve)| {
            mark.on as usize + usize::from(mark.basic) <= curve.columns.len()
        };
        size <= padded(most)
            && self.rows.iter().all(is_row)
            && distinct(&self.rows)
            && self.head.len() == size
            && self
                .head
                .iter()
                .all(|&at| (at as usize) < lp.columns() + size)
            && distinct(&self.head)
            && self.sense.len() == lp.plain
            && self.sense.iter().all(|sense| (-1..=1).contains(sense))
            && self.slopes.len() == lp.parameter_count()
            && self.curve_states.len() == lp.curves.len()
            && self.curve_states.iter().zip(&lp.curves).all(is_mark)
            && self.marks_agree(lp)
            && self.idle <= u32::MAX / 2
            && lp.hyperplanes.fit(&self.references)
            && self.row_weights.len() == lp.hyperplanes.blocks.rows.as_flattened().len()
            && self.weights.len() == if lp.is_dense { 0 } else { size }
            && self
                .weights
                .iter()
                .all(|weight| weight.is_normal() && *weight > 0.0)
            && finite(&self.slopes)
            && finite(&[self.constant, self.at_visit])
            && self
                .factors
                .as_ref()
                .is_none_or(|factors| factors.fit(lp, size))
    }
}

impl Factors {
    /// Makes them those of the working basis, without rows that go; the column of a new reference has the dual value of
    /// its row as reduced cost.
    fn store(
        &mut self,
        lp: &ReducedLp,
        basis: &Basis,
        (tight, goes_row): (&[NewReference], &[bool]),
    ) {
        let size = basis.size();
        let inverse = match &basis.factors {
            Factorization::Dense(inverse) => Some(inverse),
            Factorization::Sparse(_) => None,
        };
        let length = size + lp.plain + inverse.map_or(0, |inverse| lp.rows + inverse.saved());
        let numbers = &mut self.numbers;
        empty(numbers, length - tight.len());
        if tight.is_empty() {
            numbers.extend_from_slice(&basis.duals[..size]);
        } else {
            let duals = basis.duals[..size].iter().zip(goes_row);
            numbers.extend(duals.filter(|dual| !*dual.1).map(|dual| dual.0));
        }
        let first_reduced = numbers.len();
        numbers.extend_from_slice(&basis.reduced);
        for new in tight {
            let column = lp.hyperplanes.groups[new.group].column;
            numbers[first_reduced + column] = basis.duals[new.place];
        }
        if let Some(inverse) = inverse {
            numbers.extend_from_slice(&basis.activity);
            inverse.save(numbers);
        }
        self.bound_cost = basis.bound_cost;
        self.age = inverse.map_or(0, |_| basis.age);
    }

    /// Copies them to the working basis, which has `size` rows.
    fn load(&self, size: usize, lp: &ReducedLp, basis: &mut Basis) {
        let (duals, rest) = self.numbers.split_at(size);
        let (reduced, rest) = rest.split_at(basis.reduced.len());
        basis.duals[..size].copy_from_slice(duals);
        basis.duals[size..].fill(0.0);
        basis.reduced.copy_from_slice(reduced);
        basis.age = self.age;
        if let Factorization::Dense(own) = &mut basis.factors {
            let (activity, inverse) = rest.split_at(basis.activity.len());
            own.load(size, inverse);
            basis.activity.copy_from_slice(activity);
            basis.bound_cost = self.bound_cost;
        } else {
            basis.compute_bound_activity(lp);
        }
    }

    fn fit(&self, lp: &ReducedLp, size: usize) -> bool {
        let dense = if lp.is_dense {
            lp.rows + Inverse::saved_length(lp.largest_basis(), size)
        } else {
            0
        };
        self.numbers.len() == size + lp.plain + dense
            && self.age <= u32::MAX / 2
            && self.bound_cost.is_finite()
            && self.numbers.iter().all(|number| number.is_finite())
    }
}

/// Empties a list that is to have so many elements, and gives it new memory if it has less room or much more.
#[inline]
fn empty<T>(list: &mut Vec<T>, length: usize) {
    let most = length + length / 4 + FEW;
    if (length..=most).contains(&list.capacity()) {
        list.clear();
    } else {
        *list = Vec::with_capacity(length);
    }
}

/// The contribution of column bounds to the dual objective: Σ reduced cost × the bound that its
/// sign points to, for basic columns as for others, unless it is zero but for rounding. A wrong
/// sign so lowers the dual objective, and widens the gap to the primal one. Where there is no such
/// bound, a sign is wrong by a tolerance at most, relative to the terms of the reduced cost, or the
/// basis is refused.
fn bound_part(input: StageInput<'_>, basis: &mut Basis) -> Result<f64, SolveError> {
    let lp = input.lp;
    let rounding = tolerance::ROUNDING * lp.cost_scale;
    let mut sum = 0.0;
    for column in 0..lp.plain {
        let (reduced, sense) = (basis.reduced[column], basis.sense[column]);
        let own = basis.at_bound(lp, column);
        if sense * reduced > 0.0 || reduced == 0.0 {
            sum += reduced * own;
            continue;
        }
        let (off, terms) = (reduced.abs(), basis.terms(input, column));
        let pointed = if reduced > 0.0 {
            lp.lower[column]
        } else {
            lp.upper[column]
        };
        let is_bound = pointed.is_finite() && !lp.artificial.contains(&column);
        if off <= rounding + tolerance::DUAL_STEP * terms {
            sum += reduced * own;
        } else if is_bound {
            sum += reduced * pointed;
        } else if off <= tolerance::DUAL * terms {
            sum += reduced * own;
        } else {
            return Err(SolveError::CheckFailed);
        }
        if sense == 0.0 {
            basis.reduced[column] = 0.0;
        }
    }
    for (curve, &mark) in lp.curves.iter().zip(&basis.curve_states) {
        let (segments, dual) = (lp.members(curve), basis.duals[curve.row]);
        let (activity, cost) = curve.at_bounds(segments, mark);
        sum += cost - dual * activity;
        let on = mark.on as usize;
        let first_off = on + usize::from(mark.basic);
        if mark.basic {
            sum += segments[on].least_contribution(dual)?;
        }
        // In the order of unit costs: beyond a segment with the right sign all others have it.
        for segment in &segments[first_off..] {
            if segment.reduced(dual) >= 0.0 {
                break;
            }
            sum += segment.least_contribution(dual)? - segment.contribution(dual, false);
        }
        for segment in segments[..on].iter().rev() {
            if segment.reduced(dual) <= 0.0 {
                break;
            }
            sum += segment.least_contribution(dual)? - segment.contribution(dual, true);
        }
    }
    Ok(sum)
}
