//! The collectives, on a group of connected ranks.
//!
//! Small ones go through rank 0, a *star*: all bring what they have, rank 0 combines it and
//! releases all. Large ones go *directly* from rank to rank. Either way every rank has learned
//! that all make the same call before its own returns, and reductions are in rank order.

use std::ops::Range;

use super::frame::FrameKind;
use super::group::{Group, RunningCall};
use super::link::{Incoming, Outgoing};
use crate::arguments::Partition;
use crate::communicator::ReduceOp;
use crate::copy::{StoreMode, copy};
use crate::data::{Reducible, reduce};
use crate::transport::TransportFault;

/// Up to so many bytes the star is faster: two messages per rank instead of one to each other.
const STAR: usize = 64 * 1024;
/// Reduced at a time, which bounds what the others' vectors take here.
const BLOCK: usize = 8 << 20;
/// Passed on at a time in a large broadcast.
const CHUNK: usize = 256 * 1024;
/// Copied at a time while nothing moves.
const PIECE: usize = 64 * 1024;
/// Segments keep to cache lines.
const GRAIN: usize = 64;

/// True if `bytes` go from rank to rank rather than through rank 0.
fn goes_direct(group: &Group, bytes: usize) -> bool {
    group.size == 2 || group.direct && (group.always_direct || bytes > STAR)
}

/// Returns when all ranks have arrived.
pub(super) fn barrier(run: &RunningCall<'_>) -> Result<(), TransportFault> {
    let group = run.group;
    if group.size == 1 {
        Ok(())
    } else if goes_direct(group, 0) {
        swap(run, |_| &[], nothing(group), || false)
    } else if group.rank > 0 {
        bring(run, &[], Vec::new())
    } else {
        let round = collect(run, |_| Vec::new())?;
        release(run, round, |_| Vec::new())
    }
}

/// Blocks go to everyone directly, or to rank 0 and from there, without the own, to everyone.
/// Without `send` the own block is in its place already.
pub(super) fn allgatherv(
    run: &RunningCall<'_>,
    send: Option<&[u8]>,
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    let group = run.group;
    let total: usize = (0..group.size).map(|rank| blocks.bytes(rank).len()).sum();
    let mut slots = split(recv, group.size, blocks);
    let own = std::mem::take(&mut slots[group.rank]);
    let store = StoreMode::of(total);
    let direct = goes_direct(group, total);
    if let (Some(send), true) = (send, direct && group.size > 1) {
        // The own block is copied while the sockets are busy.
        let (mut from, mut into) = (send.chunks(PIECE), own.chunks_mut(PIECE));
        let mut copy_piece = || match from.next().zip(into.next()) {
            Some((from, into)) => {
                copy(from, into, store);
                true
            }
            None => false,
        };
        swap(run, |_| send, slots, &mut copy_piece)?;
        while copy_piece() {}
        return Ok(());
    }
    if let Some(send) = send {
        copy(send, own, store);
    }
    if group.size == 1 {
        Ok(())
    } else if direct {
        swap(run, |_| own, slots, || false)
    } else if group.rank > 0 {
        slots.remove(group.rank);
        bring(run, own, slots)
    } else {
        let round = collect(run, |rank| vec![std::mem::take(&mut slots[rank])])?;
        release(run, round, |rank| {
            let others = (0..group.size).filter(|&other| other != rank);
            others.map(|other| &recv[blocks.bytes(other)]).collect()
        })
    }
}

/// `recv` cut into the blocks of the ranks.
fn split<'a>(recv: &'a mut [u8], size: usize, blocks: Partition<'_>) -> Vec<&'a mut [u8]> {
    let mut order: Vec<usize> = (0..size).collect();
    // An empty block may lie anywhere, also where another one begins.
    order.sort_unstable_by_key(|&rank| (blocks.bytes(rank).start, blocks.bytes(rank).end));
    let mut slots: Vec<&mut [u8]> = (0..size).map(|_| Default::default()).collect();
    let (mut rest, mut passed) = (recv, 0);
    for rank in order {
        let Range { start, end } = blocks.bytes(rank);
        if start < end {
            let (_, at_block) = std::mem::take(&mut rest).split_at_mut(start - passed);
            let (block, after) = at_block.split_at_mut(end - start);
            (slots[rank], rest, passed) = (block, after, end);
        }
    }
    slots
}

/// A small message goes through rank 0, a large one from rank to rank, beginning with the root.
pub(super) fn broadcast(
    run: &RunningCall<'_>,
    buf: &mut [u8],
    root: usize,
) -> Result<(), TransportFault> {
    let group = run.group;
    if group.size == 1 {
        return Ok(());
    }
    let is_root = group.rank == root;
    if goes_direct(group, buf.len()) {
        return pass_on(run, buf, root);
    }
    if group.rank > 0 {
        return if is_root {
            bring(run, buf, Vec::new())
        } else {
            bring(run, &[], vec![buf])
        };
    }
    let mut message = Some(&mut *buf).filter(|_| !is_root);
    let round = collect(run, |rank| {
        let from_root = if rank == root { message.take() } else { None };
        from_root.into_iter().collect()
    })?;
    release(run, round, |rank| {
        if rank == root {
            Vec::new()
        } else {
            vec![&*buf]
        }
    })
}

