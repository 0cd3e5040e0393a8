//! The basis cache of a work unit: bases that were optimal, each with its objective value as an
//! affine function of the parameters of a solve.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::basis::{Basis, StageInput};
use super::curve::{Curve, CurveState};
use super::cut_table::CutTable;
use super::factorization::Factorization;
use super::inverse::{Inverse, padded};
use super::lu::Lu;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;
use super::tolerance;

/// Marks the slot of a cut among the rows of a cached basis.
const CUT: u32 = 1 << 31;
/// Values below this come from bounds that an opening removes.
const NO_VALUE: f64 = -1e20;
/// Bases kept after a visit beyond one per opening.
const MORE_KEPT: usize = 24;

/// A basis that was optimal once. It is dual feasible for any right-hand sides, so its objective
/// value is a lower bound for every solve of the node.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Entry {
    head: Vec<u32>,
    /// Rows after the equalities: rows of the linear program, and cuts by slot with [`CUT`] set.
    rows: Vec<u32>,
    #[serde(with = "crate::packing")]
    duals: Vec<f64>,
    #[serde(with = "crate::packing")]
    sense: Vec<f64>,
    #[serde(with = "crate::packing")]
    reduced: Vec<f64>,
    curve_states: Vec<CurveState>,
    #[serde(with = "crate::packing")]
    activity: Vec<f64>,
    bound_cost: f64,
    #[serde(with = "crate::packing")]
    inverse: Vec<f64>,
    /// With sparse factors, the devex weights by position.
    weights: Vec<f32>,
    /// The sparse factors, computed when the basis is first loaded, and by row the position that is
    /// pivoted there.
    #[serde(skip)]
    factors: Option<(Arc<Lu>, Box<[u32]>)>,
    age: u32,
    /// The objective value is `constant` + `slopes` · parameters; `at_visit` is its part from the
    /// incoming states.
    constant: f64,
    #[serde(with = "crate::packing")]
    slopes: Vec<f64>,
    at_visit: f64,
    /// Visits since it was last used.
    idle: u32,
}

/// The cached bases of a work unit at a node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct BasisCache {
    entries: Vec<Entry>,
    /// Entries whose memory is reused.
    #[serde(skip)]
    spare: Vec<Entry>,
    /// True if every entry is checked against the linear program of the node: those that were read
    /// need not fit it.
    #[serde(skip)]
    checked: bool,
}

impl BasisCache {
    /// Drops bases with cuts that are not in use any more, and evaluates the others at the incoming
    /// states, the first parameters.
    pub(super) fn start_visit(&mut self, lp: &ReducedLp, cuts: &CutTable, parameters: &[f64]) {
        if !self.checked {
            self.entries.retain(|entry| entry.fits(lp));
            self.checked = true;
        }
        let states = &parameters[..lp.states];
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(at) {
            let gone = |row: &u32| row & CUT != 0 && cuts.place(row ^ CUT).is_none();
            if entry.rows.iter().any(gone) {
                let entry = self.entries.swap_remove(at);
                self.spare.push(entry);
                continue;
            }
            entry.evaluate(states);
            entry.idle += 1;
            at += 1;
        }
    }

    /// The number of bases.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The basis with the highest objective value, the first of equals.
    #[inline]
    pub(super) fn best(&self, lp: &ReducedLp, parameters: &[f64]) -> Option<usize> {
        let (mut most, mut found) = (NO_VALUE, None);
        for (at, entry) in self.entries.iter().enumerate() {
            let value = entry.value(lp, parameters);
            if value > most {
                (most, found) = (value, Some(at));
            }
        }
        found
    }

