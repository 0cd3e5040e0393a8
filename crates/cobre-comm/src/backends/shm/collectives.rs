//! The collectives, on a group of ranks that share a segment.
//!
//! Each begins with an *arrival*: the rank writes the call signature's digest, and a small payload, into
//! its slot for this epoch and publishes the epoch's number. Nobody goes on with a peer before
//! that peer has arrived with the same digest. Since every collective waits for every peer, two
//! slots by parity are enough: whoever writes a slot for epoch e has seen all peers at e − 1, and
//! they got there only after their last read of e − 2.

use super::copy;
use super::group::Group;
use super::layout::INLINE;
use super::rings::{GRAIN, RingSlice};
use crate::arguments::{Partition, RootedPartition};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::copy::{self as private, StoreMode};
use crate::data::{Reducible, reduce};
use crate::transport::TransportFault;

/// Largest piece that goes through a ring at once; at most half a ring, or it could not move on.
const CHUNK: usize = 256 * 1024;
const BROADCAST_CHUNK: usize = 64 * 1024;
/// From here on results bypass the cache: they are larger than it.
const STREAM_ALL: usize = 64_000_000;
const STREAM_BROADCAST: usize = 8_000_000;
/// Reduced at a time.
const PIECE: usize = 8192;

/// Returns when all ranks have arrived: store the own number, wait for the others'.
#[inline]
pub(super) fn barrier(group: &Group, signature: &CallSignature) -> Result<(), TransportFault> {
    group.arrive(signature, &[]);
    group.meet_all(signature)
}

/// Small blocks travel in the arrival slots, large ones through the rings.
pub(super) fn allgatherv(
    group: &Group,
    signature: &CallSignature,
    send: &[u8],
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    if group.size == 1 {
        let own = &mut recv[blocks.bytes(0)];
        private::copy(send, own, StoreMode::of(send.len()));
        return Ok(());
    }
    let largest = (0..group.size).map(|rank| blocks.bytes(rank).len()).max();
    if largest.unwrap_or(0) > INLINE {
        return gather_through_rings(group, signature, send, recv, blocks);
    }
    group.arrive(signature, send);
    private::copy(send, &mut recv[blocks.bytes(group.rank)], StoreMode::Cached);
    take_from_slots(group, signature, recv, blocks)
}

/// Takes the peers' blocks from their arrival slots.
fn take_from_slots(
    group: &Group,
    signature: &CallSignature,
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    for peer in group.peers() {
        group.meet(peer, signature)?;
        let block = &mut recv[blocks.bytes(peer)];
        copy::read(group.payload(peer, block.len()), block, StoreMode::Cached);
    }
    Ok(())
}

/// Produce a chunk of the own block if there is room, take a chunk of each peer's if it is there,
/// wait only if neither: both directions at once, and nobody waits for a rank it does not need.
fn gather_through_rings(
    group: &Group,
    signature: &CallSignature,
    send: &[u8],
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    group.arrive(signature, &[]);
    let total: usize = (0..group.size).map(|rank| blocks.bytes(rank).len()).sum();
    let store = if total.saturating_mul(group.size) > STREAM_ALL {
        StoreMode::Streaming
    } else {
        StoreMode::Cached
    };
    let (mut reader, mut given) = (RingReader::new(group, blocks, store), 0);
    let chunk = reader.chunk;
    loop {
        let mut moved = false;
        if given < send.len() {
            let len = chunk.min(send.len() - given);
            if let Some(room) = group.room(len) {
                let own = &mut recv[blocks.bytes(group.rank)][given..given + len];
                copy::write_both(&send[given..given + len], room.bytes, own, store);
                group.produce(room.end);
                given += len;
                moved = true;
            }
        }
        let taken = reader.take(group, signature, recv)?;
        if taken.finished && given == send.len() {
            store.settle();
            return Ok(());
        }
        if !moved && !taken.moved {
            let sending = (given < send.len()).then(|| chunk.min(send.len() - given));
            group.wait(|| {
                sending.is_some_and(|len| group.room(len).is_some()) || reader.can_take(group)
            })?;
        }
    }
}

