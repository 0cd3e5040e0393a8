//! Processes of one or several hosts, over sockets.

mod accept;
mod chain;
mod channel;
mod collectives;
mod connection;
mod coordinator;
mod dial;
mod follower;
mod frame;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod group;
mod handshake;
mod hierarchy;
mod host_group;
mod host_region;
mod inherited;
mod link;
mod message;
mod os;
mod peer_table;
mod readiness;
mod rendezvous;
mod secret;
mod session;
#[cfg(test)]
pub(super) mod simulation;
mod sys;
#[cfg(test)]
mod tests;
mod topology;
mod verdict;
mod watch;

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::heap::HeapRegion;
use super::shm::HostMemory;
use crate::arguments::{Partition, RegionParts, RootRank, RootedPartition};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::cpus;
use crate::data::{CommData, Reducible};
use crate::env::TcpConfig;
use crate::error::{BackendError, Cause};
use crate::error_kind::ErrorKind;
use crate::report;
use crate::transport::{CallLock, HeapTransport, RegionTransport, Transport, TransportFault};

use group::{CallScope, Group, RunningCall};
use hierarchy::HostCall;
use host_group::HostTable;
pub use host_region::TcpRegion;
use host_region::{HostRegion, RegionKind};
#[cfg(not(test))]
use os as system;
use readiness::Readiness;
use rendezvous::JoinedJob;
#[cfg(test)]
use simulation::system;
use topology::SmallMessages;
use verdict::{JobVerdict, WatchRequest};
use watch::{Limits, WatchThread};

/// The time that a rank that aborts waits for the others to be told; rank 0 may be stopped.
const ABORT: Duration = Duration::from_secs(10);

/// A rank of a job over sockets, in a communicator of all ranks or of those of its host. A clone is another handle to
/// the same rank.
#[derive(Debug, Clone)]
pub struct TcpBackend(Arc<Member>);

#[derive(Debug)]
struct Member {
    /// `None` if every rank is a host of its own. Before the group: who leaves its host is not waited for there.
    hosts: Option<HostTable>,
    group: Arc<Group>,
    /// True if all ranks of the job are in this communicator.
    is_of_job: bool,
    call_lock: CallLock,
}

/// The way of a collective's data.
enum DataPath<'a> {
    /// Between any two ranks, over sockets.
    Flat(&'a RunningCall<'a>),
    /// Inside hosts through memory, between their leaders over sockets.
    ByHosts(HostCall<'a>),
}

impl TcpBackend {
    /// Meets the other ranks of the job that `config` describes.
    ///
    /// # Errors
    /// [`BackendError::InitializationFailed`]: ranks that did not come, no secret where one is
    /// needed or another one, a port that is taken, two processes with one rank, sizes that differ.
    pub fn connect(config: &TcpConfig) -> Result<Self, BackendError> {
        let failed = |reason| BackendError::InitializationFailed {
            backend: "tcp",
            reason,
        };
        let met = rendezvous::meet(config).map_err(failed)?;
        let is_crowded = peer_table::is_crowded(&met.peer_infos, config.rank, cpus::quota());
        let is_measured = met.small_messages == SmallMessages::Measured;
        let begun = begin(config, met, is_crowded);
        let mut group = begun.map_err(|error| failed(error.to_string()))?;
        let hosts = host_group::meet(&group, config, is_crowded).map_err(failed)?;
        let exchanging = hosts.as_ref().map_or(group.size, |it| it.leaders.len());
        if is_measured && exchanging > 2 {
            let measured = topology::is_direct_faster(&group, hosts.as_ref());
            group.always_direct =
                measured.map_err(|fault| failed(host_group::failure_text(fault)))?;
        }
        Ok(Self(Arc::new(Member {
            hosts,
            group: Arc::new(group),
            is_of_job: true,
            call_lock: CallLock::default(),
        })))
    }

