//! Means and percentiles, the same bits on every run.
//!
//! Sums go over values in the order given. The percentile p of n values is found on the sorted values at
//! position (n − 1) · p / 100, with a straight line between neighbours: what NumPy, pandas and R (type 7) do
//! unless told otherwise. Values that are missing (NaN) do not count.

/// A percentile of sorted values; NaN if there are none.
pub fn percentile(sorted: &[f64], level: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = last as f64 * level / 100.0;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let (low, high) = (sorted[below], sorted[above]);
    low + (high - low) * (position - below as f64)
}

/// The mean, summed in the order given; NaN if there are no values.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values.filter(|value| !value.is_nan()) {
        sum += value;
        count += 1;
    }
    sum / f64::from(count)
}

/// The values that are there, sorted.
pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_on_straight_lines_between_neighbours() {
        let sorted = [10.0, 20.0, 40.0, 80.0];
        assert_eq!(percentile(&sorted, 0.0), 10.0);
        assert_eq!(percentile(&sorted, 50.0), 30.0);
        assert_eq!(percentile(&sorted, 75.0), 50.0);
        assert_eq!(percentile(&sorted, 100.0), 80.0);
    }

    #[test]
    fn missing_values_do_not_count() {
        let values = [3.0, f64::NAN, 1.0];
        assert_eq!(mean(values.into_iter()), 2.0);
        assert_eq!(sorted(values.into_iter()), [1.0, 3.0]);
        assert!(mean([f64::NAN].into_iter()).is_nan());
    }
}
