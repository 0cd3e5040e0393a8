//! The collectives, on a group of connected ranks.
//!
//! Small ones go through rank 0, a *star*: all bring what they have, rank 0 combines it and
//! releases all. Large ones go *directly* from rank to rank. Either way every rank has learned
//! that all make the same call before its own returns, and reductions are in rank order.

use std::ops::Range;

use super::frame::FrameKind;
use super::group::{Group, RunningCall};
use super::link::{Incoming, Outgoing};
use crate::arguments::{Partition, RootedPartition};
use crate::communicator::ReduceOp;
use crate::copy::{StoreMode, copy};
use crate::data::{Reducible, reduce};
use crate::transport::TransportFault;

/// Most bytes that go through rank 0 where any two ranks are connected.
pub(super) const STAR: usize = 64 * 1024;
/// Reduced at a time, which bounds what the others' vectors take here.
pub(super) const BLOCK: usize = 8 << 20;
/// Passed on at a time in a large broadcast.
const CHUNK: usize = 256 * 1024;
/// Copied at a time while nothing moves.
const PIECE: usize = 64 * 1024;
/// Segments keep to cache lines.
const GRAIN: usize = 64;

/// True if `bytes` go from rank to rank rather than through rank 0.
pub(super) fn goes_direct(run: &RunningCall<'_>, bytes: usize) -> bool {
    goes_direct_among(run.group, run.size(), bytes)
}

/// As [`goes_direct`], among so many ranks of the group.
pub(super) fn goes_direct_among(group: &Group, size: usize, bytes: usize) -> bool {
    size == 2 || group.direct && (group.always_direct || bytes > STAR)
}

/// Returns when all ranks have arrived.
pub(super) fn barrier(run: &RunningCall<'_>) -> Result<(), TransportFault> {
    if run.size() == 1 {
        Ok(())
    } else if goes_direct(run, 0) {
        meet_directly(run)
    } else {
        meet_by_star(run)
    }
}

/// Everyone greets everyone.
pub(super) fn meet_directly(run: &RunningCall<'_>) -> Result<(), TransportFault> {
    swap(run, |_| &[], nothing(run), || false)
}

/// All greet rank 0, which then greets all.
pub(super) fn meet_by_star(run: &RunningCall<'_>) -> Result<(), TransportFault> {
    if run.rank() > 0 {
        return bring(run, &[], Vec::new());
    }
    let round = collect(run, |_| Vec::new())?;
    release(run, round, |_| Vec::new())
}

