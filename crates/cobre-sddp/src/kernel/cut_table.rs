//! The cuts of a node in blocks, evaluated with vector instructions.

use super::affine::Affine;
use super::reduced_lp::ReducedLp;
use super::tolerance;
use crate::policy::Cuts;
use cobre_simd::vectorized;

/// Cuts per block.
const LANES: usize = 8;
/// The intercept that fills up a block.
const NO_CUT: f64 = -1e300;
const NO_PLACE: u32 = u32::MAX;

/// The cuts in use, in the order of the pool, by blocks of [`LANES`]. Slopes are those of free
/// states; the contribution of fixed states is folded into the heights.
#[derive(Debug, Default)]
pub(super) struct CutTable {
    slots: Vec<u32>,
    /// By slot.
    places: Vec<u32>,
    intercepts: Vec<f64>,
    /// The largest magnitude of intercepts; and by fixed state the largest magnitude of slopes.
    max_intercept: f64,
    max_slopes: Vec<f64>,
    /// Block by block, the slopes of its cuts for each free state.
    slopes: Vec<f64>,
    /// The same for fixed states.
    fixed_slopes: Vec<f64>,
    /// Intercepts with the fixed states of this visit, and of this opening, folded in.
    visit_heights: Vec<f64>,
    opening_heights: Vec<f64>,
    /// The magnitude of the terms of heights: at this visit, and what this opening adds.
    magnitude: f64,
    opening_magnitude: f64,
    /// The heights that are valid.
    fold: Fold,
}

/// The data that is folded into the heights of cuts.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Fold {
    #[default]
    Nothing,
    Visit,
    Opening,
}

/// The number of slopes kept per cut: at least one, so that blocks have a size.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn width(count: usize) -> usize {
    count.max(1)
}

impl CutTable {
    /// Updates the table to the cuts that are in use.
    pub(super) fn update(&mut self, lp: &ReducedLp, cuts: &Cuts<'_>) {
        let slots = cuts.slots();
        if self.slots == slots {
            return;
        }
        if !slots.starts_with(&self.slots) {
            for list in [
                &mut self.intercepts,
                &mut self.slopes,
                &mut self.fixed_slopes,
            ] {
                list.clear();
            }
            self.max_intercept = 0.0;
            self.max_slopes.clear();
            self.slots.clear();
            self.places.clear();
        }
        let (decided, fixed) = (width(lp.free_states.len()), lp.fixed_states.len());
        self.max_slopes.resize(fixed, 0.0);
        for &slot in &slots[self.slots.len()..] {
            let place = self.slots.len();
            if place.is_multiple_of(LANES) {
                let end = place + LANES;
                self.intercepts.resize(end, NO_CUT);
                self.slopes.resize(end * decided, 0.0);
                self.fixed_slopes.resize(end * fixed, 0.0);
            }
            self.slots.push(slot);
            let needed = slot as usize + 1;
            if self.places.len() < needed {
                self.places.resize(needed, NO_PLACE);
            }
            self.places[slot as usize] = place as u32;
            self.intercepts[place] = cuts.intercept(slot);
            self.max_intercept = self.max_intercept.max(cuts.intercept(slot).abs());
            let gradient = cuts.gradient(slot);
            for (number, &(state, _)) in lp.free_states.iter().enumerate() {
                self.slopes[at(place, decided, number)] = gradient[state];
            }
            for (number, (state, _)) in lp.fixed_states.iter().enumerate() {
                self.fixed_slopes[at(place, fixed, number)] = gradient[*state];
                self.max_slopes[number] = self.max_slopes[number].max(gradient[*state].abs());
            }
        }
    }

    /// The place of a cut, if it is in use.
    pub(super) fn place(&self, slot: u32) -> Option<usize> {
        let place = self.places.get(slot as usize).copied();
        let place = place.filter(|&place| place != NO_PLACE);
        place.map(|place| place as usize)
    }

    pub(super) fn slot(&self, place: usize) -> u32 {
        self.slots[place]
    }

    /// The slope of the cut at `place` for a free state.
    #[inline]
    pub(super) fn slope(&self, lp: &ReducedLp, place: usize, free_state: usize) -> f64 {
        self.slopes[at(place, width(lp.free_states.len()), free_state)]
    }

    /// The slopes of the cut at `place` for all free states.
    #[inline]
    pub(super) fn slopes(&self, lp: &ReducedLp, place: usize) -> impl Iterator<Item = &f64> {
        let start = at(place, width(lp.free_states.len()), 0);
        self.slopes[start..].iter().step_by(LANES)
    }

    /// The slope of the cut at `place` for a fixed state.
    pub(super) fn fixed_slope(&self, lp: &ReducedLp, place: usize, fixed: usize) -> f64 {
        self.fixed_slopes[at(place, lp.fixed_states.len(), fixed)]
    }

    pub(super) fn intercept(&self, place: usize) -> f64 {
        self.intercepts[place]
    }

    /// The violation of the cut at `place` by `future` at this state.
    #[inline]
    pub(super) fn above(&self, lp: &ReducedLp, place: usize, state: &[f64], future: f64) -> f64 {
        let terms = self.slopes(lp, place).zip(state);
        terms.fold(self.heights()[place] - future, |sum, (slope, value)| {
            sum + slope * value
        })
    }

