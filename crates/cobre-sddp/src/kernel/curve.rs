//! Supply curves: columns that are in one equality row and nowhere else, such as the thermal plants
//! of a region.
//!
//! In the order of their cost per unit of the row, the first columns are on and the others off,
//! whatever the dual value of the row. One number is the state of all of them, and the ratio test
//! considers the next one only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::simplex::SolveError;
use super::tolerance;

/// Columns of one equality row, by ascending cost per unit.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) row: usize,
    pub(super) columns: Range<usize>,
    /// By the number of columns that are on: activity in the row, and cost.
    activity: Vec<f64>,
    cost: Vec<f64>,
}

/// A column of a curve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) curve: usize,
    /// Coefficient in the row, and its sign.
    pub(super) factor: f64,
    pub(super) sign: f64,
    pub(super) cost: f64,
    /// Values: `on` is the bound with the larger activity in the row.
    pub(super) on: f64,
    pub(super) off: f64,
}

/// The state of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CurveState {
    /// The number of columns that are on.
    pub(super) on: u32,
    /// True if the column after those is basic.
    pub(super) basic: bool,
}

impl Segment {
    pub(super) fn new(curve: usize, factor: f64, cost: f64, lower: f64, upper: f64) -> Self {
        let (on, off) = if factor > 0.0 {
            (upper, lower)
        } else {
            (lower, upper)
        };
        Self {
            curve,
            factor,
            sign: factor.signum(),
            cost,
            on,
            off,
        }
    }

    /// True if the segment fits a curve: it can be off, and can be on if it starts on.
    pub(super) fn fits(&self) -> bool {
        self.off.is_finite() && (self.unit_cost() >= 0.0 || self.on.is_finite())
    }

    /// The cost per unit.
    pub(super) fn unit_cost(&self) -> f64 {
        self.cost / self.factor
    }

    /// The reduced cost, positive if the segment is to be off and negative if it is to be on.
    #[inline]
    pub(super) fn reduced(&self, dual: f64) -> f64 {
        self.sign * (self.cost - dual * self.factor)
    }

    /// The contribution to the dual objective.
    pub(super) fn contribution(&self, dual: f64, on: bool) -> f64 {
        (self.cost - dual * self.factor) * self.value(on)
    }

    /// The least contribution to the dual objective, on or off. If the bound where it is on is
    /// infinite, its reduced cost must be zero but for rounding.
    pub(super) fn least_contribution(&self, dual: f64) -> Result<f64, SolveError> {
        let reduced = self.reduced(dual);
        let terms = self.cost.abs() + (dual * self.factor).abs();
        let is_on = reduced < 0.0;
        if !is_on || self.on.is_finite() {
            Ok(self.contribution(dual, is_on))
        } else if -reduced <= tolerance::DUAL * terms {
            Ok(self.contribution(dual, false))
        } else {
            Err(SolveError::CheckFailed)
        }
    }

    /// The value.
    #[inline]
    pub(super) fn value(&self, on: bool) -> f64 {
        if on { self.on } else { self.off }
    }

    /// 1 if the value is the lower bound, −1 if it is the upper one.
    #[inline]
    pub(super) fn sense(&self, on: bool) -> f64 {
        if on { -self.sign } else { self.sign }
    }
}

impl Curve {
    /// The curve of these columns, whose segments are given in order.
    pub(super) fn new(row: usize, columns: Range<usize>, segments: &[Segment]) -> Self {
        let mut activity = vec![
            segments
                .iter()
                .map(|segment| segment.factor * segment.off)
                .sum(),
        ];
        let mut cost = vec![
            segments
                .iter()
                .map(|segment| segment.cost * segment.off)
                .sum(),
        ];
        for (place, segment) in segments.iter().enumerate() {
            let more = segment.on - segment.off;
            activity.push(activity[place] + segment.factor * more);
            cost.push(cost[place] + segment.cost * more);
        }
        Self {
            row,
            columns,
            activity,
            cost,
        }
    }

    /// The state at a dual value of zero.
    pub(super) fn start(segments: &[Segment]) -> CurveState {
        let on = segments
            .iter()
            .take_while(|segment| segment.unit_cost() < 0.0)
            .count();
        CurveState {
            on: on as u32,
            basic: false,
        }
    }

    /// The activity and the cost of the columns that are not basic.
    #[inline]
    pub(super) fn at_bounds(&self, segments: &[Segment], mark: CurveState) -> (f64, f64) {
        let on = mark.on as usize;
        let (mut activity, mut cost) = (self.activity[on], self.cost[on]);
        if mark.basic {
            let basic = &segments[on];
            activity -= basic.factor * basic.off;
            cost -= basic.cost * basic.off;
        }
        (activity, cost)
    }

    /// The next column to flip if the dual value rises or falls, and whether it is on.
    #[inline]
    pub(super) fn next(&self, mark: CurveState, rises: bool) -> Option<(usize, bool)> {
        let on = mark.on as usize;
        if rises {
            let place = on + usize::from(mark.basic);
            (place < self.columns.len()).then(|| (self.columns.start + place, false))
        } else {
            on.checked_sub(1)
                .map(|place| (self.columns.start + place, true))
        }
    }
}
