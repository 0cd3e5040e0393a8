//! Statistics of solves.

use std::iter::Sum;
use std::ops::{AddAssign, Sub};

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// The most that a run can have counted of anything.
const MOST_COUNTED: u64 = 1_000_000_000_000_000;

/// Counts of linear programs, by the way they were solved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct LpStatistics {
    /// All of them, each once.
    pub solves: u64,
    /// Solved by HiGHS.
    pub highs: u64,
    /// Solved by a cached basis of the kernel without a pivot.
    pub remembered: u64,
    /// Pivots of the kernel.
    pub pivots: u64,
    /// Refactorisations of the kernel forced by numerical trouble.
    pub refactored: u64,
    /// Cold starts of the kernel after such a refactorisation did not help.
    pub cold_starts: u64,
    /// Given up by the kernel and solved by HiGHS.
    pub fallbacks: u64,
    /// Retries of HiGHS.
    pub retries: u64,
    /// Solved by two solvers.
    pub checked: u64,
    /// The largest difference of the values of two solvers, relative to them.
    pub difference: f64,
}

impl LpStatistics {
    /// The counts by name, without the number of solves.
    pub fn json(self) -> serde_json::Value {
        serde_json::json!({
            "highs": self.highs,
            "remembered": self.remembered,
            "pivots": self.pivots,
            "refactored": self.refactored,
            "cold_starts": self.cold_starts,
            "fallbacks": self.fallbacks,
            "retries": self.retries,
            "checked": self.checked,
            "largest_difference": self.difference,
        })
    }

    /// True if counts that were read can be those of a run: sums of them are far from overflow.
    pub(crate) fn is_plausible(self) -> bool {
        self.difference.is_finite() && self == self.zip(self, |count, _| count.min(MOST_COUNTED))
    }

    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            solves: combine(self.solves, other.solves),
            highs: combine(self.highs, other.highs),
            remembered: combine(self.remembered, other.remembered),
            pivots: combine(self.pivots, other.pivots),
            refactored: combine(self.refactored, other.refactored),
            cold_starts: combine(self.cold_starts, other.cold_starts),
            fallbacks: combine(self.fallbacks, other.fallbacks),
            retries: combine(self.retries, other.retries),
            checked: combine(self.checked, other.checked),
            difference: self.difference.max(other.difference),
        }
    }
}

impl AddAssign for LpStatistics {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip(other, |one, other| one + other);
    }
}

impl Sum for LpStatistics {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| {
            sum.zip(one, |sum, one| sum + one)
        })
    }
}

impl Sub for LpStatistics {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, |one, other| one - other)
    }
}
