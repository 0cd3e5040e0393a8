//! Arguments that have been checked: holding one of these types is the proof.

use std::ops::Range;

use crate::call_signature::Collective;
use crate::error::{BufferProblem, CommError};

/// The layout of `recv`: one block per rank, all inside, none overlapping, and
/// this rank's as long as what it sends.
#[derive(Debug, Clone, Copy)]
pub struct Partition<'a> {
    counts: &'a [usize],
    displs: &'a [usize],
    element_size: usize,
}

impl<'a> Partition<'a> {
    /// Checks the arguments of an allgatherv on `rank` of `size` ranks.
    #[inline]
    pub(crate) fn new<T>(
        position: (usize, usize),
        send: &[T],
        recv: &[T],
        counts: &'a [usize],
        displs: &'a [usize],
    ) -> Result<Self, CommError> {
        let checked = Self::checked(position, send, recv, counts, displs);
        checked.map_err(|problem| CommError::InvalidBufferSize {
            operation: Collective::Allgatherv,
            problem,
        })
    }

    #[inline]
    fn checked<T>(
        (rank, size): (usize, usize),
        send: &[T],
        recv: &[T],
        counts: &'a [usize],
        displs: &'a [usize],
    ) -> Result<Self, BufferProblem> {
        expect_length("counts", counts.len(), size)?;
        expect_length("displs", displs.len(), size)?;
        expect_length("send", send.len(), counts[rank])?;
        check_blocks(counts, displs, recv.len())?;
        Ok(Self {
            counts,
            displs,
            element_size: size_of::<T>(),
        })
    }

    /// Blocks of so many bytes at these places of a buffer that a backend has cut itself.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone nothing is cut"
    )]
    pub(crate) fn of_bytes(lengths: &'a [usize], starts: &'a [usize]) -> Self {
        Self {
            counts: lengths,
            displs: starts,
            element_size: 1,
        }
    }

    /// The bytes of `rank`'s block in `recv`. Cannot overflow: the block is inside a slice.
    #[inline]
    pub(crate) fn bytes(&self, rank: usize) -> Range<usize> {
        let start = self.displs[rank] * self.element_size;
        start..start + self.counts[rank] * self.element_size
    }
}

/// The blocks of a gatherv: every rank knows their lengths, the root also where they lie in its `recv`.
#[derive(Debug, Clone, Copy)]
pub struct RootedPartition<'a> {
    counts: &'a [usize],
    element_size: usize,
    root: RootRank,
    /// `None` on every rank but the root.
    at_root: Option<Partition<'a>>,
}

impl<'a> RootedPartition<'a> {
    /// Checks the arguments of a gatherv on `rank` of `size` ranks.
    #[inline]
    pub(crate) fn new<T>(
        (rank, size): (usize, usize),
        send: &[T],
        recv: &[T],
        (counts, displs): (&'a [usize], &'a [usize]),
        root: usize,
    ) -> Result<Self, CommError> {
        let operation = Collective::Gatherv;
        let fault = |problem| CommError::InvalidBufferSize { operation, problem };
        let root = RootRank::new(operation, root, size)?;
        let at_root = if rank == root.0 {
            let blocks = Partition::checked((rank, size), send, recv, counts, displs);
            Some(blocks.map_err(fault)?)
        } else {
            expect_length("counts", counts.len(), size).map_err(fault)?;
            expect_length("send", send.len(), counts[rank]).map_err(fault)?;
            // On the root the block lies inside a slice, so that no other rank sends more than that.
            let fits = counts.iter().all(|&count| fits_in_memory::<T>(count));
            if !fits {
                return Err(fault(BufferProblem::TooLarge));
            }
            None
        };
        Ok(Self {
            counts,
            element_size: size_of::<T>(),
            root,
            at_root,
        })
    }

