//! The interface of a backend, and the one implementation of the public traits on top of it:
//! check the arguments, take the call lock, call, attach collective and sequence number.
//!
//! The traits are `pub` because they show through the public implementations below; the module is
//! private, so nothing outside the crate can name them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::arguments::{self, Partition, RegionParts, RootRank, RootedPartition};
use crate::call_signature::{CallSignature, Collective};
use crate::communicator::{Communicator, ReduceOp};
use crate::data::{CommData, Reducible, refuse_unfit};
use crate::error::{Cause, CommError};
use crate::error_kind::ErrorKind;
use crate::region::{SharedMemoryProvider, SharedRegion};
use crate::report;
use crate::status_page::StatusPage;

/// A backend's collectives, in checked arguments and bytes.
///
/// Each call moves its call signature, or its digest, with its data; ranks whose signatures differ all
/// return [`Cause::Mismatch`] before any data are combined. After a fault the backend answers
/// every later call with the same one.
pub trait Transport: Send + Sync {
    fn rank(&self) -> usize;
    fn size(&self) -> usize;

    /// The call lock of this communicator; `None` if there is nothing to protect.
    fn call_lock(&self) -> Option<&CallLock>;

    fn allgatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault>;

    /// The root alone writes to `recv`; the others' may be of any length.
    fn gatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault>;

    /// `send` and `recv` have the same length.
    fn allreduce<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault>;

    fn broadcast(
        &self,
        signature: &CallSignature,
        buf: &mut [u8],
        root: RootRank,
    ) -> Result<(), TransportFault>;

    fn barrier(&self, signature: &CallSignature) -> Result<(), TransportFault>;

    /// Takes part in a collective whose arguments this rank refuses, so that the others learn it.
    fn refuse(&self, signature: &CallSignature) -> Result<(), TransportFault>;

    fn abort(&self, kind: ErrorKind, reason: &str);
}

/// A backend whose regions are on the heap: what their fence needs on top.
pub trait HeapTransport: Transport {
    /// As `allgatherv`, with this rank's block already in its place in `data`.
    fn allgather_in_place(
        &self,
        signature: &CallSignature,
        data: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault>;
}

/// A backend's regions, in checked arguments. Creation is a collective like any other.
pub trait RegionTransport: Transport {
    type Region<T: CommData>: SharedRegion<T>;
    type Local: Communicator;

    fn leader_region<T: CommData>(
        &self,
        signature: &CallSignature,
        count: usize,
    ) -> Result<Self::Region<T>, TransportFault>;

    fn partitioned_region<T: CommData>(
        &self,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<Self::Region<T>, TransportFault>;

    fn split(&self, signature: &CallSignature) -> Result<Self::Local, TransportFault>;

    fn leads(&self) -> bool;
}

/// An error inside a backend, before the call is attached.
#[derive(Debug)]
pub enum TransportFault {
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone nothing can fail"
    )]
    Failed(Cause),
    NoMemory {
        bytes: usize,
        detail: String,
    },
    /// This process may not use the communicator.
    #[allow(
        dead_code,
        reason = "in a build with one-rank backends alone every process may"
    )]
    Unusable {
        reason: String,
    },
}

impl TransportFault {
    fn attach(self, signature: &CallSignature) -> CommError {
        let operation = signature.collective();
        match self {
            Self::Failed(cause) => CommError::CollectiveFailed {
                operation,
                sequence: signature.sequence(),
                cause,
            },
            Self::NoMemory { bytes, detail } => CommError::AllocationFailed {
                operation,
                bytes,
                detail,
            },
            Self::Unusable { reason } => CommError::InvalidCommunicator { reason },
        }
    }
}

/// Lock that lets one collective run at a time, and numbers them.
#[derive(Debug, Default)]
pub struct CallLock {
    busy: AtomicBool,
    /// Collectives begun so far; written only by the thread that holds the lock.
    begun: AtomicU64,
    /// The status page of this rank, for the communicator of a whole job.
    page: OnceLock<StatusPage>,
}

