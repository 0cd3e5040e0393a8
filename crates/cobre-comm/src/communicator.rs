//! The collectives that every backend offers.

use crate::data::{CommData, Reducible};
use crate::error::CommError;
use crate::error_kind::ErrorKind;

/// The operator by which [`Communicator::allreduce`] combines the ranks' elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum, added in rank order; integers wrap.
    Sum,
    /// The smallest; −0.0 is below 0.0, and a NaN anywhere makes the result NaN.
    Min,
    /// The largest; 0.0 is above −0.0, and a NaN anywhere makes the result NaN.
    Max,
}

/// A group of ranks that act together.
///
/// Every method but [`abort`](Self::abort), [`rank`](Self::rank) and [`size`](Self::size) is a
/// *collective*: all ranks call it, in the same order, with arguments that agree as each method
/// says. Arguments are checked before anything is sent. Where ranks disagree, all of them get
/// [`CommError::CollectiveFailed`] with both sides in it, and no data are combined.
///
/// One collective at a time: a second thread that enters while one is under way gets
/// [`Cause::Busy`](crate::Cause::Busy). Backends with one rank have nothing to protect and let it
/// through.
///
/// After any other `CollectiveFailed` the communicator is finished: every later collective on it
/// fails with the same cause. So it is, with several ranks, after arguments that one rank refused:
/// the ranks are out of step. Output buffers hold unspecified but initialised values after `Err`.
pub trait Communicator: Send + Sync {
    /// Gathers every rank's `send` into every rank's `recv`: rank `r`'s elements land at
    /// `recv[displs[r]..displs[r] + counts[r]]`. Elements outside the blocks are left alone.
    ///
    /// Ranks agree on `T` and `counts`; `displs` may differ from rank to rank.
    ///
    /// # Errors
    /// [`CommError::InvalidBufferSize`] if `counts` or `displs` has not one entry per rank, `send`
    /// is not `counts[rank]` long, or a block leaves `recv` or overlaps another;
    /// [`CommError::CollectiveFailed`].
    fn allgatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
    ) -> Result<(), CommError>;

    /// Gathers every rank's `send` into `recv` of the rank `root`, as [`allgatherv`](Self::allgatherv) does on
    /// every rank. The other ranks' `recv` is left alone, and neither it nor their `displs` is looked at: both may
    /// be empty there.
    ///
    /// Ranks agree on `T`, `counts` and `root`.
    ///
    /// # Errors
    /// [`CommError::InvalidRoot`] if there is no such rank; [`CommError::InvalidBufferSize`] if `counts` has not
    /// one entry per rank, `send` is not `counts[rank]` long, or on the root as for `allgatherv`;
    /// [`CommError::CollectiveFailed`].
    fn gatherv<T: CommData>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        displs: &[usize],
        root: usize,
    ) -> Result<(), CommError>;

    /// Combines the ranks' `send` element by element and gives every rank the result in `recv`.
    ///
    /// Elements are combined in rank order, ((x₀ ∘ x₁) ∘ x₂) ∘ …, whatever the backend and the
    /// length, so the result is the same bits everywhere. With one rank it is a copy.
    ///
    /// Ranks agree on `T`, `op` and the length.
    ///
    /// # Errors
    /// [`CommError::InvalidBufferSize`] if `send` and `recv` differ in length;
    /// [`CommError::CollectiveFailed`].
    fn allreduce<T: Reducible>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: ReduceOp,
    ) -> Result<(), CommError>;

    /// Copies `root`'s `buf` into every rank's `buf`.
    ///
    /// Ranks agree on `T`, `root` and the length.
    ///
    /// # Errors
    /// [`CommError::InvalidRoot`] if there is no such rank; [`CommError::CollectiveFailed`].
    fn broadcast<T: CommData>(&self, buf: &mut [T], root: usize) -> Result<(), CommError>;

    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// [`CommError::CollectiveFailed`].
    fn barrier(&self) -> Result<(), CommError>;

    /// Gives up: every rank's pending and later collectives fail with this reason, and the
    /// launcher, if one started this process, names this rank and the reason as the root cause.
    /// All of them learn the kind of the error, too; a program of its own has
    /// [`ErrorKind::Program`].
    ///
    /// Not a collective; the calling process goes on and is expected to end soon.
    fn abort(&self, kind: ErrorKind, reason: &str);

    /// This process's number, from 0 to `size() - 1`.
    fn rank(&self) -> usize;

    /// The number of ranks, at least 1.
    fn size(&self) -> usize;
}