    /// Copies a cached basis to the working basis.
    pub(super) fn load(
        &mut self,
        at: usize,
        input: StageInput<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<(), SolveError> {
        let entry = &mut self.entries[at];
        entry.load(input, basis)?;
        if entry.age > tolerance::MAX_AGE {
            basis.refactor(input)?;
            basis.refine_values(input)?;
            entry.keep(input, basis)?;
            entry.evaluate(&parameters[..input.lp.states]);
        }
        Ok(())
    }

    /// Notes that a basis was used.
    pub(super) fn used(&mut self, at: usize) {
        self.entries[at].idle = 0;
    }

    /// Adds a basis; checks that it is dual feasible.
    pub(super) fn add(
        &mut self,
        input: StageInput<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<usize, SolveError> {
        let mut entry = self.spare.pop().unwrap_or_default();
        let kept = entry.keep(input, basis);
        entry.evaluate(&parameters[..input.lp.states]);
        entry.idle = 0;
        if let Err(error) = kept {
            self.spare.push(entry);
            return Err(error);
        }
        self.entries.push(entry);
        Ok(self.entries.len() - 1)
    }

    /// Removes the latest basis.
    pub(super) fn drop_latest(&mut self) {
        self.spare.extend(self.entries.pop());
    }

    /// The objective value of a basis, and its gradient by parameter.
    pub(super) fn value(&self, at: usize, lp: &ReducedLp, parameters: &[f64]) -> (f64, &[f64]) {
        let entry = &self.entries[at];
        (entry.value(lp, parameters), &entry.slopes)
    }

    /// Ends a visit of this many openings: drops the bases that have been idle longest.
    pub(super) fn end_visit(&mut self, openings: usize) {
        let most = openings + MORE_KEPT;
        while self.entries.len() > most {
            let idle = self.entries.iter().map(|entry| entry.idle).max();
            if idle == Some(0) {
                return;
            }
            let oldest = self
                .entries
                .iter()
                .position(|entry| Some(entry.idle) == idle);
            let entry = self.entries.swap_remove(oldest.unwrap_or(0));
            self.spare.push(entry);
        }
    }
}

impl Entry {
    /// Checks that an entry that was read belongs to this linear program: lengths, and every index.
    fn fits(&self, lp: &ReducedLp) -> bool {
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
        let figures = [self.bound_cost, self.constant, self.at_visit];
        let numbers = [&self.duals, &self.sense, &self.reduced, &self.activity];
        let numbers = numbers.into_iter().chain([&self.inverse, &self.slopes]);
        size <= padded(most)
            && self.rows.iter().all(is_row)
            && distinct(&self.rows)
            && self.head.len() == size
            && self
                .head
                .iter()
                .all(|&at| (at as usize) < lp.columns() + size)
            && distinct(&self.head)
            && self.duals.len() == size
            && if lp.is_dense {
                self.inverse.len() == Inverse::saved_length(most, size)
            } else {
                self.inverse.is_empty() && self.has_weights(size)
            }
            && self.sense.len() == lp.plain
            && self.reduced.len() == lp.plain
            && self.activity.len() == lp.rows
            && self.slopes.len() == lp.parameter_count()
            && self.curve_states.len() == lp.curves.len()
            && self.curve_states.iter().zip(&lp.curves).all(is_mark)
            && self.age.max(self.idle) <= u32::MAX / 2
            && numbers.into_iter().all(|numbers| finite(numbers))
            && finite(&figures)
    }

    fn has_weights(&self, size: usize) -> bool {
        let is_weight = |weight: &f32| weight.is_finite() && *weight > 0.0;
        self.weights.len() == size && self.weights.iter().all(is_weight)
    }

    fn evaluate(&mut self, states: &[f64]) {
        let terms = self.slopes.iter().zip(states);
        self.at_visit = terms.fold(self.constant, |sum, (slope, value)| sum + slope * value);
    }

    #[inline]
    fn value(&self, lp: &ReducedLp, parameters: &[f64]) -> f64 {
        let states = lp.states;
        let slopes = self.slopes[states..].iter().zip(&parameters[states..]);
        slopes.fold(self.at_visit, |sum, (slope, value)| sum + slope * value)
    }

    fn load(&mut self, input: StageInput<'_>, basis: &mut Basis) -> Result<(), SolveError> {
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
        basis.sense.copy_from_slice(&self.sense);
        basis.curve_states.copy_from_slice(&self.curve_states);
        let size = self.head.len();
        basis.basic_slack[lp.equalities..].fill(false);
        self.load_factors(input, basis)?;
        basis.duals[..size].copy_from_slice(&self.duals);
        basis.duals[size..].fill(0.0);
        basis.reduced.copy_from_slice(&self.reduced);
        basis.activity.copy_from_slice(&self.activity);
        basis.bound_cost = self.bound_cost;
        basis.age = self.age;
        Ok(())
    }

    /// Copies the working basis, after refining its dual values.
    fn keep(&mut self, input: StageInput<'_>, basis: &mut Basis) -> Result<(), SolveError> {
        let lp = input.lp;
        basis.refine_duals(input);
        basis.drop_basic_slacks(lp);
        let size = basis.size();
        self.constant = bound_part(input, basis)?;
        self.slopes.clear();
        self.slopes.resize(lp.parameter_count(), 0.0);
        self.rows.clear();
        for (place, (&row, &dual)) in basis.rows.iter().zip(&basis.duals).enumerate() {
            let row = row as usize;
            if let Some(cut) = row.checked_sub(lp.rows) {
                self.rows.push(CUT | input.cuts.slot(cut));
                self.constant += dual * input.cuts.intercept(cut);
                for (number, (_, value)) in lp.fixed_states.iter().enumerate() {
                    let slope = input.cuts.fixed_slope(lp, cut, number);
                    self.constant += dual * slope * value.constant;
                    for &(parameter, coefficient) in &value.terms {
                        self.slopes[parameter] += dual * slope * coefficient;
                    }
                }
            } else {
                if place >= lp.equalities {
                    self.rows.push(row as u32);
                }
                self.constant += dual * lp.rhs[row].constant;
                for &(parameter, coefficient) in &lp.rhs[row].terms {
                    self.slopes[parameter] += dual * coefficient;
                }
            }
        }
        let copy = |from: &[f64], into: &mut Vec<f64>| {
            into.clear();
            into.extend_from_slice(from);
        };
        self.head.clear();
        self.head.extend_from_slice(&basis.head[..size]);
        copy(&basis.duals[..size], &mut self.duals);
        copy(&basis.sense, &mut self.sense);
        copy(&basis.reduced, &mut self.reduced);
        self.curve_states.clone_from(&basis.curve_states);
        copy(&basis.activity, &mut self.activity);
        self.bound_cost = basis.bound_cost;
        self.keep_factors(basis);
        Ok(())
    }

    fn load_factors(&mut self, input: StageInput<'_>, basis: &mut Basis) -> Result<(), SolveError> {
        if let Factorization::Dense(inverse) = &mut basis.factors {
            inverse.load(self.head.len(), &self.inverse);
            return Ok(());
        }
        for (weight, &saved) in basis.weights.iter_mut().zip(&self.weights) {
            *weight = f64::from(saved);
        }
        if let Some((lu, column_of)) = &self.factors {
            basis.permute(column_of);
            if let Factorization::Sparse(factors) = &mut basis.factors {
                factors.set(Arc::clone(lu));
            }
            basis.stale = false;
            return Ok(());
        }
        basis.factorize(input)?;
        let lu = basis.factors.sparse().map(|factors| factors.lu().clone());
        let column_of = basis.scratch.column_of.clone();
        self.factors = lu.map(|lu| (lu, column_of.into_boxed_slice()));
        Ok(())
    }

    fn keep_factors(&mut self, basis: &Basis) {
        self.weights.clear();
        self.factors = None;
        match &basis.factors {
            Factorization::Dense(inverse) => {
                inverse.save(&mut self.inverse);
                self.age = basis.age;
            }
            Factorization::Sparse(_) => {
                let weights = basis.weights[..basis.size()].iter();
                self.weights.extend(weights.map(|&weight| weight as f32));
                self.inverse.clear();
                self.age = 0;
            }
        }
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
