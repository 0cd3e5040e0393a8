//! The cuts of one node, as solvers read them.

use super::node_table::CutBlocks;
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
    /// The first iterations, whose cuts were given: their records have no trial points.
    pub(crate) given: usize,
}

impl RecordLayout {
    /// The layout of the records of an iteration.
    #[inline]
    pub(crate) fn of(self, iteration: usize) -> Self {
        let width = if iteration < self.given {
            self.width.div_ceil(2)
        } else {
            self.width
        };
        Self { width, ..self }
    }

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
/// by its slot, which iteration and pass fix, and in a cyclic graph the visit.
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
    /// The table to look them up in.
    blocks: CutBlocks<'a>,
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
            blocks: CutBlocks::default(),
        }
    }

    /// The same with a table of the cuts in use.
    pub(super) fn with_blocks(self, blocks: CutBlocks<'a>) -> Self {
        Self { blocks, ..self }
    }

    /// The table of the cuts in use.
    pub(crate) fn blocks(&self) -> &CutBlocks<'a> {
        &self.blocks
    }

    /// The number of states.
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    /// No cuts, of a node with these states.
    pub(crate) fn none(states: &'a [StateColumns]) -> Self {
        let layout = RecordLayout {
            passes: 1,
            width: record_width(states.len()),
            levels: 1,
            given: 0,
        };
        Self::new(&[], (layout, 1), (Vec::new(), &[]), states)
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
        let layout = self.layout.of(iteration);
        let at = layout.place(iteration - start, self.level, pass);
        &records[at..at + layout.width]
    }

    /// The intercept and the gradient.
    pub(super) fn numbers(&self, slot: u32) -> &'a [f64] {
        &self.record(slot)[..=self.states.len()]
    }

    /// The value at state zero.
    pub fn intercept(&self, slot: u32) -> f64 {
        self.record(slot)[0]
    }

    /// The gradient by state.
    pub fn gradient(&self, slot: u32) -> &'a [f64] {
        &self.record(slot)[1..][..self.states.len()]
    }

    /// The trial point; empty if the cut was given without one.
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
