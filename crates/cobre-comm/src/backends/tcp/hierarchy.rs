//! The collectives where ranks share memory, in three steps: inside every host, between the leaders of the hosts, and
//! inside every host again. Each step carries the call signature, and no rank ends the last before all ranks have
//! begun the first. Reductions are in rank order, however the ranks are spread over hosts: leaders exchange the ranks'
//! vectors and not sums of them, but where a host's ranks follow one another (`chain.rs`).

use std::ops::Range;
use std::sync::MutexGuard;

use super::collectives::{
    self, BLOCK, STAR, bring_parts, collect, cut, goes_direct, release, segment, swap_parts,
};
use super::group::RunningCall;
use super::host_group::HostTable;
use super::system::{self, PlantedFault};
use crate::arguments::{Partition, RootedPartition};
use crate::backends::shm::{HostGroup, HostMemory};
use crate::communicator::ReduceOp;
use crate::copy::{StoreMode, copy};
use crate::data::{Reducible, reduce};
use crate::error::Cause;
use crate::transport::TransportFault;

/// Up to so many bytes, blocks of other hosts are packed together before the leader hands them out.
const PACKED: usize = 64 * 1024;

/// A collective of ranks of which some share memory.
#[derive(Clone, Copy)]
pub(super) struct HostCall<'a> {
    pub(super) run: &'a RunningCall<'a>,
    pub(super) hosts: &'a HostTable,
    /// True if all ranks of the job take part.
    pub(super) is_of_job: bool,
}

