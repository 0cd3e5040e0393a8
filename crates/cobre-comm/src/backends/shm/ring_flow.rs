//! The flow of a ring: where its writer may write and its readers may read. Generic over the words that ranks share,
//! so that a model checker can run it.
//!
//! Positions count bytes for ever; a chunk never wraps but skips the rest of its ring, and every rank knows every
//! writer's next position without being told, as it knows all lengths.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::event_count::{self, EventCount, Machine};

/// Ring positions keep to cache lines.
pub(super) const GRAIN: usize = 64;

/// The words by which writers and readers tell each other how far they are.
pub(super) trait FlowWords {
    type Machine: Machine;
    /// Bytes that a rank has written to its ring.
    fn produced(&self, rank: usize) -> &<Self::Machine as Machine>::W64;
    /// Bytes that `reader` has taken from `writer`'s ring.
    fn consumed(&self, reader: usize, writer: usize) -> &<Self::Machine as Machine>::W64;
}

/// The place of a chunk in a ring, and the position of the ring after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkPlace {
    /// From the start of the ring.
    pub(super) offset: usize,
    pub(super) end: u64,
}

/// One rank's view of the flow of all rings. The numbers are atomic only to be shared between threads of this
/// process, of which one at a time is in a collective.
#[derive(Debug)]
pub(super) struct RingFlow {
    rank: usize,
    ranks: usize,
    /// Bytes of a ring.
    ring: usize,
    /// The position of each rank's ring.
    positions: Vec<AtomicU64>,
    /// Bytes that all peers are known to have taken from the own ring.
    taken: AtomicU64,
}

impl RingFlow {
    pub(super) fn new(rank: usize, ranks: usize, ring: usize) -> Self {
        Self {
            rank,
            ranks,
            ring,
            positions: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
            taken: AtomicU64::new(0),
        }
    }

    /// Room for `len` more bytes in the own ring, if every peer has taken what was there.
    #[inline]
    pub(super) fn room<B: EventCount>(
        &self,
        words: &impl FlowWords<Machine = B::Machine>,
        len: usize,
    ) -> Option<ChunkPlace> {
        let place = self.place(self.rank, len);
        let ring = self.ring as u64;
        if place.end <= self.taken.load(Relaxed).saturating_add(ring) {
            return Some(place);
        }
        let peers = (0..self.ranks).filter(|&peer| peer != self.rank);
        let taken_by = |reader| event_count::read::<B>(words.consumed(reader, self.rank));
        let taken = peers.map(taken_by).min();
        let taken = taken.unwrap_or(u64::MAX);
        self.taken.store(taken, Relaxed);
        (place.end <= taken.saturating_add(ring)).then_some(place)
    }

    /// The place of the next `len` bytes of `peer`'s ring, if they are there.
    #[inline]
    pub(super) fn ready<B: EventCount>(
        &self,
        words: &impl FlowWords<Machine = B::Machine>,
        peer: usize,
        len: usize,
    ) -> Option<ChunkPlace> {
        let place = self.place(peer, len);
        event_count::reached::<B>(words.produced(peer), place.end).then_some(place)
    }

    /// Publishes the own ring up to `end`.
    #[inline]
    pub(super) fn produce<B: EventCount>(
        &self,
        event_count: &B,
        words: &impl FlowWords<Machine = B::Machine>,
        end: u64,
    ) {
        self.positions[self.rank].store(end, Relaxed);
        event_count::publish(event_count, words.produced(self.rank), end);
    }

    /// Gives `peer`'s ring back up to `end`.
    #[inline]
    pub(super) fn consume<B: EventCount>(
        &self,
        event_count: &B,
        words: &impl FlowWords<Machine = B::Machine>,
        peer: usize,
        end: u64,
    ) {
        self.positions[peer].store(end, Relaxed);
        event_count::publish(event_count, words.consumed(self.rank, peer), end);
    }

    /// The place of `writer`'s next chunk of `len` bytes.
    #[inline]
    pub(super) fn place(&self, writer: usize, len: usize) -> ChunkPlace {
        let (ring, position) = (self.ring as u64, self.positions[writer].load(Relaxed));
        let offset = position % ring;
        let position = if offset + len as u64 > ring {
            position + ring - offset
        } else {
            position
        };
        ChunkPlace {
            offset: (position % ring) as usize,
            end: position + len.next_multiple_of(GRAIN) as u64,
        }
    }
}
