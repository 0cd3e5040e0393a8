//! The interface of a backend, and the one implementation of the public traits on top of it:
//! check the arguments, take the call lock, call, attach collective and sequence number.
//!
//! The traits are `pub` because they show through the public implementations below; the module is
//! private, so nothing outside the crate can name them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::arguments::{self, Partition, Parts, Root};
use crate::communicator::{Communicator, ReduceOp};
use crate::data::{CommData, Reducible, refuse_unfit};
use crate::error::{Cause, CommError};
use crate::region::{SharedMemoryProvider, SharedRegion};
use crate::report;
use crate::stamp::{Collective, Stamp};

/// A backend's collectives, in checked arguments and bytes.
///
/// Each call moves its stamp, or the stamp's digest, with its data; ranks whose stamps differ all
/// return [`Cause::Mismatch`] before any data are combined. After a fault the backend answers
/// every later call with the same one.
pub trait Transport: Send + Sync {
    fn rank(&self) -> usize;
    fn size(&self) -> usize;

    /// The line that callers of this communicator stand in; `None` if there is nothing to protect.
    fn line(&self) -> Option<&Line>;

    fn allgatherv(
        &self,
        stamp: &Stamp,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), Fault>;

    /// `send` and `recv` have the same length.
    fn allreduce<T: Reducible>(
        &self,
        stamp: &Stamp,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), Fault>;

    fn broadcast(&self, stamp: &Stamp, buf: &mut [u8], root: Root) -> Result<(), Fault>;

    fn barrier(&self, stamp: &Stamp) -> Result<(), Fault>;

    /// Takes part in a collective whose arguments this rank refuses, so that the others learn it.
    fn refuse(&self, stamp: &Stamp) -> Result<(), Fault>;

    fn abort(&self, reason: &str);
}

/// A backend whose regions are on the heap: what their fence needs on top.
pub trait HeapTransport: Transport {
    /// As `allgatherv`, with this rank's block already in its place in `data`.
    fn allgather_in_place(
        &self,
        stamp: &Stamp,
        data: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), Fault>;
}

/// A backend's regions, in checked arguments. Creation is a collective like any other.
pub trait RegionTransport: Transport {
    type Region<T: CommData>: SharedRegion<T>;
    type Local: Communicator;

    fn leader_region<T: CommData>(
        &self,
        stamp: &Stamp,
        count: usize,
    ) -> Result<Self::Region<T>, Fault>;

    fn partitioned_region<T: CommData>(
        &self,
        stamp: &Stamp,
        parts: Parts,
    ) -> Result<Self::Region<T>, Fault>;

    fn split(&self, stamp: &Stamp) -> Result<Self::Local, Fault>;

    fn leads(&self) -> bool;
}

