//! The collectives, on a communicator of MPI. Data travel as bytes.
//!
//! With the check on, each begins with a meeting of all ranks (`arrival.rs`); small data travel in
//! its frames, and nothing else is sent. Without it, ranks go straight to the data.

use std::ops::Range;
use std::sync::PoisonError;

use super::Member;
use super::arrival::{self, longest_payload};
use super::calls::Calls;
use crate::arguments::{Partition, RootedPartition};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::copy::{StoreMode, copy};
use crate::data::{Reducible, reduce};
use crate::transport::TransportFault;

/// Most bytes of a call, as MPI counts with `int`.
const MOST: usize = i32::MAX as usize;
/// Bytes of each rank that travel at once where a call is split.
const PIECE: usize = 64 << 20;
/// A vector of so many bytes on all ranks together is gathered whole by everyone; of longer ones
/// each rank reduces a segment.
const WHOLE: usize = 16 << 10;
/// Bytes of a vector that are reduced at a time.
const BLOCK: usize = 4 << 20;

/// Memory that calls use again.
#[derive(Default)]
pub(super) struct ReduceBuffers {
    counts: Vec<i32>,
    displs: Vec<i32>,
    /// As words, so that any number is aligned in it.
    gathered: Vec<u64>,
    reduced: Vec<u64>,
}

/// Makes sure that all ranks make the call; also waits for them if the check is on.
#[inline]
pub(super) fn agree(member: &Member, signature: &CallSignature) -> Result<(), TransportFault> {
    if member.check && member.size > 1 {
        arrival::meet(member, signature, &[])?;
    }
    Ok(())
}

/// Returns when all ranks have arrived: to know what all of them call is to wait for them.
#[inline]
pub(super) fn barrier(member: &Member, signature: &CallSignature) -> Result<(), TransportFault> {
    if member.size == 1 {
        return Ok(());
    }
    if member.check {
        return agree(member, signature);
    }
    let outcome = member.calls().barrier();
    outcome.map_err(|error| member.broken(&error))
}

/// Small blocks travel in the frames, others by MPI.
pub(super) fn allgatherv(
    member: &Member,
    signature: &CallSignature,
    send: &[u8],
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    if member.size == 1 {
        copy(send, &mut recv[blocks.bytes(0)], StoreMode::of(send.len()));
        return Ok(());
    }
    if member.check {
        let small =
            (0..member.size).all(|rank| blocks.bytes(rank).len() <= longest_payload(member.size));
        let frames = arrival::meet(member, signature, if small { send } else { &[] })?;
        if small {
            for rank in 0..member.size {
                let block = &mut recv[blocks.bytes(rank)];
                block.copy_from_slice(&frames.payload(rank)[..block.len()]);
            }
            return Ok(());
        }
    }
    let mut scratch = member
        .scratch
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let range = |rank| blocks.bytes(rank);
    gather(member, &mut scratch, send, recv, range)
}

/// Gathers `send` of all ranks into the ranges of `recv`. Which calls are made follows from the
/// lengths alone, on which ranks agree; where the blocks lie is each rank's own business.
fn gather(
    member: &Member,
    scratch: &mut ReduceBuffers,
    send: &[u8],
    recv: &mut [u8],
    range: impl Fn(usize) -> Range<usize>,
) -> Result<(), TransportFault> {
    let ranks = || 0..member.size;
    let total = ranks().fold(0usize, |sum, rank| sum.saturating_add(range(rank).len()));
    if total > MOST {
        return gather_in_pieces(member, send, recv, range, PIECE.min(MOST / member.size));
    }
    if ranks().any(|rank| range(rank).end > MOST) {
        // One call, as on the other ranks, and the blocks to their far places afterwards.
        return gather_in_pieces(member, send, recv, range, MOST);
    }
    let ReduceBuffers { counts, displs, .. } = scratch;
    counts.clear();
    counts.extend(ranks().map(|rank| int(range(rank).len())));
    displs.clear();
    displs.extend(ranks().map(|rank| int(range(rank).start)));
    let outcome = member.calls().allgatherv(send, recv, counts, displs);
    outcome.map_err(|error| member.broken(&error))
}

/// Gathers at most `piece` bytes of each rank at a time, through memory of its own.
fn gather_in_pieces(
    member: &Member,
    send: &[u8],
    recv: &mut [u8],
    range: impl Fn(usize) -> Range<usize>,
    piece: usize,
) -> Result<(), TransportFault> {
    let longest = (0..member.size).map(|rank| range(rank).len()).max();
    let mut gathered = Vec::new();
    for at in (0..longest.unwrap_or(0)).step_by(piece) {
        let part = |len: usize| at.min(len)..at.saturating_add(piece).min(len);
        let counts: Vec<i32> = (0..member.size)
            .map(|rank| int(part(range(rank).len()).len()))
            .collect();
        let (displs, end) = packed(&counts);
        gathered.resize(end, 0);
        let own = &send[part(send.len())];
        let outcome = member
            .calls()
            .allgatherv(own, &mut gathered, &counts, &displs);
        outcome.map_err(|error| member.broken(&error))?;
        for (rank, &place) in displs.iter().enumerate() {
            let (block, from) = (range(rank), place as usize);
            let part = part(block.len());
            let into = &mut recv[block][part];
            into.copy_from_slice(&gathered[from..from + into.len()]);
        }
    }
    Ok(())
}