    /// Blocks of so many bytes for a root inside a backend; `at_root` says where they lie there.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone nothing is cut"
    )]
    pub(crate) fn of_bytes(
        lengths: &'a [usize],
        root: usize,
        at_root: Option<Partition<'a>>,
    ) -> Self {
        Self {
            counts: lengths,
            element_size: 1,
            root: RootRank(root),
            at_root,
        }
    }

    /// The rank that receives.
    #[inline]
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone the root is known"
    )]
    pub(crate) fn root(&self) -> usize {
        self.root.0
    }

    /// Bytes of `rank`'s block.
    #[inline]
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone there is one block"
    )]
    pub(crate) fn len(&self, rank: usize) -> usize {
        self.counts[rank] * self.element_size
    }

    /// Bytes of all blocks.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone there is one block"
    )]
    pub(crate) fn total(&self) -> usize {
        let lengths = (0..self.counts.len()).map(|rank| self.len(rank));
        lengths.fold(0, usize::saturating_add)
    }

    /// The layout of `recv`, on the root alone.
    #[inline]
    pub(crate) fn at_root(&self) -> Option<Partition<'a>> {
        self.at_root
    }
}

/// The parts of a region, one per rank, one after the other.
#[derive(Debug, Clone)]
pub struct RegionParts {
    counts: Vec<usize>,
    displs: Vec<usize>,
    total: usize,
}

impl RegionParts {
    /// Checks the counts of a partitioned region of `T` for `size` ranks.
    pub(crate) fn new<T>(size: usize, counts: &[usize]) -> Result<Self, CommError> {
        let fault = |problem| CommError::InvalidBufferSize {
            operation: Collective::CreatePartitionedRegion,
            problem,
        };
        expect_length("counts", counts.len(), size).map_err(fault)?;
        let mut total = 0usize;
        let mut displs = Vec::with_capacity(size);
        for &count in counts {
            displs.push(total);
            total = total
                .checked_add(count)
                .filter(|&n| fits_in_memory::<T>(n))
                .ok_or_else(|| fault(BufferProblem::TooLarge))?;
        }
        Ok(Self {
            counts: counts.to_vec(),
            displs,
            total,
        })
    }

    /// Elements in the whole region.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Elements of `rank`'s part.
    pub(crate) fn range(&self, rank: usize) -> Range<usize> {
        self.displs[rank]..self.displs[rank] + self.counts[rank]
    }

    /// The parts as the blocks of an allgatherv into the region itself.
    pub(crate) fn partition<T>(&self) -> Partition<'_> {
        Partition {
            counts: &self.counts,
            displs: &self.displs,
            element_size: size_of::<T>(),
        }
    }
}

/// A rank that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRank(usize);

impl RootRank {
    /// Checks `root` of `operation` against the number of ranks.
    #[inline]
    pub(crate) fn new(operation: Collective, root: usize, size: usize) -> Result<Self, CommError> {
        if root < size {
            Ok(Self(root))
        } else {
            Err(CommError::InvalidRoot {
                operation,
                root,
                size,
            })
        }
    }

    /// The rank.
    #[inline]
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone the root is known"
    )]
    pub(crate) fn rank(self) -> usize {
        self.0
    }
}

/// Checks that an allreduce has room for its result.
#[inline]
pub(crate) fn equal_lengths<T>(send: &[T], recv: &[T]) -> Result<(), CommError> {
    expect_length("recv", recv.len(), send.len()).map_err(|problem| CommError::InvalidBufferSize {
        operation: Collective::Allreduce,
        problem,
    })
}

/// Checks that a leader region of `count` elements can be addressed at all.
pub(crate) fn region_length<T>(count: usize) -> Result<usize, CommError> {
    if fits_in_memory::<T>(count) {
        return Ok(count);
    }
    Err(CommError::InvalidBufferSize {
        operation: Collective::CreateSharedRegion,
        problem: BufferProblem::TooLarge,
    })
}

fn fits_in_memory<T>(count: usize) -> bool {
    count
        .checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok())
}

#[inline]
fn expect_length(
    argument: &'static str,
    actual: usize,
    expected: usize,
) -> Result<(), BufferProblem> {
    if actual == expected {
        Ok(())
    } else {
        Err(BufferProblem::Length {
            argument,
            expected,
            actual,
        })
    }
}

/// Every block inside `len` elements, none sharing an element with another.
#[inline]
fn check_blocks(counts: &[usize], displs: &[usize], len: usize) -> Result<(), BufferProblem> {
    let mut ascending = true;
    let mut end_so_far = 0;
    for (rank, (&count, &displacement)) in counts.iter().zip(displs).enumerate() {
        match displacement.checked_add(count) {
            Some(end) if end <= len => {
                ascending &= displacement >= end_so_far;
                end_so_far = end;
            }
            _ => {
                return Err(BufferProblem::BlockOutside {
                    rank,
                    displacement,
                    count,
                    len,
                });
            }
        }
    }
    // Blocks in rank order cannot overlap; that is the usual layout and needs no sorting.
    if ascending {
        Ok(())
    } else {
        check_overlap(counts, displs)
    }
}