/// The ranks stand in line from the root on. Each passes chunks on to the next while it takes the
/// following one from the rank before. With the first chunk everyone greets everyone else.
fn pass_on(run: &RunningCall<'_>, buf: &mut [u8], root: usize) -> Result<(), TransportFault> {
    let group = run.group;
    let place = (group.rank + group.size - root) % group.size;
    let before = (place > 0).then(|| (group.rank + group.size - 1) % group.size);
    let next = (place + 1 < group.size).then(|| (group.rank + 1) % group.size);
    // Two ranks have nobody to pass anything on to.
    let size = if group.size == 2 {
        buf.len().max(1)
    } else {
        CHUNK
    };
    let chunks = buf.len().div_ceil(size).max(1);
    let first = run.next_round();
    run.skip_rounds(chunks as u64);
    // The root has everything; the others have a chunk when they have taken it.
    let behind = usize::from(before.is_some());
    for number in 0..chunks + behind {
        let taken = if behind == 0 {
            buf.len()
        } else {
            number * size
        };
        let (there, coming) = buf.split_at_mut(taken.min(buf.len()));
        let round = first + number as u64;
        let mut outgoing = Vec::new();
        let mut incoming = Vec::new();
        if let (Some(next), Some(number)) = (next, number.checked_sub(behind)) {
            let header = run.header(FrameKind::Direct, first + number as u64);
            let chunk = &there[number * size..];
            let chunk = &chunk[..chunk.len().min(size)];
            outgoing.push(Outgoing::new(next, &header, &[chunk]));
        }
        if let Some(before) = before.filter(|_| number < chunks) {
            let length = coming.len().min(size);
            incoming.push(Incoming::new(before, vec![&mut coming[..length]]));
        }
        if number == 0 {
            let header = run.header(FrameKind::Direct, round);
            let greeted = group.peers().filter(|&peer| Some(peer) != next);
            outgoing.extend(greeted.map(|peer| Outgoing::new(peer, &header, &[])));
            let greeting = group.peers().filter(|&peer| Some(peer) != before);
            incoming.extend(greeting.map(|peer| Incoming::new(peer, Vec::new())));
        }
        let kind = FrameKind::Direct;
        run.exchange((kind, round), &mut outgoing, &mut incoming, || false)?;
    }
    Ok(())
}

/// Short vectors are reduced by rank 0, or by both of two ranks; long ones by the ranks that own
/// their segments.
pub(super) fn allreduce<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let group = run.group;
    let bytes = size_of_val(send);
    if group.size == 1 {
        let (from, into) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
        copy(from, into, StoreMode::of(bytes));
        return Ok(());
    }
    let direct = goes_direct(group, bytes);
    let whole = direct && group.size == 2 && bytes <= STAR;
    let block = (BLOCK / size_of::<T>() / if direct { 1 } else { group.size }).max(1);
    // Without elements there is still a call to agree on.
    let empty = send.is_empty().then_some((&[][..], &mut [][..]));
    let blocks = send.chunks(block).zip(recv.chunks_mut(block)).chain(empty);
    for (send, recv) in blocks {
        if whole {
            reduce_everywhere(run, send, recv, op)?;
        } else if direct {
            reduce_by_owners(run, send, recv, op)?;
        } else {
            reduce_at_rank_0(run, send, recv, op)?;
        }
    }
    Ok(())
}

/// Everyone gives everyone its vector, and reduces all of them.
fn reduce_everywhere<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let mut contributions = Contributions::new(run.group, send.len());
    swap(
        run,
        |_| bytemuck::cast_slice(send),
        contributions.slots(),
        || false,
    )?;
    contributions.reduce(run.group, send, recv, op);
    Ok(())
}

/// All bring their vectors to rank 0, which reduces them.
fn reduce_at_rank_0<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    if run.group.rank > 0 {
        let (send, recv) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
        return bring(run, send, vec![recv]);
    }
    let mut contributions = Contributions::new(run.group, send.len());
    let mut slots = contributions.slots();
    let round = collect(run, |rank| vec![std::mem::take(&mut slots[rank])])?;
    contributions.reduce(run.group, send, recv, op);
    release(run, round, |_| vec![bytemuck::cast_slice(recv)])
}

/// Everyone gets its own segment of all vectors, reduces it, and gives the result to everyone.
fn reduce_by_owners<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let group = run.group;
    let segments: Vec<Range<usize>> = (0..group.size)
        .map(|rank| segment::<T>(group, send.len(), rank))
        .collect();
    let own = segments[group.rank].clone();
    let mut contributions = Contributions::new(group, own.len());
    let to_peer = |peer: usize| bytemuck::cast_slice(&send[segments[peer].clone()]);
    swap(run, to_peer, contributions.slots(), || false)?;
    contributions.reduce(group, &send[own.clone()], &mut recv[own], op);
    drop(contributions);

    let mut rest = recv;
    let mut slots: Vec<&mut [T]> = Vec::with_capacity(group.size);
    for segment in segments {
        let (slot, after) = rest.split_at_mut(segment.len());
        slots.push(slot);
        rest = after;
    }
    let result = std::mem::take(&mut slots[group.rank]);
    let slots = slots.into_iter().map(bytemuck::cast_slice_mut).collect();
    swap(run, |_| bytemuck::cast_slice(result), slots, || false)
}