/// Small blocks travel in the frames, others by MPI to the root.
pub(super) fn gatherv(
    member: &Member,
    signature: &CallSignature,
    send: &[u8],
    recv: &mut [u8],
    blocks: RootedPartition<'_>,
) -> Result<(), TransportFault> {
    let at_root = blocks.at_root();
    if let (1, Some(at_root)) = (member.size, at_root) {
        copy(send, &mut recv[at_root.bytes(0)], StoreMode::of(send.len()));
        return Ok(());
    }
    if member.check {
        let small = (0..member.size).all(|rank| blocks.len(rank) <= longest_payload(member.size));
        let frames = arrival::meet(member, signature, if small { send } else { &[] })?;
        if small {
            for rank in at_root.iter().flat_map(|_| 0..member.size) {
                let block = at_root.map_or(0..0, |blocks| blocks.bytes(rank));
                let block = &mut recv[block];
                block.copy_from_slice(&frames.payload(rank)[..block.len()]);
            }
            return Ok(());
        }
    }
    // The number of calls follows from the lengths alone, on which ranks agree.
    let piece = if blocks.total() > MOST {
        PIECE.min(MOST / member.size)
    } else {
        MOST
    };
    let longest = (0..member.size).map(|rank| blocks.len(rank)).max();
    for at in (0..longest.unwrap_or(0)).step_by(piece) {
        let part = |len: usize| at.min(len)..at.saturating_add(piece).min(len);
        gather_piece(member, &send[part(send.len())], recv, blocks, part)?;
    }
    Ok(())
}

/// Gathers at the root the `part` of each block, at most what MPI can count in all.
fn gather_piece(
    member: &Member,
    own: &[u8],
    recv: &mut [u8],
    blocks: RootedPartition<'_>,
    part: impl Fn(usize) -> Range<usize>,
) -> Result<(), TransportFault> {
    let root = int(blocks.root());
    let Some(at_root) = blocks.at_root() else {
        let outcome = member.calls().gatherv(own, &mut [], &[], &[], root);
        return outcome.map_err(|error| member.broken(&error));
    };
    let place = |rank: usize| {
        let (block, part) = (at_root.bytes(rank), part(blocks.len(rank)));
        block.start + part.start..block.start + part.end
    };
    let counts: Vec<i32> = (0..member.size)
        .map(|rank| int(place(rank).len()))
        .collect();
    if (0..member.size).all(|rank| place(rank).end <= MOST) {
        let displs: Vec<i32> = (0..member.size)
            .map(|rank| int(place(rank).start))
            .collect();
        let outcome = member.calls().gatherv(own, recv, &counts, &displs, root);
        return outcome.map_err(|error| member.broken(&error));
    }
    // Blocks lie further away than MPI can count: they get there through memory of this call.
    let (displs, end) = packed(&counts);
    let mut gathered = vec![0; end];
    let outcome = member
        .calls()
        .gatherv(own, &mut gathered, &counts, &displs, root);
    outcome.map_err(|error| member.broken(&error))?;
    for (rank, &from) in displs.iter().enumerate() {
        let into = &mut recv[place(rank)];
        into.copy_from_slice(&gathered[from as usize..][..into.len()]);
    }
    Ok(())
}

/// Places of blocks of these lengths, one after the other, and the end of the last.
fn packed(counts: &[i32]) -> (Vec<i32>, usize) {
    let mut end = 0;
    let place = |&count: &i32| {
        end += count;
        end - count
    };
    let displs = counts.iter().map(place).collect();
    (displs, end as usize)
}

/// Small buffers travel in the root's frame, others by MPI.
pub(super) fn broadcast(
    member: &Member,
    signature: &CallSignature,
    buf: &mut [u8],
    root: usize,
) -> Result<(), TransportFault> {
    if member.size == 1 {
        return Ok(());
    }
    if member.check {
        let small = buf.len() <= longest_payload(member.size);
        let sends = small && root == member.rank;
        let frames = arrival::meet(member, signature, if sends { buf } else { &[] })?;
        if small {
            buf.copy_from_slice(&frames.payload(root)[..buf.len()]);
            return Ok(());
        }
    }
    for piece in buf.chunks_mut(MOST) {
        let outcome = member.calls().broadcast(piece, int(root));
        outcome.map_err(|error| member.broken(&error))?;
    }
    Ok(())
}

