//! Calls of MPI as this backend makes them: with a processor for every rank as they are, else such
//! that a rank that waits lets the others run.
//!
//! MPI libraries spin while they wait. With more ranks than processors a call then takes as long as
//! the system lets the spinning rank have its processor, which is milliseconds.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ferrompi::{Communicator as Comm, Error, PersistentRequest, Request, Result, Scope, scope};

use super::ending::inside;
use crate::cpus;

/// A communicator whose collectives wait as it is best for this job.
pub(super) struct Calls {
    /// A barrier set up once, which is faster; `None` where MPI has none. Freed before `comm`.
    barrier: Option<Mutex<PersistentRequest<()>>>,
    pub(super) comm: Comm,
    /// There are more ranks than processors, on some node.
    crowded: bool,
}

/// Bytes in all from which an allgatherv is started and then waited for: MPICH's blocking call goes round a ring in
/// pieces of 32 KiB from there on, the other one in whole blocks.
const LONG: usize = 512 << 10;

/// The tag of messages between two ranks.
const SWAP: i32 = 1;

/// Words with a bit for each processor; those beyond are not told apart.
const MASK: usize = 16;

/// True if some node has more ranks than processors. Collective; all ranks get the same answer.
pub(super) fn is_crowded(comm: &Comm, node: &Comm) -> Result<bool> {
    let mut own = [0u64; MASK];
    for cpu in cpus::allowed() {
        own[cpu / 64 % MASK] |= 1 << (cpu % 64);
    }
    let mut all = vec![0; MASK * node.size() as usize];
    node.allgather(&own, &mut all)?;
    let words = (0..MASK).map(|word| all.iter().skip(word).step_by(MASK).fold(0, |a, b| a | b));
    let allowed: u32 = words.map(u64::count_ones).sum();
    let quota = cpus::quota().map_or(usize::MAX, |quota| quota.ceil() as usize);
    let here = node.size() as usize > quota.min(allowed as usize);
    let (own, mut somewhere) = ([u32::from(here)], [0]);
    comm.allreduce(&own, &mut somewhere, ferrompi::ReduceOp::Max)?;
    Ok(somewhere == [1])
}

impl Calls {
    /// Collective.
    pub(super) fn new(comm: Comm, crowded: bool) -> Result<Self> {
        let barrier = match comm.barrier_init() {
            Ok(request) => Some(Mutex::new(request)),
            Err(Error::NotSupported(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            barrier,
            comm,
            crowded,
        })
    }

    #[inline]
    pub(super) fn barrier(&self) -> Result<()> {
        match &self.barrier {
            Some(request) => inside(|| self.again(&mut locked(request))),
            None if self.crowded => wait(|scope| self.comm.ibarrier(scope)),
            None => inside(|| self.comm.barrier()),
        }
    }

    /// Makes a call that was set up before.
    #[inline]
    fn again(&self, request: &mut PersistentRequest<()>) -> Result<()> {
        request.start()?;
        if self.crowded {
            while request.test()?.is_none() {
                std::thread::yield_now();
            }
            return Ok(());
        }
        request.wait().map(drop)
    }

    /// Sends words to rank `to`, and takes a message of at most `recv.len()` words from rank `from`.
    #[inline]
    pub(super) fn swap(&self, send: &[u64], to: i32, recv: &mut [u64], from: i32) -> Result<()> {
        let comm = &self.comm;
        if !self.crowded {
            let outcome = inside(|| comm.sendrecv(send, to, SWAP, recv, from, SWAP));
            return outcome.map(drop);
        }
        inside(|| {
            scope(|scope| {
                let mut incoming = comm.irecv(scope, recv, from, SWAP)?;
                let mut outgoing = comm.isend(scope, send, to, SWAP)?;
                yield_until_done(&mut outgoing)?;
                yield_until_done(&mut incoming)
            })
        })
    }

    #[inline]
    pub(super) fn allgather<T: ferrompi::MpiDatatype>(
        &self,
        send: &[T],
        recv: &mut [T],
    ) -> Result<()> {
        if self.crowded {
            return wait(|scope| self.comm.iallgather(scope, send, recv));
        }
        inside(|| self.comm.allgather(send, recv))
    }

    #[inline]
    pub(super) fn allgatherv(
        &self,
        send: &[u8],
        recv: &mut [u8],
        counts: &[i32],
        displs: &[i32],
    ) -> Result<()> {
        let comm = &self.comm;
        if self.crowded {
            return wait(|scope| comm.iallgatherv(scope, send, recv, counts, displs));
        }
        let total: usize = counts.iter().map(|&count| count as usize).sum();
        if total > LONG {
            return inside(|| {
                scope(|scope| {
                    let request = comm.iallgatherv(scope, send, recv, counts, displs)?;
                    request.wait().map(drop)
                })
            });
        }
        inside(|| comm.allgatherv(send, recv, counts, displs))
    }

    /// `recv`, `counts` and `displs` are looked at on the root alone.
    pub(super) fn gatherv(
        &self,
        send: &[u8],
        recv: &mut [u8],
        counts: &[i32],
        displs: &[i32],
        root: i32,
    ) -> Result<()> {
        let comm = &self.comm;
        if self.crowded {
            return wait(|scope| comm.igatherv(scope, send, recv, counts, displs, root));
        }
        inside(|| comm.gatherv(send, recv, counts, displs, root))
    }

    /// `[counts, displs]` of what is sent and of what is received.
    pub(super) fn alltoallv(
        &self,
        send: &[u8],
        [counts, displs]: [&[i32]; 2],
        recv: &mut [u8],
        [from, places]: [&[i32]; 2],
    ) -> Result<()> {
        if self.crowded {
            return wait(|scope| {
                let comm = &self.comm;
                comm.ialltoallv(scope, send, counts, displs, recv, from, places)
            });
        }
        inside(|| {
            let comm = &self.comm;
            comm.alltoallv(send, counts, displs, recv, from, places)
        })
    }

    #[inline]
    pub(super) fn broadcast(&self, buf: &mut [u8], root: i32) -> Result<()> {
        if self.crowded {
            return wait(|scope| self.comm.ibroadcast(scope, buf, root));
        }
        inside(|| self.comm.broadcast(buf, root))
    }
}

/// Ignores poison: the data that `request` guards are as good after a panic as before.
#[inline]
fn locked<T>(request: &Mutex<T>) -> MutexGuard<'_, T> {
    request.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a call and lets others run until it is done.
fn wait<'env>(
    start: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> Result<Request<'s>>,
) -> Result<()> {
    inside(|| {
        scope(|scope| {
            let mut request = start(scope)?;
            yield_until_done(&mut request)
        })
    })
}

/// Lets others run until a call is done.
fn yield_until_done(request: &mut Request<'_>) -> Result<()> {
    while request.test()?.is_none() {
        std::thread::yield_now();
    }
    Ok(())
}