/// The elements of a block of `len` that `rank` reduces: equal shares on cache-line borders.
fn segment<T>(group: &Group, len: usize, rank: usize) -> Range<usize> {
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

/// Vectors of the other ranks, one after the other.
struct Contributions<'a, T> {
    scratch: std::sync::MutexGuard<'a, Vec<u64>>,
    rank: usize,
    size: usize,
    /// Elements of each.
    len: usize,
    /// Words of each, at least one.
    stride: usize,
    element: std::marker::PhantomData<T>,
}

impl<'a, T: Reducible> Contributions<'a, T> {
    fn new(group: &'a Group, len: usize) -> Self {
        let stride = (len * size_of::<T>()).div_ceil(8).max(1);
        Self {
            scratch: group.scratch(stride * group.size),
            rank: group.rank,
            size: group.size,
            len,
            stride,
            element: std::marker::PhantomData,
        }
    }

    /// The buffers to receive into, by rank; the own one needs none.
    fn slots(&mut self) -> Vec<&mut [u8]> {
        let (rank, bytes) = (self.rank, self.len * size_of::<T>());
        let slots = self.scratch.chunks_mut(self.stride).take(self.size);
        slots
            .enumerate()
            .map(|(slot, words)| {
                let bytes = if slot == rank { 0 } else { bytes };
                &mut bytemuck::cast_slice_mut(words)[..bytes]
            })
            .collect()
    }

    /// Reduces them with the own one, in rank order.
    fn reduce(&self, group: &Group, own: &[T], into: &mut [T], op: ReduceOp) {
        let vector = |rank: usize| {
            if rank == group.rank {
                return own;
            }
            let words = &self.scratch[rank * self.stride..];
            &bytemuck::cast_slice(words)[..self.len]
        };
        reduce(into, (0..group.size).map(vector), op);
    }
}

/// Places for nothing, by rank.
fn nothing<'a>(group: &Group) -> Vec<&'a mut [u8]> {
    (0..group.size).map(|_| Default::default()).collect()
}

/// Directly: a frame to each peer, and one from each into its slot; `idle` as for exchanges.
fn swap<'a>(
    run: &RunningCall<'_>,
    to_peer: impl Fn(usize) -> &'a [u8],
    mut slots: Vec<&mut [u8]>,
    idle: impl FnMut() -> bool,
) -> Result<(), TransportFault> {
    let round = run.next_round();
    let header = run.header(FrameKind::Direct, round);
    let peers = || run.group.peers();
    let mut outgoing: Vec<_> = peers()
        .map(|peer| Outgoing::new(peer, &header, &[to_peer(peer)]))
        .collect();
    let mut incoming: Vec<_> = peers()
        .map(|peer| Incoming::new(peer, vec![std::mem::take(&mut slots[peer])]))
        .collect();
    run.exchange(
        (FrameKind::Direct, round),
        &mut outgoing,
        &mut incoming,
        idle,
    )
}

/// Star, on the other ranks: brings `own` to rank 0 and takes the answer.
fn bring(run: &RunningCall<'_>, own: &[u8], answer: Vec<&mut [u8]>) -> Result<(), TransportFault> {
    let round = run.next_round();
    let header = run.header(FrameKind::Arrival, round);
    let mut outgoing = [Outgoing::new(0, &header, &[own])];
    let mut incoming = [Incoming::new(0, answer)];
    run.exchange(
        (FrameKind::Release, round),
        &mut outgoing,
        &mut incoming,
        || false,
    )
}

/// Star, on rank 0: takes what the others bring; gives the exchange's number.
fn collect<'a>(
    run: &RunningCall<'_>,
    mut slots: impl FnMut(usize) -> Vec<&'a mut [u8]>,
) -> Result<u64, TransportFault> {
    let round = run.next_round();
    let peers = run.group.peers();
    let mut incoming: Vec<_> = peers.map(|peer| Incoming::new(peer, slots(peer))).collect();
    run.exchange((FrameKind::Arrival, round), &mut [], &mut incoming, || {
        false
    })?;
    Ok(round)
}

/// Star, on rank 0: answers.
fn release<'a>(
    run: &RunningCall<'_>,
    round: u64,
    parts: impl Fn(usize) -> Vec<&'a [u8]>,
) -> Result<(), TransportFault> {
    let header = run.header(FrameKind::Release, round);
    let peers = run.group.peers();
    let mut outgoing: Vec<_> = peers
        .map(|peer| Outgoing::new(peer, &header, &parts(peer)))
        .collect();
    run.exchange((FrameKind::Release, round), &mut outgoing, &mut [], || {
        false
    })
}