    /// The topology of small messages between hosts, or between ranks that share no memory.
    pub fn topology(&self) -> String {
        match (&self.0.hosts, self.group().size) {
            (Some(hosts), _) if hosts.members.len() == 1 => "shared memory".to_owned(),
            (_, 1) => "one rank".to_owned(),
            (Some(hosts), _) if hosts.members.len() == 2 => "two leaders, direct".to_owned(),
            (None, 2) => "two ranks, direct".to_owned(),
            _ if !self.group().direct => "star".to_owned(),
            _ if self.group().always_direct => "direct".to_owned(),
            _ => format!("star up to {} bytes, then direct", collectives::STAR),
        }
    }

    fn group(&self) -> &Group {
        &self.0.group
    }

    /// True if this process is the rank, and not a fork of it.
    fn is_here(&self) -> bool {
        self.group().watch.fork_guard.is_here()
    }

    /// Begins a collective, unless the job has failed.
    fn begin<'a>(&'a self, signature: &'a CallSignature) -> Result<CallScope<'a>, TransportFault> {
        if self.0.is_of_job {
            self.group().begin(signature)
        } else {
            self.group().begin_within_host(signature)
        }
    }

    /// Runs a collective, by the way that its data take.
    fn run<R>(
        &self,
        signature: &CallSignature,
        call: impl FnOnce(DataPath<'_>) -> Result<R, TransportFault>,
    ) -> Result<R, TransportFault> {
        let run = self.begin(signature)?;
        let Some(hosts) = &self.0.hosts else {
            return call(DataPath::Flat(&run));
        };
        let by_hosts = HostCall {
            run: &run,
            hosts,
            is_of_job: self.0.is_of_job,
        };
        by_hosts.begin()?;
        call(DataPath::ByHosts(by_hosts))
    }

    /// The fence that ends a write epoch of a partitioned region which this rank's host has in `data`.
    fn publish(
        &self,
        signature: &CallSignature,
        data: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::barrier(run),
            DataPath::ByHosts(call) => call.publish(data, blocks),
        })
    }

    /// Memory of `len` bytes of which this rank writes `own`, on every host whose ranks share it; `None` on this one
    /// if its rank is alone. All hosts have it, or none.
    fn share(
        &self,
        signature: &CallSignature,
        len: usize,
        own: Range<usize>,
    ) -> Result<Option<HostMemory>, TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::barrier(run).map(|()| None),
            DataPath::ByHosts(call) => call.share(len, own),
        })
    }
}

fn begin(config: &TcpConfig, met: JoinedJob, is_crowded: bool) -> io::Result<Group> {
    let mut links = met.links.iter().flatten();
    links.try_for_each(|link| system::prepare_data(&link.stream))?;
    let limits = Limits {
        stall: config.stall,
        timeout: config.timeout,
    };
    let (job_verdict, wake_receiver) = JobVerdict::new(config.rank, met.peer_infos, met.links)?;
    Ok(Group {
        rank: config.rank,
        size: config.size,
        everyone: (0..config.size).collect(),
        direct: met.direct,
        always_direct: met.small_messages == SmallMessages::Direct,
        spin: system::settle(config.rank, config.size, is_crowded),
        readiness: Readiness::new(&job_verdict.links)?,
        timeout: config.timeout,
        watch: WatchThread::begin(job_verdict, wake_receiver, met.watches, limits)?,
        round: AtomicU64::new(0),
        scratch: Mutex::new(Vec::new()),
    })
}

impl Transport for TcpBackend {
    #[inline]
    fn rank(&self) -> usize {
        match &self.0.hosts {
            Some(hosts) if !self.0.is_of_job => hosts.place(),
            _ => self.group().rank,
        }
    }

    #[inline]
    fn size(&self) -> usize {
        match &self.0.hosts {
            Some(hosts) if !self.0.is_of_job => hosts.here().len(),
            _ => self.group().size,
        }
    }

    #[inline]
    fn call_lock(&self) -> Option<&CallLock> {
        Some(&self.0.call_lock)
    }

