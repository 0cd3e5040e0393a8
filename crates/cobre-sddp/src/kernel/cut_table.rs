//! The cuts of a node, laid out to be looked at all at once.

use super::linear::Linear;
use super::program::Program;
use super::tolerance;
use crate::policy::Cuts;
use cobre_simd::vectorized;

/// Cuts that are looked at together.
const LANES: usize = 8;
/// The intercept of a cut that is none.
const NO_CUT: f64 = -1e300;
const NO_PLACE: u32 = u32::MAX;

/// The cuts in use, in the order of the pool, by blocks of [`LANES`]. Slopes are those of decided
/// states only: what known states add is folded into the heights.
#[derive(Debug, Default)]
pub(super) struct CutTable {
    slots: Vec<u32>,
    /// By slot.
    places: Vec<u32>,
    intercepts: Vec<f64>,
    /// The largest of them, whatever their signs; and by known state the steepest slope.
    highest: f64,
    steepest: Vec<f64>,
    /// Block by block, for each decided state the slopes of the block's cuts.
    slopes: Vec<f64>,
    /// The same for known states.
    known: Vec<f64>,
    /// Intercepts with the known states of this visit, and of this opening.
    visit: Vec<f64>,
    opening: Vec<f64>,
    /// How large the numbers are that heights are the sums of: at this visit, and more with this
    /// opening.
    magnitude: f64,
    more: f64,
    /// Which heights are the present ones.
    fold: Fold,
}

/// What the heights of cuts depend on.
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
    /// Takes in the cuts that are in use now.
    pub(super) fn update(&mut self, program: &Program, cuts: &Cuts<'_>) {
        let slots = cuts.slots();
        if self.slots == slots {
            return;
        }
        if !slots.starts_with(&self.slots) {
            for list in [&mut self.intercepts, &mut self.slopes, &mut self.known] {
                list.clear();
            }
            self.highest = 0.0;
            self.steepest.clear();
            self.slots.clear();
            self.places.clear();
        }
        let (decided, known) = (width(program.carriers.len()), program.known_states.len());
        self.steepest.resize(known, 0.0);
        for &slot in &slots[self.slots.len()..] {
            let place = self.slots.len();
            if place.is_multiple_of(LANES) {
                let end = place + LANES;
                self.intercepts.resize(end, NO_CUT);
                self.slopes.resize(end * decided, 0.0);
                self.known.resize(end * known, 0.0);
            }
            self.slots.push(slot);
            let needed = slot as usize + 1;
            if self.places.len() < needed {
                self.places.resize(needed, NO_PLACE);
            }
            self.places[slot as usize] = place as u32;
            self.intercepts[place] = cuts.intercept(slot);
            self.highest = self.highest.max(cuts.intercept(slot).abs());
            let gradient = cuts.gradient(slot);
            for (number, &(state, _)) in program.carriers.iter().enumerate() {
                self.slopes[at(place, decided, number)] = gradient[state];
            }
            for (number, (state, _)) in program.known_states.iter().enumerate() {
                self.known[at(place, known, number)] = gradient[*state];
                self.steepest[number] = self.steepest[number].max(gradient[*state].abs());
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

    /// The slope of the cut at `place` for a decided state.
    #[inline]
    pub(super) fn slope(&self, program: &Program, place: usize, carrier: usize) -> f64 {
        self.slopes[at(place, width(program.carriers.len()), carrier)]
    }

    /// The slopes of the cut at `place` for all decided states.
    #[inline]
    pub(super) fn slopes(&self, program: &Program, place: usize) -> impl Iterator<Item = &f64> {
        let start = at(place, width(program.carriers.len()), 0);
        self.slopes[start..].iter().step_by(LANES)
    }

    /// The slope of the cut at `place` for a known state.
    pub(super) fn known_slope(&self, program: &Program, place: usize, known: usize) -> f64 {
        self.known[at(place, program.known_states.len(), known)]
    }

    pub(super) fn intercept(&self, place: usize) -> f64 {
        self.intercepts[place]
    }

    /// How far the cut at `place` is above `future` at this state.
    #[inline]
    pub(super) fn above(&self, program: &Program, place: usize, state: &[f64], future: f64) -> f64 {
        let terms = self.slopes(program, place).zip(state);
        terms.fold(self.heights()[place] - future, |sum, (slope, value)| {
            sum + slope * value
        })
    }

    /// How far a cut may be above `future`.
    #[inline]
    pub(super) fn tolerance(&self, future: f64) -> f64 {
        tolerance::cut(future, self.magnitude + self.more)
    }

    fn heights(&self) -> &[f64] {
        match self.fold {
            Fold::Nothing => &self.intercepts,
            Fold::Visit => &self.visit,
            Fold::Opening => &self.opening,
        }
    }

    /// Folds the known states in, as far as the incoming states, the first parameters, decide.
    pub(super) fn start_visit(&mut self, program: &Program, parameters: &[f64]) {
        self.fold = Fold::Nothing;
        (self.magnitude, self.more) = (self.highest, 0.0);
        if program.known_states.is_empty() || self.slots.is_empty() {
            return;
        }
        let incoming = |linear: &Linear| linear.at_states(&parameters[..program.states]);
        self.visit.clone_from(&self.intercepts);
        let slopes = (&self.known[..], &self.steepest[..]);
        self.magnitude += add(&mut self.visit, slopes, program, incoming);
        self.fold = Fold::Visit;
    }

    /// Folds in what the opening, the rest of the parameters, decides of known states.
    pub(super) fn start_opening(&mut self, program: &Program, parameters: &[f64]) {
        let of_opening = |term: &(usize, f64)| term.0 >= program.states;
        let mut known = program.known_states.iter();
        if self.fold == Fold::Nothing || !known.any(|(_, value)| value.terms.iter().any(of_opening))
        {
            return;
        }
        let opening = |linear: &Linear| {
            let terms = linear.terms.iter().filter(|term| of_opening(term));
            terms.fold(0.0, |sum, term| sum + term.1 * parameters[term.0])
        };
        self.opening.clone_from(&self.visit);
        let slopes = (&self.known[..], &self.steepest[..]);
        self.more = add(&mut self.opening, slopes, program, opening);
        self.fold = Fold::Opening;
    }

    /// The cut that is highest above `future` at this state, if it is more than the tolerance
    /// above, and how much; the first of those that are equally high.
    #[inline]
    pub(super) fn most_violated(&self, state: &[f64], future: f64) -> Option<(usize, f64)> {
        let least = self.tolerance(future);
        vectorized(
            #[inline(always)]
            || most_violated(self.heights(), &self.slopes, state, future, least),
        )
    }
}

/// The first of the highest cuts that are more than `least` above `future`, and how much.
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

/// Where the slope of a cut for state `number` of `count` is.
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

/// Adds slope × value of each known state to the heights of all cuts; returns how much that was at
/// most.
fn add(
    heights: &mut [f64],
    (slopes, steepest): (&[f64], &[f64]),
    program: &Program,
    value: impl Fn(&Linear) -> f64,
) -> f64 {
    let count = program.known_states.len();
    let mut most = 0.0;
    for (number, (_, linear)) in program.known_states.iter().enumerate() {
        let value = value(linear);
        if value == 0.0 {
            continue;
        }
        most += steepest[number] * value.abs();
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
