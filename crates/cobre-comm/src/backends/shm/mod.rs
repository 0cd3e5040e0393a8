//! Processes of one machine, through memory they share.

mod collectives;
mod copy;
mod crash_handler;
#[cfg(not(cobre_portable))]
#[path = "death_linux.rs"]
mod death;
#[cfg(cobre_portable)]
#[path = "death_posix.rs"]
mod death;
mod event_count;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod group;
mod layout;
mod liveness;
mod machine;
#[cfg(test)]
mod model;
mod object;
#[cfg_attr(
    test,
    allow(
        dead_code,
        unused_imports,
        reason = "a simulation has some of its names from elsewhere"
    )
)]
mod os;
mod part;
#[cfg(test)]
mod random_model;
mod rank_status;
mod record;
mod region;
mod rendezvous;
mod ring_flow;
#[cfg(test)]
mod ring_model;
mod rings;
mod segment;
mod share;
mod stall;

if_simulated! {
    {
        mod simulated;
        pub(super) use simulated::SimulatedSegment;
        use simulated as system;
    } else {
        use os as system;
    }
}

use std::sync::Arc;
use std::time::Duration;

pub(super) use death::detector;
pub(super) use part::{HostAlarm, HostGroup, HostMemory, HostSegment};
pub use region::ShmRegion;

use crate::arguments::{Partition, RegionParts, RootRank, RootedPartition};
use crate::backends::host;
use crate::backends::spin::{Spin, spread};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::cpus;
use crate::data::{CommData, Reducible};
use crate::env::ShmConfig;
use crate::error::{BackendError, Cause};
use crate::error_kind::ErrorKind;
use crate::report;
use crate::transport::{CallLock, RegionTransport, Transport, TransportFault};

use event_count::WaitPolicy;
use group::{Group, JobState};
use machine::Sleep;

/// Looks between which others may run, with more ranks than processors.
const YIELDS_IF_CROWDED: u32 = 100;

/// A rank of a shared-memory job. A clone is another handle to the same rank.
#[derive(Debug, Clone)]
pub struct ShmBackend(Arc<Member>);

#[derive(Debug)]
struct Member {
    group: Group,
    call_lock: CallLock,
}

impl ShmBackend {
    /// Meets the other ranks of the job that `config` names.
    ///
    /// # Errors
    /// [`BackendError::InitializationFailed`]: ranks that did not come, a name that is taken, two
    /// processes with one rank, sizes that differ. [`BackendError::OutOfMemory`]: no room in `/dev/shm`.
    pub fn connect(config: &ShmConfig) -> Result<Self, BackendError> {
        let segment = rendezvous::meet(config)?;
        let job = Arc::new(JobState {
            header: segment.mapping.clone(),
            wait_policy: wait_policy(config, &segment.cpus),
            begun: system::Instant::now(),
            timeout: config.timeout,
            named_regions: config.named_regions,
            is_part: false,
            liveness: segment.liveness,
            sleep: if config.portable_wait {
                Sleep::Nap
            } else {
                Sleep::Futex
            },
        });
        spread(config.rank, config.size, &segment.cpus);
        let group = Group::new(config.rank, segment.layout, segment.mapping, job);
        Ok(Self::of(group))
    }

    fn of(group: Group) -> Self {
        let call_lock = CallLock::default();
        Self(Arc::new(Member { group, call_lock }))
    }

    fn group(&self) -> &Group {
        &self.0.group
    }

    /// The group, for a collective that begins in a job that has not failed.
    #[inline]
    fn running(&self) -> Result<&Group, TransportFault> {
        self.group().begin()?;
        Ok(self.group())
    }
}

/// The wait of ranks that run on `cpus`.
fn wait_policy(config: &ShmConfig, cpus: &[usize]) -> WaitPolicy {
    WaitPolicy {
        spin: Spin::new(config.size > usable(cpus), YIELDS_IF_CROWDED),
        slice: Duration::from_secs(1),
    }
}

fn usable(cpus: &[usize]) -> usize {
    let quota = cpus::quota().map_or(usize::MAX, |quota| quota.ceil() as usize);
    cpus.len().min(quota)
}

impl Transport for ShmBackend {
    #[inline]
    fn rank(&self) -> usize {
        self.group().rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.group().size
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
        collectives::allgatherv(self.running()?, signature, send, recv, blocks)
    }

    #[inline]
    fn gatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault> {
        collectives::gatherv(self.running()?, signature, send, recv, blocks)
    }

