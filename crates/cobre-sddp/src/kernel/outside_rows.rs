//! Inequalities outside the basis of large stages with hyperplanes: pivots update their slacks and devex weights as they
//! do those of basic variables. Such a row is priced like any other, and comes in when it leaves.

#![expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]

use super::basis::{Basis, StageInput};
use super::index_list::IndexList;
use super::reduced_lp::ReducedLp;
use super::row_blocks::{LANES, Lanes, RowBlocks};
use super::sparse_pricing::find_nonzero;
use super::tolerance;
use cobre_simd::vectorized;

/// The larger number.
#[inline(always)]
fn larger(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}

/// The largest number, or any if all are negative. The bits of others have the same order, and integers have vector
/// instructions for it.
#[inline(always)]
fn largest(numbers: &[f64]) -> f64 {
    let bits = numbers.iter().map(|number| number.to_bits().cast_signed());
    f64::from_bits(bits.fold(i64::MIN, i64::max).cast_unsigned())
}

/// The rows of a block: their slacks, infinite for rows of the basis, how far below zero these may be, and their devex
/// weights.
#[derive(Debug, Clone, Copy)]
struct BlockState {
    slacks: Lanes,
    least: Lanes,
    weights: Lanes,
}

impl BlockState {
    const NEW: Self = Self {
        slacks: Lanes::all(f64::INFINITY),
        least: Lanes::all(0.0),
        weights: Lanes::all(1.0),
    };

    /// Moves slacks by `step` × elements, and weights to at least `factor` × their squares.
    #[inline(always)]
    fn settle(&mut self, Lanes(elements): Lanes, step: f64, factor: f64) {
        // By value, for vector instructions.
        let (weights, slacks) = (self.weights.0, self.slacks.0);
        self.weights = Lanes(std::array::from_fn(|lane| {
            larger(elements[lane] * elements[lane] * factor, weights[lane])
        }));
        self.slacks = Lanes(std::array::from_fn(|lane| {
            slacks[lane] + step * elements[lane]
        }));
    }

    /// The squared violation of each row over its weight, negative if it is not violated.
    #[inline(always)]
    fn lane_scores(&self) -> [f64; LANES] {
        let (slacks, least, weights) = (self.slacks.0, self.least.0, self.weights.0);
        std::array::from_fn(|lane| {
            let score = slacks[lane] * slacks[lane] / weights[lane];
            if slacks[lane] < least[lane] {
                score
            } else {
                FEASIBLE
            }
        })
    }

    /// The largest of these.
    #[inline(always)]
    fn score(&self) -> f64 {
        // Without a branch: every other block that a pivot touches has a violated row.
        largest(&self.lane_scores())
    }
}

/// The slacks and devex weights of the inequalities that are not in the basis, by block and lane.
#[derive(Debug, Default)]
pub(super) struct OutsideRows {
    blocks: Vec<BlockState>,
    /// True if slacks are those of other values.
    is_stale: bool,
    /// By block: its place among those that a pivot touches, [`UNTOUCHED`] for others.
    places: Vec<u32>,
    /// The blocks that a pivot touches, and their elements of the pivot column: `count` of them.
    touched: Vec<u32>,
    elements: Vec<Lanes>,
    count: u32,
    /// By block: the largest squared violation over its weight, negative if no row is violated. Whole groups of
    /// [`LANES`].
    scores: Vec<f64>,
    /// Values of columns, and the places of basic variables that flips change.
    values: Vec<f64>,
    shifted: IndexList,
}

impl OutsideRows {
    /// Makes room for the rows of a linear program.
    pub(super) fn fit(&mut self, lp: &ReducedLp) {
        let count = lp.hyperplanes.blocks.count();
        self.blocks.clear();
        self.blocks.resize(count, BlockState::NEW);
        self.places.clear();
        self.places.resize(count, UNTOUCHED);
        self.touched.resize(count, 0);
        self.elements.clear();
        self.elements.resize(count, Lanes::all(0.0));
        self.scores.clear();
        self.scores.resize(count.next_multiple_of(LANES), FEASIBLE);
        self.count = 0;
        self.values.resize(lp.plain, 0.0);
        self.is_stale = true;
    }

    /// Notes that values have changed other than by a pivot.
    #[inline]
    pub(super) fn set_stale(&mut self) {
        self.is_stale = true;
    }

    /// Sets all weights to one.
    pub(super) fn reset_weights(&mut self) {
        vectorized(
            #[inline(always)]
            || {
                for (block, score) in self.blocks.iter_mut().zip(&mut self.scores) {
                    block.weights = Lanes::all(1.0);
                    *score = block.score();
                }
            },
        );
    }

    /// Sets the weight of a row that leaves the basis.
    pub(super) fn set_weight(&mut self, blocks: &RowBlocks, row: usize, weight: f64) {
        if let Some((block, lane)) = blocks.place(row) {
            self.blocks[block].weights.0[lane] = weight;
        }
    }

