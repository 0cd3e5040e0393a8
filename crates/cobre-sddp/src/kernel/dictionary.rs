//! What a work unit remembers: bases that were optimal, each with its value as a function of the
//! parameters of a solve.

use serde::{Deserialize, Serialize};

use super::basis::{Basis, Scene};
use super::curve::{Curve, Mark};
use super::cut_table::CutTable;
use super::inverse::{Inverse, padded};
use super::program::Program;
use super::simplex::Trouble;
use super::tolerance;

/// Marks the slot of a cut among the rows of an entry.
const CUT: u32 = 1 << 31;
/// Values below this come from bounds that an opening has taken away.
const NO_VALUE: f64 = -1e20;
/// Entries that a visit leaves beyond one per opening.
const MORE_KEPT: usize = 24;

/// A basis that was optimal once. Its reduced costs have the right signs whatever the right-hand
/// sides are, so its value is a lower bound for every solve of the node.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Entry {
    head: Vec<u32>,
    /// Rows after the equalities: rows of the program, and cuts by slot with [`CUT`] set.
    rows: Vec<u32>,
    #[serde(with = "crate::packing")]
    duals: Vec<f64>,
    #[serde(with = "crate::packing")]
    sense: Vec<f64>,
    #[serde(with = "crate::packing")]
    reduced: Vec<f64>,
    marks: Vec<Mark>,
    #[serde(with = "crate::packing")]
    activity: Vec<f64>,
    bound_cost: f64,
    #[serde(with = "crate::packing")]
    inverse: Vec<f64>,
    age: u32,
    /// The value is `constant` + `slopes` · parameters; with this visit's states it is `at_visit`
    /// and what the opening adds.
    constant: f64,
    #[serde(with = "crate::packing")]
    slopes: Vec<f64>,
    at_visit: f64,
    /// Visits since it was last used.
    idle: u32,
}

/// The bases of a work unit at a node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Dictionary {
    entries: Vec<Entry>,
    /// Entries whose room is used again.
    #[serde(skip)]
    spare: Vec<Entry>,
    /// Whether every entry is known to fit the program of the node: those that were read may not.
    #[serde(skip)]
    checked: bool,
}