    #[inline]
    fn allreduce<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        collectives::allreduce(self.running()?, signature, send, recv, op)
    }

    #[inline]
    fn broadcast(
        &self,
        signature: &CallSignature,
        buf: &mut [u8],
        root: RootRank,
    ) -> Result<(), TransportFault> {
        collectives::broadcast(self.running()?, signature, buf, root.rank())
    }

    #[inline]
    fn barrier(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        collectives::barrier(self.running()?, signature)
    }

    fn refuse(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        // Arriving with this call signature is the message; the others post the mismatch.
        let group = self.running()?;
        group.arrive(signature, &[]);
        group.meet_all(signature)
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        if !self.group().job.liveness.is_here() {
            return;
        }
        let first = self.group().job.stop(&Cause::Aborted {
            rank: self.group().rank,
            host: host::name(),
            pid: std::process::id(),
            kind,
            reason: reason.to_owned(),
            last: self.group().job.liveness.status().step(),
        });
        // Who gives up because another rank has failed is not the cause.
        if first {
            report::abort(kind, reason);
        }
    }
}

impl RegionTransport for ShmBackend {
    type Region<T: CommData> = ShmRegion<T>;
    type Local = Self;

    fn leader_region<T: CommData>(
        &self,
        signature: &CallSignature,
        count: usize,
    ) -> Result<ShmRegion<T>, TransportFault> {
        let own = if self.leads() { 0..count } else { 0..0 };
        self.running()?;
        ShmRegion::new(self, signature, count, own)
    }

    fn partitioned_region<T: CommData>(
        &self,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<ShmRegion<T>, TransportFault> {
        self.running()?;
        ShmRegion::new(
            self,
            signature,
            parts.total(),
            parts.range(self.group().rank),
        )
    }

    /// All ranks share this machine: the same group again, with a segment of its own.
    fn split(&self, signature: &CallSignature) -> Result<Self, TransportFault> {
        let group = self.running()?;
        let layout = group.layout;
        let data = share::share(group, signature, layout.total(), layout.slice(group.rank))?;
        rendezvous::populate(&data, &layout, group.rank);
        let group = Group::new(group.rank, layout, Arc::new(data), group.job.clone());
        Ok(Self::of(group))
    }

    fn leads(&self) -> bool {
        self.group().rank == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{ShmBackend, ShmConfig};
    use crate::backends::fork_guard::{in_a_fork, is_own_process};
    use crate::error::CommError;
    use crate::{Communicator, SharedMemoryProvider, SharedRegion};

    fn alone() -> ShmBackend {
        let config = ShmConfig {
            name: crate::env::fresh_shm_name(),
            rank: 0,
            size: 1,
            timeout: None,
            buffer_bytes: None,
            portable_wait: false,
            named_regions: false,
            job: None,
            stall: crate::env::DEFAULT_STALL,
        };
        ShmBackend::connect(&config).unwrap()
    }

    fn is_refused(call: &Result<(), CommError>) -> bool {
        matches!(call, Err(CommError::InvalidCommunicator { .. }))
    }

    #[test]
    fn a_forked_child_may_not_speak_for_the_rank() {
        if !is_own_process(module_path!(), "a_forked_child_may_not_speak_for_the_rank") {
            return;
        }
        let comm = alone();
        let mut region = comm.create_shared_region::<u64>(4).unwrap();
        let child = in_a_fork(|| {
            let calls = [
                comm.barrier(),
                comm.broadcast(&mut [1], 0),
                comm.broadcast(&mut [1], 99),
                region.fence(),
            ];
            comm.abort(crate::ErrorKind::Program, "not mine to say");
            i32::from(!calls.iter().all(is_refused))
        });
        assert_eq!(child, 0, "a call of the child went through");
        comm.barrier().unwrap();
        region.as_mut_slice()[0] = 1;
        let child = in_a_fork(|| {
            region.as_mut_slice()[0] = 2;
            0
        });
        assert_eq!(child, 99, "the child wrote to the region");
        region.fence().unwrap();
        assert_eq!(region.as_slice()[0], 1);
    }

    #[test]
    fn a_forked_child_that_drops_the_communicator_is_no_leave() {
        if !is_own_process(
            module_path!(),
            "a_forked_child_that_drops_the_communicator_is_no_leave",
        ) {
            return;
        }
        let mut comm = Some(alone());
        let child = in_a_fork(|| {
            drop(comm.take());
            0
        });
        assert_eq!(child, 0);
        let comm = comm.unwrap();
        assert!(!comm.group().job.liveness.status().has_left());
        comm.barrier().unwrap();
    }
}
