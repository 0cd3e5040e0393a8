//! Where the blocks of a gather lie, and how many elements each rank contributes.

use std::ops::Range;

use crate::random::Random;

/// The counts and displacements of an allgatherv, and the room it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockLayout {
    /// Elements of each rank.
    pub counts: Vec<usize>,
    /// Where each rank's block starts.
    pub displs: Vec<usize>,
    /// Elements of the whole buffer, gaps included.
    pub len: usize,
}

impl BlockLayout {
    /// Blocks in rank order, one after the other.
    pub fn packed(counts: &[usize]) -> Self {
        let order: Vec<usize> = (0..counts.len()).collect();
        Self::placed(counts, &order, || 0)
    }

    /// Blocks in rank order, with `gap` elements before each and after the last.
    pub fn spaced(counts: &[usize], gap: usize) -> Self {
        let order: Vec<usize> = (0..counts.len()).collect();
        Self::placed(counts, &order, || gap)
    }

    /// The last rank's block first, with `gap` elements before each and after the last.
    pub fn reversed(counts: &[usize], gap: usize) -> Self {
        let order: Vec<usize> = (0..counts.len()).rev().collect();
        Self::placed(counts, &order, || gap)
    }

    /// Blocks in any order with any gaps; empty ones lie anywhere, inside other blocks too.
    pub fn shuffled(counts: &[usize], random: &mut Random) -> Self {
        let order = random.order(counts.len());
        let mut layout = Self::placed(counts, &order, || random.below(4));
        for rank in (0..counts.len()).filter(|&rank| counts[rank] == 0) {
            layout.displs[rank] = random.below(layout.len + 1);
        }
        layout
    }

    fn placed(counts: &[usize], order: &[usize], mut gap: impl FnMut() -> usize) -> Self {
        let mut displs = vec![0; counts.len()];
        let mut end = 0;
        for &rank in order {
            displs[rank] = end + gap();
            end = displs[rank] + counts[rank];
        }
        Self {
            counts: counts.to_vec(),
            displs,
            len: end + gap(),
        }
    }

    /// The elements of `rank`'s block.
    pub fn block(&self, rank: usize) -> Range<usize> {
        self.displs[rank]..self.displs[rank] + self.counts[rank]
    }
}

/// The distribution of counts over the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The same on each rank.
    Regular,
    /// Everything on one rank, the middle one.
    OneRankOnly,
    /// One element each, and many on the last rank.
    Spike,
    /// Nothing on every second rank, beginning with the first.
    HalfEmpty,
    /// More with each rank.
    Linear,
    /// Most in the middle.
    Bell,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 6] = [
        Self::Regular,
        Self::OneRankOnly,
        Self::Spike,
        Self::HalfEmpty,
        Self::Linear,
        Self::Bell,
    ];

    /// Counts of this shape for `size` ranks; `unit` sets the scale.
    pub fn counts(self, size: usize, unit: usize) -> Vec<usize> {
        let count = |rank: usize| match self {
            Self::Regular => unit,
            Self::OneRankOnly if rank == size / 2 => unit * size,
            Self::OneRankOnly => 0,
            Self::Spike if rank + 1 == size => unit * size,
            Self::Spike => 1,
            Self::HalfEmpty => unit * 2 * (rank % 2),
            Self::Linear => unit * rank,
            Self::Bell => {
                let from_the_edge = (rank + 1).min(size - rank);
                unit * from_the_edge * from_the_edge / size
            }
        };
        (0..size).map(count).collect()
    }
}

/// `total` elements shared out as evenly as they go, the first ranks taking one more.
pub fn even(size: usize, total: usize) -> Vec<usize> {
    (0..size)
        .map(|rank| total / size + usize::from(rank < total % size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_disjoint_and_inside_in_every_layout() {
        let counts = [3, 0, 2, 5];
        let mut random = Random::new(&[1]);
        let layouts = [
            BlockLayout::packed(&counts),
            BlockLayout::spaced(&counts, 2),
            BlockLayout::reversed(&counts, 1),
            BlockLayout::shuffled(&counts, &mut random),
        ];
        for layout in layouts {
            let mut used = vec![0; layout.len];
            for rank in 0..4 {
                used[layout.block(rank)].iter_mut().for_each(|n| *n += 1);
            }
            assert!(used.iter().all(|&n| n <= 1), "{layout:?}");
        }
    }

    #[test]
    fn gaps_lie_before_each_block_and_after_the_last() {
        let layout = BlockLayout::spaced(&[2, 1], 3);
        assert_eq!((layout.displs, layout.len), (vec![3, 8], 12));
        assert_eq!(BlockLayout::reversed(&[2, 1], 0).displs, [1, 0]);
    }

    #[test]
    fn an_even_split_loses_nothing() {
        assert_eq!(even(3, 8), [3, 3, 2]);
        assert_eq!(even(4, 2), [1, 1, 0, 0]);
    }
}
