//! The layout of the segment. Every cache line is written by one rank only.
//!
//! ```text
//! header | per rank: arrival slots (two, by parity) | flow lines | ring | stage | result
//! ```

use std::ops::Range;

/// Two cache lines: the prefetcher fetches them in pairs.
pub(super) const LINE: usize = 128;
const PAGE: usize = 4096;

/// Payload bytes that travel in the line that announces a rank's arrival.
pub(super) const IN_LINE: usize = 48;
/// Largest payload that travels in an arrival slot; at 8 KiB slot and ring cost the same.
pub(super) const INLINE: usize = 8192;

/// Room for the header: identity, rank tables, futex words, abort record.
pub(super) const HEADER: usize = 144 * 1024;
/// The header's tables are made for so many.
pub(super) use crate::backends::MAX_RANKS;

/// Offsets in the header.
pub(super) mod header {
    use super::super::object;
    use super::{LINE, MAX_RANKS};
    use crate::backends::wire;

    /// Behind magic and version, which every object begins with.
    pub(crate) const RANKS: usize = object::IDENTITY;
    pub(crate) const RING: usize = 24;
    pub(crate) const STAGE: usize = 32;
    pub(crate) const LAYOUT: usize = 40;
    pub(crate) const JOB: usize = 48;
    /// The state of the rendezvous.
    pub(crate) const STATE: usize = LINE;
    pub(crate) const ATTACHED: usize = LINE + 8;
    /// The one futex word, and how many ranks sleep on it.
    pub(crate) const EVENTS: usize = 2 * LINE;
    pub(crate) const SLEEPERS: usize = 3 * LINE;
    /// Not zero once the job has failed; read in every wait, written once.
    pub(crate) const STOPPED: usize = 4 * LINE;
    /// Processors that any rank may use: 1024 bits.
    pub(crate) const CPUS: usize = 5 * LINE;
    pub(crate) const CPU_WORDS: usize = 16;
    /// One word per rank: its process id once it is attached.
    pub(crate) const PIDS: usize = 4096;
    /// The abort record.
    pub(crate) const RECORD: usize = 8192;
    pub(crate) const RECORD_LEN: usize = wire::LONGEST;
    /// One line per rank: the word that the kernel marks when the rank dies, whether it has left.
    const LIVES: usize = 16 * 1024;
    pub(crate) const fn alive(rank: usize) -> usize {
        LIVES + rank * LINE
    }
    pub(crate) const fn left(rank: usize) -> usize {
        alive(rank) + 4
    }
    /// One line per rank that its process writes, and others read when something is wrong: the last
    /// collective it began, since when it sleeps, when its process was seen, what it dies of.
    const STEPS: usize = LIVES + MAX_RANKS * LINE;
    pub(crate) const fn step(rank: usize) -> usize {
        STEPS + rank * LINE
    }
    pub(crate) const fn asleep(rank: usize) -> usize {
        step(rank) + 8
    }
    pub(crate) const fn seen(rank: usize) -> usize {
        step(rank) + 16
    }
    pub(crate) const fn signal(rank: usize) -> usize {
        step(rank) + 24
    }
    pub(crate) const fn namespace(rank: usize) -> usize {
        step(rank) + 32
    }
    /// The rank's number in the job that the segment is a part of.
    pub(crate) const fn number(rank: usize) -> usize {
        step(rank) + 40
    }
    /// Words per rank for the text of a panic, and the collective it came in.
    pub(crate) const WORDS: usize = 32;
    pub(crate) const fn words(rank: usize) -> usize {
        step(MAX_RANKS) + rank * 8 * WORDS
    }
}

/// Offsets of one segment, from the number of ranks and the buffer sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentLayout {
    pub(super) ranks: usize,
    /// Bytes of each rank's ring.
    pub(super) ring: usize,
    /// Bytes of each rank's stage, and of its result area.
    pub(super) stage: usize,
    /// Bytes of each rank's slice.
    slice_len: usize,
}

impl SegmentLayout {
    /// Buffer sizes that measured best: rings that stay in cache together.
    pub(super) fn for_ranks(ranks: usize, cpus: usize, ring: Option<usize>) -> Self {
        let ring = ring.unwrap_or(if ranks <= cpus { 2 << 20 } else { 1 << 20 });
        let stage = Self::stage_bytes(ranks);
        Self::new(ranks, ring.next_multiple_of(PAGE), stage)
    }

    /// Bytes of the stage of each of so many ranks.
    pub(super) const fn stage_bytes(ranks: usize) -> usize {
        if ranks >= 8 { 1 << 18 } else { 1 << 20 }
    }

    /// The layout for these buffer sizes.
    pub(super) fn new(ranks: usize, ring: usize, stage: usize) -> Self {
        // No multiple of the page size, so that the ranks' slots do not compete for the same
        // cache sets.
        let slice_len = Self::flow_offset() + Self::flow_len(ranks) + ring + 2 * stage + LINE + 64;
        Self {
            ranks,
            ring,
            stage,
            slice_len,
        }
    }