/// The blocks of the peers, as a rank takes them from their rings.
struct RingReader<'b> {
    blocks: Partition<'b>,
    chunk: usize,
    store: StoreMode,
    /// By rank, the bytes taken.
    done: Vec<usize>,
    /// By rank, true if its call is the same.
    met: Vec<bool>,
}

/// The outcome of a round over all peers.
struct Taken {
    /// True if anything happened.
    moved: bool,
    /// True if all blocks are there.
    finished: bool,
}

impl<'b> RingReader<'b> {
    fn new(group: &Group, blocks: Partition<'b>, store: StoreMode) -> Self {
        Self {
            blocks,
            chunk: ring_chunk(group),
            store,
            done: vec![0; group.size],
            met: vec![false; group.size],
        }
    }

    /// Takes a chunk of each peer's block if it is there.
    fn take(
        &mut self,
        group: &Group,
        signature: &CallSignature,
        recv: &mut [u8],
    ) -> Result<Taken, TransportFault> {
        let (mut moved, mut finished) = (false, true);
        for peer in group.peers() {
            if !self.met[peer] {
                self.met[peer] = group.met(peer, signature)?;
                moved |= self.met[peer];
            }
            let (block, at) = (self.blocks.bytes(peer), self.done[peer]);
            if self.met[peer] && at < block.len() {
                let len = self.chunk.min(block.len() - at);
                if let Some(ready) = group.ready(peer, len) {
                    let start = block.start + at;
                    copy::read(ready.bytes, &mut recv[start..start + len], self.store);
                    group.consume(peer, ready.end);
                    self.done[peer] += len;
                    moved = true;
                }
            }
            finished &= self.met[peer] && self.done[peer] == block.len();
        }
        Ok(Taken { moved, finished })
    }

    /// True if a round would take something.
    fn can_take(&self, group: &Group) -> bool {
        group.peers().any(|peer| {
            let left = self.blocks.bytes(peer).len() - self.done[peer];
            if self.met[peer] {
                left > 0 && group.ready(peer, self.chunk.min(left)).is_some()
            } else {
                group.is_decided(peer)
            }
        })
    }
}

/// Small blocks travel in the arrival slots, large ones through their owners' rings, of which the root alone reads.
pub(super) fn gatherv(
    group: &Group,
    signature: &CallSignature,
    send: &[u8],
    recv: &mut [u8],
    blocks: RootedPartition<'_>,
) -> Result<(), TransportFault> {
    let largest = (0..group.size).map(|rank| blocks.len(rank)).max();
    let inline = largest.unwrap_or(0) <= INLINE;
    let Some(at_root) = blocks.at_root() else {
        let root = blocks.root();
        group.arrive(signature, if inline { send } else { &[] });
        if !inline {
            for writer in group.peers().filter(|&writer| writer != root) {
                skip_ring(group, writer, blocks.len(writer));
            }
            // A root that has arrived takes what comes; one that never will is an error and no wait.
            group.meet(root, signature)?;
            send_to_root(group, send)?;
        }
        return group.meet_all(signature);
    };
    if group.size > 1 && !inline {
        return take_at_root(group, signature, send, recv, at_root);
    }
    let own = &mut recv[at_root.bytes(group.rank)];
    if group.size == 1 {
        private::copy(send, own, StoreMode::of(send.len()));
        return Ok(());
    }
    group.arrive(signature, &[]);
    private::copy(send, own, StoreMode::Cached);
    take_from_slots(group, signature, recv, at_root)
}

fn ring_chunk(group: &Group) -> usize {
    CHUNK.min(group.rings.largest_chunk())
}

/// Gives back `len` bytes of `writer`'s ring without reading them: another rank does.
fn skip_ring(group: &Group, writer: usize, len: usize) {
    let chunk = ring_chunk(group);
    for at in (0..len).step_by(chunk) {
        group.consume(writer, group.end_after(writer, chunk.min(len - at)));
    }
}