    /// The weights, rounded down to 1, 1⅛ … 1⅞ times a power of two, as bytes.
    pub(super) fn rounded_weights(&self) -> Box<[u8]> {
        let rounded = |weight: f64| {
            let bits = (weight.max(1.0) as f32).to_bits() >> WEIGHT_SHIFT;
            (bits - (1f32.to_bits() >> WEIGHT_SHIFT)).min(u32::from(u8::MAX)) as u8
        };
        let blocks = self.blocks.iter();
        let blocks: Vec<[u8; LANES]> = blocks.map(|block| block.weights.0.map(rounded)).collect();
        blocks.into_flattened().into()
    }

    /// Sets the weights to rounded ones.
    pub(super) fn load_weights(&mut self, rounded: &[u8]) {
        let weights = self.blocks.iter_mut();
        let weights = weights.flat_map(|block| &mut block.weights.0);
        for (weight, &rounded) in weights.zip(rounded) {
            let bits = u32::from(rounded) + (1f32.to_bits() >> WEIGHT_SHIFT);
            *weight = f64::from(f32::from_bits(bits << WEIGHT_SHIFT));
        }
    }

    /// The place of a block among those that the pivot touches: without a branch, a new one if it has none.
    #[inline(always)]
    fn touch(&mut self, block: usize) -> usize {
        let place = self.places[block].min(self.count);
        self.places[block] = place;
        self.touched[place as usize] = block as u32;
        self.count = self.count.max(place + 1);
        place as usize
    }

    /// Adds a variable's coefficients, times `factor`, to the elements.
    #[inline(always)]
    fn add_elements(&mut self, blocks: &RowBlocks, variable: usize, factor: f64) {
        for (block, coefficients) in blocks.blocks_of(variable) {
            let place = self.touch(block);
            add(&mut self.elements[place], coefficients, factor);
        }
    }

    /// Adds a variable's coefficients, times the change of its value, to the slacks.
    #[inline(always)]
    fn shift(&mut self, blocks: &RowBlocks, variable: usize, change: f64) {
        for (block, coefficients) in blocks.blocks_of(variable) {
            self.touch(block);
            add(&mut self.blocks[block].slacks, coefficients, change);
        }
    }

    /// Moves the slacks and weights of the blocks that the pivot touches, and computes their scores.
    #[inline(always)]
    fn settle(&mut self, step: f64, factor: f64) {
        let touched = &self.touched[..self.count as usize];
        for (&at, elements) in touched.iter().zip(&mut self.elements) {
            let at = at as usize;
            let block = &mut self.blocks[at];
            block.settle(std::mem::replace(elements, Lanes::all(0.0)), step, factor);
            self.scores[at] = block.score();
            self.places[at] = UNTOUCHED;
        }
        self.count = 0;
    }

    /// The most violated row by its weight if it scores more than `most`, the first of equals: block and lane.
    fn leaving(&self, most: f64) -> Option<(usize, usize)> {
        vectorized(
            #[inline(always)]
            || {
                let score = largest(&self.scores);
                if score <= most {
                    return None;
                }
                let groups = self.scores.as_chunks().0.iter().enumerate();
                let mut found = groups.map(|(group, scores)| (group, first(scores, score)));
                let (group, place) = found.find(|found| found.1 < LANES)?;
                let block = group * LANES + place;
                let lane = first(&self.blocks[block].lane_scores(), score);
                (lane < LANES).then_some((block, lane))
            },
        )
    }
}

/// The place of the first of equal numbers, [`LANES`] if there is none: without a branch for each.
#[inline(always)]
fn first(numbers: &[f64; LANES], number: f64) -> usize {
    let places = numbers.iter().enumerate();
    let bits = places.map(|(place, &other)| u32::from(other == number) << place);
    bits.fold(1 << LANES, |all, bit| all | bit).trailing_zeros() as usize
}

/// Adds coefficients times `factor`.
#[inline(always)]
fn add(sums: &mut Lanes, coefficients: &Lanes, factor: f64) {
    // By value, for vector instructions.
    let (old, coefficients) = (sums.0, coefficients.0);
    *sums = Lanes(std::array::from_fn(|lane| {
        old[lane] + factor * coefficients[lane]
    }));
}

/// The score of a block without a violated row.
const FEASIBLE: f64 = -1.0;
/// The place of a block that the pivot does not touch.
const UNTOUCHED: u32 = u32::MAX;
/// Bits of the mantissa that rounded weights do not have.
const WEIGHT_SHIFT: u32 = 20;

impl Basis {
    /// True if rows outside the basis are priced.
    #[inline]
    pub(super) fn prices_outside(lp: &ReducedLp) -> bool {
        lp.hyperplanes.blocks.count() > 0
    }

