//! The only place that knows there is more than one process.

mod byte_blocks;

pub use byte_blocks::ByteBlocks;
pub(crate) use byte_blocks::split;

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use cobre_comm::{CommError, Communicator, SharedMemoryProvider, SharedRegion};

/// What the method needs of a backend.
pub trait Backend: Communicator + SharedMemoryProvider {}

impl<C: Communicator + SharedMemoryProvider> Backend for C {}

/// The ranks of a job, and the time this one has spent in their collectives.
#[derive(Debug)]
pub struct Ranks<'c, C> {
    comm: &'c C,
    spent: Cell<Duration>,
}

/// Numbers that all ranks read and that each node of the machine has once where it can.
pub struct SharedTable<C: SharedMemoryProvider> {
    /// Always in a read epoch between calls.
    region: C::Region<f64>,
}

impl<'c, C: Backend> Ranks<'c, C> {
    /// The ranks of `comm`.
    pub fn new(comm: &'c C) -> Self {
        Self {
            comm,
            spent: Cell::new(Duration::ZERO),
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Whether this rank speaks and writes for all.
    pub fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Which of `count` things are this rank's: blocks of consecutive ones whose lengths differ by
    /// at most one, some of them empty if there are fewer things than ranks.
    pub fn share(&self, count: usize) -> Range<usize> {
        block(count, self.size(), self.rank())
    }

    /// Time spent in collectives, waiting included.
    pub fn spent(&self) -> Duration {
        self.spent.get()
    }

    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = call();
        self.spent.set(self.spent.get() + start.elapsed());
        result
    }

    /// Gathers one record per thing from the ranks whose things they are. Thing `i` has `width(i)`
    /// numbers; `mine` has those of this rank's [`share`](Self::share), in order.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub fn gather(
        &self,
        things: usize,
        width: impl Fn(usize) -> usize,
        mine: &[f64],
        all: &mut Vec<f64>,
    ) -> Result<(), CommError> {
        let (counts, starts, total) = layout(self.size(), things, width);
        all.resize(total, 0.0);
        self.timed(|| self.comm.allgatherv(mine, all, &counts, &starts))
    }

    /// Gathers one record from every rank.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub fn gather_one(&self, mine: &[f64]) -> Result<Vec<Vec<f64>>, CommError> {
        let mut all = Vec::new();
        self.gather(self.size(), |_| mine.len(), mine, &mut all)?;
        Ok(all.chunks(mine.len()).map(<[f64]>::to_vec).collect())
    }

    /// Gathers some bytes per thing from the ranks whose things they are; `mine` has those of this rank's
    /// [`share`](Self::share), in order.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub fn gather_bytes(&self, things: usize, mine: &ByteBlocks) -> Result<ByteBlocks, CommError> {
        let lengths: Vec<f64> = mine.lengths.iter().map(|&length| length as f64).collect();
        let mut all_lengths = Vec::new();
        self.gather(things, |_| 1, &lengths, &mut all_lengths)?;
        let lengths: Vec<usize> = all_lengths.iter().map(|length| *length as usize).collect();
        let (counts, starts, total) = layout(self.size(), things, |thing| lengths[thing]);
        let mut bytes = vec![0; total];
        self.timed(|| {
            self.comm
                .allgatherv(&mine.bytes, &mut bytes, &counts, &starts)
        })?;
        Ok(ByteBlocks { lengths, bytes })
    }

    /// Gives the first rank's bytes to all.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub fn broadcast_bytes(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        let length = &mut [bytes.len() as u64];
        self.timed(|| self.comm.broadcast(length, 0))?;
        bytes.resize(length[0] as usize, 0);
        self.timed(|| self.comm.broadcast(&mut bytes, 0))?;
        Ok(bytes)
    }

    /// Shares `count` numbers, filled in by `fill`, which must do the same on every rank that runs
    /// it: one per node.
    ///
    /// # Errors
    /// When warm_start cannot be had, and when another rank is gone or out of step.
    pub fn share_table(
        &self,
        count: usize,
        fill: impl FnOnce(&mut [f64]),
    ) -> Result<SharedTable<C>, CommError> {
        self.timed(|| {
            let mut region = self.comm.create_shared_region(count)?;
            if self.comm.is_leader() {
                fill(region.as_mut_slice());
            }
            region.fence()?;
            Ok(SharedTable { region })
        })
    }

    /// Changes shared numbers. Collective; `change` must do the same on every rank that runs it.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub fn update(
        &self,
        shared: &mut SharedTable<C>,
        change: impl FnOnce(&mut [f64]),
    ) -> Result<(), CommError> {
        self.timed(|| {
            shared.region.fence()?;
            if self.comm.is_leader() {
                change(shared.region.as_mut_slice());
            }
            shared.region.fence()
        })
    }

    /// Makes every other rank's next collective fail with this reason.
    pub fn abort(&self, reason: &str) {
        self.comm.abort(reason);
    }
}

impl<C: SharedMemoryProvider> SharedTable<C> {
    /// The numbers.
    pub fn read(&self) -> &[f64] {
        self.region.as_slice()
    }
}

/// Where the ranks' parts lie when each thing has `width(thing)` elements: counts, starts, and the
/// total.
fn layout(
    size: usize,
    things: usize,
    width: impl Fn(usize) -> usize,
) -> (Vec<usize>, Vec<usize>, usize) {
    let counts: Vec<usize> = (0..size)
        .map(|rank| block(things, size, rank).map(&width).sum())
        .collect();
    let mut total = 0;
    let starts = counts.iter().map(|count| {
        total += count;
        total - count
    });
    let starts = starts.collect();
    (counts, starts, total)
}

/// The part of `rank` among `size` ranks in `count` things.
fn block(count: usize, size: usize, rank: usize) -> Range<usize> {
    let (each, more) = (count / size, count % size);
    let start = rank * each + rank.min(more);
    start..start + each + usize::from(rank < more)
}

#[cfg(test)]
mod tests {
    use super::block;

    #[test]
    fn blocks_cover_everything_once_and_evenly() {
        for count in 0..20 {
            for size in 1..8 {
                let blocks: Vec<_> = (0..size).map(|rank| block(count, size, rank)).collect();
                assert_eq!(blocks[0].start, 0);
                assert_eq!(blocks[size - 1].end, count);
                assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
                let lengths = blocks.iter().map(ExactSizeIterator::len);
                assert!(lengths.clone().max() <= lengths.min().map(|least| least + 1));
            }
        }
    }
}