/// Blocks go to everyone directly, or to rank 0 and from there, without the own, to everyone.
/// Without `send` the own block is in its place already.
pub(super) fn allgatherv(
    run: &RunningCall<'_>,
    send: Option<&[u8]>,
    recv: &mut [u8],
    blocks: Partition<'_>,
) -> Result<(), TransportFault> {
    let total: usize = (0..run.size()).map(|rank| blocks.bytes(rank).len()).sum();
    let mut slots = split(recv, run.size(), blocks);
    let own = std::mem::take(&mut slots[run.rank()]);
    let store = StoreMode::of(total);
    let direct = goes_direct(run, total);
    if let (Some(send), true) = (send, direct && run.size() > 1) {
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
    if run.size() == 1 {
        Ok(())
    } else if direct {
        swap(run, |_| own, slots, || false)
    } else if run.rank() > 0 {
        slots.remove(run.rank());
        bring(run, own, slots)
    } else {
        let round = collect(run, |rank| vec![std::mem::take(&mut slots[rank])])?;
        release(run, round, |rank| {
            let others = (0..run.size()).filter(|&other| other != rank);
            others.map(|other| &recv[blocks.bytes(other)]).collect()
        })
    }
}

/// Blocks go to the root: straight, if it is rank 0 or connected with everyone, else through rank 0. Everyone learns
/// from the root, or from everyone else, that all make this call.
pub(super) fn gatherv(
    run: &RunningCall<'_>,
    send: &[u8],
    recv: &mut [u8],
    blocks: RootedPartition<'_>,
) -> Result<(), TransportFault> {
    let root = blocks.root();
    let mut slots = match blocks.at_root() {
        Some(blocks) => split(recv, run.size(), blocks),
        None => nothing(run),
    };
    if root == run.rank() {
        let own = std::mem::take(&mut slots[run.rank()]);
        copy(send, own, StoreMode::of(send.len()));
    }
    let is_small = blocks.total() <= STAR;
    let through_rank_0 = root == 0 && !is_small || !goes_direct(run, blocks.total());
    if run.size() == 1 {
        Ok(())
    } else if run.size() == 2 || !through_rank_0 {
        let to_peer = |peer| if peer == root { send } else { &[] };
        swap(run, to_peer, slots, || false)
    } else if run.rank() > 0 {
        let (own, answer) = if run.rank() == root {
            slots.remove(run.rank());
            (&[][..], slots)
        } else {
            (send, Vec::new())
        };
        bring(run, own, answer)
    } else if root == 0 {
        let round = collect(run, |rank| vec![std::mem::take(&mut slots[rank])])?;
        release(run, round, |_| Vec::new())
    } else {
        pass_to_root(run, send, blocks)
    }
}

/// Star, on rank 0: takes the blocks for the root and sends them on, with its own.
fn pass_to_root(
    run: &RunningCall<'_>,
    send: &[u8],
    blocks: RootedPartition<'_>,
) -> Result<(), TransportFault> {
    let root = blocks.root();
    let others: usize = (1..run.size()).map(|rank| blocks.len(rank)).sum();
    let mut scratch = run.group.scratch(others.div_ceil(8));
    let passed: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
    let mut slots: Vec<&mut [u8]> = nothing(run);
    let mut rest = &mut *passed;
    for rank in (1..run.size()).filter(|&rank| rank != root) {
        (slots[rank], rest) = std::mem::take(&mut rest).split_at_mut(blocks.len(rank));
    }
    let round = collect(run, |rank| vec![std::mem::take(&mut slots[rank])])?;
    let passed = &passed[..others - blocks.len(root)];
    release(run, round, |rank| {
        if rank == root {
            vec![send, passed]
        } else {
            Vec::new()
        }
    })
}

/// `recv` cut into the blocks of the ranks.
fn split<'a>(recv: &'a mut [u8], size: usize, blocks: Partition<'_>) -> Vec<&'a mut [u8]> {
    let ranges: Vec<Range<usize>> = (0..size).map(|rank| blocks.bytes(rank)).collect();
    cut(recv, &ranges)
}

/// Parts of `data`, in the order of their ranges, which do not overlap.
pub(super) fn cut<'a>(data: &'a mut [u8], ranges: &[Range<usize>]) -> Vec<&'a mut [u8]> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    // An empty block may lie anywhere, also where another one begins.
    order.sort_unstable_by_key(|&number| (ranges[number].start, ranges[number].end));
    let mut slots: Vec<&mut [u8]> = ranges.iter().map(|_| Default::default()).collect();
    let (mut rest, mut passed) = (data, 0);
    for number in order {
        let Range { start, end } = ranges[number].clone();
        if start < end {
            let (_, at_block) = std::mem::take(&mut rest).split_at_mut(start - passed);
            let (block, after) = at_block.split_at_mut(end - start);
            (slots[number], rest, passed) = (block, after, end);
        }
    }
    slots
}