    /// Computes the slacks of rows outside the basis.
    fn compute_slacks(&mut self, input: StageInput<'_>) {
        let (lp, blocks) = (input.lp, &input.lp.hyperplanes.blocks);
        let outside = &mut self.outside;
        let bounds = lp.lower.iter().zip(&lp.upper);
        let columns = self.sense.iter().zip(bounds);
        for (value, (&sense, (&lower, &upper))) in outside.values.iter_mut().zip(columns) {
            let at_upper = if sense < 0.0 { upper } else { 0.0 };
            *value = if sense > 0.0 { lower } else { at_upper };
        }
        for (&variable, &own) in self.head[..self.rows.len()].iter().zip(&self.values) {
            if let Some(value) = outside.values.get_mut(variable as usize) {
                *value = own;
            }
        }
        for (state, rows) in outside.blocks.iter_mut().zip(&blocks.rows) {
            state.slacks = Lanes(rows.map(|row| {
                let rhs = input.rhs.get(row as usize);
                rhs.map_or(f64::INFINITY, |rhs| -rhs)
            }));
        }
        for &row in &self.rows[lp.equalities..] {
            if let Some((block, lane)) = blocks.place(row as usize) {
                outside.blocks[block].slacks.0[lane] = f64::INFINITY;
            }
        }
        vectorized(
            #[inline(always)]
            || {
                let states = outside.blocks.iter_mut().zip(&mut outside.scores);
                for (block, (state, score)) in states.enumerate() {
                    let open = state.slacks.0;
                    state.least = Lanes(std::array::from_fn(|lane| -tolerance::primal(open[lane])));
                    let mut slacks = Lanes(open);
                    for (column, coefficients) in blocks.terms(block) {
                        add(&mut slacks, coefficients, outside.values[column as usize]);
                    }
                    state.slacks = slacks;
                    *score = state.score();
                }
            },
        );
        outside.is_stale = false;
    }

    /// The leaving position by devex pricing of the basis and of all rows outside it, one of which may come in.
    pub(super) fn leaving_of_all(&mut self, input: StageInput<'_>) -> Option<usize> {
        if self.outside.is_stale {
            self.compute_slacks(input);
        }
        let inside = self.leaving_by_weights();
        let most = inside.map_or(-1.0, |at| self.scratch.scores[at]);
        let found = self.outside.leaving(most);
        let Some((block, lane)) = found.filter(|_| !self.is_full()) else {
            return inside;
        };
        let outside = &mut self.outside;
        let row = input.lp.hyperplanes.blocks.rows[block][lane];
        let state = &mut outside.blocks[block];
        let (slack, weight) = (state.slacks.0[lane], state.weights.0[lane]);
        state.slacks.0[lane] = f64::INFINITY;
        outside.scores[block] = vectorized(
            #[inline(always)]
            || state.score(),
        );
        self.add_row(input, row, slack);
        let position = self.size() - 1;
        self.weights[position] = weight;
        Some(position)
    }

    /// Updates slacks and weights outside for the step of a pivot at `position`.
    pub(super) fn step_outside(
        &mut self,
        lp: &ReducedLp,
        position: usize,
        entering: usize,
        step: f64,
    ) {
        let (outside, blocks) = (&mut self.outside, &lp.hyperplanes.blocks);
        let (head, column) = (&self.head[..], &self.scratch.pivot_column[..]);
        let reciprocal = 1.0 / column[position];
        let own = self.weights[position] * reciprocal * reciprocal;
        vectorized(
            #[inline(always)]
            || {
                for &at in &*self.scratch.column_list {
                    let at = at as usize;
                    outside.add_elements(blocks, head[at] as usize, column[at]);
                }
                outside.add_elements(blocks, entering, -1.0);
                outside.settle(-step, own);
            },
        );
    }

    /// Updates slacks outside for bound flips: basic variables change by minus `shift`, and columns of `flips` have
    /// moved to their bounds. The pivot that follows computes scores.
    pub(super) fn flip_outside(&mut self, lp: &ReducedLp) {
        let (outside, blocks) = (&mut self.outside, &lp.hyperplanes.blocks);
        let changes = &self.scratch.shift[..self.rows.len()];
        find_nonzero(changes, 0.0, &mut outside.shifted);
        let shifted = std::mem::take(&mut outside.shifted);
        vectorized(
            #[inline(always)]
            || {
                for &column in &self.scratch.flips {
                    let column = column as usize;
                    if column < lp.plain {
                        // The sense is the new one already.
                        outside.shift(blocks, column, -self.sense[column] * lp.ranges[column]);
                    }
                }
                for &at in &*shifted {
                    let at = at as usize;
                    outside.shift(blocks, self.head[at] as usize, -changes[at]);
                }
            },
        );
        outside.shifted = shifted;
    }
}
