//! Estimates of the policy's cost from sampled paths.

use serde::{Deserialize, Serialize};

/// Standard errors of a half-width that covers the mean of many paths 95 times in 100.
const STANDARD_ERRORS: f64 = 1.96;

/// The mean cost over some paths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; one path has none.
    pub half_width_95: Option<f64>,
    /// Number of paths.
    pub paths: usize,
}

impl Estimate {
    /// The estimate from these costs, summed in order.
    pub fn of(costs: &[f64]) -> Self {
        let count = costs.len() as f64;
        let mean = costs.iter().sum::<f64>() / count;
        let squares: f64 = costs.iter().map(|cost| (cost - mean) * (cost - mean)).sum();
        let half_width = STANDARD_ERRORS * (squares / (count - 1.0) / count).sqrt();
        Self {
            mean,
            half_width_95: (costs.len() > 1).then_some(half_width),
            paths: costs.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    #[test]
    fn the_half_width_shrinks_with_the_paths() {
        let estimate = Estimate::of(&[1.0, 3.0]);
        assert_eq!((estimate.mean, estimate.paths), (2.0, 2));
        assert_eq!(estimate.half_width_95, Some(1.96));
    }

    #[test]
    fn one_path_has_no_interval() {
        assert_eq!(Estimate::of(&[5.0]).half_width_95, None);
    }
}
