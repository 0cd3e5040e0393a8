//! Noise with a lower bound: a normal number, cut off below, with mean 0 and deviation 1 again.

/// The largest part of outcomes at the bound, as a number of deviations: 84 %. Beyond it the deviation is not restored.
const FURTHEST: f64 = 1.0;
/// The least of these: a bound so far out that nothing is cut off.
const NEAREST: f64 = -8.0;

/// max(shift + scale · η, least) for standard normal η.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BoundedNoise {
    least: f64,
    shift: f64,
    scale: f64,
    /// The part of outcomes that are at the bound.
    pub(crate) at_bound: f64,
    /// The deviation that is left: 1, unless the bound is too near.
    pub(crate) deviation: f64,
}

impl BoundedNoise {
    /// Noise that is never below `least`, which is below 0: with mean 0, and with deviation 1 if at most
    /// 84 % of outcomes are at the bound then.
    pub(crate) fn new(least: f64) -> Option<Self> {
        if least >= 0.0 || least.is_nan() {
            return None;
        }
        // What is above the bound is scale · max(η − cut, 0), whose deviation divided by its mean must be
        // 1 / −least; that grows with the cut.
        let wanted = (least * least).recip();
        let (mut low, mut high) = (NEAREST, FURTHEST);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if CutNormal::new(middle).relative_variance() < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        if CutNormal::new(NEAREST).relative_variance() >= wanted {
            return Some(Self {
                least,
                shift: 0.0,
                scale: 1.0,
                at_bound: 0.0,
                deviation: 1.0,
            });
        }
        let cut = high;
        let above = CutNormal::new(cut);
        let scale = -least / above.mean;
        Some(Self {
            least,
            shift: least - scale * cut,
            scale,
            at_bound: below(cut),
            deviation: -least * libm::sqrt(above.relative_variance()),
        })
    }

    /// The noise that becomes of a standard normal number.
    pub(crate) fn of(&self, drawn: f64) -> f64 {
        (self.shift + self.scale * drawn).max(self.least)
    }

    /// The standard normal number that this noise becomes of; for noise at the bound, the largest of them.
    pub(crate) fn drawn_of(&self, noise: f64) -> f64 {
        (noise.max(self.least) - self.shift) / self.scale
    }
}

/// Moments of max(η − cut, 0) for standard normal η: mean and mean square.
struct CutNormal {
    mean: f64,
    square: f64,
}

impl CutNormal {
    fn new(cut: f64) -> Self {
        let density = libm::exp(-0.5 * cut * cut) / libm::sqrt(std::f64::consts::TAU);
        let above = below(-cut);
        Self {
            mean: density - cut * above,
            square: (1.0 + cut * cut) * above - cut * density,
        }
    }

    fn relative_variance(&self) -> f64 {
        self.square / (self.mean * self.mean) - 1.0
    }
}

/// The probability that a standard normal number is below `level`.
fn below(level: f64) -> f64 {
    0.5 * libm::erfc(-level / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hydrothermal::sampling::normal;

    /// Mean and deviation of the noise over a fine grid of equally likely outcomes, and its least.
    fn moments(noise: &BoundedNoise) -> (f64, f64, f64) {
        let count = 200_000;
        let levels = (0..count).map(|part| (f64::from(part) + 0.5) / f64::from(count));
        let values: Vec<f64> = levels
            .map(|level| noise.of(normal::quantile(level)))
            .collect();
        let mean = values.iter().sum::<f64>() / f64::from(count);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (mean, (squares / f64::from(count)).sqrt(), least)
    }

    #[test]
    fn mean_and_deviation_are_kept_and_nothing_is_below_the_bound() {
        for least in [-20.0, -4.0, -2.0, -1.0, -0.7, -0.35] {
            let noise = BoundedNoise::new(least).expect("it is below zero");
            let (mean, deviation, lowest) = moments(&noise);
            assert!(mean.abs() < 1e-4, "{least}: mean {mean}");
            assert!((deviation - 1.0).abs() < 1e-3, "{least}: {deviation}");
            assert!(lowest >= least, "{least}: {lowest}");
        }
    }

    #[test]
    fn the_number_that_noise_becomes_of_is_found() {
        let noise = BoundedNoise::new(-2.0).expect("it is below zero");
        for drawn in [-0.2, 0.0, 1.5, 3.0] {
            assert!((noise.drawn_of(noise.of(drawn)) - drawn).abs() < 1e-12);
        }
        let at_bound = noise.of(-5.0);
        assert!((noise.of(noise.drawn_of(at_bound)) - at_bound).abs() < 1e-12);
    }

    #[test]
    fn a_bound_far_out_changes_nothing() {
        let noise = BoundedNoise::new(-9.0).expect("it is below zero");
        for drawn in [-6.0, -1.0, 0.0, 2.5] {
            assert!((noise.of(drawn) - drawn).abs() < 1e-9);
        }
    }

    #[test]
    fn where_the_bound_is_near_the_mean_is_kept_and_the_deviation_is_told() {
        let noise = BoundedNoise::new(-0.1).expect("it is below zero");
        let (mean, deviation, _) = moments(&noise);
        assert!(mean.abs() < 1e-4 && noise.deviation < 0.5, "{noise:?}");
        assert!((deviation - noise.deviation).abs() < 1e-3, "{deviation}");
        assert!(BoundedNoise::new(0.0).is_none());
    }
}
