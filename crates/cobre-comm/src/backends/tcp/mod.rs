//! Processes of one or several hosts, over sockets.

mod accept;
mod channel;
mod collectives;
mod connection;
mod coordinator;
mod dial;
mod follower;
mod frame;
mod group;
mod handshake;
mod inherited;
mod link;
mod message;
mod peer_table;
mod rendezvous;
mod secret;
mod session;
mod sys;
#[cfg(test)]
mod tests;
mod verdict;
mod watch;

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::sockopt;

use super::heap::HeapRegion;
use super::local::LocalBackend;
use crate::arguments::{Partition, RegionParts, RootRank};
use crate::backends::spin::{Spin, spread};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::cpus;
use crate::data::{CommData, Reducible};
use crate::env::TcpConfig;
use crate::error::{BackendError, Cause};
use crate::error_kind::ErrorKind;
use crate::report;
use crate::transport::{CallLock, HeapTransport, RegionTransport, Transport, TransportFault};

use connection::Connection;
use group::Group;
use rendezvous::JoinedJob;
use verdict::{JobVerdict, WatchRequest};
use watch::{Limits, WatchThread};

/// The size of a socket's send buffer: larger ones push data out of the
/// cache, smaller ones wait more often.
const SEND_BUFFER: usize = 512 * 1024;

/// Looks between which others may run, with more ranks than processors.
const YIELDS_IF_CROWDED: u32 = 1000;

/// The time that a rank that aborts waits for the others to be told; rank 0 may be stopped.
const ABORT: Duration = Duration::from_secs(10);

/// A rank of a job over sockets. A clone is another handle to the same rank.
#[derive(Debug, Clone)]
pub struct TcpBackend(Arc<Member>);

#[derive(Debug)]
struct Member {
    group: Group,
    call_lock: CallLock,
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
        let group = begin(config, met).map_err(|error| failed(error.to_string()))?;
        let call_lock = CallLock::default();
        Ok(Self(Arc::new(Member { group, call_lock })))
    }

    fn group(&self) -> &Group {
        &self.0.group
    }
}

fn begin(config: &TcpConfig, met: JoinedJob) -> io::Result<Group> {
    met.links.iter().flatten().try_for_each(prepare)?;
    let crowded = peer_table::is_crowded(&met.peer_infos, config.rank, cpus::quota());
    spread(config.rank, config.size, &cpus::allowed());
    let limits = Limits {
        stall: config.stall,
        timeout: config.timeout,
    };
    let (job_verdict, wake_receiver) = JobVerdict::new(config.rank, met.peer_infos, met.links)?;
    Ok(Group {
        rank: config.rank,
        size: config.size,
        direct: met.direct,
        always_direct: met.always_direct,
        spin: Spin::new(crowded, YIELDS_IF_CROWDED),
        timeout: config.timeout,
        watch: WatchThread::begin(job_verdict, wake_receiver, met.watches, limits)?,
        round: AtomicU64::new(0),
        scratch: Mutex::new(Vec::new()),
    })
}

/// Sets up a data connection. There is no timeout on it: only the watch ends a job.
fn prepare(link: &Connection) -> io::Result<()> {
    let link = &link.stream;
    link.set_nodelay(true)?;
    link.set_read_timeout(None)?;
    link.set_nonblocking(true)?;
    sockopt::set_socket_send_buffer_size(link, SEND_BUFFER)?;
    Ok(())
}

impl Transport for TcpBackend {
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

    fn allgatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        collectives::allgatherv(&self.group().begin(signature)?, Some(send), recv, blocks)
    }

    fn allreduce<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        collectives::allreduce(&self.group().begin(signature)?, send, recv, op)
    }

    fn broadcast(
        &self,
        signature: &CallSignature,
        buf: &mut [u8],
        root: RootRank,
    ) -> Result<(), TransportFault> {
        collectives::broadcast(&self.group().begin(signature)?, buf, root.rank())
    }

    fn barrier(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        collectives::barrier(&self.group().begin(signature)?)
    }

    fn refuse(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        // Arriving with this call signature is the message; who sees it reports the mismatch.
        self.barrier(signature)
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        let group = self.group();
        let job_verdict = group.job_verdict();
        if !group.watch.fork_guard.is_here() {
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
        collectives::allgatherv(&self.group().begin(signature)?, None, data, blocks)
    }
}

impl RegionTransport for TcpBackend {
    type Region<T: CommData> = HeapRegion<T, Self>;
    type Local = LocalBackend;

    fn leader_region<T: CommData>(
        &self,
        signature: &CallSignature,
        count: usize,
    ) -> Result<HeapRegion<T, Self>, TransportFault> {
        self.barrier(signature)?;
        HeapRegion::led(self.clone(), signature, count)
    }

    fn partitioned_region<T: CommData>(
        &self,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<HeapRegion<T, Self>, TransportFault> {
        self.barrier(signature)?;
        HeapRegion::partitioned(self.clone(), signature, parts)
    }

    /// Nothing is shared between ranks, wherever they run: each is a node of its own.
    fn split(&self, signature: &CallSignature) -> Result<LocalBackend, TransportFault> {
        self.barrier(signature)?;
        Ok(LocalBackend)
    }

    fn leads(&self) -> bool {
        true
    }
}
