//! One process that is all the ranks there are: copies instead of messages, nothing to wait for.

use super::heap::HeapRegion;
use crate::arguments::{Partition, RegionParts, RootRank, RootedPartition};
use crate::call_signature::CallSignature;
use crate::communicator::ReduceOp;
use crate::copy::{StoreMode, copy};
use crate::data::{CommData, Reducible};
use crate::error_kind::ErrorKind;
use crate::report;
use crate::transport::{CallLock, HeapTransport, RegionTransport, Transport, TransportFault};

/// A world of one rank.
///
/// It holds no state: it costs no memory, a barrier compiles to nothing, and any number of threads
/// may use it at once. [`abort`](crate::Communicator::abort) tells the launcher and changes
/// nothing else, as there is no other rank whose call could fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalBackend;

impl Transport for LocalBackend {
    #[inline]
    fn rank(&self) -> usize {
        0
    }

    #[inline]
    fn size(&self) -> usize {
        1
    }

    #[inline]
    fn call_lock(&self) -> Option<&CallLock> {
        None
    }

    #[inline]
    fn allgatherv(
        &self,
        _: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: Partition<'_>,
    ) -> Result<(), TransportFault> {
        copy(send, &mut recv[blocks.bytes(0)], StoreMode::of(send.len()));
        Ok(())
    }

    #[inline]
    fn gatherv(
        &self,
        _: &CallSignature,
        send: &[u8],
        recv: &mut [u8],
        blocks: RootedPartition<'_>,
    ) -> Result<(), TransportFault> {
        if let Some(blocks) = blocks.at_root() {
            copy(send, &mut recv[blocks.bytes(0)], StoreMode::of(send.len()));
        }
        Ok(())
    }

    #[inline]
    fn allreduce<T: Reducible>(
        &self,
        _: &CallSignature,
        send: &[T],
        recv: &mut [T],
        _: ReduceOp,
    ) -> Result<(), TransportFault> {
        let store = StoreMode::of(size_of_val(send));
        let (from, into) = (bytemuck::cast_slice(send), bytemuck::cast_slice_mut(recv));
        copy(from, into, store);
        Ok(())
    }

    #[inline]
    fn broadcast(
        &self,
        _: &CallSignature,
        _: &mut [u8],
        _: RootRank,
    ) -> Result<(), TransportFault> {
        Ok(())
    }

    #[inline]
    fn barrier(&self, _: &CallSignature) -> Result<(), TransportFault> {
        Ok(())
    }

    fn refuse(&self, _: &CallSignature) -> Result<(), TransportFault> {
        Ok(())
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        report::abort(kind, reason);
    }
}

impl HeapTransport for LocalBackend {
    #[inline]
    fn allgather_in_place(
        &self,
        _: &CallSignature,
        _: &mut [u8],
        _: Partition<'_>,
    ) -> Result<(), TransportFault> {
        Ok(())
    }
}

impl RegionTransport for LocalBackend {
    type Region<T: CommData> = HeapRegion<T, Self>;
    type Local = Self;

    fn leader_region<T: CommData>(
        &self,
        signature: &CallSignature,
        count: usize,
    ) -> Result<HeapRegion<T, Self>, TransportFault> {
        HeapRegion::led(*self, signature, count)
    }

    fn partitioned_region<T: CommData>(
        &self,
        signature: &CallSignature,
        parts: RegionParts,
    ) -> Result<HeapRegion<T, Self>, TransportFault> {
        HeapRegion::partitioned(*self, signature, parts)
    }

    fn split(&self, _: &CallSignature) -> Result<Self, TransportFault> {
        Ok(*self)
    }

    fn leads(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_no_memory() {
        assert_eq!(size_of::<LocalBackend>(), 0);
    }
}
