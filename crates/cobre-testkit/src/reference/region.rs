//! A region that every rank has a copy of; the fence that ends a write epoch brings the copies
//! together.

use std::ops::Range;
use std::sync::Arc;

use cobre_comm::{Cause, Collective, CommData, CommError, SharedRegion};

use super::rank::ReferenceRank;
use crate::layout::BlockLayout;

#[derive(Debug)]
pub(crate) struct ThreadRegion<T> {
    elements: Box<[T]>,
    layout: BlockLayout,
    /// The ranks whose parts this rank's copy takes over.
    writers: Range<usize>,
    readable: bool,
    poison: Option<CommError>,
    id: u64,
    inner: Arc<ReferenceRank>,
}

impl<T: CommData> ThreadRegion<T> {
    pub(super) fn new(
        operation: Collective,
        inner: Arc<ReferenceRank>,
        id: u64,
        counts: &[usize],
        writers: Range<usize>,
    ) -> Result<Self, CommError> {
        let layout = BlockLayout::packed(counts);
        let elements = bytemuck::try_zeroed_slice_box(layout.len);
        Ok(Self {
            elements: elements.map_err(|()| CommError::AllocationFailed {
                operation,
                bytes: layout.len * size_of::<T>(),
                detail: "no memory".to_owned(),
            })?,
            layout,
            writers,
            readable: false,
            poison: None,
            id,
            inner,
        })
    }

    fn assert_epoch(&self, readable: bool) {
        assert!(self.poison.is_none(), "region used after a failed fence");
        assert_eq!(self.readable, readable, "region used in the wrong epoch");
    }
}

impl<T: CommData> SharedRegion<T> for ThreadRegion<T> {
    fn as_slice(&self) -> &[T] {
        self.assert_epoch(true);
        &self.elements
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        self.assert_epoch(false);
        &mut self.elements[self.layout.block(self.inner.rank)]
    }

    fn fence(&mut self) -> Result<(), CommError> {
        if let Some(error) = &self.poison {
            return Err(error.clone());
        }
        let call = format!(" on region {}", self.id);
        let mine = &self.elements[self.layout.block(self.inner.rank)];
        let bytes = if self.readable {
            &[]
        } else {
            bytemuck::cast_slice(mine)
        };
        match self.inner.exchange(Collective::Fence, &call, Ok(()), bytes) {
            Err(error) => {
                let busy = matches!(
                    &error,
                    CommError::CollectiveFailed {
                        cause: Cause::Busy,
                        ..
                    }
                );
                if !busy {
                    self.poison = Some(error.clone());
                }
                Err(error)
            }
            Ok(all) => {
                if !self.readable {
                    for writer in self.writers.clone() {
                        let block = &mut self.elements[self.layout.block(writer)];
                        bytemuck::cast_slice_mut(block).copy_from_slice(&all[writer]);
                    }
                }
                self.readable = !self.readable;
                Ok(())
            }
        }
    }
}
