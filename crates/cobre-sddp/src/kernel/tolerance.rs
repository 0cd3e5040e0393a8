//! How exact an answer is.

/// How far a value may be beyond a bound: absolutely, and relative to the bound.
const PRIMAL: f64 = 1e-9;
const PRIMAL_RELATIVE: f64 = 1e-11;
/// How far a cost to go may be below a cut, relative to the cost to go; and relative to the numbers
/// that a cut's value is the sum of.
const CUT: f64 = 1e-10;
const CUT_ROUNDING: f64 = 1e-14;
/// How far a reduced cost may be beyond zero: in the ratio test, relative to the largest cost and
/// to the numbers that it is the sum of; and in an answer, relative to those.
pub(super) const DUAL_STEP: f64 = 1e-12;
pub(super) const OWN_STEP: f64 = 1e-10;
pub(super) const DUAL: f64 = 1e-9;
/// How far the dual value of a cut may be below zero in the ratio test: they add up to one, whatever
/// costs are, and each counts as much as the cost to go is large.
pub(super) const CUT_STEP: f64 = 1e-12;
/// What rounding makes of a reduced cost of zero, relative to the largest cost.
pub(super) const ROUNDING: f64 = 1e-15;
/// How far the primal and the dual value of an answer may be apart, relative to them.
pub(super) const GAP: f64 = 1e-9;
/// How much errors of dual values may add to a value, relative to it, without being corrected.
pub(super) const SLIP: f64 = 1e-11;
/// How often values are corrected before a new inverse is asked for.
pub(super) const MOST_CORRECTIONS: usize = 3;
/// The smallest pivot that is considered, and the smallest that is trusted without a new inverse.
pub(super) const PIVOT: f64 = 1e-9;
pub(super) const SAFE_PIVOT: f64 = 1e-6;
/// How far the two values of a pivot, by row and by column, may be apart, relative to it.
pub(super) const PIVOT_GAP: f64 = 1e-7;
/// The most pivots of one solve, for each row that a basis can have, and above all.
pub(super) const PIVOTS_PER_ROW: usize = 20;
pub(super) const MOST_PIVOTS: usize = 200;
/// Pivots after which an inverse is computed anew.
pub(super) const MOST_AGE: u32 = 100;

/// The most rows of a basis whose edges are taken to be equally long.
pub(super) const SMALL: usize = 40;

/// How far a value may be beyond `bound`.
#[inline]
pub(super) fn primal(bound: f64) -> f64 {
    PRIMAL + PRIMAL_RELATIVE * bound.abs()
}

/// How far a cost to go of about `future` may be below a cut whose value is a sum of numbers
/// as large as `magnitude`.
#[inline]
pub(super) fn cut(future: f64, magnitude: f64) -> f64 {
    CUT * (1.0 + future.abs()) + CUT_ROUNDING * magnitude
}
