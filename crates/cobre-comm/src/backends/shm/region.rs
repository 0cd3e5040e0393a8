//! Regions in memory that all ranks of the group map: one physical copy.

use std::ops::Range;

use super::ShmBackend;
use super::collectives;
use super::segment::Mapping;
use super::share::share;
use crate::call_signature::{CallSignature, Collective};
use crate::data::CommData;
use crate::error::CommError;
use crate::region::{RegionEpoch, SharedRegion};
use crate::transport::{self, TransportFault};

/// A region of a shared-memory job.
#[derive(Debug)]
pub struct ShmRegion<T> {
    mapping: Mapping,
    count: usize,
    /// The elements this rank may write.
    own: Range<usize>,
    epoch: RegionEpoch,
    /// The creating call's number, by which ranks tell regions apart.
    id: u64,
    backend: ShmBackend,
    element: std::marker::PhantomData<T>,
}

impl<T: CommData> ShmRegion<T> {
    /// Creates a region of `count` elements of which this rank writes `own`.
    pub(super) fn new(
        backend: &ShmBackend,
        signature: &CallSignature,
        count: usize,
        own: Range<usize>,
    ) -> Result<Self, TransportFault> {
        let group = backend.group();
        let bytes = own.start * size_of::<T>()..own.end * size_of::<T>();
        let mapping = share(group, signature, count * size_of::<T>(), bytes)?;
        Ok(Self {
            mapping,
            count,
            own,
            epoch: RegionEpoch::Write,
            id: signature.sequence(),
            backend: backend.clone(),
            element: std::marker::PhantomData,
        })
    }
}

impl<T: CommData> SharedRegion<T> for ShmRegion<T> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        self.epoch.assert_readable();
        self.mapping.published(0, self.count)
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [T] {
        self.epoch
            .assert_writable_here(self.backend.group().job.liveness.is_here());
        self.mapping
            .owned(self.own.start * size_of::<T>(), self.own.len())
    }

    fn fence(&mut self) -> Result<(), CommError> {
        let signature = CallSignature::new(Collective::Fence).subject(self.id);
        let outcome = match &self.epoch {
            RegionEpoch::Poisoned(error) => Err(error.clone()),
            _ => transport::collective(&self.backend, signature, Ok(()), |signature, ()| {
                self.backend.group().begin()?;
                collectives::barrier(self.backend.group(), signature)
            }),
        };
        self.epoch.advance(outcome)
    }
}
