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
use super::rings::GRAIN;
use crate::arguments::Partition;
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
    let chunk = CHUNK.min(group.rings.largest_chunk());
    let total: usize = (0..group.size).map(|rank| blocks.bytes(rank).len()).sum();
    let store = if total.saturating_mul(group.size) > STREAM_ALL {
        StoreMode::Streaming
    } else {
        StoreMode::Cached
    };
    let mut done = vec![0; group.size];
    let mut met = vec![false; group.size];
    met[group.rank] = true;
    loop {
        let mut moved = false;
        let at = done[group.rank];
        if at < send.len() {
            let len = chunk.min(send.len() - at);
            if let Some(room) = group.room(len) {
                let own = &mut recv[blocks.bytes(group.rank)][at..at + len];
                copy::write_both(&send[at..at + len], room.bytes, own, store);
                group.produce(room.end);
                done[group.rank] += len;
                moved = true;
            }
        }
        let mut finished = done[group.rank] == send.len();
        for peer in group.peers() {
            if !met[peer] {
                met[peer] = group.met(peer, signature)?;
                moved |= met[peer];
            }
            let block = blocks.bytes(peer);
            let at = done[peer];
            if met[peer] && at < block.len() {
                let len = chunk.min(block.len() - at);
                if let Some(ready) = group.ready(peer, len) {
                    let start = block.start + at;
                    copy::read(ready.bytes, &mut recv[start..start + len], store);
                    group.consume(peer, ready.end);
                    done[peer] += len;
                    moved = true;
                }
            }
            finished &= met[peer] && done[peer] == block.len();
        }
        if finished {
            store.settle();
            return Ok(());
        }
        if !moved {
            let sending =
                (done[group.rank] < send.len()).then(|| chunk.min(send.len() - done[group.rank]));
            group.wait(|| {
                sending.is_some_and(|len| group.room(len).is_some())
                    || group.peers().any(|peer| {
                        let left = blocks.bytes(peer).len() - done[peer];
                        if met[peer] {
                            left > 0 && group.ready(peer, chunk.min(left)).is_some()
                        } else {
                            group.is_decided(peer)
                        }
                    })
            })?;
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
            send_through_ring(group, buf)?;
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

fn send_through_ring(group: &Group, buf: &[u8]) -> Result<(), TransportFault> {
    for piece in buf.chunks(broadcast_chunk(group, buf.len())) {
        group.wait(|| group.room(piece.len()).is_some())?;
        if let Some(room) = group.room(piece.len()) {
            copy::write(piece, room.bytes);
            group.produce(room.end);
        }
    }
    Ok(())
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
