//! Inequalities outside the basis of large stages with hyperplanes: pivots update their slacks and devex weights as they
//! do those of basic variables. Such a row is priced like any other, and comes in when it leaves.

use super::basis::{Basis, NO_ROW, StageInput};
use super::reduced_lp::ReducedLp;
use super::row_blocks::{LANES, Lanes, RowBlocks};
use super::tolerance;
use cobre_simd::vectorized;

/// True if one of them is.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn any(lanes: [bool; LANES]) -> bool {
    lanes.iter().fold(false, |any, &is| any | is)
}

/// The accuracy of slacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SlackState {
    /// Those of other values.
    #[default]
    Stale,
    /// Updated by pivots.
    Updated,
    /// Computed from the values.
    Computed,
}

/// The slacks and devex weights of the inequalities that are not in the basis, by block and lane.
#[derive(Debug, Default)]
pub(super) struct OutsideRows {
    weights: Vec<Lanes>,
    /// The values of slacks, infinite for rows of the basis; and how far below zero they may be.
    slacks: Vec<Lanes>,
    least: Vec<Lanes>,
    state: SlackState,
    /// The elements of a pivot column, and the blocks that it touches: 1 in `marks`.
    elements: Vec<Lanes>,
    marks: Vec<u8>,
    touched: Vec<u32>,
    count: usize,
    /// By block: the largest squared violation over its weight, negative if no row is violated.
    scores: Vec<f64>,
    /// Blocks that had a violated row, and by block: true if it is listed.
    violated: Vec<u32>,
    is_listed: Vec<bool>,
    values: Vec<f64>,
}

impl OutsideRows {
    /// Makes room for the rows of a linear program.
    pub(super) fn fit(&mut self, lp: &ReducedLp) {
        let count = lp.hyperplanes.blocks.count();
        self.weights.resize(count, [1.0; LANES]);
        self.slacks.resize(count, [f64::INFINITY; LANES]);
        self.least.resize(count, [0.0; LANES]);
        self.elements.clear();
        self.elements.resize(count, [0.0; LANES]);
        self.marks.clear();
        self.marks.resize(count, 0);
        self.touched.resize(count + 1, 0);
        self.scores.resize(count, FEASIBLE);
        self.count = 0;
        self.violated.clear();
        self.is_listed.clear();
        self.is_listed.resize(count, false);
        self.values.resize(lp.plain, 0.0);
        self.state = SlackState::Stale;
    }

    /// Notes that values have changed other than by a pivot.
    #[inline]
    pub(super) fn set_stale(&mut self) {
        self.state = SlackState::Stale;
    }

    /// Sets all weights to one.
    pub(super) fn reset_weights(&mut self) {
        self.weights.fill([1.0; LANES]);
        for at in 0..self.violated.len() {
            self.score(self.violated[at] as usize);
        }
    }

    /// Sets the weight of a row that leaves the basis.
    pub(super) fn set_weight(&mut self, blocks: &RowBlocks, row: usize, weight: f64) {
        if let Some((block, lane)) = blocks.place(row) {
            self.weights[block][lane] = weight;
        }
    }

    /// The weights, rounded down to 1, 1⅛ … 1⅞ times a power of two, as bytes.
    pub(super) fn rounded_weights(&self) -> impl Iterator<Item = u8> {
        let weights = self.weights.iter().flatten();
        weights.map(|&weight| {
            let bits = (weight.max(1.0) as f32).to_bits() >> WEIGHT_SHIFT;
            (bits - (1f32.to_bits() >> WEIGHT_SHIFT)).min(u32::from(u8::MAX)) as u8
        })
    }

    /// Sets the weights to rounded ones.
    pub(super) fn load_weights(&mut self, rounded: &[u8]) {
        for (weight, &rounded) in self.weights.as_flattened_mut().iter_mut().zip(rounded) {
            let bits = u32::from(rounded) + (1f32.to_bits() >> WEIGHT_SHIFT);
            *weight = f64::from(f32::from_bits(bits << WEIGHT_SHIFT));
        }
    }