impl HostCall<'_> {
    /// Begins the collective inside the host.
    pub(super) fn begin(&self) -> Result<(), TransportFault> {
        self.inside(HostGroup::begin)
    }

    /// Makes a call inside the host, if there are others. What fails there fails the job: rank 0 decides why.
    pub(super) fn inside(
        &self,
        call: impl FnOnce(&HostGroup) -> Result<(), TransportFault>,
    ) -> Result<(), TransportFault> {
        let outcome = self.hosts.group.as_ref().map_or(Ok(()), call);
        outcome.map_err(|fault| self.failed(fault))
    }

    #[cold]
    pub(super) fn failed(&self, fault: TransportFault) -> TransportFault {
        let job_verdict = self.run.group.job_verdict();
        if system::has(PlantedFault::HostRecord) {
            return fault;
        }
        match fault {
            TransportFault::Failed(_) if job_verdict.is_stopped() => self.run.group.failed(),
            TransportFault::Failed(Cause::Deadline { .. }) if self.is_of_job => self.run.late(),
            TransportFault::Failed(Cause::RankLost {
                rank, how, last, ..
            }) if rank < job_verdict.peer_infos.len() => {
                self.run.fail(job_verdict.lost(rank, how, last))
            }
            TransportFault::Failed(cause) => self.run.fail(cause),
            other => other,
        }
    }

    /// Waits until all ranks of the host have come as far.
    pub(super) fn meet(&self) -> Result<(), TransportFault> {
        self.inside(|group| group.barrier(self.run.signature))
    }

    fn is_one_host(&self) -> bool {
        self.hosts.members.len() == 1
    }

    /// The step between hosts, which their leaders make.
    pub(super) fn between(
        &self,
        call: impl FnOnce(&RunningCall<'_>) -> Result<(), TransportFault>,
    ) -> Result<(), TransportFault> {
        if self.hosts.leads() {
            call(&self.run.among(&self.hosts.leaders))
        } else {
            Ok(())
        }
    }

    /// Returns when all ranks have arrived.
    pub(super) fn barrier(&self) -> Result<(), TransportFault> {
        self.meet()?;
        if self.is_one_host() {
            return Ok(());
        }
        self.between(collectives::barrier)?;
        if system::has(PlantedFault::NoLastMeeting) {
            return Ok(());
        }
        self.meet()
    }

    /// All ranks of the host gather its blocks; leaders exchange them; then each hands out those of the other hosts.
    /// Without `send` the own block is in its place already, and this rank is alone on its host.
    pub(super) fn allgatherv(
        &self,
        send: Option<&[u8]>,
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        let ranges = |ranks: &[usize]| ranks.iter().map(|&rank| blocks.bytes(rank)).collect();
        let here: Vec<Range<usize>> = ranges(self.hosts.here());
        match (&self.hosts.group, send) {
            (Some(_), Some(send)) => {
                let (lengths, starts) = lengths_and_starts(&here);
                let blocks = Partition::of_bytes(&lengths, &starts);
                self.inside(|group| group.allgatherv(self.run.signature, send, recv, blocks))?;
            }
            (None, Some(send)) => copy(send, &mut recv[here[0].clone()], StoreMode::of(send.len())),
            (_, None) => {}
        }
        if self.is_one_host() {
            return Ok(());
        }
        let parts: Vec<Vec<Range<usize>>> =
            self.hosts.members.iter().map(|it| ranges(it)).collect();
        self.between(|run| exchange_parts(run, recv, &parts))?;
        let others = parts.iter().enumerate();
        let others = others.filter(|(host, _)| *host != self.hosts.own);
        let others: Vec<Range<usize>> = others.flat_map(|(_, parts)| parts.clone()).collect();
        self.hand_out(recv, &others)
    }

    /// The leader's bytes in these ranges go to all ranks of the host. The ranges lie elsewhere on each rank; their
    /// lengths and their order are the same.
    fn hand_out(&self, data: &mut [u8], ranges: &[Range<usize>]) -> Result<(), TransportFault> {
        if self.hosts.group.is_none() {
            return Ok(());
        }
        batches(ranges)
            .iter()
            .try_for_each(|batch| self.hand_out_batch(data, batch))
    }

    fn hand_out_batch(
        &self,
        data: &mut [u8],
        batch: &[Range<usize>],
    ) -> Result<(), TransportFault> {
        let hand_out =
            |bytes: &mut [u8]| self.inside(|group| group.broadcast(self.run.signature, bytes, 0));
        if let [block] = batch {
            return hand_out(&mut data[block.clone()]);
        }
        let mut packed: Vec<u8> = Vec::with_capacity(2 * PACKED);
        if self.hosts.leads() {
            for block in batch {
                packed.extend(&data[block.clone()]);
            }
        } else {
            packed.resize(batch.iter().map(Range::len).sum(), 0);
        }
        hand_out(&mut packed)?;
        let mut rest = &packed[..];
        for block in batch {
            let (piece, after) = rest.split_at(block.len());
            data[block.clone()].copy_from_slice(piece);
            rest = after;
        }
        Ok(())
    }

    /// The fence of a partitioned region whose parts lie in `data`, memory that the ranks of the host share: all have
    /// written theirs, leaders exchange the parts of their hosts, and all go on.
    pub(super) fn publish(
        &self,
        data: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        self.meet()?;
        if self.is_one_host() {
            return Ok(());
        }
        let ranges = |ranks: &Vec<usize>| ranks.iter().map(|&rank| blocks.bytes(rank)).collect();
        let parts: Vec<Vec<Range<usize>>> = self.hosts.members.iter().map(ranges).collect();
        self.between(|run| exchange_parts(run, data, &parts))?;
        self.meet()
    }

    /// Memory of `len` bytes of which this rank writes `own`, if its host has several ranks. All hosts have it, or none.
    pub(super) fn share(
        &self,
        len: usize,
        own: Range<usize>,
    ) -> Result<Option<HostMemory>, TransportFault> {
        let group = self.hosts.group.as_ref();
        self.all_or_none(group.map(|group| group.share(self.run.signature, len, own)))
    }

    /// The ranks of this host again, with a sequence of collectives of their own; `None` if this rank is alone.
    pub(super) fn split(&self) -> Result<Option<HostGroup>, TransportFault> {
        let group = self.hosts.group.as_ref();
        self.all_or_none(group.map(|group| group.split(self.run.signature)))
    }

    /// The thing that this host's ranks have made together, if the other hosts' have too. A fault for lack of memory ends the
    /// call and not the job.
    fn all_or_none<R>(
        &self,
        made: Option<Result<R, TransportFault>>,
    ) -> Result<Option<R>, TransportFault> {
        let made = match made.transpose() {
            Ok(made) => Ok(made),
            Err(TransportFault::NoMemory { bytes, detail }) => Err((bytes, detail)),
            Err(fault) => return Err(self.failed(fault)),
        };
        let mut lacking = [0u64];
        let own = made
            .as_ref()
            .err()
            .map_or(0, |(bytes, _)| 1 + *bytes as u64);
        self.allreduce(&[own], &mut lacking, ReduceOp::Max)?;
        let no_memory = |(bytes, detail)| TransportFault::NoMemory { bytes, detail };
        match (made, lacking) {
            (made, [0]) => made.map_err(no_memory),
            (Err(lack), _) => Err(no_memory(lack)),
            (Ok(_), [bytes]) => {
                let detail = "the ranks of another host cannot share them".to_owned();
                Err(no_memory((bytes as usize - 1, detail)))
            }
        }
    }

    /// The ranks of the root's host bring their blocks to the root, the others to their leaders; these send them to
    /// the leader of the root's host, which hands them to the root.
    pub(super) fn gatherv(
        &self,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault> {
        let (root_host, root_place) = self.hosts.find(blocks.root());
        let is_roots_host = root_host == self.hosts.own;
        let lengths_of = |ranks: &[usize]| -> Vec<usize> {
            ranks.iter().map(|&rank| blocks.len(rank)).collect()
        };
        let totals = self.hosts.members.iter().enumerate().map(|(host, ranks)| {
            let lengths = lengths_of(ranks).iter().sum::<usize>();
            if host == root_host { 0 } else { lengths }
        });
        let totals: Vec<usize> = totals.collect();
        let lengths = lengths_of(self.hosts.here());
        let mut packed = Vec::new();
        if is_roots_host {
            let starts: Option<Vec<usize>> = blocks.at_root().map(|blocks| {
                let here = self.hosts.here().iter();
                here.map(|&rank| blocks.bytes(rank).start).collect()
            });
            let at_root = starts.as_ref().map(|it| Partition::of_bytes(&lengths, it));
            self.gather_inside(send, recv, (&lengths, root_place, at_root))?;
        } else {
            let starts = starts_of(&lengths);
            packed.resize(
                if self.hosts.leads() {
                    totals[self.hosts.own]
                } else {
                    0
                },
                0,
            );
            let leads = self.hosts.leads();
            let at_root = leads.then(|| Partition::of_bytes(&lengths, &starts));
            self.gather_inside(send, &mut packed, (&lengths, 0, at_root))?;
        }
        if self.is_one_host() {
            return Ok(());
        }
        let mut arrived = vec![
            0;
            if is_roots_host {
                totals.iter().sum()
            } else {
                0
            }
        ];
        let starts = starts_of(&totals);
        let at_root = is_roots_host.then(|| Partition::of_bytes(&totals, &starts));
        let between = RootedPartition::of_bytes(&totals, root_host, at_root);
        self.between(|run| collectives::gatherv(run, &packed, &mut arrived, between))?;
        if !is_roots_host {
            return self.meet();
        }
        self.hand_to_root(&mut arrived, root_place)?;
        if let Some(blocks) = blocks.at_root() {
            self.unpack(&arrived, recv, blocks);
        }
        Ok(())
    }

    /// Gathers blocks of these lengths inside the host.
    fn gather_inside(
        &self,
        send: &[u8],
        recv: &mut [u8],
        (lengths, root, at_root): (&[usize], usize, Option<Partition<'_>>),
    ) -> Result<(), TransportFault> {
        match (&self.hosts.group, at_root) {
            (Some(_), _) => {
                let blocks = RootedPartition::of_bytes(lengths, root, at_root);
                self.inside(|group| group.gatherv(self.run.signature, send, recv, blocks))
            }
            (None, Some(blocks)) => {
                copy(send, &mut recv[blocks.bytes(0)], StoreMode::of(send.len()));
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// On the root's host: the leader gives the root the blocks that came from other hosts.
    fn hand_to_root(&self, arrived: &mut [u8], root: usize) -> Result<(), TransportFault> {
        if root == 0 {
            return self.meet();
        }
        let mut lengths = vec![0; self.hosts.here().len()];
        lengths[0] = arrived.len();
        let starts = vec![0; lengths.len()];
        let is_root = self.hosts.place() == root;
        let at_root = is_root.then(|| Partition::of_bytes(&lengths, &starts));
        let blocks = RootedPartition::of_bytes(&lengths, root, at_root);
        let signature = self.run.signature;
        let (own, recv): (&[u8], &mut [u8]) = if self.hosts.leads() {
            (arrived, &mut [])
        } else {
            (&[], arrived)
        };
        self.inside(|group| group.gatherv(signature, own, recv, blocks))
    }

    /// Blocks of the other hosts, one host after the other, into their places on the root.
    fn unpack(&self, packed: &[u8], recv: &mut [u8], blocks: Partition<'_>) {
        let mut rest = packed;
        let others = self.hosts.members.iter().enumerate();
        let others = others.filter(|(host, _)| *host != self.hosts.own);
        for &rank in others.flat_map(|(_, ranks)| ranks) {
            let place = &mut recv[blocks.bytes(rank)];
            let (block, after) = rest.split_at(place.len());
            copy(block, place, StoreMode::of(packed.len()));
            rest = after;
        }
    }

    /// From the root to its host, from there to the other leaders, and from each to its host.
    pub(super) fn broadcast(&self, buf: &mut [u8], root: usize) -> Result<(), TransportFault> {
        let (host, place) = self.hosts.find(root);
        let signature = self.run.signature;
        if host == self.hosts.own {
            self.inside(|group| group.broadcast(signature, buf, place))?;
        } else {
            self.meet()?;
        }
        if self.is_one_host() {
            return Ok(());
        }
        self.between(|run| collectives::broadcast(run, buf, host))?;
        if host == self.hosts.own {
            self.meet()
        } else {
            self.inside(|group| group.broadcast(signature, buf, 0))
        }
    }

    /// Leaders gather the vectors of their hosts, exchange them, reduce them in rank order, and hand the result out.
    pub(super) fn allreduce<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        if self.is_one_host() {
            if self.hosts.group.is_none() {
                recv.copy_from_slice(send);
            }
            return self.inside(|group| group.allreduce(self.run.signature, send, recv, op));
        }
        if self.can_chain(size_of_val(send)) {
            return self.reduce_in_chain(send, recv, op);
        }
        let block = (BLOCK / size_of::<T>() / self.hosts.ranks()).max(1);
        // Without elements there is still a call to agree on.
        let empty = send.is_empty().then_some((&[][..], &mut [][..]));
        let blocks = send.chunks(block).zip(recv.chunks_mut(block)).chain(empty);
        for (send, recv) in blocks {
            self.reduce_block(send, recv, op)?;
        }
        Ok(())
    }

    fn reduce_block<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        let bytes: &[u8] = bytemuck::cast_slice(send);
        let here = self.hosts.here();
        let lengths = vec![bytes.len(); here.len()];
        if self.hosts.leads() {
            let mut vectors = Vectors::new(self, send.len());
            let starts: Vec<usize> = here.iter().map(|rank| rank * vectors.stride * 8).collect();
            let at_root = Some(Partition::of_bytes(&lengths, &starts));
            let scratch = bytemuck::cast_slice_mut(&mut vectors.scratch);
            self.gather_inside(bytes, scratch, (&lengths, 0, at_root))?;
            let run = self.run.among(&self.hosts.leaders);
            if !goes_direct(&run, bytes.len()) {
                vectors.reduce_at_hub(&run, recv, op)?;
            } else if bytes.len() * (run.size() - 1) <= STAR {
                vectors.reduce_everywhere(&run, recv, op)?;
            } else {
                vectors.reduce_by_owners(&run, recv, op)?;
            }
        } else {
            self.gather_inside(bytes, &mut [], (&lengths, 0, None))?;
        }
        let recv = bytemuck::cast_slice_mut(recv);
        self.inside(|group| group.broadcast(self.run.signature, recv, 0))
    }
}

/// A vector of every rank, on a leader: those of its host whole, of the others what it reduces.
struct Vectors<'a, T> {
    scratch: MutexGuard<'a, Vec<u64>>,
    hosts: &'a HostTable,
    /// Elements of each.
    len: usize,
    /// Words of each, at least one.
    stride: usize,
    element: std::marker::PhantomData<T>,
}

impl<'a, T: Reducible> Vectors<'a, T> {
    fn new(call: &HostCall<'a>, len: usize) -> Self {
        let stride = (len * size_of::<T>()).div_ceil(8).max(1);
        Self {
            scratch: call.run.group.scratch(stride * call.hosts.ranks()),
            hosts: call.hosts,
            len,
            stride,
            element: std::marker::PhantomData,
        }
    }

    /// The bytes of all vectors, by rank.
    fn bytes(&mut self) -> Vec<&mut [u8]> {
        let bytes = self.len * size_of::<T>();
        let vectors = self.scratch.chunks_mut(self.stride);
        let vectors = vectors.take(self.hosts.ranks());
        vectors
            .map(|words| &mut bytemuck::cast_slice_mut(words)[..bytes])
            .collect()
    }

    /// The vectors of this host, to be sent, and places for those of the others, by host.
    #[allow(clippy::type_complexity, reason = "the two sides of one exchange")]
    fn sides(&mut self) -> (Vec<&[u8]>, Vec<Vec<&mut [u8]>>) {
        let hosts = self.hosts;
        let mut places: Vec<Option<&mut [u8]>> = self.bytes().into_iter().map(Some).collect();
        let mut of_host = |host: usize| -> Vec<&mut [u8]> {
            let ranks = hosts.members[host].iter();
            ranks.filter_map(|&rank| places[rank].take()).collect()
        };
        let own = of_host(hosts.own).into_iter().map(|it| &*it).collect();
        let others = (0..hosts.members.len()).map(of_host).collect();
        (own, others)
    }

    /// Reduces the elements in `range` of all vectors, in rank order.
    fn reduce(&self, range: Range<usize>, into: &mut [T], op: ReduceOp) {
        let vector = |rank: usize| {
            let words = &self.scratch[rank * self.stride..(rank + 1) * self.stride];
            &bytemuck::cast_slice(words)[range.clone()]
        };
        reduce(into, (0..self.hosts.ranks()).map(vector), op);
    }

    /// All leaders bring their vectors to the first, which reduces them.
    fn reduce_at_hub(
        &mut self,
        run: &RunningCall<'_>,
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        let (own, mut others) = self.sides();
        if run.rank() > 0 {
            return bring_parts(run, &own, vec![bytemuck::cast_slice_mut(recv)]);
        }
        let round = collect(run, |host| std::mem::take(&mut others[host]))?;
        self.reduce(0..self.len, recv, op);
        release(run, round, |_| vec![bytemuck::cast_slice(recv)])
    }

    /// Every leader gives every other its vectors, and reduces all of them.
    fn reduce_everywhere(
        &mut self,
        run: &RunningCall<'_>,
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        let (own, others) = self.sides();
        swap_parts(run, |_| own.clone(), others, || false)?;
        self.reduce(0..self.len, recv, op);
        Ok(())
    }

    /// Every leader gets its own segment of all vectors, reduces it, and gives the result to all others.
    fn reduce_by_owners(
        &mut self,
        run: &RunningCall<'_>,
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        let segments: Vec<Range<usize>> = (0..run.size())
            .map(|host| segment::<T>(run.size(), self.len, host))
            .collect();
        let bytes_of = |host: usize| {
            let Range { start, end } = segments[host];
            start * size_of::<T>()..end * size_of::<T>()
        };
        let own = segments[run.rank()].clone();
        let (mine, others) = self.sides();
        let wanted = bytes_of(run.rank());
        let others = others.into_iter().map(|vectors| {
            let parts = vectors.into_iter().map(|it| &mut it[wanted.clone()]);
            parts.collect()
        });
        let to_peer = |host: usize| mine.iter().map(|it| &it[bytes_of(host)]).collect();
        swap_parts(run, to_peer, others.collect(), || false)?;
        self.reduce(own.clone(), &mut recv[own], op);
        let parts: Vec<Vec<Range<usize>>> =
            (0..run.size()).map(|host| vec![bytes_of(host)]).collect();
        exchange_parts(run, bytemuck::cast_slice_mut(recv), &parts)
    }
}

/// Every leader gives every other the bytes in its ranges of `data`, into the same ranges there.
fn exchange_parts(
    run: &RunningCall<'_>,
    data: &mut [u8],
    parts: &[Vec<Range<usize>>],
) -> Result<(), TransportFault> {
    let all: Vec<Range<usize>> = parts.iter().flatten().cloned().collect();
    let total: usize = all.iter().map(Range::len).sum();
    let mut pieces = cut(data, &all).into_iter();
    let mut slots: Vec<Vec<&mut [u8]>> = parts
        .iter()
        .map(|ranges| pieces.by_ref().take(ranges.len()).collect())
        .collect();
    let own = std::mem::take(&mut slots[run.rank()]);
    let own: Vec<&[u8]> = own.into_iter().map(|it| &*it).collect();
    if goes_direct(run, total) {
        return swap_parts(run, |_| own.clone(), slots, || false);
    }
    if run.rank() > 0 {
        return bring_parts(run, &own, slots.into_iter().flatten().collect());
    }
    let round = collect(run, |host| std::mem::take(&mut slots[host]))?;
    let data = &*data;
    release(run, round, |receiver| {
        let others = (0..parts.len()).filter(|&host| host != receiver);
        let ranges = others.flat_map(|host| parts[host].iter());
        ranges.map(|range| &data[range.clone()]).collect()
    })
}

fn lengths_and_starts(ranges: &[Range<usize>]) -> (Vec<usize>, Vec<usize>) {
    ranges.iter().map(|it| (it.len(), it.start)).unzip()
}

/// The places of blocks of these lengths one after the other.
fn starts_of(lengths: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let after = lengths.iter().map(|length| {
        end += length;
        end - length
    });
    after.collect()
}

/// The blocks in their order, small ones together. There is at least one batch, as every call meets all ranks.
fn batches(blocks: &[Range<usize>]) -> Vec<Vec<Range<usize>>> {
    let mut batches: Vec<Vec<Range<usize>>> = vec![Vec::new()];
    let mut bytes = 0;
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        if bytes > 0 && bytes + block.len() > PACKED {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += block.len();
        if let Some(last) = batches.last_mut() {
            last.push(block.clone());
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_go_together_and_large_ones_alone() {
        let found = batches(&[8..12, 0..4, 5..5, 100..100 + PACKED, 20..24]);
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(
            (&sizes[..], &found[0][..]),
            (&[2, 1, 1][..], &[8..12, 0..4][..])
        );
        assert_eq!(batches(&[3..3, 7..7]), [Vec::<Range<usize>>::new()]);
    }

    #[test]
    fn blocks_of_any_lengths_follow_each_other() {
        assert_eq!(starts_of(&[3, 0, 5]), [0, 3, 3]);
    }
}
