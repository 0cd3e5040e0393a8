//! Ranks that are threads of one process, behind a mutex: slow, simple, and there to test the kit.
//! Every contract must hold for it at any size, and every mutant of it must be caught.
//!
//! Ranks are spread over nodes of a given width, so that leader regions and `split_local` are more
//! than the trivial case.

mod arguments;
mod rank;
mod region;
mod rendezvous;
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use cobre_comm::{
    Cause, Collective, CommData, CommError, Communicator, ErrorKind, ReduceOp, Reducible,
    SharedMemoryProvider,
};

use crate::layout::BlockLayout;
use crate::oracle;
use rank::ReferenceRank;
use region::ThreadRegion;
use rendezvous::Rendezvous;

/// One rank.
#[derive(Debug)]
pub(crate) struct ThreadRank {
    inner: Arc<ReferenceRank>,
    /// Ranks per node.
    width: usize,
}

/// Runs `work` as `size` ranks on nodes of `width`. Gives what each returned, or the panic of the
/// first rank that had one of its own.
pub(crate) fn world<R: Send>(
    size: usize,
    width: usize,
    work: impl Fn(ThreadRank) -> R + Sync,
) -> Vec<R> {
    let rendezvous = Arc::new(Rendezvous::new(size));
    thread::scope(|scope| {
        let start = |rank| {
            let rank = ThreadRank {
                inner: Arc::new(ReferenceRank::new(Arc::clone(&rendezvous), rank)),
                width,
            };
            let work = &work;
            scope.spawn(move || catch_unwind(AssertUnwindSafe(|| work(rank))))
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        let outcomes: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("panics are caught inside"))
            .collect();
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// The two sides of a mismatch. Only the communication layer can build [`Cause::Mismatch`], so the
/// same text travels in another cause.
pub(crate) fn mismatch_sides(cause: &Cause) -> Option<[(usize, String); 2]> {
    let Cause::Io { action, message } = cause else {
        return None;
    };
    let side = |text: &str| {
        let (rank, call) = text.strip_prefix("rank ")?.split_once(" made ")?;
        Some((rank.parse().ok()?, call.to_owned()))
    };
    let (left, right) = message.split_once(" while ")?;
    (action == "mismatch").then_some([side(left)?, side(right)?])
}

/// The elements of a call, in the words of the communication layer.
fn elements<T>(length: usize) -> String {
    format!(" of {length} {}", std::any::type_name::<T>())
}

impl Communicator for ThreadRank {
    fn allgatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
    ) -> Result<(), CommError> {
        let position = (self.rank(), self.size());
        let layout = (counts, displs);
        let checked = arguments::blocks(Collective::Allgatherv, position, send, recv, layout);
        let call = format!(
            "{} with counts {counts:?}",
            elements::<T>(counts.iter().sum())
        );
        let all = self.inner.exchange(
            Collective::Allgatherv,
            &call,
            checked,
            bytemuck::cast_slice(send),
        )?;
        let layout = BlockLayout {
            counts: counts.to_vec(),
            displs: displs.to_vec(),
            len: recv.len(),
        };
        for (sender, bytes) in all.iter().enumerate() {
            bytemuck::cast_slice_mut(&mut recv[layout.block(sender)]).copy_from_slice(bytes);
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
        let position = (self.rank(), self.size());
        let checked = arguments::rooted_blocks(position, send, recv, (counts, displs), root);
        let call = format!(
            "{} to root {root} with counts {counts:?}",
            elements::<T>(
                counts
                    .iter()
                    .fold(0, |sum, &count| sum.saturating_add(count))
            )
        );
        let bytes = bytemuck::cast_slice(send);
        let all = self
            .inner
            .exchange(Collective::Gatherv, &call, checked, bytes)?;
        if self.rank() == root {
            for (sender, bytes) in all.iter().enumerate() {
                let block = displs[sender]..displs[sender] + counts[sender];
                bytemuck::cast_slice_mut(&mut recv[block]).copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn allreduce<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), CommError> {
        let checked = arguments::equal_lengths(send, recv);
        let operator = format!("{op:?}").to_lowercase();
        let call = format!("({operator}){}", elements::<T>(send.len()));
        let all = self.inner.exchange(
            Collective::Allreduce,
            &call,
            checked,
            bytemuck::cast_slice(send),
        )?;
        let columns: Vec<Vec<T>> = all
            .iter()
            .map(|bytes| bytemuck::pod_collect_to_vec(bytes))
            .collect();
        recv.copy_from_slice(&oracle::reduce(op, &columns));
        Ok(())
    }

    fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError> {
        let checked = arguments::root(Collective::Broadcast, root, self.size());
        let call = format!("{} from root {root}", elements::<T>(buf.len()));
        let bytes = bytemuck::cast_slice_mut(buf);
        let mine: &[u8] = if self.rank() == root { bytes } else { &[] };
        let all = self
            .inner
            .exchange(Collective::Broadcast, &call, checked, mine)?;
        bytes.copy_from_slice(&all[root]);
        Ok(())
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.inner
            .exchange(Collective::Barrier, "", Ok(()), &[])
            .map(drop)
    }

    fn abort(&self, kind: ErrorKind, reason: &str) {
        self.inner.abort(kind, reason);
    }

    fn rank(&self) -> usize {
        self.inner.rank
    }

    fn size(&self) -> usize {
        self.inner.rendezvous.size
    }
}

impl SharedMemoryProvider for ThreadRank {
    type Region<T: CommData> = ThreadRegion<T>;
    type Local = Self;

    fn create_shared_region<T: CommData>(
        &self,
        count: usize,
    ) -> Result<ThreadRegion<T>, CommError> {
        let checked = arguments::region_length::<T>(count);
        let operation = Collective::CreateSharedRegion;
        let id = self.meet(operation, &elements::<T>(count), checked)?;
        // A node's copy is written by its first rank.
        let first = self.rank() - self.rank() % self.width;
        let mut counts = vec![0; self.size()];
        counts[first] = count;
        let writers = first..first + 1;
        ThreadRegion::new(operation, Arc::clone(&self.inner), id, &counts, writers)
    }

    fn create_partitioned_region<T: CommData>(
        &self,
        counts: &[usize],
    ) -> Result<ThreadRegion<T>, CommError> {
        let checked = arguments::parts::<T>(self.size(), counts);
        let operation = Collective::CreatePartitionedRegion;
        let call = format!("{} with counts {counts:?}", elements::<T>(0));
        let id = self.meet(operation, &call, checked)?;
        let writers = 0..self.size();
        ThreadRegion::new(operation, Arc::clone(&self.inner), id, counts, writers)
    }

    fn split_local(&self) -> Result<Self, CommError> {
        self.meet(Collective::SplitLocal, "", Ok(()))?;
        let (node, width) = (self.rank() / self.width, self.width);
        let size = width.min(self.size() - node * width);
        let rendezvous = self
            .inner
            .rendezvous
            .of_node(self.inner.calls(), node, size);
        Ok(Self {
            inner: Arc::new(ReferenceRank::new(rendezvous, self.rank() % width)),
            width,
        })
    }

    fn is_leader(&self) -> bool {
        self.rank().is_multiple_of(self.width)
    }
}

impl ThreadRank {
    /// A collective without data; gives its number.
    fn meet(
        &self,
        operation: Collective,
        call: &str,
        checked: Result<(), CommError>,
    ) -> Result<u64, CommError> {
        self.inner.exchange(operation, call, checked, &[])?;
        Ok(self.inner.calls())
    }
}