    /// Adds a column's coefficients, times `factor`, to the elements.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    fn touch(&mut self, blocks: &RowBlocks, column: usize, factor: f64) {
        for (block, coefficients) in blocks.blocks_of(column) {
            // By value, for vector instructions.
            let (elements, coefficients) = (self.elements[block], *coefficients);
            self.elements[block] =
                std::array::from_fn(|lane| elements[lane] + factor * coefficients[lane]);
            self.touched[self.count] = block as u32;
            self.count += usize::from(self.marks[block] ^ 1);
            self.marks[block] = 1;
        }
    }

    /// Moves slacks by `step` × elements, and weights to at least `factor` × their squares; clears the elements.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    fn settle(&mut self, step: f64, factor: f64) {
        for number in 0..self.count {
            let block = self.touched[number];
            let at = block as usize;
            let (elements, least) = (self.elements[at], self.least[at]);
            let (weights, slacks) = (self.weights[at], self.slacks[at]);
            self.elements[at] = [0.0; LANES];
            self.marks[at] = 0;
            self.weights[at] = std::array::from_fn(|lane| {
                let weight = elements[lane] * elements[lane] * factor;
                if weight > weights[lane] {
                    weight
                } else {
                    weights[lane]
                }
            });
            let slacks: Lanes = std::array::from_fn(|lane| slacks[lane] + step * elements[lane]);
            self.slacks[at] = slacks;
            if any(std::array::from_fn(|lane| slacks[lane] < least[lane])) {
                self.score(at);
                if !self.is_listed[at] {
                    self.is_listed[at] = true;
                    self.violated.push(block);
                }
            } else {
                self.scores[at] = FEASIBLE;
            }
        }
        self.count = 0;
    }

    /// The scores of the rows of a block.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    fn lane_scores(&self, block: usize) -> Lanes {
        let (slacks, least) = (self.slacks[block], self.least[block]);
        let weights = self.weights[block];
        std::array::from_fn(|lane| {
            let score = slacks[lane] * slacks[lane] / weights[lane];
            if slacks[lane] < least[lane] {
                score
            } else {
                FEASIBLE
            }
        })
    }

    /// Computes the score of a block.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it is compiled for two kinds of processors"
    )]
    fn score(&mut self, block: usize) {
        let scores = self.lane_scores(block).into_iter();
        self.scores[block] = scores.fold(
            FEASIBLE,
            |most, score| {
                if score > most { score } else { most }
            },
        );
    }

    /// The most violated row by its weight if it scores more than `most`: block and lane.
    fn leaving(&mut self, mut most: f64) -> Option<(usize, usize)> {
        let (mut found, mut kept) = (None, 0);
        for at in 0..self.violated.len() {
            let block = self.violated[at];
            let score = self.scores[block as usize];
            let is_kept = score >= 0.0;
            self.violated[kept] = block;
            kept += usize::from(is_kept);
            if !is_kept {
                self.is_listed[block as usize] = false;
            }
            if score > most {
                (most, found) = (score, Some(block as usize));
            }
        }
        self.violated.truncate(kept);
        let block = found?;
        let scores = self.lane_scores(block);
        let lane = scores.iter().position(|&score| score == most)?;
        Some((block, lane))
    }
}

/// The score of a block without a violated row.
const FEASIBLE: f64 = -1.0;
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
        let mut values = std::mem::take(&mut self.outside.values);
        for (column, value) in values.iter_mut().enumerate() {
            *value = self.at_bound(lp, column);
        }
        for (&variable, &own) in self.head[..self.rows.len()].iter().zip(&self.values) {
            if let Some(value) = values.get_mut(variable as usize) {
                *value = own;
            }
        }
        let outside = &mut self.outside;
        outside.values = values;
        outside.violated.clear();
        let row_places = &self.row_places;
        for (block, rows) in blocks.rows.iter().enumerate() {
            let (mut open, mut least) = ([f64::INFINITY; LANES], [0.0; LANES]);
            for (lane, &row) in rows.iter().enumerate() {
                if let Some(&place) = row_places.get(row as usize)
                    && place == NO_ROW
                {
                    open[lane] = -input.rhs[row as usize];
                    least[lane] = open[lane];
                }
            }
            let is_listed = vectorized(
                #[inline(always)]
                || {
                    for (column, coefficients) in blocks.terms(block) {
                        let (value, coefficients) =
                            (outside.values[column as usize], *coefficients);
                        open = std::array::from_fn(|lane| open[lane] + value * coefficients[lane]);
                    }
                    least = std::array::from_fn(|lane| -tolerance::primal(least[lane]));
                    any(std::array::from_fn(|lane| open[lane] < least[lane]))
                },
            );
            (outside.slacks[block], outside.least[block]) = (open, least);
            outside.is_listed[block] = is_listed;
            if is_listed {
                outside.score(block);
                outside.violated.push(block as u32);
            }
        }
        outside.state = SlackState::Computed;
    }

    /// The leaving position by devex pricing of the basis and of all rows outside it, one of which may come in.
    pub(super) fn leaving_of_all(&mut self, input: StageInput<'_>) -> Option<usize> {
        if self.outside.state == SlackState::Stale {
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
        let (slack, weight) = (outside.slacks[block][lane], outside.weights[block][lane]);
        outside.slacks[block][lane] = f64::INFINITY;
        outside.score(block);
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
        let column = &self.scratch.pivot_column;
        let reciprocal = 1.0 / column[position];
        let own = self.weights[position] * reciprocal * reciprocal;
        vectorized(
            #[inline(always)]
            || {
                for &at in &*self.scratch.column_list {
                    let variable = self.head[at as usize] as usize;
                    if variable < lp.plain {
                        outside.touch(blocks, variable, column[at as usize]);
                    }
                }
                if entering < lp.plain {
                    outside.touch(blocks, entering, -1.0);
                }
                outside.settle(-step, own);
            },
        );
        outside.state = SlackState::Updated;
    }

    /// Updates slacks outside for bound flips: basic variables change by minus `shift`, and columns of `flips` have
    /// moved to their bounds.
    pub(super) fn flip_outside(&mut self, lp: &ReducedLp) {
        let (outside, blocks) = (&mut self.outside, &lp.hyperplanes.blocks);
        for &column in &self.scratch.flips {
            let column = column as usize;
            if column < lp.plain {
                // The sense is the new one already.
                outside.touch(blocks, column, -self.sense[column] * lp.ranges[column]);
            }
        }
        let size = self.rows.len();
        for (&variable, &change) in self.head[..size].iter().zip(&self.scratch.shift) {
            let variable = variable as usize;
            if change != 0.0 && variable < lp.plain {
                outside.touch(blocks, variable, -change);
            }
        }
        outside.settle(1.0, 0.0);
    }
}