/// An error inside a backend, before the call is attached.
#[derive(Debug)]
pub enum Fault {
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

impl Fault {
    fn attach(self, stamp: &Stamp) -> CommError {
        let operation = stamp.collective();
        match self {
            Self::Failed(cause) => CommError::CollectiveFailed {
                operation,
                sequence: stamp.sequence(),
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

/// One collective at a time, each with its number.
#[derive(Debug, Default)]
pub struct Line {
    busy: AtomicBool,
    /// Collectives begun so far; written only by the thread whose turn it is.
    begun: AtomicU64,
}

/// The right to run one collective.
struct Turn<'a> {
    line: Option<&'a Line>,
    sequence: u64,
}

impl<'a> Turn<'a> {
    #[inline]
    fn take(line: Option<&'a Line>, operation: Collective) -> Result<Self, CommError> {
        let Some(queue) = line else {
            return Ok(Self { line, sequence: 0 });
        };
        // Pairs with the release in `drop`: the number the last turn wrote is seen here.
        if queue.busy.swap(true, Ordering::Acquire) {
            return Err(CommError::CollectiveFailed {
                operation,
                sequence: queue.begun.load(Ordering::Relaxed),
                cause: Cause::Busy,
            });
        }
        let sequence = queue.begun.load(Ordering::Relaxed) + 1;
        queue.begun.store(sequence, Ordering::Relaxed);
        Ok(Self { line, sequence })
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(line) = self.line {
            // Pairs with the swap in `take`.
            line.busy.store(false, Ordering::Release);
        }
    }
}

/// Runs one collective: takes the turn, numbers the stamp, and calls the backend, or tells the
/// other ranks that the arguments were refused here.
#[inline]
pub(crate) fn collective<B: Transport, A, R>(
    backend: &B,
    stamp: Stamp,
    arguments: Result<A, CommError>,
    call: impl FnOnce(&Stamp, A) -> Result<R, Fault>,
) -> Result<R, CommError> {
    let turn = Turn::take(backend.line(), stamp.collective())?;
    let stamp = stamp.at(turn.sequence);
    match arguments {
        Ok(arguments) => call(&stamp, arguments).map_err(|fault| fault.attach(&stamp)),
        Err(error) => {
            if let Err(fault @ Fault::Unusable { .. }) = backend.refuse(&stamp.refused()) {
                return Err(fault.attach(&stamp));
            }
            if backend.size() > 1 {
                // The others fail because of this rank, whoever is collected first.
                report::give_up(&error.to_string());
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
        let stamp = Stamp::new(Collective::Allgatherv)
            .elements::<T>(total)
            .counts(counts);
        collective(self, stamp, blocks, |stamp, blocks| {
            let (send, recv) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
            Transport::allgatherv(self, stamp, send, recv, blocks)
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
        let stamp = Stamp::new(Collective::Allreduce)
            .elements::<T>(send.len())
            .op(op);
        collective(self, stamp, lengths, |stamp, ()| {
            Transport::allreduce(self, stamp, send, recv, op)
        })
    }

    #[inline]
    fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError> {
        refuse_unfit::<T>();
        let checked = Root::new(root, Transport::size(self));
        let stamp = Stamp::new(Collective::Broadcast)
            .elements::<T>(buf.len())
            .subject(root as u64);
        collective(self, stamp, checked, |stamp, root| {
            Transport::broadcast(self, stamp, bytemuck::cast_slice_mut(buf), root)
        })
    }

    #[inline]
    fn barrier(&self) -> Result<(), CommError> {
        let stamp = Stamp::new(Collective::Barrier);
        collective(self, stamp, Ok(()), |stamp, ()| {
            Transport::barrier(self, stamp)
        })
    }

    fn abort(&self, reason: &str) {
        Transport::abort(self, reason);
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
        let stamp = Stamp::new(Collective::CreateSharedRegion).elements::<T>(count);
        collective(self, stamp, checked, |stamp, count| {
            self.leader_region(stamp, count)
        })
    }

    fn create_partitioned_region<T: CommData>(
        &self,
        counts: &[usize],
    ) -> Result<Self::Region<T>, CommError> {
        refuse_unfit::<T>();
        let parts = Parts::new::<T>(Transport::size(self), counts);
        let total = parts.as_ref().map_or(0, Parts::total);
        let stamp = Stamp::new(Collective::CreatePartitionedRegion)
            .elements::<T>(total)
            .counts(counts);
        collective(self, stamp, parts, |stamp, parts| {
            self.partitioned_region(stamp, parts)
        })
    }

    fn split_local(&self) -> Result<Self::Local, CommError> {
        let stamp = Stamp::new(Collective::SplitLocal);
        collective(self, stamp, Ok(()), |stamp, ()| self.split(stamp))
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
        let line = Line::default();
        for expected in 1..=3 {
            let turn = Turn::take(Some(&line), Collective::Barrier).unwrap();
            assert_eq!(turn.sequence, expected);
        }
    }

    #[test]
    fn a_second_caller_is_turned_away_and_takes_no_number() {
        let line = Line::default();
        let first = Turn::take(Some(&line), Collective::Barrier).unwrap();
        let Err(error) = Turn::take(Some(&line), Collective::Allreduce) else {
            panic!("two turns at once");
        };
        let busy = CommError::CollectiveFailed {
            operation: Collective::Allreduce,
            sequence: 1,
            cause: Cause::Busy,
        };
        assert_eq!(error, busy);
        drop(first);
        let next = Turn::take(Some(&line), Collective::Barrier).unwrap();
        assert_eq!(next.sequence, 2);
    }

    #[test]
    fn of_many_threads_exactly_one_at_a_time_has_the_turn() {
        let (line, inside) = (Line::default(), AtomicBool::new(false));
        let taken: u64 = std::thread::scope(|scope| {
            let work = || {
                let mut taken = 0;
                for _ in 0..20_000 {
                    if let Ok(_turn) = Turn::take(Some(&line), Collective::Barrier) {
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
        assert_eq!(line.begun.load(Ordering::Relaxed), taken);
    }
}
