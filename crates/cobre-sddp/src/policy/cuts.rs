//! The cuts of one node, as solvers read them.

use crate::problem::StateColumns;

/// Numbers per cut: intercept, gradient, and the trial point it was made at.
pub(crate) fn record_width(states: usize) -> usize {
    1 + 2 * states
}

/// The layout of records: iteration by iteration, in it level by level, in it pass by pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordLayout {
    pub(crate) passes: usize,
    /// Numbers per cut.
    pub(crate) width: usize,
    /// Levels above the leaves.
    pub(crate) levels: usize,
}

impl RecordLayout {
    /// Numbers per iteration.
    pub(crate) fn iteration(self) -> usize {
        self.levels * self.passes * self.width
    }

    /// The place of the first number of a cut.
    #[inline]
    pub(crate) fn place(self, iteration: usize, level: usize, pass: usize) -> usize {
        ((iteration * self.levels + level - 1) * self.passes + pass) * self.width
    }
}

/// The cuts of one node that are in use: cost to go ≥ intercept + gradient · state. A cut is known
/// by its slot, which iteration and pass fix.
#[derive(Debug, Clone)]
pub struct Cuts<'a> {
    slots: &'a [u32],
    layout: RecordLayout,
    level: usize,
    /// The first iteration of each segment, and its records.
    segments: Vec<(usize, &'a [f64])>,
    /// The segment of each iteration.
    places: &'a [u8],
    states: &'a [StateColumns],
}

impl<'a> Cuts<'a> {
    pub(crate) fn new(
        slots: &'a [u32],
        (layout, level): (RecordLayout, usize),
        (segments, places): (Vec<(usize, &'a [f64])>, &'a [u8]),
        states: &'a [StateColumns],
    ) -> Self {
        Self {
            slots,
            layout,
            level,
            segments,
            places,
            states,
        }
    }

    /// The cuts in use, in the order that all solvers give their rows.
    pub fn slots(&self) -> &'a [u32] {
        self.slots
    }

    /// The column of each outgoing state variable.
    pub fn outgoing(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.states.iter().map(|state| state.outgoing)
    }

    #[inline]
    fn record(&self, slot: u32) -> &'a [f64] {
        let (slot, passes) = (slot as usize, self.layout.passes);
        let (iteration, pass) = (slot / passes, slot % passes);
        let (start, records) = self.segments[usize::from(self.places[iteration])];
        let at = self.layout.place(iteration - start, self.level, pass);
        &records[at..at + self.layout.width]
    }

    /// The value at state zero.
    pub fn intercept(&self, slot: u32) -> f64 {
        self.record(slot)[0]
    }

    /// The gradient by state.
    pub fn gradient(&self, slot: u32) -> &'a [f64] {
        &self.record(slot)[1..][..self.states.len()]
    }

    /// The trial point.
    pub fn point(&self, slot: u32) -> &'a [f64] {
        &self.record(slot)[1 + self.states.len()..]
    }

    /// The value at `state`.
    pub fn value(&self, slot: u32, state: &[f64]) -> f64 {
        let (intercept, rest) = self.record(slot).split_at(1);
        let terms = rest.iter().zip(state);
        terms.fold(intercept[0], |sum, (slope, value)| sum + slope * value)
    }
}
