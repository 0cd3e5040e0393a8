//! Binding of ranks to processors.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::error::LaunchError;
use crate::topology::Topology;

/// The processors that ranks may run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bind {
    /// Wherever the launcher may.
    #[default]
    None,
    /// Rank r on the (r mod n)-th of the n processors that the launcher may use.
    Core,
    /// Each rank on so many cores of its own, with all their hardware threads; of one NUMA node where that is possible.
    Cores(NonZeroUsize),
    /// Each rank on one socket; ranks of the same socket share out its cores.
    Socket,
    /// Each rank on one NUMA node; ranks of the same node share out its cores.
    Numa,
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cores = |text: &str| text.strip_prefix("cores:")?.parse().ok().map(Self::Cores);
        match text {
            "none" => Ok(Self::None),
            "core" => Ok(Self::Core),
            "socket" => Ok(Self::Socket),
            "numa" => Ok(Self::Numa),
            _ => cores(text)
                .ok_or_else(|| "none, core, cores:K, socket or numa is expected".to_owned()),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Core => f.write_str("core"),
            Self::Cores(count) => write!(f, "cores:{count}"),
            Self::Socket => f.write_str("socket"),
            Self::Numa => f.write_str("numa"),
        }
    }
}

impl Bind {
    /// The processors of each of `ranks`; none for a rank that may run anywhere.
    ///
    /// # Errors
    /// [`LaunchError::Cores`] if the ranks need more cores than there are.
    pub fn masks(self, ranks: usize, topology: &Topology) -> Result<Vec<Vec<usize>>, LaunchError> {
        match self {
            Self::None => Ok(vec![Vec::new(); ranks]),
            Self::Core => Ok(one_each(ranks, topology)),
            Self::Cores(count) => cores(ranks, count.get(), topology),
            Self::Socket => Ok(spread(ranks, &topology.sockets())),
            Self::Numa => Ok(spread(ranks, &topology.nodes())),
        }
    }
}

/// A processor per rank, in the order of their numbers, again from the first where there are fewer.
fn one_each(ranks: usize, topology: &Topology) -> Vec<Vec<usize>> {
    let mut all: Vec<usize> = topology.nodes().concat().concat();
    all.sort_unstable();
    let numbers = all.iter().copied().cycle();
    numbers.take(ranks).map(|number| vec![number]).collect()
}

/// `count` cores per rank: inside NUMA nodes if all ranks fit there, else one after the other.
fn cores(ranks: usize, count: usize, topology: &Topology) -> Result<Vec<Vec<usize>>, LaunchError> {
    let nodes = topology.nodes();
    let together = |cores: &[Vec<usize>]| -> Vec<Vec<usize>> {
        cores.chunks_exact(count).map(<[_]>::concat).collect()
    };
    let inside: Vec<Vec<usize>> = nodes.iter().flat_map(|cores| together(cores)).collect();
    let all = nodes.concat();
    let mut masks = if inside.len() < ranks {
        together(&all)
    } else {
        inside
    };
    if masks.len() < ranks {
        return Err(LaunchError::Cores {
            ranks,
            each: count,
            there: all.len(),
        });
    }
    masks.truncate(ranks);
    Ok(masks)
}

/// Ranks in blocks over the domains; those of one domain share out its cores, or all have all of them where there are
/// fewer cores than ranks.
fn spread(ranks: usize, domains: &[Vec<Vec<usize>>]) -> Vec<Vec<usize>> {
    let domain_of = |rank: usize| rank * domains.len() / ranks;
    let mask = |rank: usize| {
        let domain = domain_of(rank);
        let cores = domains.get(domain)?;
        let first = (0..rank)
            .rev()
            .take_while(|other| domain_of(*other) == domain)
            .count();
        let later = (rank + 1..ranks)
            .take_while(|other| domain_of(*other) == domain)
            .count();
        let sharing = first + 1 + later;
        let share = if sharing <= cores.len() {
            &cores[first * cores.len() / sharing..(first + 1) * cores.len() / sharing]
        } else {
            &cores[..]
        };
        Some(share.concat())
    };
    (0..ranks)
        .map(|rank| mask(rank).unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::fake;

    fn masks(bind: &str, ranks: usize, topology: &Topology) -> Vec<Vec<usize>> {
        bind.parse::<Bind>()
            .unwrap()
            .masks(ranks, topology)
            .unwrap()
    }

    /// Fails if two ranks share a processor.
    fn assert_disjoint(masks: &[Vec<usize>]) {
        let mut all = masks.concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "{masks:?}");
        assert!(masks.iter().all(|mask| !mask.is_empty()), "{masks:?}");
    }

    #[test]
    fn ranks_beyond_the_processors_start_again_at_the_first() {
        let three = fake::topology(1, 1, 8, 1, &[2, 5, 7]);
        assert_eq!(masks("core", 4, &three), [[2], [5], [7], [2]]);
        assert_eq!(masks("none", 2, &three), [[0; 0]; 2]);
    }

    #[test]
    fn ranks_of_a_numa_node_share_out_its_cores() {
        // Two sockets of two nodes of four cores with two threads.
        let large = fake::topology(2, 2, 4, 2, &[]);
        assert_eq!(masks("numa", 4, &large)[1], [4, 20, 5, 21, 6, 22, 7, 23]);
        assert_eq!(masks("numa", 8, &large)[3], [6, 22, 7, 23]);
        assert_eq!(masks("numa", 2, &large)[1], [8, 24, 9, 25, 10, 26, 11, 27]);
        assert_eq!(masks("socket", 2, &large)[1].len(), 16);
        for bind in ["numa", "socket"] {
            for ranks in 1..=16 {
                let found = masks(bind, ranks, &large);
                assert_eq!(found.len(), ranks);
                assert_disjoint(&found);
                if bind == "numa" {
                    assert!(found.iter().all(|mask| large.nodes_of(mask).len() == 1));
                }
            }
        }
    }

    #[test]
    fn more_ranks_than_cores_share_their_node() {
        let small = fake::topology(1, 2, 2, 1, &[]);
        assert_eq!(
            masks("numa", 6, &small),
            [[0, 1], [0, 1], [0, 1], [2, 3], [2, 3], [2, 3]]
        );
    }

    #[test]
    fn cores_stay_inside_a_node_where_all_ranks_fit() {
        let uneven = fake::topology(1, 2, 3, 1, &[]);
        assert_eq!(masks("cores:2", 2, &uneven), [[0, 1], [3, 4]]);
        assert_eq!(masks("cores:2", 3, &uneven), [[0, 1], [2, 3], [4, 5]]);
        let threads = fake::topology(1, 1, 4, 2, &[]);
        assert_eq!(masks("cores:2", 2, &threads), [[0, 4, 1, 5], [2, 6, 3, 7]]);
    }

    #[test]
    fn too_few_cores_are_an_error_with_the_numbers() {
        let four = fake::topology(1, 1, 4, 2, &[]);
        let three = NonZeroUsize::new(3).unwrap();
        let error = Bind::Cores(three).masks(2, &four).unwrap_err().to_string();
        assert!(
            error.contains("2 ranks on 3 cores each") && error.contains('4'),
            "{error}"
        );
    }

    #[test]
    fn words_that_are_no_binding_are_refused() {
        for word in [
            "", "cores", "cores:", "cores:0", "cores:-1", "cores:x", "NUMA",
        ] {
            assert!(
                word.parse::<Bind>().unwrap_err().contains("cores:K"),
                "{word}"
            );
        }
    }
}
