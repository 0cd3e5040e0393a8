//! Processes that an MPI launcher started, on one node or on many.

mod arrival;
mod calls;
mod collectives;
mod ending;
mod group;
mod region;
mod rendezvous;
mod sys;
mod watch;

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};

use ferrompi::Communicator as Comm;

pub use region::FerrompiRegion;

use crate::arguments::{Partition, RegionParts, RootRank, RootedPartition};
use crate::backends::fork_guard::ForkGuard;
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::data::{CommData, Reducible};
use crate::env::Environment;
use crate::error::{BackendError, CallPosition, Cause};
use crate::error_kind::ErrorKind;
use crate::report;
use crate::transport::{CallLock, RegionTransport, Transport, TransportFault};

use arrival::FrameBuffer;
use calls::Calls;
use collectives::ReduceBuffers;
use group::{Child, Group};
use rendezvous::Owner;
pub(crate) use rendezvous::library;
use watch::{CallTracker, StallWatch};

/// A rank of an MPI job. A clone is another handle to the same rank.
///
/// [`abort`](crate::Communicator::abort) ends the whole job, this process included, as MPI has no
/// way to make the calls of other ranks fail. The last handle to go leaves the job, which waits
/// for the other ranks and finalises MPI; a process can join an MPI job once in its life.
#[derive(Debug, Clone)]
pub struct FerrompiBackend(Arc<Member>);

/// A rank of one communicator.
struct Member {
    rank: usize,
    size: usize,
    /// True if ranks compare call signatures before each call.
    check: bool,
    call_lock: CallLock,
    /// The last call of this rank on it. `None` only while the last handle goes.
    tracker: Option<Arc<CallTracker>>,
    /// The cause for which this communicator is finished; every rank of it has the same.
    failed: OnceLock<Cause>,
    frames: Mutex<FrameBuffer>,
    scratch: Mutex<ReduceBuffers>,
    /// `None` only while the last handle goes.
    group: Option<Arc<Group>>,
    source: CommunicatorSource,
    fork_guard: ForkGuard,
}

/// The source of a communicator.
enum CommunicatorSource {
    /// MPI's world: who drops it leaves the job. `None` only while the last handle goes.
    World(Option<(StallWatch, Owner)>),
    /// A split of this one, which therefore outlives it.
    Split(Arc<Member>),
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} on mpi", self.rank, self.size)
    }
}

impl FerrompiBackend {
    /// Joins the ranks that the MPI launcher started with this one.
    ///
    /// # Errors
    /// [`BackendError::InitializationFailed`]: an MPI launcher that does not belong to the MPI
    /// library of this build, ranks with different settings, a library without full support of
    /// threads, and a second start in one process.
    pub fn connect() -> Result<Self, BackendError> {
        let config = Environment::process().mpi()?;
        let failed = |reason| BackendError::InitializationFailed {
            backend: "mpi",
            reason,
        };
        let (group, node_status, owner) = rendezvous::start(config.check).map_err(failed)?;
        let group = Arc::new(group);
        let watch = StallWatch::begin(node_status, group.clone(), config.stall);
        let tracker = watch.tracker(false);
        let source = CommunicatorSource::World(Some((watch, owner)));
        let member = Member::new(group, config.check, tracker, source);
        ending::forbid_early_exit(member.rank, member.size);
        Ok(Self(Arc::new(member)))
    }

    /// The member, for a collective that begins in a process that may and a job that has not failed.
    #[inline]
    fn running(&self, signature: &CallSignature) -> Result<ActiveCall<'_>, TransportFault> {
        self.0.begin(signature)?;
        Ok(ActiveCall(&self.0))
    }
}

/// A member that is in a collective, until this is dropped.
struct ActiveCall<'a>(&'a Member);

impl Deref for ActiveCall<'_> {
    type Target = Member;

    #[inline]
    fn deref(&self) -> &Member {
        self.0
    }
}

impl Drop for ActiveCall<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.tracker().exit();
    }
}

impl Member {
    fn new(
        group: Arc<Group>,
        check: bool,
        tracker: Arc<CallTracker>,
        source: CommunicatorSource,
    ) -> Self {
        let (rank, size) = (
            group.all.comm.rank() as usize,
            group.all.comm.size() as usize,
        );
        Self {
            rank,
            size,
            check,
            call_lock: CallLock::default(),
            tracker: Some(tracker),
            failed: OnceLock::new(),
            frames: Mutex::new(FrameBuffer::new(size)),
            scratch: Mutex::default(),
            group: Some(group),
            source,
            fork_guard: ForkGuard::here(),
        }
    }

