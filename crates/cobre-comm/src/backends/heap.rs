//! Regions for backends without shared memory: each rank has its own copy.

use crate::arguments::RegionParts;
use crate::call_signature::{CallSignature, Collective};
use crate::data::CommData;
use crate::error::CommError;
use crate::region::{RegionEpoch, SharedRegion};
use crate::transport::{self, HeapTransport, TransportFault};

/// A region on this process's own heap. Of a leader region every rank writes its own copy; a
/// partitioned one is gathered by the fence that ends a write epoch.
#[derive(Debug)]
pub struct HeapRegion<T, C> {
    elements: Box<[T]>,
    /// `None` for a leader region.
    parts: Option<RegionParts>,
    epoch: RegionEpoch,
    /// The creating call's number, by which ranks tell regions apart.
    id: u64,
    communicator: C,
}

impl<T: CommData, C: HeapTransport> HeapRegion<T, C> {
    pub(crate) fn led(
        communicator: C,
        signature: &CallSignature,
        count: usize,
    ) -> Result<Self, TransportFault> {
        Self::allocate(communicator, signature, count, None)
    }

    pub(crate) fn partitioned(
        communicator: C,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<Self, TransportFault> {
        Self::allocate(communicator, signature, parts.total(), Some(parts))
    }

    fn allocate(
        communicator: C,
        signature: &CallSignature,
        count: usize,
        parts: Option<RegionParts>,
    ) -> Result<Self, TransportFault> {
        let elements =
            bytemuck::try_zeroed_slice_box(count).map_err(|()| TransportFault::NoMemory {
                bytes: count * size_of::<T>(),
                detail: "the process's memory is exhausted".to_owned(),
            })?;
        Ok(Self {
            elements,
            parts,
            epoch: RegionEpoch::Write,
            id: signature.sequence(),
            communicator,
        })
    }
}

impl<T: CommData, C: HeapTransport> SharedRegion<T> for HeapRegion<T, C> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        self.epoch.assert_readable();
        &self.elements
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        self.epoch.assert_writable();
        match &self.parts {
            None => &mut self.elements,
            Some(parts) => &mut self.elements[parts.range(self.communicator.rank())],
        }
    }

    fn fence(&mut self) -> Result<(), CommError> {
        let signature = CallSignature::new(Collective::Fence).subject(self.id);
        let communicator = &self.communicator;
        let outcome = match (&self.epoch, &self.parts) {
            (RegionEpoch::Poisoned(error), _) => Err(error.clone()),
            (RegionEpoch::Write, Some(parts)) => {
                let data = bytemuck::cast_slice_mut(&mut self.elements);
                transport::collective(communicator, signature, Ok(()), |signature, ()| {
                    communicator.allgather_in_place(signature, data, parts.partition::<T>())
                })
            }
            _ => transport::collective(communicator, signature, Ok(()), |signature, ()| {
                communicator.barrier(signature)
            }),
        };
        self.epoch.advance(outcome)
    }
}
