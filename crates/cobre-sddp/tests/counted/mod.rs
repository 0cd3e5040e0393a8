//! A communicator that counts the collectives of a rank, fences and creations included, and can spoil what the
//! rank receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cobre_comm::{
    CommData, CommError, Communicator, ErrorKind, ReduceOp, Reducible, SharedMemoryProvider,
    SharedRegion,
};

/// The rank `inner`, counted.
pub struct Counted<C> {
    inner: C,
    count: Arc<AtomicUsize>,
    gathered: Arc<AtomicUsize>,
    /// The allgatherv, by its number among all collectives, whose last byte is changed on this rank.
    spoiled: Option<usize>,
}

impl<C> Counted<C> {
    pub fn new(inner: C, spoiled: Option<usize>) -> Self {
        Self {
            inner,
            count: Arc::default(),
            gathered: Arc::default(),
            spoiled,
        }
    }

    /// Collectives so far.
    pub fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.count)
    }

    /// Bytes of all allgathervs so far.
    pub fn gathered(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.gathered)
    }

    fn next(&self) -> usize {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

impl<C: Communicator> Communicator for Counted<C> {
    fn allgatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
    ) -> Result<(), CommError> {
        let number = self.next();
        self.gathered
            .fetch_add(size_of_val(recv), Ordering::Relaxed);
        self.inner.allgatherv(send, recv, counts, displs)?;
        if self.spoiled == Some(number) {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(recv);
            let last = bytes.len() - 8;
            bytes[last] ^= 1;
        }
        Ok(())
    }

    fn gatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
        root: usize,
    ) -> Result<(), CommError> {
        self.next();
        self.inner.gatherv(send, recv, counts, displs, root)
    }

    fn allreduce<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), CommError> {
        self.next();
        self.inner.allreduce(send, recv, op)
    }

    fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError> {
        self.next();
        self.inner.broadcast(buf, root)
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.next();
        self.inner.barrier()
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        self.inner.abort(kind, reason);
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

impl<C: Communicator + SharedMemoryProvider> SharedMemoryProvider for Counted<C> {
    type Region<T: CommData> = CountedRegion<C::Region<T>>;
    type Local = C::Local;

    fn create_shared_region<T: CommData>(
        &self,
        count: usize,
    ) -> Result<Self::Region<T>, CommError> {
        self.next();
        Ok(CountedRegion {
            inner: self.inner.create_shared_region(count)?,
            count: self.count(),
        })
    }

    fn create_partitioned_region<T: CommData>(
        &self,
        counts: &[usize],
    ) -> Result<Self::Region<T>, CommError> {
        self.next();
        Ok(CountedRegion {
            inner: self.inner.create_partitioned_region(counts)?,
            count: self.count(),
        })
    }

    fn split_local(&self) -> Result<Self::Local, CommError> {
        self.next();
        self.inner.split_local()
    }

    fn is_leader(&self) -> bool {
        self.inner.is_leader()
    }
}

/// A region whose fences count.
pub struct CountedRegion<R> {
    inner: R,
    count: Arc<AtomicUsize>,
}

impl<T: CommData, R: SharedRegion<T>> SharedRegion<T> for CountedRegion<R> {
    fn as_slice(&self) -> &[T] {
        self.inner.as_slice()
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        self.inner.as_mut_slice()
    }

    fn fence(&mut self) -> Result<(), CommError> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inner.fence()
    }
}
