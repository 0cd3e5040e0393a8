//! Processes of one or several hosts, over sockets.

mod channel;
mod collectives;
mod connection;
mod fate;
mod frame;
mod group;
mod guest;
mod handshake;
mod inherited;
mod link;
mod message;
mod reception;
mod rendezvous;
mod roster;
mod secret;
mod session;
mod sys;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::sockopt;

use super::heap::HeapRegion;
use super::local::LocalBackend;
use crate::arguments::{Partition, Parts, Root};
use crate::backends::spin::{Spin, spread};
use crate::communicator::ReduceOp;
use crate::cpus;
use crate::data::{CommData, Reducible};
use crate::env::TcpConfig;
use crate::error::{BackendError, Cause};
use crate::report;
use crate::stamp::Stamp;
use crate::transport::{Fault, HeapTransport, Line, RegionTransport, Transport};

use connection::Connection;
use fate::{Fate, Order};
use group::Group;
use rendezvous::Met;
use watch::{Limits, Watch};

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
    line: Line,
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
        let line = Line::default();
        Ok(Self(Arc::new(Member { group, line })))
    }

    fn group(&self) -> &Group {
        &self.0.group
    }
}

fn begin(config: &TcpConfig, met: Met) -> io::Result<Group> {
    met.links.iter().flatten().try_for_each(prepare)?;
    let crowded = roster::is_crowded(&met.cards, config.rank, cpus::quota());
    spread(config.rank, config.size, &cpus::allowed());
    let limits = Limits {
        stall: config.stall,
        timeout: config.timeout,
    };
    let (fate, ear) = Fate::new(config.rank, met.cards, met.links)?;
    Ok(Group {
        rank: config.rank,
        size: config.size,
        direct: met.direct,
        always_direct: met.always_direct,
        spin: Spin::new(crowded, YIELDS_IF_CROWDED),
        timeout: config.timeout,
        watch: Watch::begin(fate, ear, met.watches, limits)?,
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
    fn line(&self) -> Option<&Line> {
        Some(&self.0.line)
    }

    fn allgatherv(
        &self,
        stamp: &Stamp,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), Fault> {
        collectives::allgatherv(&self.group().begin(stamp)?, Some(send), recv, blocks)
    }

    fn allreduce<T: Reducible>(
        &self,
        stamp: &Stamp,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), Fault> {
        collectives::allreduce(&self.group().begin(stamp)?, send, recv, op)
    }

    fn broadcast(&self, stamp: &Stamp, buf: &mut [u8], root: Root) -> Result<(), Fault> {
        collectives::broadcast(&self.group().begin(stamp)?, buf, root.rank())
    }

    fn barrier(&self, stamp: &Stamp) -> Result<(), Fault> {
        collectives::barrier(&self.group().begin(stamp)?)
    }

    fn refuse(&self, stamp: &Stamp) -> Result<(), Fault> {
        // Arriving with this stamp is the message; who sees it reports the mismatch.
        self.barrier(stamp)
    }

    fn abort(&self, reason: &str) {
        let group = self.group();
        let fate = group.fate();
        if !group.watch.origin.is_here() {
            return;
        }
        let card = &fate.cards[group.rank];
        let own = Cause::Aborted {
            rank: group.rank,
            host: card.host.clone(),
            pid: card.pid,
            reason: reason.to_owned(),
            last: fate.step(),
        };
        if !fate.is_stopped() {
            fate.order(Order::Report(own));
        }
        // Who gives up because another rank has failed is not the cause.
        match fate.await_verdict_for(ABORT) {
            Some(Cause::Aborted { rank, .. }) if *rank == group.rank => report::give_up(reason),
            Some(_) => {}
            None => report::give_up(reason),
        }
    }
}

impl HeapTransport for TcpBackend {
    fn allgather_in_place(
        &self,
        stamp: &Stamp,
        data: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), Fault> {
        collectives::allgatherv(&self.group().begin(stamp)?, None, data, blocks)
    }
}

impl RegionTransport for TcpBackend {
    type Region<T: CommData> = HeapRegion<T, Self>;
    type Local = LocalBackend;

    fn leader_region<T: CommData>(
        &self,
        stamp: &Stamp,
        count: usize,
    ) -> Result<HeapRegion<T, Self>, Fault> {
        self.barrier(stamp)?;
        HeapRegion::led(self.clone(), stamp, count)
    }

    fn partitioned_region<T: CommData>(
        &self,
        stamp: &Stamp,
        parts: Parts,
    ) -> Result<HeapRegion<T, Self>, Fault> {
        self.barrier(stamp)?;
        HeapRegion::partitioned(self.clone(), stamp, parts)
    }

    /// Nothing is shared between ranks, wherever they run: each is a node of its own.
    fn split(&self, stamp: &Stamp) -> Result<LocalBackend, Fault> {
        self.barrier(stamp)?;
        Ok(LocalBackend)
    }

    fn leads(&self) -> bool {
        true
    }
}
