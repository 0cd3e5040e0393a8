//! The cuts of one node, as solvers read them.

use crate::problem::StateColumns;

/// Numbers per cut: intercept, gradient, and the trial point it was made at.
pub(crate) fn record_width(states: usize) -> usize {
    1 + 2 * states
}

/// The cuts of one node that are in use: cost to go ≥ intercept + gradient · state. A cut is known
/// by its slot, which iteration and pass fix.
#[derive(Debug, Clone)]
pub struct Cuts<'a> {
    slots: &'a [u32],
    /// Records of consecutive slots, the same number in each chunk.
    chunks: Vec<&'a [f64]>,
    slots_per_chunk: usize,
    states: &'a [StateColumns],
}

impl<'a> Cuts<'a> {
    pub(crate) fn new(
        slots: &'a [u32],
        chunks: Vec<&'a [f64]>,
        slots_per_chunk: usize,
        states: &'a [StateColumns],
    ) -> Self {
        Self {
            slots,
            chunks,
            slots_per_chunk,
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

    fn record(&self, slot: u32) -> &'a [f64] {
        let width = record_width(self.states.len());
        let slot = slot as usize;
        let chunk = self.chunks[slot / self.slots_per_chunk];
        &chunk[slot % self.slots_per_chunk * width..][..width]
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
        let terms = self.gradient(slot).iter().zip(state);
        terms.fold(self.intercept(slot), |sum, (slope, value)| {
            sum + slope * value
        })
    }
}