    fn allgatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::allgatherv(run, Some(send), recv, blocks),
            DataPath::ByHosts(call) => call.allgatherv(Some(send), recv, blocks),
        })
    }

    fn gatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::gatherv(run, send, recv, blocks),
            DataPath::ByHosts(call) => call.gatherv(send, recv, blocks),
        })
    }

    fn allreduce<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::allreduce(run, send, recv, op),
            DataPath::ByHosts(call) => call.allreduce(send, recv, op),
        })
    }

    fn broadcast(
        &self,
        signature: &CallSignature,
        buf: &mut [u8],
        root: RootRank,
    ) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::broadcast(run, buf, root.rank()),
            DataPath::ByHosts(call) => call.broadcast(buf, root.rank()),
        })
    }

    fn barrier(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::barrier(run),
            DataPath::ByHosts(call) => call.barrier(),
        })
    }

    fn refuse(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        // Arriving with this call signature is the message; who sees it reports the mismatch.
        self.barrier(signature)
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        let group = self.group();
        let job_verdict = group.job_verdict();
        if !self.is_here() {
            return;
        }
        let peer_info = &job_verdict.peer_infos[group.rank];
        let own = Cause::Aborted {
            rank: group.rank,
            host: peer_info.host.clone(),
            pid: peer_info.pid,
            kind,
            reason: reason.to_owned(),
            last: job_verdict.step(),
        };
        if !job_verdict.is_stopped() {
            job_verdict.request(WatchRequest::Report(own));
        }
        // Who gives up because another rank has failed is not the cause.
        match job_verdict.await_verdict_for(ABORT) {
            Some(Cause::Aborted { rank, .. }) if *rank == group.rank => report::abort(kind, reason),
            Some(_) => {}
            None => report::abort(kind, reason),
        }
    }
}

impl HeapTransport for TcpBackend {
    fn allgather_in_place(
        &self,
        signature: &CallSignature,
        data: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::allgatherv(run, None, data, blocks),
            DataPath::ByHosts(call) => call.allgatherv(None, data, blocks),
        })
    }
}

impl RegionTransport for TcpBackend {
    type Region<T: CommData> = TcpRegion<T>;
    type Local = Self;

    fn leader_region<T: CommData>(
        &self,
        signature: &CallSignature,
        count: usize,
    ) -> Result<TcpRegion<T>, TransportFault> {
        let own = if self.leads() { 0..count } else { 0..0 };
        let bytes = own.start * size_of::<T>()..own.end * size_of::<T>();
        let memory = self.share(signature, count * size_of::<T>(), bytes)?;
        Ok(TcpRegion(match memory {
            Some(memory) => {
                let region = HostRegion::new(self, signature, memory, (count, own), None);
                RegionKind::Host(region)
            }
            None => RegionKind::Heap(HeapRegion::led(self.clone(), signature, count)?),
        }))
    }

    fn partitioned_region<T: CommData>(
        &self,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<TcpRegion<T>, TransportFault> {
        let (count, own) = (parts.total(), parts.range(Transport::rank(self)));
        let bytes = own.start * size_of::<T>()..own.end * size_of::<T>();
        let memory = self.share(signature, count * size_of::<T>(), bytes)?;
        Ok(TcpRegion(match memory {
            Some(memory) => {
                let region = HostRegion::new(self, signature, memory, (count, own), Some(parts));
                RegionKind::Host(region)
            }
            None => RegionKind::Heap(HeapRegion::partitioned(self.clone(), signature, parts)?),
        }))
    }

    /// The ranks that share memory with this one; where none do, each is a host of its own.
    fn split(&self, signature: &CallSignature) -> Result<Self, TransportFault> {
        let host_group = self.run(signature, |path| match path {
            DataPath::Flat(run) => collectives::barrier(run).map(|()| None),
            DataPath::ByHosts(call) => call.split(),
        })?;
        Ok(Self(Arc::new(Member {
            hosts: Some(HostTable::of_one(host_group)),
            group: self.0.group.clone(),
            is_of_job: false,
            call_lock: CallLock::default(),
        })))
    }

    fn leads(&self) -> bool {
        self.0.hosts.as_ref().is_none_or(HostTable::leads)
    }
}
