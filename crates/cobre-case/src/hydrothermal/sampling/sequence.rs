//! Numbers from 0 to 1 of the openings of a stage: independent, by strata, or of a sequence that fills space evenly.

use cobre_sddp::Noise;

use super::shared::SharedNoise;
use super::sobol::Sobol;
use crate::hydrothermal::files::stages::SamplingMethod;

/// Digits of a number in a Halton sequence that are made random; those beyond are too small to matter.
const HALTON_DIGITS: f64 = 1e-9;

/// The numbers of the openings of a stage.
pub(super) struct Sequence {
    method: SamplingMethod,
    noise: Noise,
    group: SharedNoise,
}

impl Sequence {
    pub(super) fn new(method: SamplingMethod, noise: Noise, group: SharedNoise) -> Self {
        Self {
            method,
            noise,
            group,
        }
    }

    /// The numbers of a series, by opening.
    pub(super) fn levels(&self, number: usize) -> Vec<f64> {
        let stage = self.group.first;
        let draws = (0..self.group.openings).map(|opening| self.noise.draw(number, opening, stage));
        let draws: Vec<[f64; 2]> = draws.collect();
        match self.method {
            SamplingMethod::Saa | SamplingMethod::HistoricalResiduals => {
                draws.iter().map(|draw| draw[0]).collect()
            }
            SamplingMethod::Lhs => strata(&draws),
            SamplingMethod::Sobol => self.sobol(number),
            SamplingMethod::Halton => self.halton(number),
        }
    }

    /// A coordinate of a Sobol sequence whose digits are flipped at random, the same for all points.
    fn sobol(&self, number: usize) -> Vec<f64> {
        let sobol = Sobol::new(number);
        let [shift, _] = self.noise.draw(number, 0, self.group.first);
        let shift = (shift * 4_294_967_296.0) as u32;
        // The middle of the cell of a point: never 0.
        let of = |point: usize| (f64::from(sobol.point(point) ^ shift) + 0.5) / 4_294_967_296.0;
        (0..self.group.openings).map(of).collect()
    }

    /// A coordinate of a Halton sequence whose digits are permuted at random, each digit in a way of its own.
    fn halton(&self, number: usize) -> Vec<f64> {
        let base = prime(number);
        let mut permutations: Vec<Vec<usize>> = Vec::new();
        let mut scale = 1.0;
        while scale > HALTON_DIGITS {
            let digit = permutations.len();
            let key = |value: usize| {
                self.noise
                    .draw(number, digit * base + value, self.group.first)
            };
            let mut order: Vec<usize> = (0..base).collect();
            order.sort_by(|a, b| key(*a)[1].total_cmp(&key(*b)[1]).then(a.cmp(b)));
            permutations.push(order);
            scale /= base as f64;
        }
        let of = |point: usize| {
            let (mut rest, mut scale, mut value) = (point, 1.0, 0.0);
            for permutation in &permutations {
                scale /= base as f64;
                value += scale * permutation[rest % base] as f64;
                rest /= base;
            }
            value + 0.5 * scale
        };
        (0..self.group.openings).map(of).collect()
    }
}

/// The prime number of a place, from 2.
fn prime(place: usize) -> usize {
    let is_prime = |number: &usize| {
        let divisors = (2..).take_while(|divisor| divisor * divisor <= *number);
        divisors
            .into_iter()
            .all(|divisor| !number.is_multiple_of(divisor))
    };
    (2..).filter(is_prime).nth(place).unwrap_or(2)
}

/// One number in each of as many equal parts of 0 to 1 as there are draws, in random order: the
/// first number of a draw says where in its part, the second gives the order.
fn strata(draws: &[[f64; 2]]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..draws.len()).collect();
    order.sort_by(|&a, &b| draws[a][1].total_cmp(&draws[b][1]).then(a.cmp(&b)));
    let mut levels = vec![0.0; draws.len()];
    for (part, opening) in order.into_iter().enumerate() {
        levels[opening] = (part as f64 + draws[opening][0]) / draws.len() as f64;
    }
    levels
}

#[cfg(test)]
mod tests {
    use cobre_sddp::Purpose;

    use super::*;

    fn sequence(method: SamplingMethod, openings: usize) -> Sequence {
        let group = SharedNoise { first: 3, openings };
        Sequence::new(method, Noise::new(7, Purpose::Openings), group)
    }

    #[test]
    fn points_of_sobol_fill_equal_parts_equally() {
        let sequence = sequence(SamplingMethod::Sobol, 64);
        for number in [0, 1, 2, 7, 100] {
            let mut parts: Vec<usize> = sequence
                .levels(number)
                .iter()
                .map(|level| (level * 64.0) as usize)
                .collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..64).collect::<Vec<_>>(), "series {number}");
        }
        // Two of them together: one point in each of 8 by 8 squares.
        let (one, other) = (sequence.levels(0), sequence.levels(1));
        let pairs = one.iter().zip(&other);
        let mut squares: Vec<usize> = pairs
            .map(|(one, other)| (one * 8.0) as usize * 8 + (other * 8.0) as usize)
            .collect();
        squares.sort_unstable();
        assert_eq!(squares, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn points_of_halton_fill_equal_parts_equally() {
        let sequence = sequence(SamplingMethod::Halton, 27);
        let mut parts: Vec<usize> = sequence
            .levels(1)
            .iter()
            .map(|level| (level * 27.0) as usize)
            .collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..27).collect::<Vec<_>>());
        let far = sequence.levels(150);
        let mean = far.iter().sum::<f64>() / 27.0;
        assert!((mean - 0.5).abs() < 0.2, "{mean}");
        assert!(far.iter().all(|level| *level > 0.0 && *level < 1.0));
    }

    #[test]
    fn strata_have_one_number_each() {
        let noise = Noise::new(3, Purpose::Openings);
        let draws: Vec<_> = (0..50).map(|opening| noise.draw(0, opening, 0)).collect();
        let mut parts: Vec<usize> = strata(&draws)
            .iter()
            .map(|level| (level * 50.0) as usize)
            .collect();
        assert_ne!(parts[..5], [0, 1, 2, 3, 4]);
        parts.sort_unstable();
        assert_eq!(parts, (0..50).collect::<Vec<_>>());
    }
}
