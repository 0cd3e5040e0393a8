//! Numbers that a seed determines (splitmix64).

use std::time::Duration;

#[derive(Debug, Clone)]
pub(in crate::backends) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.bits();
        random
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `limit` - 1.
    pub(in crate::backends) fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit.max(1) as u64) as usize
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn micros(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least + self.bits() % (most - least + 1))
    }

    pub(super) fn millis(&mut self, least: u64, most: u64) -> Duration {
        self.micros(1000 * least, 1000 * most)
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