    /// Bytes of the whole segment.
    pub(super) fn total(&self) -> usize {
        HEADER + self.ranks * self.slice_len
    }

    /// The part of the segment that `rank` alone writes.
    pub(super) fn slice(&self, rank: usize) -> Range<usize> {
        let start = self.start(rank);
        start..start + self.slice_len
    }

    #[inline]
    fn start(&self, rank: usize) -> usize {
        HEADER + rank * self.slice_len
    }

    /// A slot: arrival line, call signature, payload. No multiple of the page size either.
    const fn slot_stride() -> usize {
        slot::STAMP + 2 * LINE
    }

    /// The offset of `rank`'s arrival slot for `epoch`.
    #[inline]
    pub(super) fn slot(&self, rank: usize, epoch: u64) -> usize {
        self.start(rank) + (epoch & 1) as usize * Self::slot_stride()
    }

    const fn flow_offset() -> usize {
        (2 * Self::slot_stride()).next_multiple_of(PAGE)
    }

    fn flow_len(ranks: usize) -> usize {
        ((1 + ranks) * LINE).next_multiple_of(PAGE)
    }

    /// The slots and flow lines of `rank`, which every collective touches.
    pub(super) fn hot(&self, rank: usize) -> Range<usize> {
        self.start(rank)..self.ring_of(rank)
    }

    /// The number of bytes that `rank` has put into its ring.
    #[inline]
    pub(super) fn produced(&self, rank: usize) -> usize {
        self.start(rank) + Self::flow_offset()
    }

    /// The number of bytes that `reader` has taken from `writer`'s ring.
    #[inline]
    pub(super) fn consumed(&self, reader: usize, writer: usize) -> usize {
        self.produced(reader) + (1 + writer) * LINE
    }

    fn ring_offset(&self) -> usize {
        Self::flow_offset() + Self::flow_len(self.ranks)
    }

    /// `rank`'s ring.
    #[inline]
    pub(super) fn ring_of(&self, rank: usize) -> usize {
        self.start(rank) + self.ring_offset()
    }

    /// The place for the data of `rank` that others reduce.
    #[inline]
    pub(super) fn stage_of(&self, rank: usize) -> usize {
        self.ring_of(rank) + self.ring
    }

    /// The place for the data that `rank` has reduced.
    #[inline]
    pub(super) fn result_of(&self, rank: usize) -> usize {
        self.stage_of(rank) + self.stage
    }

    /// Changes whenever two builds would disagree on an offset.
    pub(super) fn hash(&self) -> u64 {
        let last = self.ranks - 1;
        [
            header::EVENTS,
            header::PIDS,
            header::RECORD,
            header::left(last),
            header::step(last),
            header::words(last),
            self.slot(last, 0),
            self.slot(last, 1),
            self.produced(last),
            self.consumed(last, last),
            self.ring_of(last),
            self.result_of(last),
            self.total(),
            INLINE,
            IN_LINE,
        ]
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, value| {
            (hash ^ value as u64)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23)
        })
    }
}

/// Offsets in a slot.
pub(super) mod slot {
    use super::INLINE;
    pub(crate) const EPOCH: usize = 0;
    pub(crate) const DIGEST: usize = 8;
    pub(crate) const SMALL: usize = 16;
    /// Right behind the arrival line: the processor fetches neighbours together.
    pub(crate) const LARGE: usize = 64;
    pub(crate) const STAMP: usize = LARGE + INLINE + 64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_areas_share_a_byte() {
        for ranks in [1, 2, 3, 8, MAX_RANKS] {
            let layout = SegmentLayout::for_ranks(ranks, 2, None);
            for rank in 0..ranks {
                let slice = layout.slice(rank);
                let mut areas = vec![slice.start];
                areas.extend([layout.slot(rank, 1), layout.produced(rank)]);
                areas.extend((0..ranks).map(|writer| layout.consumed(rank, writer)));
                areas.extend([layout.ring_of(rank), layout.stage_of(rank)]);
                areas.extend([layout.result_of(rank), slice.end]);
                assert!(areas.is_sorted_by(|a, b| a < b), "{ranks} ranks: {areas:?}");
                assert!(areas.iter().all(|area| area % 64 == 0));
                assert!(layout.result_of(rank) + layout.stage <= slice.end);
            }
            assert_eq!(layout.slice(ranks - 1).end, layout.total());
        }
    }

    #[test]
    fn the_header_tables_fit() {
        use header::{CPU_WORDS, CPUS, PIDS, RECORD, RECORD_LEN};
        const { assert!(CPUS + 8 * CPU_WORDS <= PIDS) }
        const { assert!(PIDS + 4 * MAX_RANKS <= RECORD) }
        const { assert!(RECORD + RECORD_LEN <= header::alive(0)) }
        const { assert!(header::words(MAX_RANKS) <= HEADER) }
    }
}
