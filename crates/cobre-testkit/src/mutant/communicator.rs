//! The traits of a communicator with a fault.

use cobre_comm::{
    CommData, CommError, Communicator, ErrorKind, ReduceOp, Reducible, SharedMemoryProvider,
};

use super::arithmetic::Combination;
use super::outcome::kept_back;
use super::{Fault, Mutant, MutantRegion};
use crate::layout::BlockLayout;

impl<C: Communicator> Communicator for Mutant<C> {
    fn allgatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
    ) -> Result<(), CommError> {
        self.collective(|| {
            let before = recv.to_vec();
            self.inner.allgatherv(send, recv, counts, displs)?;
            let layout = BlockLayout {
                counts: counts.to_vec(),
                displs: displs.to_vec(),
                len: recv.len(),
            };
            self.spoil_gather(recv, &before, &layout);
            Ok(())
        })
    }

    fn gatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
        root: usize,
    ) -> Result<(), CommError> {
        self.collective(|| {
            let before = recv.to_vec();
            let asked = match self.fault {
                Some(Fault::RootedAtZero) => 0,
                _ => root,
            };
            self.inner.gatherv(send, recv, counts, displs, asked)?;
            if self.inner.rank() == root {
                let layout = BlockLayout {
                    counts: counts.to_vec(),
                    displs: displs.to_vec(),
                    len: recv.len(),
                };
                self.spoil_rooted_gather(recv, &before, &layout);
            } else if self.fault == Some(Fault::RootedSpills) && !recv.is_empty() {
                recv[0] = T::zeroed();
            }
            Ok(())
        })
    }

    fn allreduce<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), CommError> {
        self.collective(|| {
            let before = recv.to_vec();
            if self.fault != Some(Fault::OperatorIgnored) {
                self.inner.allreduce(send, recv, op)?;
            }
            if let Some(combination) = Combination::of(self.fault) {
                let columns = self.gather_all(send)?;
                recv.copy_from_slice(&combination.reduce(op, &columns));
            }
            self.spoil_reduction(recv, &before);
            Ok(())
        })
    }

    fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError> {
        self.collective(|| {
            let before = buf.to_vec();
            match self.fault {
                Some(Fault::BroadcastFromZero) => self.inner.broadcast(buf, 0)?,
                Some(Fault::TypeIgnored) => self
                    .inner
                    .broadcast(bytemuck::cast_slice_mut::<T, u8>(buf), root)?,
                _ => self.inner.broadcast(buf, root)?,
            }
            self.spoil_broadcast(buf, &before, root);
            Ok(())
        })
    }

    fn barrier(&self) -> Result<(), CommError> {
        match self.fault {
            Some(Fault::BarrierAbsent) => Ok(()),
            Some(Fault::BarrierNowAndThen) if self.every(3) => Ok(()),
            _ => self.collective(|| self.inner.barrier()),
        }
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        match self.fault {
            Some(Fault::AbortSwallowed) => {}
            Some(Fault::AbortReasonLost) => self.inner.abort(kind, ""),
            _ => self.inner.abort(kind, reason),
        }
    }

    fn rank(&self) -> usize {
        match self.fault {
            Some(Fault::RankTooHigh) => self.inner.rank() + 1,
            Some(Fault::RankTwice) => self.inner.rank().saturating_sub(1),
            _ => self.inner.rank(),
        }
    }

    fn size(&self) -> usize {
        self.inner.size() + usize::from(self.fault == Some(Fault::SizeTooLarge))
    }
}

impl<C: Communicator + SharedMemoryProvider> SharedMemoryProvider for Mutant<C> {
    type Region<T: CommData> = MutantRegion<T, C::Region<T>>;
    type Local = Mutant<C::Local>;

    fn create_shared_region<T: CommData>(
        &self,
        count: usize,
    ) -> Result<Self::Region<T>, CommError> {
        self.region(|| self.inner.create_shared_region(count))
    }

    fn create_partitioned_region<T: CommData>(
        &self,
        counts: &[usize],
    ) -> Result<Self::Region<T>, CommError> {
        let mut counts = counts.to_vec();
        if self.fault == Some(Fault::PartsRotated) {
            counts.rotate_left(1);
        }
        self.region(|| self.inner.create_partitioned_region(&counts))
    }

    fn split_local(&self) -> Result<Self::Local, CommError> {
        let fault = match self.fault {
            Some(Fault::LocalRankTooHigh) => Some(Fault::RankTooHigh),
            fault => fault,
        };
        let local = self.call(|| self.inner.split_local());
        Ok(Mutant::new(local.map_err(kept_back)?, fault))
    }

    fn is_leader(&self) -> bool {
        self.fault != Some(Fault::NobodyLeads) && self.inner.is_leader()
    }
}

impl<C: Communicator> Mutant<C> {
    /// The send buffers of all ranks.
    fn gather_all<T: Reducible>(&self, send: &[T]) -> Result<Vec<Vec<T>>, CommError> {
        let layout = BlockLayout::packed(&vec![send.len(); self.inner.size()]);
        let mut all = vec![T::zeroed(); layout.len];
        self.inner
            .allgatherv(send, &mut all, &layout.counts, &layout.displs)?;
        let block = |rank| all[layout.block(rank)].to_vec();
        Ok((0..self.inner.size()).map(block).collect())
    }
}

impl<C: Communicator + SharedMemoryProvider> Mutant<C> {
    fn region<T: CommData>(
        &self,
        create: impl FnOnce() -> Result<C::Region<T>, CommError>,
    ) -> Result<MutantRegion<T, C::Region<T>>, CommError> {
        let region = match self.call(create) {
            // Where the arguments were wrong, some region: an empty one.
            Err(None) => self.inner.create_shared_region(0)?,
            outcome => outcome.map_err(kept_back)?,
        };
        Ok(MutantRegion::new(region, self.fault))
    }
}
