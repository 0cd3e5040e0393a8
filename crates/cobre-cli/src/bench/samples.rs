//! Times of single calls, and what is reported of them.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// The length of a [`tick`](next_tick), as a power of two of nanoseconds: longer than ranks take to leave a barrier.
const TICK: u32 = 13;

/// Waits for the next tick of the machine's clock, at most 8 µs: the ranks of a machine that have left a barrier, one
/// earlier than the other, go on at the same time.
pub(crate) fn next_tick() {
    let ticks = || {
        let time = clock_gettime(ClockId::Monotonic);
        (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) >> TICK
    };
    let now = ticks();
    while ticks() == now {
        std::hint::spin_loop();
    }
}

/// The times of one case's calls, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn with_room_for(calls: usize) -> Self {
        Self(Vec::with_capacity(calls))
    }

    /// Calls `call` and remembers how long it took. One clock read is part of the figure.
    #[inline]
    pub(crate) fn time<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = call();
        self.0.push(start.elapsed().as_nanos() as u64);
        result
    }

    pub(crate) fn nanoseconds(&self) -> &[u64] {
        &self.0
    }

    /// For each call the time of its slowest rank: `ranks` holds the ranks' samples one after the
    /// other, equally many of each.
    pub(crate) fn slowest_of(ranks: &[u64], calls: usize) -> Self {
        let slowest = |call: usize| ranks[call..].iter().step_by(calls).max().copied();
        Self((0..calls).filter_map(slowest).collect())
    }

    /// The time in microseconds that `share` of the calls did not exceed.
    pub(crate) fn quantile_us(&mut self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let place = (share * last as f64).round() as usize;
        if self.0.is_empty() {
            return 0.0;
        }
        let (_, value, _) = self.0.select_nth_unstable(place.min(last));
        *value as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let mut samples = Samples((1..=101).rev().map(|n| n * 1000).collect());
        assert_eq!(samples.quantile_us(0.5), 51.0);
        assert_eq!(samples.quantile_us(0.99), 100.0);
        assert_eq!(Samples::default().quantile_us(0.5), 0.0);
    }

    #[test]
    fn a_call_is_as_slow_as_its_slowest_rank() {
        let both = [5, 1, 7, /* rank 1 */ 2, 9, 3];
        assert_eq!(Samples::slowest_of(&both, 3).nanoseconds(), [5, 9, 7]);
    }
}