impl CallLock {
    /// Shows on this page from now on which collective this rank is in.
    pub(crate) fn publish(&self, page: StatusPage) {
        // A communicator has one page.
        let _ = self.page.set(page);
    }
}

/// The right to run one collective.
struct CallGuard<'a> {
    call_lock: Option<&'a CallLock>,
    sequence: u64,
}

impl<'a> CallGuard<'a> {
    #[inline]
    fn take(call_lock: Option<&'a CallLock>, operation: Collective) -> Result<Self, CommError> {
        let Some(lock) = call_lock else {
            return Ok(Self {
                call_lock,
                sequence: 0,
            });
        };
        // Pairs with the release in `drop`: the number the last holder wrote is seen here.
        if lock.busy.swap(true, Ordering::Acquire) {
            return Err(CommError::CollectiveFailed {
                operation,
                sequence: lock.begun.load(Ordering::Relaxed),
                cause: Cause::Busy,
            });
        }
        let sequence = lock.begun.load(Ordering::Relaxed) + 1;
        lock.begun.store(sequence, Ordering::Relaxed);
        if let Some(page) = lock.page.get() {
            page.enter(sequence, operation);
        }
        Ok(Self {
            call_lock,
            sequence,
        })
    }
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(call_lock) = self.call_lock {
            if let Some(page) = call_lock.page.get() {
                page.leave(self.sequence);
            }
            // Pairs with the swap in `take`.
            call_lock.busy.store(false, Ordering::Release);
        }
    }
}

/// Runs one collective: takes the call lock, numbers the call signature, and calls the backend, or tells the
/// other ranks that the arguments were refused here.
#[inline]
pub(crate) fn collective<B: Transport, A, R>(
    backend: &B,
    signature: CallSignature,
    arguments: Result<A, CommError>,
    call: impl FnOnce(&CallSignature, A) -> Result<R, TransportFault>,
) -> Result<R, CommError> {
    let guard = CallGuard::take(backend.call_lock(), signature.collective())?;
    let signature = signature.at(guard.sequence);
    match arguments {
        Ok(arguments) => call(&signature, arguments).map_err(|fault| fault.attach(&signature)),
        Err(error) => {
            if let Err(fault @ TransportFault::Unusable { .. }) =
                backend.refuse(&signature.refused())
            {
                return Err(fault.attach(&signature));
            }
            if backend.size() > 1 {
                // The others fail because of this rank, whoever is collected first.
                report::abort(ErrorKind::Program, &error.to_string());
            }
            Err(error)
        }
    }
}

impl<B: Transport> Communicator for B {
    #[inline]
    fn allgatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
    ) -> Result<(), CommError> {
        refuse_unfit::<T>();
        let position = (Transport::rank(self), Transport::size(self));
        let blocks = Partition::new(position, send, recv, counts, displs);
        let total = counts.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
        let signature = CallSignature::new(Collective::Allgatherv)
            .elements::<T>(total)
            .counts(counts);
        collective(self, signature, blocks, |signature, blocks| {
            let (send, recv) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
            Transport::allgatherv(self, signature, send, recv, blocks)
        })
    }

    #[inline]
    fn gatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
        root: usize,
    ) -> Result<(), CommError> {
        refuse_unfit::<T>();
        let position = (Transport::rank(self), Transport::size(self));
        let blocks = RootedPartition::new(position, send, recv, (counts, displs), root);
        let total = counts.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
        let signature = CallSignature::new(Collective::Gatherv)
            .elements::<T>(total)
            .counts(counts)
            .subject(root as u64);
        collective(self, signature, blocks, |signature, blocks| {
            let (send, recv) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
            Transport::gatherv(self, signature, send, recv, blocks)
        })
    }

    #[inline]
    fn allreduce<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), CommError> {
        let lengths = arguments::equal_lengths(send, recv);
        let signature = CallSignature::new(Collective::Allreduce)
            .elements::<T>(send.len())
            .op(op);
        collective(self, signature, lengths, |signature, ()| {
            Transport::allreduce(self, signature, send, recv, op)
        })
    }

    #[inline]
    fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError> {
        refuse_unfit::<T>();
        let checked = RootRank::new(Collective::Broadcast, root, Transport::size(self));
        let signature = CallSignature::new(Collective::Broadcast)
            .elements::<T>(buf.len())
            .subject(root as u64);
        collective(self, signature, checked, |signature, root| {
            Transport::broadcast(self, signature, bytemuck::cast_slice_mut(buf), root)
        })
    }

    #[inline]
    fn barrier(&self) -> Result<(), CommError> {
        let signature = CallSignature::new(Collective::Barrier);
        collective(self, signature, Ok(()), |signature, ()| {
            Transport::barrier(self, signature)
        })
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        Transport::abort(self, kind, reason);
    }

    #[inline]
    fn rank(&self) -> usize {
        Transport::rank(self)
    }

    #[inline]
    fn size(&self) -> usize {
        Transport::size(self)
    }
}

