//! The ranks of a job: the only module that knows of other processes.

mod byte_blocks;

pub(crate) use byte_blocks::ByteBlocks;
pub(crate) use byte_blocks::split;

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::events::Observer;
use crate::spans::{SpanKind, SpanLog};
use cobre_comm::{
    CommData, CommError, Communicator, ErrorKind, SharedMemoryProvider, SharedRegion,
};

/// The most bytes that are gathered at a time for the first rank.
const PIECE: usize = 4 << 20;

/// The communication that the method needs: collectives and shared memory.
pub trait Backend: Communicator + SharedMemoryProvider {}

impl<C: Communicator + SharedMemoryProvider> Backend for C {}

/// The ranks of a job, and the time this one has spent in collectives.
#[derive(Debug)]
pub(crate) struct Ranks<'c, C> {
    comm: &'c C,
    spent: Cell<Duration>,
    /// The timeline of this rank, if somebody wants it.
    pub(crate) spans: SpanLog,
}

/// A table of numbers that all ranks read, once per node of the machine where it can be shared.
pub(crate) struct SharedTable<C: SharedMemoryProvider> {
    /// Always in a read epoch between calls.
    region: C::Region<f64>,
}

/// A table that is written and not yet published.
pub(crate) struct DraftTable<C: SharedMemoryProvider> {
    /// In a write epoch.
    region: C::Region<f64>,
}

impl<'c, C: Backend> Ranks<'c, C> {
    /// The ranks of `comm`.
    pub(crate) fn new(comm: &'c C) -> Self {
        Self {
            comm,
            spent: Cell::new(Duration::ZERO),
            spans: SpanLog::default(),
        }
    }

    /// Number of ranks.
    pub(crate) fn size(&self) -> usize {
        self.comm.size()
    }

    /// True on the first rank, which reports and writes for all.
    pub(crate) fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// True on a rank that writes the shared tables of its node.
    pub(crate) fn is_leader(&self) -> bool {
        self.comm.is_leader()
    }

    /// This rank's number.
    pub(crate) fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// This rank's share of `count` items: consecutive ones. Shares differ by at most one item;
    /// some are empty if there are fewer items than ranks.
    pub(crate) fn share(&self, count: usize) -> Range<usize> {
        self.share_of(self.rank(), count)
    }

    /// The share of `rank`.
    pub(crate) fn share_of(&self, rank: usize, count: usize) -> Range<usize> {
        block(count, self.size(), rank)
    }

    /// The time spent in collectives, waiting included.
    pub(crate) fn spent(&self) -> Duration {
        self.spent.get()
    }

    /// Hands the spans so far on, if they are wanted.
    pub(crate) fn report_spans(&self, observer: &mut dyn Observer) {
        let spans = self.spans.take();
        if !spans.is_empty() {
            observer.spans(&spans);
        }
    }

    fn timed<T>(&self, name: &'static str, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = call();
        self.spent.set(self.spent.get() + start.elapsed());
        self.spans.note(SpanKind::Collective(name), start);
        result
    }