/// A small message goes through rank 0, or from the root to all; a large one from rank to rank, beginning with the root.
pub(super) fn broadcast(
    run: &RunningCall<'_>,
    buf: &mut [u8],
    root: usize,
) -> Result<(), TransportFault> {
    if run.size() == 1 {
        return Ok(());
    }
    let is_root = run.rank() == root;
    if goes_direct(run, buf.len()) {
        return if buf.len() <= STAR {
            spread(run, buf, root)
        } else {
            pass_on(run, buf, root)
        };
    }
    if run.rank() > 0 {
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

/// The root gives everyone the message, and everyone greets everyone.
fn spread(run: &RunningCall<'_>, buf: &mut [u8], root: usize) -> Result<(), TransportFault> {
    let mut slots = nothing(run);
    if run.rank() == root {
        let buf = &*buf;
        return swap(run, |_| buf, slots, || false);
    }
    slots[root] = buf;
    swap(run, |_| &[], slots, || false)
}

/// The ranks stand in line from the root on. Each passes chunks on to the next while it takes the
/// following one from the rank before. With the first chunk everyone greets everyone else.
fn pass_on(run: &RunningCall<'_>, buf: &mut [u8], root: usize) -> Result<(), TransportFault> {
    let place = (run.rank() + run.size() - root) % run.size();
    let before = (place > 0).then(|| (run.rank() + run.size() - 1) % run.size());
    let next = (place + 1 < run.size()).then(|| (run.rank() + 1) % run.size());
    // Two ranks have nobody to pass anything on to.
    let size = if run.size() == 2 {
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
            let greeted = run.peers().filter(|&peer| Some(peer) != next);
            outgoing.extend(greeted.map(|peer| Outgoing::new(peer, &header, &[])));
            let greeting = run.peers().filter(|&peer| Some(peer) != before);
            incoming.extend(greeting.map(|peer| Incoming::new(peer, Vec::new())));
        }
        let kind = FrameKind::Direct;
        run.exchange((kind, round), &mut outgoing, &mut incoming, || false)?;
    }
    Ok(())
}

/// Short vectors are reduced by rank 0, or by every rank; long ones by the ranks that own their segments.
pub(super) fn allreduce<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let bytes = size_of_val(send);
    if run.size() == 1 {
        let (from, into) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
        copy(from, into, StoreMode::of(bytes));
        return Ok(());
    }
    let direct = goes_direct(run, bytes);
    let whole = direct && bytes * (run.size() - 1) <= STAR;
    let block = (BLOCK / size_of::<T>() / if direct { 1 } else { run.size() }).max(1);
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
    let mut contributions = Contributions::new(run, send.len());
    swap(
        run,
        |_| bytemuck::cast_slice(send),
        contributions.slots(),
        || false,
    )?;
    contributions.reduce(send, recv, op);
    Ok(())
}

/// All bring their vectors to rank 0, which reduces them.
fn reduce_at_rank_0<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    if run.rank() > 0 {
        let (send, recv) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
        return bring(run, send, vec![recv]);
    }
    let mut contributions = Contributions::new(run, send.len());
    let mut slots = contributions.slots();
    let round = collect(run, |rank| vec![std::mem::take(&mut slots[rank])])?;
    contributions.reduce(send, recv, op);
    release(run, round, |_| vec![bytemuck::cast_slice(recv)])
}

/// Everyone gets its own segment of all vectors, reduces it, and gives the result to everyone.
fn reduce_by_owners<T: Reducible>(
    run: &RunningCall<'_>,
    send: &[T],
    recv: &mut [T],
    op: ReduceOp,
) -> Result<(), TransportFault> {
    let segments: Vec<Range<usize>> = (0..run.size())
        .map(|rank| segment::<T>(run.size(), send.len(), rank))
        .collect();
    let own = segments[run.rank()].clone();
    let mut contributions = Contributions::new(run, own.len());
    let to_peer = |peer: usize| bytemuck::cast_slice(&send[segments[peer].clone()]);
    swap(run, to_peer, contributions.slots(), || false)?;
    contributions.reduce(&send[own.clone()], &mut recv[own], op);
    drop(contributions);

    let mut rest = recv;
    let mut slots: Vec<&mut [T]> = Vec::with_capacity(run.size());
    for segment in segments {
        let (slot, after) = rest.split_at_mut(segment.len());
        slots.push(slot);
        rest = after;
    }
    let result = std::mem::take(&mut slots[run.rank()]);
    let slots = slots.into_iter().map(bytemuck::cast_slice_mut).collect();
    swap(run, |_| bytemuck::cast_slice(result), slots, || false)
}