    #[inline]
    fn tracker(&self) -> &CallTracker {
        self.tracker.as_ref().expect("until the last handle goes")
    }

    fn group(&self) -> &Group {
        self.group.as_ref().expect("until the last handle goes")
    }

    /// The communicator of all ranks of the job.
    fn world(&self) -> &Self {
        match &self.source {
            CommunicatorSource::World(_) => self,
            CommunicatorSource::Split(parent) => parent.world(),
        }
    }

    /// Of the communicator of all ranks.
    fn watch(&self) -> &StallWatch {
        match &self.source {
            CommunicatorSource::World(Some((watch, _))) => watch,
            _ => unreachable!("until the last handle goes, and asked of the world only"),
        }
    }

    #[inline]
    fn comm(&self) -> &Comm {
        &self.calls().comm
    }

    #[inline]
    fn calls(&self) -> &Calls {
        &self.group().all
    }

    #[inline]
    fn begin(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        self.fork_guard.check()?;
        if let Some(cause) = self.failed.get() {
            return Err(TransportFault::Failed(cause.clone()));
        }
        self.tracker().enter(signature.step());
        Ok(())
    }

    fn last_step(&self) -> Option<CallPosition> {
        self.tracker().last()
    }

    /// Marks the communicator as finished.
    fn fail(&self, cause: Cause) -> TransportFault {
        let cause = self.failed.get_or_init(|| cause);
        TransportFault::Failed(cause.clone())
    }

    /// Handles an error of MPI: the others may wait for this rank in the same call for ever, so
    /// the job ends, unless there are no others.
    fn broken(&self, error: &ferrompi::Error) -> TransportFault {
        let cause = ending::cause_of(error);
        if self.size > 1 {
            let last = self.last_step();
            let call = last.map_or_else(|| "leaving".to_owned(), |step| step.to_string());
            let code = if let Cause::Mpi { code, .. } = cause {
                code
            } else {
                1
            };
            ending::end(
                self.comm(),
                self.rank,
                ErrorKind::Communication,
                &format!("failed in {call}: {cause}"),
                code,
            );
        }
        self.fail(cause)
    }

    /// Tells the other ranks that this one leaves, so that none waits for this one for ever.
    fn announce_leave(&self) {
        if self.failed.get().is_some() {
            return;
        }
        if !self.check {
            return ending::wait_for_all(self.comm(), self.rank);
        }
        let lost = ending::left(self.rank, self.last_step());
        if let Err(TransportFault::Failed(cause)) = arrival::leave(self, &lost) {
            ending::tell(&format!("{cause} while others went on"));
            report::abort(ErrorKind::Rank, "it left while others still needed it");
        }
    }
}

impl Drop for Member {
    /// Leaves the job: the announcement to the others, then what was made, the other way round, then MPI itself.
    fn drop(&mut self) {
        let CommunicatorSource::World(owner) = &mut self.source else {
            return;
        };
        let kept = owner.take();
        if !self.fork_guard.is_here() {
            // The parent's MPI is none of this process's business.
            std::mem::forget((kept, self.tracker.take(), self.group.take()));
            return;
        }
        if std::thread::panicking() && self.size > 1 {
            let after = self.last_step();
            ending::end(
                self.comm(),
                self.rank,
                ErrorKind::Rank,
                &ending::panicked(after),
                ending::PANIC,
            );
        }
        if self.size > 1 {
            self.tracker().leave();
            self.announce_leave();
        }
        ending::allow_exit();
        report::left();
        let (watch, owner) = kept.unzip();
        // What is freed by all ranks together, in this order on all.
        drop((self.tracker.take(), watch));
        drop(self.group.take());
        drop(owner);
    }
}

impl Transport for FerrompiBackend {
    #[inline]
    fn rank(&self) -> usize {
        self.0.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.0.size
    }

    #[inline]
    fn call_lock(&self) -> Option<&CallLock> {
        Some(&self.0.call_lock)
    }

