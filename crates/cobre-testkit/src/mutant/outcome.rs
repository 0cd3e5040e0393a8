//! Faults of what a call reports: errors that are kept back, forgotten or changed.

use std::sync::atomic::Ordering;

use cobre_comm::{Cause, CommError, Communicator};

use super::{Fault, Mutant};

impl<C: Communicator> Mutant<C> {
    /// Makes a call, and reports its outcome as the fault has it. `Err(None)` stands for success
    /// without a value, where the fault makes one of an error.
    pub(super) fn call<R>(
        &self,
        call: impl FnOnce() -> Result<R, CommError>,
    ) -> Result<R, Option<CommError>> {
        if self.failed.load(Ordering::Relaxed) {
            match self.fault {
                Some(Fault::FailureForgotten) => return Err(None),
                Some(Fault::CauseForgotten) => return call().map_err(|e| Some(without_cause(e))),
                Some(Fault::RefusalEndsAlone) => return call().and_then(closed).map_err(Some),
                _ => {}
            }
        }
        let _turn = (self.fault == Some(Fault::ThreadsQueue))
            .then(|| self.queue.lock().expect("nobody panics in a turn"));
        let outcome = call();
        if outcome.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        outcome.map_err(|error| self.retold(error))
    }

    /// A collective that gives nothing but its success.
    pub(super) fn collective(
        &self,
        call: impl FnOnce() -> Result<(), CommError>,
    ) -> Result<(), CommError> {
        match self.call(call) {
            Err(Some(error)) => Err(error),
            Ok(()) | Err(None) => Ok(()),
        }
    }

    /// The error as the fault tells it; `None` if it is kept back.
    fn retold(&self, error: CommError) -> Option<CommError> {
        match error {
            CommError::CollectiveFailed {
                operation,
                sequence,
                cause,
            } => Some(CommError::CollectiveFailed {
                operation,
                sequence,
                cause: self.retold_cause(cause)?,
            }),
            CommError::InvalidBufferSize { .. } | CommError::InvalidRoot { .. }
                if self.fault == Some(Fault::RefusalSwallowed) =>
            {
                None
            }
            other => Some(other),
        }
    }

    fn retold_cause(&self, cause: Cause) -> Option<Cause> {
        let (rank, size) = (self.inner.rank(), self.inner.size());
        match (self.fault, cause) {
            (Some(Fault::BusySwallowed), Cause::Busy) => None,
            (_, Cause::Busy) => Some(Cause::Busy),
            (fault, mut cause @ Cause::Aborted { .. }) => {
                if let Cause::Aborted { rank: who, pid, .. } = &mut cause {
                    match fault {
                        Some(Fault::AbortNamesAnother) => *who = (*who + 1) % size,
                        Some(Fault::AbortRecordDiffers) if rank + 1 == size => *pid += 1,
                        _ => {}
                    }
                }
                Some(cause)
            }
            (Some(Fault::MismatchSwallowed), _) => None,
            (Some(Fault::MismatchMissedByOne), _) if rank == 0 => None,
            (_, cause) => Some(cause),
        }
    }
}

/// The error where one is kept back and there is no value to give instead.
pub(super) fn kept_back(error: Option<CommError>) -> CommError {
    error.unwrap_or_else(|| CommError::InvalidCommunicator {
        reason: "an error was kept back".to_owned(),
    })
}

fn closed<R>(_: R) -> Result<R, CommError> {
    Err(CommError::InvalidCommunicator {
        reason: "closed".to_owned(),
    })
}

fn without_cause(mut error: CommError) -> CommError {
    if let CommError::CollectiveFailed { cause, .. } = &mut error {
        *cause = Cause::Io {
            action: "communicate".to_owned(),
            message: "closed".to_owned(),
        };
    }
    error
}