    /// Gathers the elements of items from the ranks that own them. Item `i` has `width(i)` elements; `mine`
    /// has those of this rank's [`share`](Self::share), in order.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn gather<T: CommData>(
        &self,
        items: usize,
        width: impl Fn(usize) -> usize,
        mine: &[T],
        all: &mut Vec<T>,
    ) -> Result<(), CommError> {
        self.gather_counted(&self.counts(items), width, mine, all)
    }

    /// The items of each rank's [`share`](Self::share).
    pub(crate) fn counts(&self, items: usize) -> Vec<usize> {
        let ranks = 0..self.size();
        ranks.map(|rank| self.share_of(rank, items).len()).collect()
    }

    /// As [`gather`](Self::gather), of items of which each rank owns so many consecutive ones.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn gather_counted<T: CommData>(
        &self,
        items: &[usize],
        width: impl Fn(usize) -> usize,
        mine: &[T],
        all: &mut Vec<T>,
    ) -> Result<(), CommError> {
        let (counts, starts, total) = layout(items, width);
        all.resize(total, T::zeroed());
        self.timed("allgatherv", || {
            self.comm.allgatherv(mine, all, &counts, &starts)
        })
    }

    /// Gathers two kinds of elements at once: each item has as many of either as the widths say. Each rank owns so
    /// many consecutive items.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn gather_pair<A: CommData, B: CommData>(
        &self,
        counts: &[usize],
        widths: (usize, usize),
        mine: (&[A], &[B]),
        (firsts, seconds): (&mut Vec<A>, &mut Vec<B>),
    ) -> Result<(), CommError> {
        let item = widths.0 * size_of::<A>() + widths.1 * size_of::<B>();
        let packed = [bytemuck::cast_slice(mine.0), bytemuck::cast_slice(mine.1)].concat();
        let (mut received, items) = (Vec::new(), counts.iter().sum::<usize>());
        self.gather_counted(counts, |_| item, &packed, &mut received)?;
        firsts.resize(items * widths.0, A::zeroed());
        seconds.resize(items * widths.1, B::zeroed());
        let mut first: &mut [u8] = bytemuck::cast_slice_mut(firsts);
        let mut second: &mut [u8] = bytemuck::cast_slice_mut(seconds);
        let mut rest = &received[..];
        for items in counts {
            for (into, size) in [
                (&mut first, items * widths.0 * size_of::<A>()),
                (&mut second, items * widths.1 * size_of::<B>()),
            ] {
                let (own, others) = rest.split_at(size);
                let (place, after) = std::mem::take(into).split_at_mut(size);
                place.copy_from_slice(own);
                (*into, rest) = (after, others);
            }
        }
        Ok(())
    }

    /// Gathers one element from every rank, in the order of ranks.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn gather_one<T: CommData>(&self, mine: T) -> Result<Vec<T>, CommError> {
        let mut all = Vec::new();
        self.gather(self.size(), |_| 1, &[mine], &mut all)?;
        Ok(all)
    }

    /// Gathers the lengths of the blocks of bytes of all items, from the ranks that own the items; `mine` has
    /// the blocks of this rank's [`share`](Self::share), in order.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn gather_lengths(
        &self,
        items: usize,
        mine: &ByteBlocks,
    ) -> Result<Vec<u64>, CommError> {
        let mut lengths = Vec::new();
        self.gather(items, |_| 1, &mine.lengths, &mut lengths)?;
        Ok(lengths)
    }

    /// Gathers the bytes of blocks of these lengths on the first rank, where they go to `take` one piece after the
    /// other. That rank has no more than [`PIECE`] bytes of others at a time, the others have none.
    ///
    /// # Errors
    /// Those of `take`, and when another rank is gone or out of step.
    pub(crate) fn gather_to_first<E: From<CommError>>(
        &self,
        lengths: &[u64],
        mine: &ByteBlocks,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.size() == 1 {
            return take(&mine.bytes);
        }
        // The bytes of all ranks one after the other, cut into pieces.
        let of_rank = |rank: usize| -> usize {
            let own = &lengths[block(lengths.len(), self.size(), rank)];
            own.iter().map(|&length| length as usize).sum()
        };
        let (counts, starts, total) = layout(&vec![1; self.size()], of_rank);
        let mut received = Vec::new();
        for at in (0..total).step_by(PIECE) {
            let inside = |rank: usize| {
                let (start, end) = (starts[rank], starts[rank] + counts[rank]);
                at.clamp(start, end) - start..(at + PIECE).clamp(start, end) - start
            };
            let own = &mine.bytes[inside(self.rank())];
            let (counts, starts, length) = layout(&vec![1; self.size()], |rank| inside(rank).len());
            if self.is_first() {
                received.resize(length, 0);
            }
            self.timed("gatherv", || {
                self.comm.gatherv(own, &mut received, &counts, &starts, 0)
            })?;
            if self.is_first() {
                take(&received)?;
            }
        }
        Ok(())
    }

    /// Broadcasts the first rank's bytes.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn broadcast_bytes(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        let length = &mut [bytes.len() as u64];
        self.timed("broadcast", || self.comm.broadcast(length, 0))?;
        bytes.resize(length[0] as usize, 0);
        self.timed("broadcast", || self.comm.broadcast(&mut bytes, 0))?;
        Ok(bytes)
    }

    /// Creates a shared table of `count` numbers, filled in by `fill`, which must do the same on
    /// every rank that runs it: one per node. Two collectives.
    ///
    /// # Errors
    /// When memory cannot be had, and when another rank is gone or out of step.
    pub(crate) fn share_table(
        &self,
        count: usize,
        fill: impl FnOnce(&mut [f64]),
    ) -> Result<SharedTable<C>, CommError> {
        self.publish(self.draft_table(count, fill)?)
    }

    /// Creates a table as [`share_table`](Self::share_table) does, which ranks read once it is published. One
    /// collective.
    ///
    /// # Errors
    /// As for [`share_table`](Self::share_table).
    pub(crate) fn draft_table(
        &self,
        count: usize,
        fill: impl FnOnce(&mut [f64]),
    ) -> Result<DraftTable<C>, CommError> {
        self.timed("create_shared_region", || {
            let mut region = self.comm.create_shared_region(count)?;
            if self.comm.is_leader() {
                fill(region.as_mut_slice());
            }
            Ok(DraftTable { region })
        })
    }

    /// Publishes a table. One collective.
    ///
    /// # Errors
    /// When another rank is gone or out of step.
    pub(crate) fn publish(&self, draft: DraftTable<C>) -> Result<SharedTable<C>, CommError> {
        let DraftTable { mut region } = draft;
        self.timed("fence", || region.fence())?;
        Ok(SharedTable { region })
    }

    /// Aborts the job: every other rank's next collective fails with this reason.
    pub(crate) fn abort(&self, kind: ErrorKind, reason: &str) {
        self.comm.abort(kind, reason);
    }
}

impl<C: SharedMemoryProvider> SharedTable<C> {
    /// The numbers.
    pub(crate) fn read(&self) -> &[f64] {
        self.region.as_slice()
    }
}

/// The layout of the ranks' parts when each rank has so many items and each item `width(item)` elements: counts,
/// starts, and the total.
fn layout(items: &[usize], width: impl Fn(usize) -> usize) -> (Vec<usize>, Vec<usize>, usize) {
    let mut first = 0;
    let own = items.iter().map(|items| {
        first += items;
        (first - items..first).map(&width).sum()
    });
    let counts: Vec<usize> = own.collect();
    let mut total = 0;
    let starts = counts.iter().map(|count| {
        total += count;
        total - count
    });
    let starts = starts.collect();
    (counts, starts, total)
}

/// The share of `rank` among `size` ranks in `count` items.
pub(crate) fn block(count: usize, size: usize, rank: usize) -> Range<usize> {
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
