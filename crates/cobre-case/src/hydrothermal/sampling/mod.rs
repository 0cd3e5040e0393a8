//! Sampling of uncertain inflows, load and sources: the openings of a stage.

mod bounded;
mod correlation;
mod factor;
mod normal;

use std::ops::Range;

use cobre_sddp::{Noise, Purpose};

pub(crate) use self::bounded::BoundedNoise;
use self::correlation::Together;
use super::files::Files;
use super::system::System;
use crate::finding::Findings;

/// Where openings come from if the case does not say it.
const TREE_SEED: u64 = 42;

/// Which series are what, by number.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    pub(crate) inflows: Range<usize>,
    pub(crate) loads: Range<usize>,
    pub(crate) sources: Range<usize>,
}

impl Kinds {
    /// The series of a system: inflows by plant, load by bus, sources.
    pub(crate) fn of(system: &System) -> Self {
        let loads = system.hydros.len();
        let sources = loads + system.buses.len();
        Self {
            inflows: 0..loads,
            loads: loads..sources,
            sources: sources..sources + system.sources.len(),
        }
    }
}

/// The sampling of a case.
#[derive(Debug)]
pub(crate) struct OpeningSampler {
    noise: Noise,
    kinds: Kinds,
    together: Together,
}

impl OpeningSampler {
    /// The sampling of a case; says what is wrong with its correlation.
    pub(crate) fn resolve(files: &Files, system: &System, findings: &mut Findings) -> Self {
        let seed = files
            .config
            .training
            .tree_seed
            .map_or(TREE_SEED, |seed| seed.0);
        Self {
            noise: Noise::new(seed, Purpose::Openings),
            kinds: Kinds::of(system),
            together: correlation::resolve(files, system, findings),
        }
    }

    /// Standard normal numbers for each opening of a stage, by series.
    pub(crate) fn draw(&self, system: &System, stage: usize) -> Vec<Vec<f64>> {
        let openings = system.stages[stage].openings;
        let series = self.kinds.sources.end;
        let mut found = vec![vec![0.0; series]; openings];
        for number in 0..series {
            let draws: Vec<[f64; 2]> = (0..openings)
                .map(|opening| self.noise.draw(number, opening, stage))
                .collect();
            let levels = if system.stages[stage].stratified {
                strata(&draws)
            } else {
                draws.iter().map(|draw| draw[0]).collect()
            };
            for (opening, level) in found.iter_mut().zip(levels) {
                // Never 0 and never 1, which are infinitely far out.
                let inside = (level + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON);
                opening[number] = normal::quantile(inside);
            }
        }
        for opening in &mut found {
            for group in self.together.groups(stage) {
                let own: Vec<f64> = group
                    .members
                    .iter()
                    .map(|&member| opening[member])
                    .collect();
                for (&member, row) in group.members.iter().zip(&group.factor) {
                    opening[member] = row
                        .iter()
                        .zip(&own)
                        .map(|(entry, value)| entry * value)
                        .sum();
                }
            }
        }
        found
    }
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
    use super::*;

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