/// In rank order, on every element. Small vectors travel in the frames; short ones are gathered
/// whole, and every rank reduces them; of long ones each rank reduces the segment it owns.
pub(super) fn allreduce<T: Reducible>(
    member: &Member,
    signature: &CallSignature,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let bytes: &[u8] = bytemuck::cast_slice(send);
    if member.size == 1 {
        copy(
            bytes,
            bytemuck::cast_slice_mut(recv),
            StoreMode::of(bytes.len()),
        );
        return Ok(());
    }
    if member.check {
        let small = bytes.len() <= longest_payload(member.size);
        let frames = arrival::meet(member, signature, if small { bytes } else { &[] })?;
        if small {
            let brought = |rank| bytemuck::cast_slice(&frames.payload(rank)[..bytes.len()]);
            reduce(recv, (0..member.size).map(brought), op);
            return Ok(());
        }
    }
    let mut scratch = member
        .scratch
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if bytes.len().saturating_mul(member.size) <= WHOLE {
        return reduce_whole(member, &mut scratch, send, recv, op);
    }
    let per_block = BLOCK / size_of::<T>();
    for (send, recv) in send.chunks(per_block).zip(recv.chunks_mut(per_block)) {
        reduce_by_owners(member, &mut scratch, send, recv, op)?;
    }
    Ok(())
}

/// Gather, then reduce.
fn reduce_whole<T: Reducible>(
    member: &Member,
    scratch: &mut ReduceBuffers,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let bytes: &[u8] = bytemuck::cast_slice(send);
    if bytes.is_empty() {
        return Ok(());
    }
    let gathered = room(&mut scratch.gathered, bytes.len() * member.size);
    let outcome = member.calls().allgather(bytes, gathered);
    outcome.map_err(|error| member.broken(&error))?;
    let brought = gathered.chunks(bytes.len()).map(bytemuck::cast_slice);
    reduce(recv, brought, op);
    Ok(())
}

/// Each rank gets its segment of all vectors, reduces it, and the results are gathered.
fn reduce_by_owners<T: Reducible>(
    member: &Member,
    scratch: &mut ReduceBuffers,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let (size, width) = (member.size, size_of::<T>());
    let border = |rank: usize| send.len() * rank / size;
    let own = border(member.rank + 1) - border(member.rank);
    let ReduceBuffers {
        counts,
        displs,
        gathered,
        reduced,
    } = scratch;
    counts.clear();
    counts.extend((0..size).map(|rank| int((border(rank + 1) - border(rank)) * width)));
    displs.clear();
    displs.extend((0..size).map(|rank| int(border(rank) * width)));
    let equal = vec![int(own * width); size];
    let places: Vec<i32> = (0..size).map(|rank| int(rank * own * width)).collect();
    let gathered = room(gathered, own * width * size);
    let bytes: &[u8] = bytemuck::cast_slice(send);
    let broken = |error| member.broken(&error);
    let comm = member.calls();
    let (parts, equal) = ([&counts[..], displs], [&equal[..], &places]);
    comm.alltoallv(bytes, parts, gathered, equal)
        .map_err(broken)?;
    let reduced = room(reduced, own * width);
    if own > 0 {
        let brought = gathered.chunks(own * width).map(bytemuck::cast_slice);
        reduce(bytemuck::cast_slice_mut::<u8, T>(reduced), brought, op);
    }
    let recv = bytemuck::cast_slice_mut(recv);
    comm.allgatherv(reduced, recv, counts, displs)
        .map_err(broken)
}

/// A number as MPI takes it; callers have made sure that it is at most [`MOST`].
pub(super) fn int(number: usize) -> i32 {
    i32::try_from(number).expect("at most what MPI can count")
}

/// `len` bytes of `memory`, which grows if it must; aligned for any number.
fn room(memory: &mut Vec<u64>, len: usize) -> &mut [u8] {
    let words = len.div_ceil(8);
    if memory.len() < words {
        memory.resize(words, 0);
    }
    &mut bytemuck::cast_slice_mut(memory)[..len]
}

/// Between the leaders of nodes: each brings what its node's ranks wrote of `data`.
pub(super) fn gather_between_nodes(
    member: &Member,
    data: &mut [u8],
    rounds: &[Vec<Range<usize>>],
) -> Result<(), TransportFault> {
    let group = member.group();
    if let Some(leaders) = &group.leaders {
        let own = leaders.comm.rank() as usize;
        for blocks in rounds {
            let send = data[blocks[own].clone()].to_vec();
            gather_blocks(leaders, &send, data, blocks).map_err(|error| member.broken(&error))?;
        }
    }
    let outcome = group.node().barrier();
    outcome.map_err(|error| member.broken(&error))
}

fn gather_blocks(
    leaders: &Calls,
    send: &[u8],
    data: &mut [u8],
    blocks: &[Range<usize>],
) -> ferrompi::Result<()> {
    if blocks.iter().all(|block| block.end <= MOST) {
        let counts: Vec<i32> = blocks.iter().map(|block| int(block.len())).collect();
        let displs: Vec<i32> = blocks.iter().map(|block| int(block.start)).collect();
        return leaders.allgatherv(send, data, &counts, &displs);
    }
    // Beyond what MPI can count, each block is broadcast where it lies.
    for (node, block) in blocks.iter().enumerate() {
        for piece in data[block.clone()].chunks_mut(MOST) {
            leaders.broadcast(piece, int(node))?;
        }
    }
    Ok(())
}
