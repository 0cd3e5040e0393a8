//! Many scenarios in few figures, the same bits on every run: values are taken in the order of scenarios.

use cobre_results::statistics::{mean, percentile, sorted};

/// The percentiles that ribbons are made of: the range, nine tenths, the middle half, the median.
pub(crate) const LEVELS: [f64; 7] = [0.0, 5.0, 25.0, 50.0, 75.0, 95.0, 100.0];

/// Values of many scenarios in brief.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantiles {
    /// One per level of [`LEVELS`]; NaN if there are no values.
    pub(crate) percentiles: [f64; LEVELS.len()],
    /// NaN if there are no values.
    pub(crate) mean: f64,
}

impl Quantiles {
    /// The quantiles and mean of values in scenario order.
    pub(crate) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let sorted = sorted(values.clone());
        Self {
            percentiles: LEVELS.map(|level| percentile(&sorted, level)),
            mean: mean(values),
        }
    }
}

/// Half the width of the 95 % confidence interval of a mean, summed in the order given; 0 for one value.
pub(crate) fn half_width(values: &[f64]) -> f64 {
    let mean = mean(values.iter().copied());
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    match values.len() {
        0 | 1 => 0.0,
        count => 1.96 * (squares / (count - 1) as f64 / count as f64).sqrt(),
    }
}

/// Number of values in each of equally wide bins from the smallest to the largest, and the first edge and
/// the width of the bins.
pub(crate) fn histogram(values: &[f64], most: usize) -> (Vec<usize>, f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // As many bins as the square root of the count: the usual rule of thumb.
    let bins = ((values.len() as f64).sqrt().ceil() as usize).clamp(1, most);
    let width = (high - low) / bins as f64;
    let mut counts = vec![0; bins];
    for value in values {
        let bin = ((value - low) / width).floor() as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    (counts, low, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_each_of_its_percentiles() {
        let quantiles = Quantiles::of([7.0].into_iter());
        assert_eq!(quantiles.percentiles, [7.0; LEVELS.len()]);
        assert_eq!(quantiles.mean, 7.0);
    }

    #[test]
    fn missing_values_do_not_count() {
        let quantiles = Quantiles::of([1.0, f64::NAN, 3.0].into_iter());
        assert_eq!(quantiles.mean, 2.0);
        assert_eq!(quantiles.percentiles[3], 2.0);
        assert!(Quantiles::of([f64::NAN].into_iter()).mean.is_nan());
    }

    #[test]
    fn every_value_falls_into_one_bin() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let (counts, low, width) = histogram(&values, 40);
        assert_eq!(counts, vec![10; 10]);
        assert_eq!((low, width), (0.0, 9.9));
        assert_eq!(histogram(&[5.0, 5.0], 40).0.iter().sum::<usize>(), 2);
    }

    #[test]
    fn the_half_width_of_one_value_is_nothing() {
        assert_eq!(half_width(&[3.0]), 0.0);
        let width = half_width(&[1.0, 3.0]);
        assert!((width - 1.96).abs() < 1e-12, "{width}");
    }
}