fn send_to_root(group: &Group, send: &[u8]) -> Result<(), TransportFault> {
    for piece in send.chunks(ring_chunk(group)) {
        group.wait(|| group.room(piece.len()).is_some())?;
        if let Some(room) = group.room(piece.len()) {
            copy::write(piece, room.bytes);
            group.produce(room.end);
        }
    }
    Ok(())
}

/// Takes a chunk of each peer's block if it is there, and waits only if none is.
fn take_at_root(
    group: &Group,
    signature: &CallSignature,
    send: &[u8],
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    group.arrive(signature, &[]);
    let total: usize = (0..group.size).map(|rank| blocks.bytes(rank).len()).sum();
    let store = StoreMode::of(total);
    private::copy(send, &mut recv[blocks.bytes(group.rank)], store);
    let mut reader = RingReader::new(group, blocks, store);
    loop {
        let taken = reader.take(group, signature, recv)?;
        if taken.finished {
            store.settle();
            return Ok(());
        }
        if !taken.moved {
            group.wait(|| reader.can_take(group))?;
        }
    }
}

/// A small message travels in the root's arrival slot, a large one through the root's ring.
pub(super) fn broadcast(
    group: &Group,
    signature: &CallSignature,
    buf: &mut [u8],
    root: usize,
) -> Result<(), TransportFault> {
    if group.size == 1 {
        return Ok(());
    }
    let inline = buf.len() <= INLINE;
    if group.rank == root {
        group.arrive(signature, if inline { buf } else { &[] });
        if !inline {
            send_through_ring(group, signature, buf)?;
        }
        return group.meet_all(signature);
    }
    group.arrive(signature, &[]);
    group.meet(root, signature)?;
    if inline {
        copy::read(group.payload(root, buf.len()), buf, StoreMode::Cached);
    } else {
        receive_from_ring(group, buf, root)?;
    }
    group.meet_all(signature)
}

fn broadcast_chunk(group: &Group, len: usize) -> usize {
    let chunk = if len < STREAM_BROADCAST {
        BROADCAST_CHUNK
    } else {
        CHUNK / 2
    };
    chunk.min(group.rings.largest_chunk())
}

fn send_through_ring(
    group: &Group,
    signature: &CallSignature,
    buf: &[u8],
) -> Result<(), TransportFault> {
    for piece in buf.chunks(broadcast_chunk(group, buf.len())) {
        let room = await_room(group, signature, piece.len())?;
        copy::write(piece, room.bytes);
        group.produce(room.end);
    }
    Ok(())
}

/// Room for `len` more bytes in the own ring; an error if a peer that has not come, and so takes nothing, has left.
fn await_room<'a>(
    group: &'a Group,
    signature: &CallSignature,
    len: usize,
) -> Result<RingSlice<'a>, TransportFault> {
    loop {
        if let Some(room) = group.room(len) {
            return Ok(room);
        }
        for peer in group.peers() {
            group.met(peer, signature)?;
        }
        let has_left = |peer: usize| !group.has_arrived(peer) && group.is_decided(peer);
        group.wait(|| group.room(len).is_some() || group.peers().any(has_left))?;
    }
}

fn receive_from_ring(group: &Group, buf: &mut [u8], root: usize) -> Result<(), TransportFault> {
    let store = if buf.len() < STREAM_BROADCAST {
        StoreMode::Cached
    } else {
        StoreMode::Streaming
    };
    let chunk = broadcast_chunk(group, buf.len());
    for piece in buf.chunks_mut(chunk) {
        group.wait(|| group.ready(root, piece.len()).is_some())?;
        if let Some(ready) = group.ready(root, piece.len()) {
            copy::read(ready.bytes, piece, store);
            group.consume(root, ready.end);
        }
    }
    store.settle();
    Ok(())
}

