//! The cuts of a node at a visit, evaluated with vector instructions.

use std::ops::Range;

use super::affine::Affine;
use super::lane_search::{largest_above, largest_by_parts};
use super::reduced_lp::ReducedLp;
use super::tolerance;
use crate::policy::{CutBlocks, LANES, NO_CUT};

/// The heights of the cuts of a node, by place: intercepts with the contribution of fixed states folded in.
#[derive(Debug, Default)]
pub(super) struct CutHeights {
    /// The rows of a block that have the slopes of free states.
    free_rows: Vec<Range<usize>>,
    /// With the fixed states of this visit, and of this opening, folded in.
    visit: Vec<f64>,
    opening: Vec<f64>,
    /// True if the opening has heights of its own.
    is_of_opening: bool,
    /// The magnitude of the terms of heights: at this visit, and what this opening adds.
    magnitude: f64,
    opening_magnitude: f64,
}

impl CutHeights {
    fn find_free_rows(&mut self, lp: &ReducedLp) {
        self.free_rows.clear();
        for &(state, _) in &lp.free_states {
            // Intercepts are the first row.
            let row = 1 + state;
            match self.free_rows.last_mut() {
                Some(rows) if rows.end == row => rows.end += 1,
                _ => self.free_rows.push(row..row + 1),
            }
        }
    }

    fn read(&self) -> &[f64] {
        if self.is_of_opening {
            &self.opening
        } else {
            &self.visit
        }
    }

    /// Folds in the part of fixed states that depends on the incoming states, the first parameters.
    pub(super) fn start_visit(&mut self, lp: &ReducedLp, cuts: &CutBlocks<'_>, parameters: &[f64]) {
        self.find_free_rows(lp);
        self.visit.resize(cuts.blocks.len() * LANES, 0.0);
        for (heights, block) in self.visit.chunks_exact_mut(LANES).zip(&cuts.blocks) {
            heights.copy_from_slice(&block[..LANES]);
        }
        for &place in cuts.holes {
            self.visit[place as usize] = NO_CUT;
        }
        self.is_of_opening = false;
        let largest = cuts.largest.first().copied();
        (self.magnitude, self.opening_magnitude) = (largest.unwrap_or(0.0), 0.0);
        let incoming = |affine: &Affine| affine.at_states(&parameters[..lp.states]);
        self.magnitude += add(&mut self.visit, cuts, lp, incoming);
    }

    /// Folds in the part of fixed states that depends on the opening, the other parameters.
    pub(super) fn start_opening(
        &mut self,
        lp: &ReducedLp,
        cuts: &CutBlocks<'_>,
        parameters: &[f64],
    ) {
        let of_opening = |term: &(usize, f64)| term.0 >= lp.states;
        let mut fixed = lp.fixed_states.iter();
        if self.visit.is_empty() || !fixed.any(|(_, value)| value.terms.iter().any(of_opening)) {
            return;
        }
        let opening = |affine: &Affine| {
            let terms = affine.terms.iter().filter(|term| of_opening(term));
            terms.fold(0.0, |sum, term| sum + term.1 * parameters[term.0])
        };
        self.opening.clone_from(&self.visit);
        self.opening_magnitude = add(&mut self.opening, cuts, lp, opening);
        self.is_of_opening = true;
    }
}

/// The cuts in use at a visit, in the order of the pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutTable<'a> {
    pub(super) cuts: &'a CutBlocks<'a>,
    pub(super) heights: &'a CutHeights,
}

impl CutTable<'_> {
    /// The place of a cut, if it is in use.
    pub(super) fn place(&self, slot: u32) -> Option<usize> {
        self.cuts.place(slot)
    }

    pub(super) fn slot(&self, place: usize) -> u32 {
        self.cuts.slot(place)
    }

    /// The slope of the cut at `place` for a free state.
    #[inline]
    pub(super) fn slope(&self, lp: &ReducedLp, place: usize, free_state: usize) -> f64 {
        self.cuts.slope(place, lp.free_states[free_state].0)
    }

    /// The slopes of the cut at `place` for all free states.
    #[inline]
    pub(super) fn slopes(&self, lp: &ReducedLp, place: usize) -> impl Iterator<Item = f64> {
        let lane = &self.cuts.blocks[place / LANES][place % LANES..];
        let states = lp.free_states.iter();
        states.map(move |&(state, _)| lane[(1 + state) * LANES])
    }

    /// The slope of the cut at `place` for a fixed state.
    pub(super) fn fixed_slope(&self, lp: &ReducedLp, place: usize, fixed: usize) -> f64 {
        self.cuts.slope(place, lp.fixed_states[fixed].0)
    }

    pub(super) fn intercept(&self, place: usize) -> f64 {
        self.cuts.intercept(place)
    }

    /// The violation of the cut at `place` by `future` at this state.
    #[inline]
    pub(super) fn above(&self, lp: &ReducedLp, place: usize, state: &[f64], future: f64) -> f64 {
        let terms = self.slopes(lp, place).zip(state);
        let height = self.heights.read()[place];
        terms.fold(height - future, |sum, (slope, value)| sum + slope * value)
    }

    /// The tolerance of a violation by `future`.
    #[inline]
    pub(super) fn tolerance(&self, future: f64) -> f64 {
        let heights = self.heights;
        tolerance::cut(future, heights.magnitude + heights.opening_magnitude)
    }

    /// The most violated cut and its violation by `future` at this state, the first of equals;
    /// `None` if no violation is above the tolerance.
    #[inline]
    pub(super) fn most_violated(&self, state: &[f64], future: f64) -> Option<(usize, f64)> {
        let least = self.tolerance(future);
        let (heights, blocks) = (self.heights.read(), &self.cuts.blocks[..]);
        match &self.heights.free_rows[..] {
            // Often the free states are the first ones.
            [rows] => {
                let (start, end) = (rows.start * LANES, rows.end * LANES);
                let slopes = blocks.iter().map(|block| &block[start..end]);
                largest_above(heights, slopes, state, (future, least))
            }
            all => {
                let slopes = blocks.iter().copied();
                largest_by_parts((heights, slopes), all, state, (future, least))
            }
        }
    }
}

/// Adds slope × value of each fixed state to the heights of all cuts; returns the most that this
/// adds.
fn add(
    heights: &mut [f64],
    cuts: &CutBlocks<'_>,
    lp: &ReducedLp,
    value: impl Fn(&Affine) -> f64,
) -> f64 {
    let mut most = 0.0;
    if cuts.blocks.is_empty() {
        return most;
    }
    for (state, affine) in &lp.fixed_states {
        let value = value(affine);
        if value == 0.0 {
            continue;
        }
        most += cuts.largest[1 + state] * value.abs();
        for (heights, block) in heights.chunks_exact_mut(LANES).zip(&cuts.blocks) {
            let slopes = &block[(1 + state) * LANES..][..LANES];
            for (height, slope) in heights.iter_mut().zip(slopes) {
                *height += slope * value;
            }
        }
    }
    most
}
