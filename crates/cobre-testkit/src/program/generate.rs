//! From a seed to a program.

use super::step::{Extent, ProgramStep, RandomProgram};
use crate::element::Element;
use crate::layout::Shape;
use crate::number::Number;
use crate::oracle::OPERATORS;
use crate::random::Random;

/// Most regions alive at once.
const MOST_REGIONS: usize = 6;

impl RandomProgram {
    /// The program of `seed` for `size` ranks, with `calls` collectives.
    pub fn generate(seed: u64, size: usize, calls: usize) -> Self {
        let mut generator = Generator {
            random: Random::new(&[seed, size as u64]),
            size,
            created: 0,
            alive: Vec::new(),
        };
        let mut steps = Vec::new();
        let mut collectives = 0;
        while collectives < calls {
            let step = generator.next();
            collectives += usize::from(step.is_collective());
            steps.push(step);
        }
        Self { seed, size, steps }
    }
}

struct Generator {
    random: Random,
    size: usize,
    created: usize,
    alive: Vec<Alive>,
}

struct Alive {
    region: usize,
    writable: bool,
}

impl Generator {
    fn next(&mut self) -> ProgramStep {
        match self.random.below(16) {
            0..3 => ProgramStep::Gather {
                element: *self.random.pick(Element::ALL),
                counts: self.counts(),
            },
            3 => ProgramStep::Rooted {
                element: *self.random.pick(Element::ALL),
                counts: self.counts(),
                root: self.random.below(self.size),
            },
            4..8 => ProgramStep::Reduce {
                number: *self.random.pick(Number::ALL),
                length: self.length(),
                op: *self.random.pick(&OPERATORS),
            },
            8..10 => ProgramStep::Broadcast {
                element: *self.random.pick(Element::ALL),
                length: self.length(),
                root: self.random.below(self.size),
            },
            10 => ProgramStep::Barrier,
            _ => self.region_step(),
        }
    }

    fn region_step(&mut self) -> ProgramStep {
        if self.alive.is_empty() || self.alive.len() < MOST_REGIONS && self.random.once_in(6) {
            return self.create();
        }
        let index = self.random.below(self.alive.len());
        let Alive { region, writable } = &mut self.alive[index];
        let region = *region;
        match self.random.below(8) {
            0 => {
                self.alive.swap_remove(index);
                ProgramStep::Drop { region }
            }
            1..4 if *writable => ProgramStep::Write {
                region,
                sixteenths: self.random.below(17),
            },
            _ => {
                *writable = !*writable;
                ProgramStep::Fence { region }
            }
        }
    }

    fn create(&mut self) -> ProgramStep {
        self.alive.push(Alive {
            region: self.created,
            writable: true,
        });
        self.created += 1;
        let extent = if self.random.once_in(2) {
            Extent::Led(self.length())
        } else {
            Extent::Parts(self.counts())
        };
        ProgramStep::Create {
            element: *self.random.pick(Element::ALL),
            extent,
        }
    }

    /// Nothing, one, few, some, and rarely many.
    fn length(&mut self) -> usize {
        match self.random.below(32) {
            0..4 => 0,
            4..8 => 1,
            8..22 => self.random.below(64),
            22..31 => self.random.below(4096),
            _ => self.random.below(40_000),
        }
    }

    /// A shape, or a length of its own for each rank.
    fn counts(&mut self) -> Vec<usize> {
        let unit = self.length() / self.size;
        if self.random.once_in(2) {
            return self.random.pick(&Shape::ALL).counts(self.size, unit);
        }
        (0..self.size)
            .map(|_| self.random.below(2 * unit + 2))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_same_seed_gives_the_same_program() {
        assert_eq!(
            RandomProgram::generate(7, 3, 500),
            RandomProgram::generate(7, 3, 500)
        );
    }

    #[test]
    fn other_seeds_and_other_sizes_give_other_programs() {
        let program = RandomProgram::generate(7, 3, 50).steps;
        assert_ne!(program, RandomProgram::generate(8, 3, 50).steps);
        assert_ne!(program, RandomProgram::generate(7, 4, 50).steps);
    }

    #[test]
    fn a_longer_program_begins_like_a_shorter_one() {
        let (short, long) = (
            RandomProgram::generate(7, 3, 50),
            RandomProgram::generate(7, 3, 90),
        );
        assert_eq!(long.steps[..short.steps.len()], short.steps);
    }

    #[test]
    fn it_makes_as_many_calls_as_asked_and_every_kind_of_step() {
        let steps = RandomProgram::generate(1, 4, 1000).steps;
        assert_eq!(
            steps.iter().filter(|step| step.is_collective()).count(),
            1000
        );
        let mut kinds = BTreeMap::new();
        for step in &steps {
            let text = format!("{step:?}");
            let kind = text.split([' ', '{']).next().unwrap().to_owned();
            *kinds.entry(kind).or_insert(0) += 1;
        }
        assert_eq!(kinds.len(), 9, "{kinds:?}");
        assert!(kinds.values().all(|&times| times > 10), "{kinds:?}");
    }

    #[test]
    fn lengths_of_zero_occur_in_every_collective() {
        let steps = RandomProgram::generate(1, 4, 2000).steps;
        let empty = |found: fn(&ProgramStep) -> bool| assert!(steps.iter().any(found));
        empty(
            |s| matches!(s, ProgramStep::Gather { counts, .. } if counts.iter().all(|&n| n == 0)),
        );
        empty(
            |s| matches!(s, ProgramStep::Rooted { counts, .. } if counts.iter().all(|&n| n == 0)),
        );
        empty(|s| matches!(s, ProgramStep::Reduce { length: 0, .. }));
        empty(|s| matches!(s, ProgramStep::Broadcast { length: 0, .. }));
        empty(|s| {
            matches!(
                s,
                ProgramStep::Create {
                    extent: Extent::Led(0),
                    ..
                }
            )
        });
    }
}