impl<B: RegionTransport> SharedMemoryProvider for B {
    type Region<T: CommData> = B::Region<T>;
    type Local = B::Local;

    fn create_shared_region<T: CommData>(
        &self,
        count: usize,
    ) -> Result<Self::Region<T>, CommError> {
        refuse_unfit::<T>();
        let checked = arguments::region_length::<T>(count);
        let signature = CallSignature::new(Collective::CreateSharedRegion).elements::<T>(count);
        collective(self, signature, checked, |signature, count| {
            self.leader_region(signature, count)
        })
    }

    fn create_partitioned_region<T: CommData>(
        &self,
        counts: &[usize],
    ) -> Result<Self::Region<T>, CommError> {
        refuse_unfit::<T>();
        let parts = RegionParts::new::<T>(Transport::size(self), counts);
        let total = parts.as_ref().map_or(0, RegionParts::total);
        let signature = CallSignature::new(Collective::CreatePartitionedRegion)
            .elements::<T>(total)
            .counts(counts);
        collective(self, signature, parts, |signature, parts| {
            self.partitioned_region(signature, parts)
        })
    }

    fn split_local(&self) -> Result<Self::Local, CommError> {
        let signature = CallSignature::new(Collective::SplitLocal);
        collective(self, signature, Ok(()), |signature, ()| {
            self.split(signature)
        })
    }

    fn is_leader(&self) -> bool {
        self.leads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_numbered_from_one() {
        let call_lock = CallLock::default();
        for expected in 1..=3 {
            let guard = CallGuard::take(Some(&call_lock), Collective::Barrier).unwrap();
            assert_eq!(guard.sequence, expected);
        }
    }

    #[test]
    fn a_second_caller_is_refused_and_takes_no_number() {
        let call_lock = CallLock::default();
        let first = CallGuard::take(Some(&call_lock), Collective::Barrier).unwrap();
        let Err(error) = CallGuard::take(Some(&call_lock), Collective::Allreduce) else {
            panic!("two holders at once");
        };
        let busy = CommError::CollectiveFailed {
            operation: Collective::Allreduce,
            sequence: 1,
            cause: Cause::Busy,
        };
        assert_eq!(error, busy);
        drop(first);
        let next = CallGuard::take(Some(&call_lock), Collective::Barrier).unwrap();
        assert_eq!(next.sequence, 2);
    }

    #[test]
    fn of_many_threads_exactly_one_at_a_time_has_the_turn() {
        let (call_lock, inside) = (CallLock::default(), AtomicBool::new(false));
        let taken: u64 = std::thread::scope(|scope| {
            let work = || {
                let mut taken = 0;
                for _ in 0..20_000 {
                    if let Ok(_turn) = CallGuard::take(Some(&call_lock), Collective::Barrier) {
                        assert!(!inside.swap(true, Ordering::Relaxed));
                        inside.store(false, Ordering::Relaxed);
                        taken += 1;
                    }
                }
                taken
            };
            let threads = [0; 4].map(|_| scope.spawn(work));
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(call_lock.begun.load(Ordering::Relaxed), taken);
    }
}
