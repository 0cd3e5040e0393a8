//! Counter-based random numbers: any rank and thread draws the same numbers in any order.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The purpose of a draw. Different purposes never share numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Forward passes of training.
    Training,
    /// Paths that training has not seen.
    Simulation,
    /// The openings of a case that gives distributions.
    Openings,
    /// The mean of cost that nobody pays.
    Fictitious,
    /// Values of forward passes that are no openings.
    OutOfSampleTraining,
    /// Values of simulated paths that are no openings.
    OutOfSampleSimulation,
    /// The order in which forward passes take the scenarios that there are.
    ScenarioOrder,
}

/// The random numbers of one run and purpose.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    seed: u64,
    purpose: Purpose,
}

impl Noise {
    /// The random numbers for `purpose` under `seed`.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, purpose }
    }

    /// Two numbers in [0, 1) for this counter.
    pub fn draw(self, iteration: usize, scenario: usize, stage: usize) -> [f64; 2] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8] = self.purpose as u8;
        key[16..24].copy_from_slice(&(iteration as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(scenario as u64);
        // One block of 16 words per stage.
        generator.set_word_pos(16 * stage as u128);
        [(); 2].map(|()| unit(&mut generator))
    }

    /// Numbers in [0, 1) for a stage of a path, one for each series.
    pub fn fill(self, path: usize, stage: usize, numbers: &mut [f64]) {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8] = self.purpose as u8;
        key[16..24].copy_from_slice(&(stage as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(path as u64);
        numbers.fill_with(|| unit(&mut generator));
    }
}

/// The next number in [0, 1).
fn unit(generator: &mut ChaCha8Rng) -> f64 {
    (generator.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// The outcome that `draw`, in [0, 1), selects among outcomes of these weights, which need not sum
/// to 1.
pub fn choose(weights: impl Iterator<Item = f64> + Clone, draw: f64) -> usize {
    let total: f64 = weights.clone().sum();
    let mut sum = 0.0;
    let mut last = 0;
    for (outcome, weight) in weights.enumerate() {
        if weight > 0.0 {
            last = outcome;
            sum += weight;
            if draw * total < sum {
                return outcome;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_own_numbers() {
        let noise = Noise::new(7, Purpose::Training);
        let other = Noise::new(7, Purpose::Simulation);
        let mut seen = vec![other.draw(0, 0, 0)[0].to_bits()];
        for iteration in 0..3 {
            for scenario in 0..3 {
                for stage in 0..3 {
                    seen.extend(noise.draw(iteration, scenario, stage).map(f64::to_bits));
                }
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        assert_eq!(noise.draw(1, 2, 3), noise.draw(1, 2, 3));
    }

    #[test]
    fn outcomes_come_as_often_as_they_weigh() {
        let noise = Noise::new(1, Purpose::Training);
        let weights = [0.1, 0.0, 0.3];
        let mut counts = [0; 3];
        for scenario in 0..4000 {
            counts[choose(weights.iter().copied(), noise.draw(0, scenario, 0)[0])] += 1;
        }
        assert!(
            (900..1100).contains(&counts[0]) && counts[1] == 0,
            "{counts:?}"
        );
    }

    #[test]
    fn the_end_of_the_interval_is_the_last_possible_outcome() {
        assert_eq!(
            choose([0.5, 0.5, 0.0].into_iter(), 0.999_999_999_999_999_9),
            1
        );
        assert_eq!(choose([0.0, 1.0].into_iter(), 0.0), 1);
    }
}
