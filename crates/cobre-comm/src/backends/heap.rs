//! Regions for backends without shared memory: each rank has its own copy.

use crate::arguments::Parts;
use crate::data::CommData;
use crate::error::CommError;
use crate::region::{Epoch, SharedRegion};
use crate::stamp::{Collective, Stamp};
use crate::transport::{self, Fault, HeapTransport};

/// A region on this process's own heap. Of a leader region every rank writes its own copy; a
/// partitioned one is gathered by the fence that ends a write epoch.
#[derive(Debug)]
pub struct HeapRegion<T, C> {
    elements: Box<[T]>,
    /// `None` for a leader region.
    parts: Option<Parts>,
    epoch: Epoch,
    /// The creating call's number, by which ranks tell regions apart.
    id: u64,
    communicator: C,
}

impl<T: CommData, C: HeapTransport> HeapRegion<T, C> {
    pub(crate) fn led(communicator: C, stamp: &Stamp, count: usize) -> Result<Self, Fault> {
        Self::allocate(communicator, stamp, count, None)
    }

    pub(crate) fn partitioned(communicator: C, stamp: &Stamp, parts: Parts) -> Result<Self, Fault> {
        Self::allocate(communicator, stamp, parts.total(), Some(parts))
    }

    fn allocate(
        communicator: C,
        stamp: &Stamp,
        count: usize,
        parts: Option<Parts>,
    ) -> Result<Self, Fault> {
        let elements = bytemuck::try_zeroed_slice_box(count).map_err(|()| Fault::NoMemory {
            bytes: count * size_of::<T>(),
            detail: "the process's memory is exhausted".to_owned(),
        })?;
        Ok(Self {
            elements,
            parts,
            epoch: Epoch::Write,
            id: stamp.sequence(),
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
        let stamp = Stamp::new(Collective::Fence).subject(self.id);
        let communicator = &self.communicator;
        let outcome = match (&self.epoch, &self.parts) {
            (Epoch::Poisoned(error), _) => Err(error.clone()),
            (Epoch::Write, Some(parts)) => {
                let data = bytemuck::cast_slice_mut(&mut self.elements);
                transport::collective(communicator, stamp, Ok(()), |stamp, ()| {
                    communicator.allgather_in_place(stamp, data, parts.partition::<T>())
                })
            }
            _ => transport::collective(communicator, stamp, Ok(()), |stamp, ()| {
                communicator.barrier(stamp)
            }),
        };
        self.epoch.advance(outcome)
    }
}