fn check_overlap(counts: &[usize], displs: &[usize]) -> Result<(), BufferProblem> {
    let mut order: Vec<usize> = (0..counts.len()).filter(|&r| counts[r] > 0).collect();
    order.sort_by_key(|&rank| displs[rank]);
    for pair in order.windows(2) {
        if displs[pair[0]] + counts[pair[0]] > displs[pair[1]] {
            return Err(BufferProblem::BlocksOverlap {
                first: pair[0].min(pair[1]),
                second: pair[0].max(pair[1]),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(counts: &[usize], displs: &[usize], len: usize) -> Result<(), BufferProblem> {
        let (send, recv) = (vec![0u16; counts[0]], vec![0u16; len]);
        match Partition::new((0, counts.len()), &send, &recv, counts, displs) {
            Ok(_) => Ok(()),
            Err(CommError::InvalidBufferSize { problem, .. }) => Err(problem),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_block_of_every_rank_is_checked() {
        for rank in 0..3 {
            let mut displs = [0, 2, 4];
            displs[rank] = usize::MAX;
            let error = check(&[2, 2, 2], &displs, 6).unwrap_err();
            assert!(matches!(error, BufferProblem::BlockOutside { rank: r, .. } if r == rank));
        }
    }

    #[test]
    fn a_block_may_end_where_recv_ends_and_no_further() {
        assert_eq!(check(&[2, 2], &[0, 2], 4), Ok(()));
        assert!(check(&[2, 2], &[0, 3], 4).is_err());
    }

    #[test]
    fn blocks_with_gaps_or_in_reverse_are_welcome() {
        assert_eq!(check(&[2, 2, 1], &[4, 1, 0], 9), Ok(()));
    }

    #[test]
    fn an_empty_block_overlaps_nothing() {
        assert_eq!(check(&[4, 0], &[0, 2], 4), Ok(()));
    }

    #[test]
    fn blocks_that_overlap_are_named() {
        let error = check(&[2, 1, 3], &[3, 0, 1], 9).unwrap_err();
        assert_eq!(
            error,
            BufferProblem::BlocksOverlap {
                first: 0,
                second: 2
            }
        );
    }

    #[test]
    fn displacements_count_on_the_root_alone() {
        let check = |rank, displs: &[usize]| {
            let (counts, mut recv) = ([1, 2], vec![0u16; 3]);
            recv.truncate(if rank == 1 { 3 } else { 0 });
            let send = vec![0u16; counts[rank]];
            RootedPartition::new((rank, 2), &send, &recv, (&counts, displs), 1).map(|blocks| {
                let at_root = blocks
                    .at_root()
                    .map(|blocks| [blocks.bytes(0), blocks.bytes(1)]);
                (blocks.root(), [blocks.len(0), blocks.len(1)], at_root)
            })
        };
        assert_eq!(check(0, &[]), Ok((1, [2, 4], None)));
        assert_eq!(check(1, &[2, 0]), Ok((1, [2, 4], Some([4..6, 0..4]))));
        assert!(check(1, &[]).is_err() && check(1, &[2, 1]).is_err());
    }

    #[test]
    fn counts_that_overflow_are_refused() {
        assert!(RegionParts::new::<u8>(2, &[usize::MAX, 1]).is_err());
        assert!(RegionParts::new::<u64>(1, &[usize::MAX / 8]).is_err());
        assert!(region_length::<u64>(usize::MAX / 8).is_err());
    }

    proptest! {
        /// Against marking every element by hand.
        #[test]
        fn a_partition_is_accepted_exactly_if_no_element_is_used_twice(
            blocks in prop::collection::vec((0usize..4, 0usize..12), 1..6),
            len in 0usize..12,
        ) {
            let (counts, displs): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
            let mut uses = [0; 32];
            let mut inside = true;
            for (&count, &displ) in counts.iter().zip(&displs) {
                inside &= displ + count <= len;
                uses[displ..displ + count].iter_mut().for_each(|n| *n += 1);
            }
            let fine = inside && uses.iter().all(|&n| n <= 1);
            prop_assert_eq!(check(&counts, &displs, len).is_ok(), fine);
        }
    }
}
