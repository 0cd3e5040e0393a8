//! The rings through which large messages travel: one per rank, written by it and read by all others.
//!
//! Positions count bytes for ever; a chunk never wraps but skips the rest of its ring, and every rank
//! knows every writer's next position without being told, as it knows all lengths.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::event_count::{self, EventCount};
use super::layout::SegmentLayout;
use super::machine::Sleep;
use super::segment::{Mapping, SharedBytes};

/// Ring positions keep to cache lines.
pub(super) const GRAIN: usize = 64;

/// A slice of a ring, and the position of the ring after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingSlice<'a> {
    pub(super) bytes: SharedBytes<'a>,
    pub(super) end: u64,
}

/// One rank's view of all rings. The numbers are atomic only to be shared between threads of this
/// process, of which one at a time is in a collective.
#[derive(Debug)]
pub(super) struct Rings {
    rank: usize,
    layout: SegmentLayout,
    data: Arc<Mapping>,
    /// The position of each rank's ring.
    positions: Vec<AtomicU64>,
    /// Bytes that all peers are known to have taken from the own ring.
    taken: AtomicU64,
}

impl Rings {
    pub(super) fn new(rank: usize, layout: SegmentLayout, data: Arc<Mapping>) -> Self {
        Self {
            rank,
            layout,
            data,
            positions: (0..layout.ranks).map(|_| AtomicU64::new(0)).collect(),
            taken: AtomicU64::new(0),
        }
    }

    /// Bytes of the largest chunk that moves on: half a ring.
    pub(super) fn largest_chunk(&self) -> usize {
        self.layout.ring / 2
    }

    /// Room for `len` more bytes in the own ring, if every peer has taken what was there.
    pub(super) fn room<B: EventCount<Machine = Sleep>>(
        &self,
        _: &B,
        len: usize,
    ) -> Option<RingSlice<'_>> {
        let slice = self.slice(self.rank, len);
        let ring = self.layout.ring as u64;
        if slice.end <= self.taken.load(Relaxed) + ring {
            return Some(slice);
        }
        let peers = (0..self.layout.ranks).filter(|&peer| peer != self.rank);
        let taken = peers.map(|peer| self.taken_by::<B>(peer)).min();
        self.taken.store(taken.unwrap_or(u64::MAX - ring), Relaxed);
        (slice.end <= self.taken.load(Relaxed) + ring).then_some(slice)
    }

    /// The next `len` bytes of `peer`'s ring, if they are there.
    pub(super) fn ready<B: EventCount<Machine = Sleep>>(
        &self,
        _: &B,
        peer: usize,
        len: usize,
    ) -> Option<RingSlice<'_>> {
        let slice = self.slice(peer, len);
        let produced = self.data.word64(self.layout.produced(peer));
        event_count::reached::<B>(produced, slice.end).then_some(slice)
    }

    /// Publishes the own ring up to `end`.
    pub(super) fn produce<B: EventCount<Machine = Sleep>>(&self, event_count: &B, end: u64) {
        self.positions[self.rank].store(end, Relaxed);
        let word = self.data.word64(self.layout.produced(self.rank));
        event_count::publish(event_count, word, end);
    }

    /// Gives `peer`'s ring back up to `end`.
    pub(super) fn consume<B: EventCount<Machine = Sleep>>(
        &self,
        event_count: &B,
        peer: usize,
        end: u64,
    ) {
        self.positions[peer].store(end, Relaxed);
        let word = self.data.word64(self.layout.consumed(self.rank, peer));
        event_count::publish(event_count, word, end);
    }

    /// Bytes that `reader` has taken from the own ring.
    fn taken_by<B: EventCount<Machine = Sleep>>(&self, reader: usize) -> u64 {
        let word = self.data.word64(self.layout.consumed(reader, self.rank));
        event_count::read::<B>(word)
    }

    /// The place of a chunk of `len` bytes when the ring stands at `position`.
    fn place(&self, position: u64, len: usize) -> u64 {
        let ring = self.layout.ring as u64;
        let offset = position % ring;
        if offset + len as u64 > ring {
            position + ring - offset
        } else {
            position
        }
    }

    fn slice(&self, writer: usize, len: usize) -> RingSlice<'_> {
        let position = self.place(self.positions[writer].load(Relaxed), len);
        let offset = self.layout.ring_of(writer) + (position % self.layout.ring as u64) as usize;
        RingSlice {
            bytes: self.data.bytes(offset..offset + len),
            end: position + len.next_multiple_of(GRAIN) as u64,
        }
    }
}