/// The elements of a block of `len` that `rank` reduces: equal shares on cache-line borders.
pub(super) fn segment<T>(size: usize, len: usize, rank: usize) -> Range<usize> {
    let grain = (GRAIN / size_of::<T>()).max(1);
    let border = |rank: usize| {
        if rank == size {
            len
        } else {
            len * rank / size / grain * grain
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
    fn new(run: &RunningCall<'a>, len: usize) -> Self {
        let stride = (len * size_of::<T>()).div_ceil(8).max(1);
        Self {
            scratch: run.group.scratch(stride * run.size()),
            rank: run.rank(),
            size: run.size(),
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
    fn reduce(&self, own: &[T], into: &mut [T], op: ReduceOp) {
        let vector = |rank: usize| {
            if rank == self.rank {
                return own;
            }
            let words = &self.scratch[rank * self.stride..];
            &bytemuck::cast_slice(words)[..self.len]
        };
        reduce(into, (0..self.size).map(vector), op);
    }
}

/// Places for nothing, by rank.
fn nothing<'a>(run: &RunningCall<'_>) -> Vec<&'a mut [u8]> {
    (0..run.size()).map(|_| Default::default()).collect()
}

/// Directly: a frame to each peer, and one from each into its slot; `idle` as for exchanges.
fn swap<'a>(
    run: &RunningCall<'_>,
    to_peer: impl Fn(usize) -> &'a [u8],
    slots: Vec<&mut [u8]>,
    idle: impl FnMut() -> bool,
) -> Result<(), TransportFault> {
    let slots = slots.into_iter().map(|slot| vec![slot]).collect();
    swap_parts(run, |peer| vec![to_peer(peer)], slots, idle)
}

/// As [`swap`], with frames of several parts.
pub(super) fn swap_parts<'a>(
    run: &RunningCall<'_>,
    to_peer: impl Fn(usize) -> Vec<&'a [u8]>,
    mut slots: Vec<Vec<&mut [u8]>>,
    idle: impl FnMut() -> bool,
) -> Result<(), TransportFault> {
    let round = run.next_round();
    let header = run.header(FrameKind::Direct, round);
    let peers = || run.peers();
    let mut outgoing: Vec<_> = peers()
        .map(|peer| Outgoing::new(peer, &header, &to_peer(peer)))
        .collect();
    let mut incoming: Vec<_> = peers()
        .map(|peer| Incoming::new(peer, std::mem::take(&mut slots[peer])))
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
    bring_parts(run, &[own], answer)
}

/// As [`bring`], with a frame of several parts.
pub(super) fn bring_parts(
    run: &RunningCall<'_>,
    own: &[&[u8]],
    answer: Vec<&mut [u8]>,
) -> Result<(), TransportFault> {
    let round = run.next_round();
    let header = run.header(FrameKind::Arrival, round);
    let mut outgoing = [Outgoing::new(0, &header, own)];
    let mut incoming = [Incoming::new(0, answer)];
    run.exchange(
        (FrameKind::Release, round),
        &mut outgoing,
        &mut incoming,
        || false,
    )
}

/// Star, on rank 0: takes what the others bring; gives the exchange's number.
pub(super) fn collect<'a>(
    run: &RunningCall<'_>,
    mut slots: impl FnMut(usize) -> Vec<&'a mut [u8]>,
) -> Result<u64, TransportFault> {
    let round = run.next_round();
    let peers = run.peers();
    let mut incoming: Vec<_> = peers.map(|peer| Incoming::new(peer, slots(peer))).collect();
    run.exchange((FrameKind::Arrival, round), &mut [], &mut incoming, || {
        false
    })?;
    Ok(round)
}

/// Star, on rank 0: answers.
pub(super) fn release<'a>(
    run: &RunningCall<'_>,
    round: u64,
    parts: impl Fn(usize) -> Vec<&'a [u8]>,
) -> Result<(), TransportFault> {
    let header = run.header(FrameKind::Release, round);
    let peers = run.peers();
    let mut outgoing: Vec<_> = peers
        .map(|peer| Outgoing::new(peer, &header, &parts(peer)))
        .collect();
    run.exchange((FrameKind::Release, round), &mut outgoing, &mut [], || {
        false
    })
}
