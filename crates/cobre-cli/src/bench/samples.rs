//! Times of single calls, and what is reported of them.

use std::time::Instant;

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
