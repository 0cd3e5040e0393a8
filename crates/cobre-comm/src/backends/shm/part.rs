//! Ranks of one host as a part of a larger job: they share a segment that the job finds for them, and records
//! name them by their numbers in the job.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytemuck::Pod;

use super::event_count::{EventCount, WaitPolicy};
use super::group::{Group, JobState};
use super::layout::SegmentLayout;
use super::liveness::Liveness;
use super::machine::Sleep;
use super::rendezvous::{self, MeetError, SegmentFile};
use super::segment::Mapping;
use super::system::{self, Instant};
use super::{YIELDS_IF_CROWDED, collectives, share};
use crate::arguments::{Partition, RootedPartition};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::data::Reducible;
use crate::env::ShmConfig;
use crate::error::Cause;
use crate::transport::TransportFault;

/// A segment that the ranks of a host are about to share.
#[derive(Debug)]
pub(in crate::backends) struct HostSegment {
    config: ShmConfig,
    segment: (Arc<Mapping>, SegmentLayout),
    file: SegmentFile,
}

/// A segment in which this rank has its place.
#[derive(Debug)]
pub(in crate::backends) struct HostPlace {
    segment: HostSegment,
    liveness: Liveness,
}

impl HostSegment {
    /// The segment that `config` names: created by its rank 0, opened by the others once it is there.
    pub(in crate::backends) fn new(config: ShmConfig) -> Result<Self, String> {
        let (mapping, layout, file) = system::segment(&config)?;
        Ok(Self {
            config,
            segment: (mapping, layout),
            file,
        })
    }

    /// Takes this rank's place, under its number in the job.
    pub(in crate::backends) fn attach(self, number: usize) -> Result<HostPlace, String> {
        let liveness = rendezvous::attach(&self.config, number, &self.segment, &self.file);
        Ok(HostPlace {
            liveness: liveness.map_err(MeetError::into_text)?,
            segment: self,
        })
    }
}

impl HostPlace {
    /// The group, once all ranks of the host have their places: the segment's name goes.
    pub(in crate::backends) fn into_group(self, is_crowded: bool) -> HostGroup {
        let HostSegment {
            config,
            segment: (mapping, layout),
            file,
        } = self.segment;
        drop(file);
        rendezvous::populate(&mapping, &layout, config.rank);
        let job = JobState {
            header: mapping.clone(),
            wait_policy: WaitPolicy {
                spin: system::spin(is_crowded, YIELDS_IF_CROWDED),
                slice: Duration::from_secs(1),
            },
            begun: Instant::now(),
            timeout: config.timeout,
            named_regions: config.named_regions,
            is_part: true,
            liveness: self.liveness,
            sleep: Sleep::Futex,
        };
        HostGroup(Group::new(config.rank, layout, mapping, Arc::new(job)))
    }
}

/// The ranks of a host, numbered from 0 in the order of their numbers in the job.
#[derive(Debug)]
pub(in crate::backends) struct HostGroup(Group);

/// The way to end the waits of a host's ranks from another thread.
#[derive(Debug)]
pub(in crate::backends) struct HostAlarm(Weak<JobState>);

impl HostAlarm {
    /// True if the ranks of the host wait no more, or this rank has left them.
    pub(in crate::backends) fn is_stopped(&self) -> bool {
        let job = self.0.upgrade();
        job.is_none_or(|job| job.stopped().load(Relaxed) != 0)
    }

    /// Ends the waits of all ranks of the host.
    pub(in crate::backends) fn stop(&self, cause: &Cause) {
        if let Some(job) = self.0.upgrade() {
            job.stop(cause);
        }
    }
}

impl HostGroup {
    pub(in crate::backends) fn rank(&self) -> usize {
        self.0.rank
    }

    pub(in crate::backends) fn size(&self) -> usize {
        self.0.size
    }

