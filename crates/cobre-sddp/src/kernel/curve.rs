//! Supply curves: columns that stand in one equality row and nowhere else, such as thermal plants of
//! a region.
//!
//! In the order of their cost per unit of the row, those before some place are on and those after it
//! are off, whatever the dual value of the row is. So a number stands for the state of all of them, and
//! the ratio test has to look at the next one only.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::simplex::Trouble;
use super::tolerance;

/// Columns of one equality row, by ascending cost per unit.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) row: usize,
    pub(super) columns: Range<usize>,
    /// By how many are on: what all columns put into the row, and what they cost.
    activity: Vec<f64>,
    cost: Vec<f64>,
}

/// A column of a curve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) curve: usize,
    /// Its coefficient in the row, and the sign of that.
    pub(super) factor: f64,
    pub(super) sign: f64,
    pub(super) cost: f64,
    /// Its values: `on` puts more into the row.
    pub(super) on: f64,
    pub(super) off: f64,
}

/// The state of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// How many columns are on.
    pub(super) on: u32,
    /// Whether the column after those is basic.
    pub(super) basic: bool,
}

impl Piece {
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

    /// Whether a curve can have it: it can be off, and can be on if it starts so.
    pub(super) fn fits(&self) -> bool {
        self.off.is_finite() && (self.price() >= 0.0 || self.on.is_finite())
    }

    /// The cost per unit.
    pub(super) fn price(&self) -> f64 {
        self.cost / self.factor
    }

    /// The reduced cost, positive if it is to be off and negative if it is to be on.
    #[inline]
    pub(super) fn reduced(&self, dual: f64) -> f64 {
        self.sign * (self.cost - dual * self.factor)
    }

    /// What it adds to a dual value.
    pub(super) fn worth(&self, dual: f64, on: bool) -> f64 {
        (self.cost - dual * self.factor) * self.value(on)
    }

    /// What it adds to a dual value at least, on or off. If it has no value where it is on, its
    /// reduced cost must be zero but for rounding.
    pub(super) fn least(&self, dual: f64) -> Result<f64, Trouble> {
        let reduced = self.reduced(dual);
        let terms = self.cost.abs() + (dual * self.factor).abs();
        let is_on = reduced < 0.0;
        if !is_on || self.on.is_finite() {
            Ok(self.worth(dual, is_on))
        } else if -reduced <= tolerance::DUAL * terms {
            Ok(self.worth(dual, false))
        } else {
            Err(Trouble::Wrong)
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
    /// The curve of these columns, whose pieces are given in order.
    pub(super) fn new(row: usize, columns: Range<usize>, pieces: &[Piece]) -> Self {
        let mut activity = vec![pieces.iter().map(|piece| piece.factor * piece.off).sum()];
        let mut cost = vec![pieces.iter().map(|piece| piece.cost * piece.off).sum()];
        for (place, piece) in pieces.iter().enumerate() {
            let more = piece.on - piece.off;
            activity.push(activity[place] + piece.factor * more);
            cost.push(cost[place] + piece.cost * more);
        }
        Self {
            row,
            columns,
            activity,
            cost,
        }
    }

    /// Where it starts, at a dual value of zero.
    pub(super) fn start(pieces: &[Piece]) -> Mark {
        let on = pieces
            .iter()
            .take_while(|piece| piece.price() < 0.0)
            .count();
        Mark {
            on: on as u32,
            basic: false,
        }
    }

    /// What the columns that are not basic put into the row, and what they cost.
    #[inline]
    pub(super) fn at_bounds(&self, pieces: &[Piece], mark: Mark) -> (f64, f64) {
        let on = mark.on as usize;
        let (mut activity, mut cost) = (self.activity[on], self.cost[on]);
        if mark.basic {
            let basic = &pieces[on];
            activity -= basic.factor * basic.off;
            cost -= basic.cost * basic.off;
        }
        (activity, cost)
    }

    /// The column that is next to move if the dual value rises or falls, and whether it is on.
    #[inline]
    pub(super) fn next(&self, mark: Mark, rises: bool) -> Option<(usize, bool)> {
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