/// Short vectors are reduced by every rank from the slots, long ones by segment owners; in rank
/// order either way.
pub(super) fn allreduce<T: Reducible>(
    group: &Group,
    signature: &CallSignature,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let bytes: &[u8] = bytemuck::cast_slice(send);
    if group.size == 1 {
        private::copy(
            bytes,
            bytemuck::cast_slice_mut(recv),
            StoreMode::of(bytes.len()),
        );
        return Ok(());
    }
    if bytes.len() > INLINE {
        return reduce_by_owners(group, signature, send, recv, op);
    }
    group.arrive(signature, bytes);
    group.meet_all(signature)?;
    let brought = |rank| {
        if rank == group.rank {
            send
        } else {
            group.slot_elements(rank, send.len())
        }
    };
    reduce(recv, (0..group.size).map(brought), op);
    Ok(())
}

/// Block by block: stage the others' segments of the own vector, meet, reduce the own segment of
/// all vectors in rank order, meet, copy the others' results.
///
/// Single areas suffice. A stage is written again after the second meeting, when all have reduced;
/// a result area after the next first meeting, when all have copied.
fn reduce_by_owners<T: Reducible>(
    group: &Group,
    signature: &CallSignature,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let per_block = group.layout.stage / size_of::<T>();
    for (send, recv) in send.chunks(per_block).zip(recv.chunks_mut(per_block)) {
        let own = segment::<T>(group, send.len(), group.rank);
        group.stage(0, &send[..own.start]);
        group.stage(own.end, &send[own.end..]);
        group.arrive(signature, &[]);
        group.meet_all(signature)?;
        // In pieces that stay in the first-level cache.
        for piece in pieces(own.clone(), PIECE / size_of::<T>()) {
            let brought = |rank| {
                if rank == group.rank {
                    &send[piece.clone()]
                } else {
                    group.staged(rank, piece.clone())
                }
            };
            reduce(&mut recv[piece.clone()], (0..group.size).map(brought), op);
            group.deliver(piece.start - own.start, &recv[piece]);
        }
        group.arrive(signature, &[]);
        group.meet_all(signature)?;
        for peer in group.peers() {
            let theirs = segment::<T>(group, recv.len(), peer);
            let into = bytemuck::cast_slice_mut(&mut recv[theirs]);
            copy::read(group.result(peer, into.len()), into, StoreMode::Cached);
        }
    }
    Ok(())
}

/// Every rank's vector, at most a stage long, where rank 0 finds it until it calls [`hand_out_result`].
pub(super) fn offer_to_leader<T: Reducible>(
    group: &Group,
    signature: &CallSignature,
    send: &[T],
) -> Result<(), TransportFault> {
    if group.rank > 0 {
        group.stage(0, send);
    }
    group.arrive(signature, &[]);
    group.meet_all(signature)
}

/// Rank 0's result of what was offered, to all ranks. As in [`reduce_by_owners`] single areas suffice.
pub(super) fn hand_out_result<T: Reducible>(
    group: &Group,
    signature: &CallSignature,
    result: &mut [T],
) -> Result<(), TransportFault> {
    if group.rank == 0 {
        group.deliver(0, result);
    }
    group.arrive(signature, &[]);
    group.meet_all(signature)?;
    if group.rank > 0 {
        let into: &mut [u8] = bytemuck::cast_slice_mut(result);
        copy::read(group.result(0, into.len()), into, StoreMode::Cached);
    }
    Ok(())
}

/// The elements of a block of `len` that `rank` reduces: equal shares on the borders of cache lines.
fn segment<T>(group: &Group, len: usize, rank: usize) -> std::ops::Range<usize> {
    let grain = (GRAIN / size_of::<T>()).max(1);
    let border = |rank: usize| {
        if rank == group.size {
            len
        } else {
            len * rank / group.size / grain * grain
        }
    };
    border(rank)..border(rank + 1)
}

fn pieces(
    range: std::ops::Range<usize>,
    len: usize,
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let end = range.end;
    range.step_by(len).map(move |at| at..(at + len).min(end))
}