    /// The tolerance of a violation by `future`.
    #[inline]
    pub(super) fn tolerance(&self, future: f64) -> f64 {
        tolerance::cut(future, self.magnitude + self.opening_magnitude)
    }

    fn heights(&self) -> &[f64] {
        match self.fold {
            Fold::Nothing => &self.intercepts,
            Fold::Visit => &self.visit_heights,
            Fold::Opening => &self.opening_heights,
        }
    }

    /// Folds in the part of fixed states that depends on the incoming states, the first parameters.
    pub(super) fn start_visit(&mut self, lp: &ReducedLp, parameters: &[f64]) {
        self.fold = Fold::Nothing;
        (self.magnitude, self.opening_magnitude) = (self.max_intercept, 0.0);
        if lp.fixed_states.is_empty() || self.slots.is_empty() {
            return;
        }
        let incoming = |affine: &Affine| affine.at_states(&parameters[..lp.states]);
        self.visit_heights.clone_from(&self.intercepts);
        let slopes = (&self.fixed_slopes[..], &self.max_slopes[..]);
        self.magnitude += add(&mut self.visit_heights, slopes, lp, incoming);
        self.fold = Fold::Visit;
    }

    /// Folds in the part of fixed states that depends on the opening, the other parameters.
    pub(super) fn start_opening(&mut self, lp: &ReducedLp, parameters: &[f64]) {
        let of_opening = |term: &(usize, f64)| term.0 >= lp.states;
        let mut fixed = lp.fixed_states.iter();
        if self.fold == Fold::Nothing || !fixed.any(|(_, value)| value.terms.iter().any(of_opening))
        {
            return;
        }
        let opening = |affine: &Affine| {
            let terms = affine.terms.iter().filter(|term| of_opening(term));
            terms.fold(0.0, |sum, term| sum + term.1 * parameters[term.0])
        };
        self.opening_heights.clone_from(&self.visit_heights);
        let slopes = (&self.fixed_slopes[..], &self.max_slopes[..]);
        self.opening_magnitude = add(&mut self.opening_heights, slopes, lp, opening);
        self.fold = Fold::Opening;
    }

    /// The most violated cut and its violation by `future` at this state, the first of equals;
    /// `None` if no violation is above the tolerance.
    #[inline]
    pub(super) fn most_violated(&self, state: &[f64], future: f64) -> Option<(usize, f64)> {
        let least = self.tolerance(future);
        vectorized(
            #[inline(always)]
            || most_violated(self.heights(), &self.slopes, state, future, least),
        )
    }
}

/// The most violated cut and its violation, the first of equals; `None` if no violation is above
/// `least`.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn most_violated(
    heights: &[f64],
    slopes: &[f64],
    state: &[f64],
    future: f64,
    least: f64,
) -> Option<(usize, f64)> {
    let (mut most, mut found) = (least, None);
    let blocks = heights.chunks_exact(LANES);
    let slopes = slopes.chunks_exact(LANES * width(state.len()));
    for (block, (heights, slopes)) in blocks.zip(slopes).enumerate() {
        let mut above = [0.0; LANES];
        for (above, height) in above.iter_mut().zip(heights) {
            *above = height - future;
        }
        for (slopes, value) in slopes.chunks_exact(LANES).zip(state) {
            for (above, slope) in above.iter_mut().zip(slopes) {
                *above += slope * value;
            }
        }
        if largest(&above) > most {
            for (lane, &above) in above.iter().enumerate() {
                if above > most {
                    (most, found) = (above, Some(block * LANES + lane));
                }
            }
        }
    }
    found.map(|place| (place, most))
}

/// The index of the slope of a cut for state `number` of `count`.
#[inline]
fn at(place: usize, count: usize, number: usize) -> usize {
    (place / LANES * count + number) * LANES + place % LANES
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn largest(values: &[f64; LANES]) -> f64 {
    let mut half = [0.0; LANES / 2];
    for (at, most) in half.iter_mut().enumerate() {
        let (one, other) = (values[at], values[at + LANES / 2]);
        *most = if one > other { one } else { other };
    }
    half.into_iter().fold(
        half[0],
        |most, value| {
            if value > most { value } else { most }
        },
    )
}

/// Adds slope × value of each fixed state to the heights of all cuts; returns the most that this
/// adds.
fn add(
    heights: &mut [f64],
    (slopes, max_slopes): (&[f64], &[f64]),
    lp: &ReducedLp,
    value: impl Fn(&Affine) -> f64,
) -> f64 {
    let count = lp.fixed_states.len();
    let mut most = 0.0;
    for (number, (_, affine)) in lp.fixed_states.iter().enumerate() {
        let value = value(affine);
        if value == 0.0 {
            continue;
        }
        most += max_slopes[number] * value.abs();
        let blocks = slopes.chunks_exact(LANES * count);
        for (heights, slopes) in heights.chunks_exact_mut(LANES).zip(blocks) {
            let slopes = &slopes[number * LANES..][..LANES];
            for (height, slope) in heights.iter_mut().zip(slopes) {
                *height += slope * value;
            }
        }
    }
    most
}
