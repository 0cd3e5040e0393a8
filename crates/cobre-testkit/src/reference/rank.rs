//! A rank's place in a rendezvous: one call at a time, each with its number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cobre_comm::{Cause, Collective, CommError, ErrorKind, Loss};

use super::rendezvous::{Everything, Rendezvous};

/// Shared by a rank's communicator and its regions; the rank has left when all are gone.
#[derive(Debug)]
pub(super) struct ReferenceRank {
    pub(super) rendezvous: Arc<Rendezvous>,
    pub(super) rank: usize,
    busy: AtomicBool,
    calls: AtomicU64,
}

impl ReferenceRank {
    pub(super) fn new(rendezvous: Arc<Rendezvous>, rank: usize) -> Self {
        Self {
            rendezvous,
            rank,
            busy: AtomicBool::new(false),
            calls: AtomicU64::new(0),
        }
    }

    /// One collective: everybody's bytes, if everybody makes the same call.
    pub(super) fn exchange(
        &self,
        operation: Collective,
        call: &str,
        checked: Result<(), CommError>,
        bytes: &[u8],
    ) -> Result<Everything, CommError> {
        let failed = |sequence, cause| CommError::CollectiveFailed {
            operation,
            sequence,
            cause,
        };
        if self.busy.swap(true, Ordering::SeqCst) {
            return Err(failed(self.calls(), Cause::Busy));
        }
        let sequence = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let refused = if checked.is_err() {
            ", arguments refused"
        } else {
            ""
        };
        let call = format!("call {sequence}: {operation}{call}{refused}");
        // Alone there is nobody who could disagree.
        let outcome = self.rendezvous.attend(self.rank, call, bytes);
        self.busy.store(false, Ordering::SeqCst);
        checked.and(outcome.map_err(|cause| failed(sequence, cause)))
    }

    /// Number of the latest call.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(super) fn abort(&self, kind: ErrorKind, reason: &str) {
        self.rendezvous.end(Cause::Aborted {
            rank: self.rank,
            host: "here".to_owned(),
            pid: std::process::id(),
            kind,
            reason: reason.to_owned(),
            last: None,
        });
    }
}

impl Drop for ReferenceRank {
    fn drop(&mut self) {
        let how = if std::thread::panicking() {
            Loss::Panic("see above".to_owned())
        } else {
            Loss::Left
        };
        self.rendezvous.leave(self.rank, how);
    }
}
