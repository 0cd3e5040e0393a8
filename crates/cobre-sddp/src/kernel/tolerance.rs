//! Tolerances of the kernel.

/// Primal feasibility: absolute, and relative to the bound.
const PRIMAL: f64 = 1e-9;
const PRIMAL_RELATIVE: f64 = 1e-11;
/// Violation of cuts: relative to the cost to go, and relative to the terms of a cut's value.
const CUT: f64 = 1e-10;
const CUT_ROUNDING: f64 = 1e-14;
/// Dual feasibility: in the ratio test, relative to the largest cost and to the terms of the
/// reduced cost; and in a solution, relative to those terms.
pub(super) const DUAL_STEP: f64 = 1e-12;
pub(super) const OWN_STEP: f64 = 1e-10;
pub(super) const DUAL: f64 = 1e-9;
/// Dual feasibility of cuts in the ratio test: their dual values add up to one, whatever costs are,
/// and each weighs as much as the cost to go is large.
pub(super) const CUT_STEP: f64 = 1e-12;
/// Rounding of a reduced cost of zero, relative to the largest cost.
pub(super) const ROUNDING: f64 = 1e-15;
/// Gap between the primal and the dual objective of a solution, relative to them.
pub(super) const GAP: f64 = 1e-9;
/// Contribution of dual residuals to the objective, relative to it, below which they are not
/// refined.
pub(super) const DUAL_RESIDUAL: f64 = 1e-11;
/// Refinements before a refactorisation.
pub(super) const MAX_REFINEMENTS: usize = 3;
/// The smallest pivot element; with a dense inverse, that of the slack of a cut in units of cost, and the smallest that is
/// accepted without a refactorisation. Between nearly parallel cuts, smaller elements are rounding errors of the inverse,
/// which computes the same by row and by column.
pub(super) const PIVOT: f64 = 1e-9;
pub(super) const CUT_PIVOT: f64 = 1e-7;
const SAFE_PIVOT: f64 = 1e-7;
/// Difference of a pivot element computed by row and by column: relative to it or to a thousandth, and relative to a
/// smaller one.
const PIVOT_GAP: f64 = 1e-7;
const SMALL_PIVOT_GAP: f64 = 1e-4;
/// The iteration limit: pivots per row that a basis can have, and a constant.
pub(super) const PIVOTS_PER_ROW: usize = 20;
pub(super) const MAX_PIVOTS: usize = 200;
/// Pivots before a refactorisation.
pub(super) const MAX_AGE: u32 = 100;

/// The largest basis that is priced without edge weights.
pub(super) const SMALL: usize = 40;

/// True if a pivot element, as computed by row and by column, needs no refactorisation.
pub(super) fn is_safe_pivot(is_dense: bool, by_row: f64, by_column: f64) -> bool {
    let (gap, size) = ((by_row - by_column).abs(), by_row.abs());
    let is_small = if is_dense {
        size < SAFE_PIVOT
    } else {
        gap > SMALL_PIVOT_GAP * size
    };
    gap <= PIVOT_GAP * (1e-3 + size) && !is_small
}

/// The primal feasibility tolerance of a bound.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
pub(super) fn primal(bound: f64) -> f64 {
    PRIMAL + PRIMAL_RELATIVE * bound.abs()
}

/// The tolerance of a cut at a cost to go of about `future` whose value is a sum of numbers as
/// large as `magnitude`.
#[inline]
pub(super) fn cut(future: f64, magnitude: f64) -> f64 {
    CUT * (1.0 + future.abs()) + CUT_ROUNDING * magnitude
}