impl Dictionary {
    /// Drops entries with cuts that are not in use any more, and evaluates the others at the
    /// incoming states, the first parameters.
    pub(super) fn start_visit(&mut self, program: &Program, cuts: &CutTable, parameters: &[f64]) {
        if !self.checked {
            self.entries.retain(|entry| entry.fits(program));
            self.checked = true;
        }
        let states = &parameters[..program.states];
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

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry with the highest value, the first of equals.
    #[inline]
    pub(super) fn best(&self, program: &Program, parameters: &[f64]) -> Option<usize> {
        let (mut most, mut found) = (NO_VALUE, None);
        for (at, entry) in self.entries.iter().enumerate() {
            let value = entry.value(program, parameters);
            if value > most {
                (most, found) = (value, Some(at));
            }
        }
        found
    }

    /// Puts an entry's basis in place.
    pub(super) fn load(
        &mut self,
        at: usize,
        scene: Scene<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<(), Trouble> {
        let entry = &mut self.entries[at];
        entry.load(scene, basis)?;
        if entry.age > tolerance::MOST_AGE {
            basis.refactor(scene)?;
            basis.correct_values(scene)?;
            entry.keep(scene, basis)?;
            entry.evaluate(&parameters[..scene.program.states]);
        }
        Ok(())
    }

    /// Says that an entry was of use.
    pub(super) fn used(&mut self, at: usize) {
        self.entries[at].idle = 0;
    }

    /// Adds a basis; checks that its reduced costs have the right signs.
    pub(super) fn add(
        &mut self,
        scene: Scene<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<usize, Trouble> {
        let mut entry = self.spare.pop().unwrap_or_default();
        let kept = entry.keep(scene, basis);
        entry.evaluate(&parameters[..scene.program.states]);
        entry.idle = 0;
        if let Err(trouble) = kept {
            self.spare.push(entry);
            return Err(trouble);
        }
        self.entries.push(entry);
        Ok(self.entries.len() - 1)
    }

    /// Takes the latest entry out again.
    pub(super) fn drop_latest(&mut self) {
        self.spare.extend(self.entries.pop());
    }

    /// The value of an entry, and how it changes with the parameters.
    pub(super) fn value(&self, at: usize, program: &Program, parameters: &[f64]) -> (f64, &[f64]) {
        let entry = &self.entries[at];
        (entry.value(program, parameters), &entry.slopes)
    }

    /// Ends a visit of this many openings: entries that were of no use go, but for the latest few.
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
    /// Whether an entry that was read can be one of this program: lengths, and every number that is a place.
    fn fits(&self, program: &Program) -> bool {
        let most = program.largest_basis();
        let size = program.equalities + self.rows.len();
        let finite = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        let distinct = |numbers: &[u32]| {
            let mut sorted = numbers.to_vec();
            sorted.sort_unstable();
            sorted.windows(2).all(|pair| pair[0] != pair[1])
        };
        let is_row = |row: &u32| {
            row & CUT != 0 || (program.equalities..program.rows).contains(&(*row as usize))
        };
        let is_mark = |(mark, curve): (&Mark, &Curve)| {
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
                .all(|&at| (at as usize) < program.columns() + size)
            && distinct(&self.head)
            && self.duals.len() == size
            && self.inverse.len() == Inverse::saved_length(most, size)
            && self.sense.len() == program.plain
            && self.reduced.len() == program.plain
            && self.activity.len() == program.rows
            && self.slopes.len() == program.states + program.parameters.len()
            && self.marks.len() == program.curves.len()
            && self.marks.iter().zip(&program.curves).all(is_mark)
            && self.age.max(self.idle) <= u32::MAX / 2
            && numbers.into_iter().all(|numbers| finite(numbers))
            && finite(&figures)
    }

    fn evaluate(&mut self, states: &[f64]) {
        let terms = self.slopes.iter().zip(states);
        self.at_visit = terms.fold(self.constant, |sum, (slope, value)| sum + slope * value);
    }

    #[inline]
    fn value(&self, program: &Program, parameters: &[f64]) -> f64 {
        let states = program.states;
        let slopes = self.slopes[states..].iter().zip(&parameters[states..]);
        slopes.fold(self.at_visit, |sum, (slope, value)| sum + slope * value)
    }

    fn load(&self, scene: Scene<'_>, basis: &mut Basis) -> Result<(), Trouble> {
        let program = scene.program;
        basis.rows.clear();
        basis.rows.extend(0..program.equalities as u32);
        for &row in &self.rows {
            let cut = (row & CUT != 0).then(|| scene.cuts.place(row ^ CUT));
            basis.rows.push(match cut {
                None => row,
                Some(place) => (program.rows + place.ok_or(Trouble::Wrong)?) as u32,
            });
        }
        basis.find_rows(program);
        for (position, &variable) in self.head.iter().enumerate() {
            basis.put(program, position, variable as usize);
        }
        basis.sense.copy_from_slice(&self.sense);
        basis.marks.copy_from_slice(&self.marks);
        let size = self.head.len();
        basis.inverse.load(size, &self.inverse);
        basis.duals[..size].copy_from_slice(&self.duals);
        basis.duals[size..].fill(0.0);
        basis.reduced.copy_from_slice(&self.reduced);
        basis.activity.copy_from_slice(&self.activity);
        basis.bound_cost = self.bound_cost;
        basis.age = self.age;
        Ok(())
    }

    /// Keeps a basis that a solve has ended with, after computing its dual values anew.
    fn keep(&mut self, scene: Scene<'_>, basis: &mut Basis) -> Result<(), Trouble> {
        let (program, size) = (scene.program, basis.size());
        basis.compute_exact_duals(scene);
        self.constant = bound_part(scene, basis)?;
        self.slopes.clear();
        self.slopes
            .resize(program.states + program.parameters.len(), 0.0);
        self.rows.clear();
        for (place, (&row, &dual)) in basis.rows.iter().zip(&basis.duals).enumerate() {
            let row = row as usize;
            if let Some(cut) = row.checked_sub(program.rows) {
                self.rows.push(CUT | scene.cuts.slot(cut));
                self.constant += dual * scene.cuts.intercept(cut);
                for (number, (_, value)) in program.known_states.iter().enumerate() {
                    let slope = scene.cuts.known_slope(program, cut, number);
                    self.constant += dual * slope * value.constant;
                    for &(parameter, coefficient) in &value.terms {
                        self.slopes[parameter] += dual * slope * coefficient;
                    }
                }
            } else {
                if place >= program.equalities {
                    self.rows.push(row as u32);
                }
                self.constant += dual * program.rhs[row].constant;
                for &(parameter, coefficient) in &program.rhs[row].terms {
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
        self.marks.clone_from(&basis.marks);
        copy(&basis.activity, &mut self.activity);
        self.bound_cost = basis.bound_cost;
        basis.inverse.save(&mut self.inverse);
        self.age = basis.age;
        Ok(())
    }
}

/// What the bounds of columns add to the dual value: Σ reduced cost × the bound that its sign
/// points to, for basic columns as for others, unless it is zero but for rounding. So a wrong sign
/// lowers the value, and widens the gap to the primal one. Where there is no such bound a sign is
/// wrong by a tolerance at most, relative to what the reduced cost is the sum of, or the basis is
/// refused.
fn bound_part(scene: Scene<'_>, basis: &mut Basis) -> Result<f64, Trouble> {
    let program = scene.program;
    let rounding = tolerance::ROUNDING * program.cost_scale;
    let mut sum = 0.0;
    for column in 0..program.plain {
        let (reduced, sense) = (basis.reduced[column], basis.sense[column]);
        let own = basis.at_bound(program, column);
        if sense * reduced > 0.0 || reduced == 0.0 {
            sum += reduced * own;
            continue;
        }
        let (off, terms) = (reduced.abs(), basis.terms(scene, column));
        let pointed = if reduced > 0.0 {
            program.lower[column]
        } else {
            program.upper[column]
        };
        let is_bound = pointed.is_finite() && !program.boxed.contains(&column);
        if off <= rounding + tolerance::DUAL_STEP * terms {
            sum += reduced * own;
        } else if is_bound {
            sum += reduced * pointed;
        } else if off <= tolerance::DUAL * terms {
            sum += reduced * own;
        } else {
            return Err(Trouble::Wrong);
        }
        if sense == 0.0 {
            basis.reduced[column] = 0.0;
        }
    }
    for (curve, &mark) in program.curves.iter().zip(&basis.marks) {
        let (pieces, dual) = (program.members(curve), basis.duals[curve.row]);
        let (activity, cost) = curve.at_bounds(pieces, mark);
        sum += cost - dual * activity;
        let on = mark.on as usize;
        let first_off = on + usize::from(mark.basic);
        if mark.basic {
            sum += pieces[on].least(dual)?;
        }
        // In the order of prices: beyond a piece that is right all others are.
        for piece in &pieces[first_off..] {
            if piece.reduced(dual) >= 0.0 {
                break;
            }
            sum += piece.least(dual)? - piece.worth(dual, false);
        }
        for piece in pieces[..on].iter().rev() {
            if piece.reduced(dual) <= 0.0 {
                break;
            }
            sum += piece.least(dual)? - piece.worth(dual, true);
        }
    }
    Ok(sum)
}
