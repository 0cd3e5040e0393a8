//! Memory that the ranks of a node share, and the epochs that keep it sound.

use crate::communicator::Communicator;
use crate::data::CommData;
#[cfg(doc)]
use crate::error::Cause;
use crate::error::CommError;

/// Creates regions of memory that ranks share where the backend can, and that behave the same
/// where it cannot.
pub trait SharedMemoryProvider: Send + Sync {
    /// The region type of this backend.
    type Region<T: CommData>: SharedRegion<T>;
    /// The communicator of the ranks on one node.
    type Local: Communicator;

    /// Creates a region of `count` zeroed elements, one copy per node, that each node's leader
    /// writes. Collective: ranks agree on `T` and `count`. The region is in a write epoch.
    ///
    /// No data move: every leader writes its own node's copy.
    ///
    /// # Errors
    /// [`CommError::AllocationFailed`] on every rank if one of them cannot have its part; the
    /// communicator goes on. [`CommError::InvalidBufferSize`], [`CommError::CollectiveFailed`].
    fn create_shared_region<T: CommData>(&self, count: usize)
    -> Result<Self::Region<T>, CommError>;

    /// Creates a zeroed region of which rank `r` writes the `counts[r]` elements that follow those
    /// of the ranks before it; after [`SharedRegion::fence`] every rank reads all of them.
    /// Collective: ranks agree on `T` and `counts`, which has one entry per rank of the
    /// communicator. The region is in a write epoch.
    ///
    /// # Errors
    /// As for [`create_shared_region`](Self::create_shared_region).
    fn create_partitioned_region<T: CommData>(
        &self,
        counts: &[usize],
    ) -> Result<Self::Region<T>, CommError>;

    /// A communicator of the ranks that share memory with this one, with its own sequence of
    /// collectives. Collective.
    ///
    /// # Errors
    /// [`CommError::CollectiveFailed`].
    fn split_local(&self) -> Result<Self::Local, CommError>;

    /// True if this rank writes its node's copy of leader regions. Without shared memory every
    /// rank has its own copy and leads itself.
    fn is_leader(&self) -> bool;
}

/// A region of elements, in a *write epoch* or a *read epoch*.
///
/// It is created in a write epoch, in which each rank writes its own part and nobody reads.
/// [`fence`](Self::fence) needs exclusive access, so no slice outlives the epoch it was taken in.
/// The rules are the same on every backend, so code that works on `local` works on `shm`.
///
/// Dropping a region frees this rank's hold on it, in any order and any epoch; it is not
/// collective.
pub trait SharedRegion<T: CommData>: Send + Sync {
    /// The whole region, in a read epoch.
    ///
    /// # Panics
    /// In a write epoch, and after a fence that failed.
    fn as_slice(&self) -> &[T];

    /// The elements that this rank may write, in a write epoch: its part of a partitioned region; of a leader
    /// region everything on the leader and nothing elsewhere.
    ///
    /// # Panics
    /// In a read epoch, and after a fence that failed.
    fn as_mut_slice(&mut self) -> &mut [T];

    /// Ends the epoch on all ranks and begins the other. Collective: ranks agree on the region.
    ///
    /// # Errors
    /// [`CommError::CollectiveFailed`]. Unless the cause is [`Cause::Busy`], the region is then
    /// poisoned for good on this rank: another rank may already be in the next epoch.
    fn fence(&mut self) -> Result<(), CommError>;
}

/// The epoch of a region: the one rule book of all region types.
#[derive(Debug)]
pub(crate) enum RegionEpoch {
    Write,
    Read,
    Poisoned(CommError),
}

impl RegionEpoch {
    /// Panics unless the region may be read.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_readable(&self) {
        match self {
            Self::Read => {}
            Self::Write => panic!("region read in a write epoch: call fence() first"),
            Self::Poisoned(error) => panic!("region used after a failed fence: {error}"),
        }
    }

    /// Panics unless the region may be written.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_writable(&self) {
        match self {
            Self::Write => {}
            Self::Read => panic!("region written in a read epoch: call fence() first"),
            Self::Poisoned(error) => panic!("region used after a failed fence: {error}"),
        }
    }

    /// As [`Self::assert_writable`], for memory that a forked child shares with its parent, who alone may write to it.
    #[allow(dead_code, reason = "asked by backends that this build may not have")]
    #[inline]
    #[track_caller]
    pub(crate) fn assert_writable_here(&self, is_here: bool) {
        self.assert_writable();
        assert!(
            is_here,
            "a process that was forked from a rank may not write to the rank's region"
        );
    }

    /// Passes to the epoch after this one if `fence` succeeded on this rank, else to poison.
    pub(crate) fn advance(&mut self, fence: Result<(), CommError>) -> Result<(), CommError> {
        *self = match (&*self, &fence) {
            (Self::Poisoned(first), _) => return Err(first.clone()),
            // No rank has seen this call: the epoch goes on.
            (_, Err(error)) if error.is_busy() => return fence,
            (_, Err(error)) => Self::Poisoned(error.clone()),
            (Self::Write, Ok(())) => Self::Read,
            (Self::Read, Ok(())) => Self::Write,
        };
        fence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_signature::Collective;
    use crate::error::Cause;

    fn failed(sequence: u64, cause: Cause) -> CommError {
        CommError::CollectiveFailed {
            operation: Collective::Fence,
            sequence,
            cause,
        }
    }

    fn failure(sequence: u64) -> CommError {
        let (code, message) = (1, "out of order".to_owned());
        failed(sequence, Cause::Mpi { code, message })
    }

    #[test]
    fn a_fence_that_met_another_thread_can_be_tried_again() {
        let mut epoch = RegionEpoch::Write;
        assert!(epoch.advance(Err(failed(1, Cause::Busy))).is_err());
        epoch.assert_writable();
        assert!(epoch.advance(Ok(())).is_ok());
        epoch.assert_readable();
    }

    #[test]
    fn a_failed_fence_poisons_for_good_with_the_first_error() {
        let mut epoch = RegionEpoch::Write;
        assert_eq!(epoch.advance(Err(failure(1))), Err(failure(1)));
        assert_eq!(epoch.advance(Ok(())), Err(failure(1)));
        assert_eq!(epoch.advance(Err(failure(2))), Err(failure(1)));
    }

    #[test]
    #[should_panic(expected = "after a failed fence")]
    fn a_poisoned_region_cannot_be_read() {
        RegionEpoch::Poisoned(failure(1)).assert_readable();
    }

    #[test]
    #[should_panic(expected = "after a failed fence")]
    fn a_poisoned_region_cannot_be_written() {
        RegionEpoch::Poisoned(failure(1)).assert_writable();
    }
}
