//! The rings through which large messages travel: one per rank, written by it and read by all others.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::event_count::EventCount;
use super::layout::SegmentLayout;
use super::machine::Sleep;
use super::ring_flow::{ChunkPlace, FlowWords, RingFlow};
use super::segment::{Mapping, SharedBytes};

pub(super) use super::ring_flow::GRAIN;

/// A slice of a ring, and the position of the ring after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingSlice<'a> {
    pub(super) bytes: SharedBytes<'a>,
    pub(super) end: u64,
}

/// One rank's view of all rings.
#[derive(Debug)]
pub(super) struct Rings {
    rank: usize,
    flow: RingFlow,
    memory: RingMemory,
}

/// The rings and their words in the segment.
#[derive(Debug)]
struct RingMemory {
    layout: SegmentLayout,
    data: Arc<Mapping>,
}

impl FlowWords for RingMemory {
    type Machine = Sleep;

    #[inline]
    fn produced(&self, rank: usize) -> &AtomicU64 {
        self.data.word64(self.layout.produced(rank))
    }

    #[inline]
    fn consumed(&self, reader: usize, writer: usize) -> &AtomicU64 {
        self.data.word64(self.layout.consumed(reader, writer))
    }
}

impl RingMemory {
    #[inline]
    fn slice(&self, writer: usize, place: ChunkPlace, len: usize) -> RingSlice<'_> {
        let offset = self.layout.ring_of(writer) + place.offset;
        RingSlice {
            bytes: self.data.bytes(offset..offset + len),
            end: place.end,
        }
    }
}

impl Rings {
    pub(super) fn new(rank: usize, layout: SegmentLayout, data: Arc<Mapping>) -> Self {
        Self {
            rank,
            flow: RingFlow::new(rank, layout.ranks, layout.ring),
            memory: RingMemory { layout, data },
        }
    }

    /// Bytes of the largest chunk that moves on: half a ring.
    pub(super) fn largest_chunk(&self) -> usize {
        self.memory.layout.ring / 2
    }

    /// Room for `len` more bytes in the own ring, if every peer has taken what was there.
    pub(super) fn room<B: EventCount<Machine = Sleep>>(
        &self,
        _: &B,
        len: usize,
    ) -> Option<RingSlice<'_>> {
        let place = self.flow.room::<B>(&self.memory, len)?;
        Some(self.memory.slice(self.rank, place, len))
    }

    /// The next `len` bytes of `peer`'s ring, if they are there.
    pub(super) fn ready<B: EventCount<Machine = Sleep>>(
        &self,
        _: &B,
        peer: usize,
        len: usize,
    ) -> Option<RingSlice<'_>> {
        let place = self.flow.ready::<B>(&self.memory, peer, len)?;
        Some(self.memory.slice(peer, place, len))
    }

    /// The position of `writer`'s ring after its next `len` bytes.
    pub(super) fn end_after(&self, writer: usize, len: usize) -> u64 {
        self.flow.place(writer, len).end
    }

    /// Publishes the own ring up to `end`.
    pub(super) fn produce<B: EventCount<Machine = Sleep>>(&self, event_count: &B, end: u64) {
        self.flow.produce(event_count, &self.memory, end);
    }

    /// Gives `peer`'s ring back up to `end`.
    pub(super) fn consume<B: EventCount<Machine = Sleep>>(
        &self,
        event_count: &B,
        peer: usize,
        end: u64,
    ) {
        self.flow.consume(event_count, &self.memory, peer, end);
    }
}
