//! How much work solves were.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Linear programs solved, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LpStatistics {
    /// All of them, each once.
    pub solves: u64,
    /// Those that HiGHS answered.
    pub highs: u64,
    /// Those that a basis the kernel remembered answered without a pivot.
    pub remembered: u64,
    /// Pivots of the kernel.
    pub pivots: u64,
    /// How often the kernel computed an inverse anew because something was off.
    pub refactored: u64,
    /// How often the kernel started from nothing because that did not help.
    pub cold_starts: u64,
    /// Those that the kernel gave up and HiGHS answered.
    pub fallbacks: u64,
    /// How often HiGHS had to try in another way.
    pub retries: u64,
    /// Those that two solvers answered, and the largest difference of their values, relative to
    /// them.
    pub checked: u64,
    /// See [`checked`](Self::checked).
    pub difference: f64,
}

impl LpStatistics {
    /// The counts as numbers that travel between ranks.
    pub fn numbers(self) -> [f64; 10] {
        let counts = [
            self.solves,
            self.highs,
            self.remembered,
            self.pivots,
            self.refactored,
            self.cold_starts,
            self.fallbacks,
            self.retries,
            self.checked,
        ];
        let mut numbers = [self.difference; 10];
        for (number, count) in numbers.iter_mut().zip(counts) {
            *number = count as f64;
        }
        numbers
    }

    /// What [`numbers`](Self::numbers) made.
    pub fn from_numbers(numbers: [f64; 10]) -> Self {
        let count = |place: usize| numbers[place] as u64;
        Self {
            solves: count(0),
            highs: count(1),
            remembered: count(2),
            pivots: count(3),
            refactored: count(4),
            cold_starts: count(5),
            fallbacks: count(6),
            retries: count(7),
            checked: count(8),
            difference: numbers[9],
        }
    }

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

impl Sub for LpStatistics {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, |one, other| one - other)
    }
}
