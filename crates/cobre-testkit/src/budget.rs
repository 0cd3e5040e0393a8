//! The limits of a contract, and the means that its ranks share besides the communicator.

use std::path::PathBuf;

use cobre_comm::Communicator;

use crate::counters::RankCounters;
use crate::random::{Random, mix};

/// The parameters of a run; the same on every rank.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Length of the longest loops, in collectives; [`Budget::FULL`] is what the contracts are
    /// written for, other values scale them.
    pub calls: usize,
    /// Determines data, delays and programs, and which rank is the odd one out.
    pub seed: u64,
    /// An empty directory that all ranks of this run see, and no other run.
    pub scratch: Option<PathBuf>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            calls: 1000,
            seed: 1,
            scratch: None,
        }
    }
}

impl Budget {
    /// The calls for which nothing is scaled down.
    pub const FULL: usize = 10_000;

    /// The calls of a run that is to fail: enough for every mutant to show itself.
    pub const FOR_MUTANTS: usize = 200;

    /// This budget's share of `full` repetitions; at least one.
    pub fn share(&self, full: usize) -> usize {
        (full * self.calls / Self::FULL).max(1)
    }

    /// Most bytes that one collective may leave on a rank.
    pub fn bytes(&self) -> usize {
        self.share(32 << 20).max(4 << 20)
    }

    /// The numbers of the stream `name`, the same on all ranks.
    pub fn random(&self, name: &str) -> Random {
        Random::new(&[self.seed, stream(name)])
    }

    /// The numbers of the stream `name` on one rank.
    pub fn random_on(&self, rank: usize, name: &str) -> Random {
        Random::new(&[self.seed, stream(name), rank as u64])
    }

    /// The rank that does something else than the others, where a contract has one.
    pub fn odd_rank(&self, size: usize) -> usize {
        (self.seed % size as u64) as usize
    }

    /// Counters in the scratch directory, by which the ranks of `comm` see each other.
    ///
    /// # Panics
    /// Without a scratch directory.
    pub fn counters<C: Communicator>(&self, comm: &C, name: &str) -> RankCounters {
        let Some(scratch) = &self.scratch else {
            panic!("this contract needs a directory that all ranks share: --scratch DIR");
        };
        RankCounters::new(scratch, name, comm.rank(), comm.size())
    }
}

fn stream(name: &str) -> u64 {
    name.bytes()
        .fold(0, |hash, byte| mix(hash ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_scale_with_the_calls_and_never_vanish() {
        let budget = |calls| Budget {
            calls,
            ..Budget::default()
        };
        assert_eq!(budget(10_000).share(5000), 5000);
        assert_eq!(budget(1000).share(5000), 500);
        assert_eq!(budget(1).share(5000), 1);
    }

    #[test]
    fn every_rank_can_be_the_odd_one() {
        let odd = |seed| {
            let budget = Budget {
                seed,
                ..Budget::default()
            };
            budget.odd_rank(5)
        };
        assert_eq!([0, 1, 4, 5].map(odd), [0, 1, 4, 0]);
    }
}
