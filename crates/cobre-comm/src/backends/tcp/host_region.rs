//! Regions of a job over sockets: one copy per host where its ranks share memory, one per rank where not.

use std::ops::Range;

use super::TcpBackend;
use crate::arguments::RegionParts;
use crate::backends::heap::HeapRegion;
use crate::backends::shm::HostMemory;
use crate::call_signature::{CallSignature, Collective};
use crate::data::CommData;
use crate::error::CommError;
use crate::region::{RegionEpoch, SharedRegion};
use crate::transport::{self, RegionTransport, Transport, TransportFault};

/// A region of a job over sockets.
#[derive(Debug)]
pub struct TcpRegion<T>(pub(super) RegionKind<T>);

#[derive(Debug)]
pub(super) enum RegionKind<T> {
    /// A copy of this rank's own.
    Heap(HeapRegion<T, TcpBackend>),
    /// A copy of this rank's host.
    Host(HostRegion<T>),
}

impl<T: CommData> SharedRegion<T> for TcpRegion<T> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        match &self.0 {
            RegionKind::Heap(region) => region.as_slice(),
            RegionKind::Host(region) => region.as_slice(),
        }
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        match &mut self.0 {
            RegionKind::Heap(region) => region.as_mut_slice(),
            RegionKind::Host(region) => region.as_mut_slice(),
        }
    }

    fn fence(&mut self) -> Result<(), CommError> {
        match &mut self.0 {
            RegionKind::Heap(region) => region.fence(),
            RegionKind::Host(region) => region.fence(),
        }
    }
}

/// A region in memory that the ranks of a host share.
#[derive(Debug)]
pub(super) struct HostRegion<T> {
    memory: HostMemory,
    count: usize,
    /// The elements this rank may write.
    own: Range<usize>,
    /// Of a partitioned region.
    parts: Option<RegionParts>,
    epoch: RegionEpoch,
    /// The creating call's number, by which ranks tell regions apart.
    id: u64,
    backend: TcpBackend,
    element: std::marker::PhantomData<T>,
}

impl<T: CommData> HostRegion<T> {
    /// A region of `count` elements in `memory`, of which this rank writes `own`.
    pub(super) fn new(
        backend: &TcpBackend,
        signature: &CallSignature,
        memory: HostMemory,
        (count, own): (usize, Range<usize>),
        parts: Option<RegionParts>,
    ) -> Self {
        Self {
            memory,
            count,
            own,
            parts,
            epoch: RegionEpoch::Write,
            id: signature.sequence(),
            backend: backend.clone(),
            element: std::marker::PhantomData,
        }
    }

    /// Ends the epoch: all have written, or read.
    fn publish(&mut self, signature: &CallSignature) -> Result<(), TransportFault> {
        match (&self.epoch, &self.parts) {
            (RegionEpoch::Write, Some(parts)) => {
                // The leader alone writes the others' parts.
                let elements = if self.backend.leads() { self.count } else { 0 };
                let bytes = self.memory.owned(0, elements * size_of::<T>());
                self.backend
                    .publish(signature, bytes, parts.partition::<T>())
            }
            _ => Transport::barrier(&self.backend, signature),
        }
    }
}

impl<T: CommData> SharedRegion<T> for HostRegion<T> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        self.epoch.assert_readable();
        self.memory.published(0, self.count)
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        self.epoch.assert_writable_here(self.backend.is_here());
        self.memory.owned(self.own.start, self.own.len())
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
