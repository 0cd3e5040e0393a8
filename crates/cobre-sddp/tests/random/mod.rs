//! Random numbers for made-up problems and damaged files, and the variables that say how many.

/// Numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    /// A number from `low` to `high` with two digits after the point.
    #[allow(
        dead_code,
        reason = "not every test that includes this file makes problems"
    )]
    pub fn number(&mut self, low: f64, high: f64) -> f64 {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((low + (high - low) * share) * 100.0).round() / 100.0
    }
}

/// The number in an environment variable, or the usual one.
#[allow(
    dead_code,
    reason = "not every test that includes this file has variables"
)]
pub fn setting(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a whole number"))
}
