//! Regions in windows of MPI: one copy per node, in memory that the node's leader provides.

use std::ops::Range;
use std::sync::Arc;

use super::group::{Child, MOST_CHILDREN, WORDS};
use super::sys::{Memory, Window};
use super::{FerrompiBackend, Member, collectives, ending, sys};
use crate::arguments::RegionParts;
use crate::call_signature::{CallSignature, Collective};
use crate::data::CommData;
use crate::error::CommError;
use crate::memory;
use crate::region::{RegionEpoch, SharedRegion};
use crate::transport::{self, TransportFault};

/// A region of an MPI job.
#[derive(Debug)]
pub struct FerrompiRegion<T> {
    memory: Memory,
    count: usize,
    /// The elements this rank may write.
    own: Range<usize>,
    /// Of a partitioned region on several nodes: what leaders gather when a write epoch ends.
    rounds: Vec<Vec<Range<usize>>>,
    epoch: RegionEpoch,
    /// The creating call's number, by which ranks tell regions apart.
    id: u64,
    backend: FerrompiBackend,
    element: std::marker::PhantomData<T>,
}

impl<T: CommData> FerrompiRegion<T> {
    pub(super) fn led(
        backend: &FerrompiBackend,
        signature: &CallSignature,
        count: usize,
    ) -> Result<Self, TransportFault> {
        let leads = transport::RegionTransport::leads(backend);
        let own = if leads { 0..count } else { 0..0 };
        Self::new(backend, signature, count, own, Vec::new())
    }

    pub(super) fn partitioned(
        backend: &FerrompiBackend,
        signature: &CallSignature,
        parts: &RegionParts,
    ) -> Result<Self, TransportFault> {
        let rounds = backend.0.group().rounds::<T>(parts);
        let own = parts.range(backend.0.rank);
        Self::new(backend, signature, parts.total(), own, rounds)
    }

    fn new(
        backend: &FerrompiBackend,
        signature: &CallSignature,
        count: usize,
        own: Range<usize>,
        rounds: Vec<Vec<Range<usize>>>,
    ) -> Result<Self, TransportFault> {
        let member = &*backend.0;
        collectives::agree(member, signature)?;
        let bytes = count * size_of::<T>();
        make_room(member, bytes)?;
        Ok(Self {
            memory: share(member, bytes, align_of::<T>())?,
            count,
            own,
            rounds,
            epoch: RegionEpoch::Write,
            id: signature.sequence(),
            backend: backend.clone(),
            element: std::marker::PhantomData,
        })
    }

    /// Ends a write epoch: all have written; then what other nodes wrote comes to this one.
    fn publish(&mut self, signature: &CallSignature) -> Result<(), TransportFault> {
        let member = self.backend.running(signature)?;
        sys::synchronise();
        collectives::barrier(&member, signature)?;
        if matches!(self.epoch, RegionEpoch::Write) && !self.rounds.is_empty() {
            let bytes = self.memory.owned(0, self.count * size_of::<T>());
            collectives::gather_between_nodes(&member, bytes, &self.rounds)?;
        }
        sys::synchronise();
        Ok(())
    }
}

impl<T: CommData> SharedRegion<T> for FerrompiRegion<T> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        self.epoch.assert_readable();
        self.memory.published(0, self.count)
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        self.epoch
            .assert_writable_here(self.backend.0.fork_guard.is_here());
        let (start, len) = (self.own.start * size_of::<T>(), self.own.len());
        self.memory.owned(start, len)
    }

    fn fence(&mut self) -> Result<(), CommError> {
        let signature = CallSignature::new(Collective::Fence).subject(self.id);
        let outcome = if let RegionEpoch::Poisoned(error) = &self.epoch {
            Err(error.clone())
        } else {
            let backend = self.backend.clone();
            transport::collective(&backend, signature, Ok(()), |signature, ()| {
                self.publish(signature)
            })
        };
        self.epoch.advance(outcome)
    }
}

/// The words that a rank sends before something new is made.
const SAID: usize = WORDS + 2;

/// Frees what all ranks have dropped, and finds out whether there is room for `bytes` more on every
/// node, and for one more window or communicator on every rank.
pub(super) fn make_room(member: &Member, bytes: usize) -> Result<(), TransportFault> {
    let group = member.group();
    let leads = group.node().comm.rank() == 0;
    let mut said = [0; SAID];
    said[..WORDS].copy_from_slice(&group.idle());
    said[WORDS] = member.world().group().weight() as u64;
    said[WORDS + 1] = if leads { available() as u64 } else { u64::MAX };
    let mut all = vec![0; SAID * member.size];
    let outcome = member.calls().allgather(&said, &mut all);
    outcome.map_err(|error| member.broken(&error))?;
    let agreed = all
        .chunks(SAID)
        .fold([u64::MAX; WORDS], |mut agreed, said| {
            agreed
                .iter_mut()
                .zip(said)
                .for_each(|(all, one)| *all &= one);
            agreed
        });
    ending::inside(|| group.free(agreed));
    let freed: u32 = agreed.iter().map(|word| word.count_ones()).sum();
    for (rank, said) in all.chunks(SAID).enumerate() {
        let (weight, available) = (said[WORDS], said[WORDS + 1] as usize);
        if weight.saturating_sub(freed.into()) >= MOST_CHILDREN as u64 {
            let detail = format!(
                "rank {rank} has {MOST_CHILDREN} regions and node communicators, the most that \
                 can be at a time on mpi; drop some on all ranks"
            );
            return Err(TransportFault::NoMemory { bytes, detail });
        }
        if bytes > available {
            let detail = format!(
                "the node of rank {rank} has {available} bytes to spare for memory that ranks \
                 share (the least of free memory and of /dev/shm)"
            );
            return Err(TransportFault::NoMemory { bytes, detail });
        }
    }
    Ok(())
}

/// Bytes that can be shared on this node; MPI libraries keep windows in `/dev/shm`, and touching
/// one that does not fit there kills the process.
fn available() -> usize {
    let shared = rustix::fs::statvfs("/dev/shm").map_or(usize::MAX, |stat| {
        usize::try_from(stat.f_bavail.saturating_mul(stat.f_frsize)).unwrap_or(usize::MAX)
    });
    memory::available().min(shared)
}

/// A window of `bytes` zeros on every node, kept until all ranks have dropped it.
fn share(member: &Member, bytes: usize, align: usize) -> Result<Memory, TransportFault> {
    let node = &member.group().node().comm;
    let made = ending::inside(|| Window::allocate(node, bytes, align));
    let mut fine = vec![0; member.size];
    let outcome = member
        .calls()
        .allgather(&[u8::from(made.is_ok())], &mut fine);
    outcome.map_err(|error| member.broken(&error))?;
    match made {
        Ok(window) if fine.iter().all(|&fine| fine == 1) => {
            let window = Arc::new(window);
            member.group().keep(Child::Window(window.clone()));
            Ok(Memory::new(window))
        }
        Ok(_) => Err(TransportFault::NoMemory {
            bytes,
            detail: "MPI could not share the memory on another node".to_owned(),
        }),
        Err(error) => Err(TransportFault::NoMemory {
            bytes,
            detail: format!("MPI could not share the memory: {error}"),
        }),
    }
}