    pub(in crate::backends) fn alarm(&self) -> HostAlarm {
        HostAlarm(Arc::downgrade(&self.0.job))
    }

    /// Begins a collective, unless a rank of the host is lost.
    pub(in crate::backends) fn begin(&self) -> Result<(), TransportFault> {
        self.0.begin()
    }

    pub(in crate::backends) fn barrier(
        &self,
        signature: &CallSignature,
    ) -> Result<(), TransportFault> {
        collectives::barrier(&self.0, signature)
    }

    pub(in crate::backends) fn allgatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        collectives::allgatherv(&self.0, signature, send, recv, blocks)
    }

    pub(in crate::backends) fn gatherv(
        &self,
        signature: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault> {
        collectives::gatherv(&self.0, signature, send, recv, blocks)
    }

    pub(in crate::backends) fn allreduce<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), TransportFault> {
        collectives::allreduce(&self.0, signature, send, recv, op)
    }

    /// Most bytes of a vector that [`offer_to_leader`](Self::offer_to_leader) takes on a host of so many ranks.
    pub(in crate::backends) fn most_offered(ranks: usize) -> usize {
        system::stage_bytes(ranks)
    }

    /// Every rank's vector for the leader, which finds the others' by [`offered`](Self::offered) until it hands out the result.
    pub(in crate::backends) fn offer_to_leader<T: Reducible>(
        &self,
        signature: &CallSignature,
        send: &[T],
    ) -> Result<(), TransportFault> {
        collectives::offer_to_leader(&self.0, signature, send)
    }

    /// Elements of the vector that another rank offers, on the leader.
    pub(in crate::backends) fn offered<T: Reducible>(
        &self,
        rank: usize,
        range: Range<usize>,
    ) -> &[T] {
        self.0.staged(rank, range)
    }

    /// The leader's result to all ranks.
    pub(in crate::backends) fn hand_out_result<T: Reducible>(
        &self,
        signature: &CallSignature,
        result: &mut [T],
    ) -> Result<(), TransportFault> {
        collectives::hand_out_result(&self.0, signature, result)
    }

    pub(in crate::backends) fn broadcast(
        &self,
        signature: &CallSignature,
        buf: &mut [u8],
        root: usize,
    ) -> Result<(), TransportFault> {
        collectives::broadcast(&self.0, signature, buf, root)
    }

    /// Memory of `len` zeros that all ranks of the host map, each having reserved `own`.
    pub(in crate::backends) fn share(
        &self,
        signature: &CallSignature,
        len: usize,
        own: Range<usize>,
    ) -> Result<HostMemory, TransportFault> {
        share::share(&self.0, signature, len, own).map(HostMemory)
    }

    /// The same ranks again, with a segment and a sequence of collectives of their own.
    pub(in crate::backends) fn split(
        &self,
        signature: &CallSignature,
    ) -> Result<Self, TransportFault> {
        let Group {
            rank, layout, job, ..
        } = &self.0;
        let data = share::share(&self.0, signature, layout.total(), layout.slice(*rank))?;
        rendezvous::populate(&data, layout, *rank);
        let group = Group::new(*rank, *layout, Arc::new(data), job.clone());
        Ok(Self(group))
    }
}

/// Memory that the ranks of a host share.
#[derive(Debug)]
pub(in crate::backends) struct HostMemory(Mapping);

impl HostMemory {
    /// `count` elements from the `start`th on, which no rank writes; see [`Mapping::published`].
    #[inline]
    pub(in crate::backends) fn published<T: Pod>(&self, start: usize, count: usize) -> &[T] {
        self.0.published(start * size_of::<T>(), count)
    }

    /// `count` elements from the `start`th on, which are this rank's alone; see [`Mapping::owned`].
    #[inline]
    pub(in crate::backends) fn owned<T: Pod>(&mut self, start: usize, count: usize) -> &mut [T] {
        self.0.owned(start * size_of::<T>(), count)
    }
}