    #[inline]
    fn allgatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        collectives::allgatherv(&*self.running(signature)?, signature, send, recv, blocks)
    }

    #[inline]
    fn gatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault> {
        collectives::gatherv(&*self.running(signature)?, signature, send, recv, blocks)
    }

    #[inline]
    fn allreduce<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        collectives::allreduce(&*self.running(signature)?, signature, send, recv, op)
    }

    #[inline]
    fn broadcast(
        &self,
        signature: &CallSignature,
        buf: &mut [u8],
        root: RootRank,
    ) -> Result<(), TransportFault> {
        collectives::broadcast(&*self.running(signature)?, signature, buf, root.rank())
    }

    #[inline]
    fn barrier(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        collectives::barrier(&*self.running(signature)?, signature)
    }

    fn refuse(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        let member = self.running(signature)?;
        if member.size == 1 {
            return Ok(());
        }
        if !member.check {
            // Nobody would learn of it, and the others would wait.
            let reason = format!("refused the arguments of {}", signature.step());
            ending::end(member.comm(), member.rank, ErrorKind::Program, &reason, 1);
        }
        // Arriving with this call signature is the message; the others find the mismatch.
        arrival::meet(&member, signature, &[]).map(drop)
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        // Who gives up because of a failure that all know is not the cause.
        if self.0.failed.get().is_none() && self.0.fork_guard.is_here() {
            let cause = ending::aborted(reason, self.0.last_step());
            ending::end(self.0.comm(), self.0.rank, kind, &cause, 1);
        }
    }
}

impl RegionTransport for FerrompiBackend {
    type Region<T: CommData> = FerrompiRegion<T>;
    type Local = Self;

    fn leader_region<T: CommData>(
        &self,
        signature: &CallSignature,
        count: usize,
    ) -> Result<FerrompiRegion<T>, TransportFault> {
        let _running = self.running(signature)?;
        FerrompiRegion::led(self, signature, count)
    }

    fn partitioned_region<T: CommData>(
        &self,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<FerrompiRegion<T>, TransportFault> {
        let _running = self.running(signature)?;
        FerrompiRegion::partitioned(self, signature, &parts)
    }

    /// The ranks of this node, in a communicator of their own.
    fn split(&self, signature: &CallSignature) -> Result<Self, TransportFault> {
        let member = self.running(signature)?;
        collectives::agree(&member, signature)?;
        region::make_room(&member, 0)?;
        let node = &member.group().node().comm;
        let node = ending::inside(|| node.duplicate().and_then(Group::new));
        let node = node.map_err(|error| member.broken(&error))?;
        let node = Arc::new(node);
        member.group().keep(Child::Split(node.clone()));
        let tracker = member.world().watch().tracker(true);
        let source = CommunicatorSource::Split(self.0.clone());
        let split = Member::new(node, member.check, tracker, source);
        Ok(Self(Arc::new(split)))
    }

    fn leads(&self) -> bool {
        self.0.group().node().comm.rank() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::FerrompiBackend;
    use crate::backends::fork_guard::{in_a_fork, is_own_process};
    use crate::error::CommError;
    use crate::{Communicator, SharedMemoryProvider, SharedRegion};

    fn is_refused(call: &Result<(), CommError>) -> bool {
        matches!(call, Err(CommError::InvalidCommunicator { .. }))
    }

    /// One test, as a process can start MPI once.
    #[test]
    fn a_forked_child_may_neither_speak_nor_leave_for_the_rank() {
        if !is_own_process(
            module_path!(),
            "a_forked_child_may_neither_speak_nor_leave_for_the_rank",
        ) {
            return;
        }
        let mut comm = Some(FerrompiBackend::connect().unwrap());
        let mut region = comm.as_ref().unwrap().create_shared_region::<u64>(4);
        let region = region.as_mut().unwrap();
        region.as_mut_slice()[0] = 1;
        let child = in_a_fork(|| {
            let comm = comm.take().unwrap();
            let calls = [
                comm.barrier(),
                comm.broadcast(&mut [1], 0),
                comm.broadcast(&mut [1], 99),
                region.fence(),
                comm.split_local().map(drop),
            ];
            comm.abort(crate::ErrorKind::Program, "not mine to say");
            drop(comm);
            i32::from(!calls.iter().all(is_refused))
        });
        assert_eq!(child, 0, "a call of the child went through");
        let child = in_a_fork(|| {
            region.as_mut_slice()[0] = 2;
            0
        });
        assert_eq!(child, 99, "the child wrote to the region");
        region.fence().unwrap();
        assert_eq!(region.as_slice()[0], 1);
        comm.unwrap().barrier().unwrap();
    }
}
