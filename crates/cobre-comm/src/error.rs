//! The errors that callers see.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::call_signature::{CallSignature, Collective};
use crate::error_kind::{ClassifiedError, ErrorKind, FieldName, Fields};

/// Error of a collective or a region call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommError {
    /// This rank's arguments do not fit together; nothing was sent, and the other ranks, if there
    /// are any, get a mismatch.
    #[error("{operation}: {problem}")]
    InvalidBufferSize {
        /// The collective called.
        operation: Collective,
        /// The mistake in the buffers.
        problem: BufferProblem,
    },
    /// The root is not a rank of this communicator.
    #[error("{operation}: root {root} does not exist; ranks are 0 to {}", size - 1)]
    InvalidRoot {
        /// The collective called.
        operation: Collective,
        /// The root asked for.
        root: usize,
        /// Number of ranks.
        size: usize,
    },
    /// This process may not use this communicator, for example after a fork.
    #[error("this communicator cannot be used here: {reason}")]
    InvalidCommunicator {
        /// The reason.
        reason: String,
    },
    /// Memory for a region could not be had.
    #[error("{operation}: cannot allocate {bytes} bytes: {detail}")]
    AllocationFailed {
        /// The collective called.
        operation: Collective,
        /// Bytes asked for.
        bytes: usize,
        /// The system's error, and a remedy.
        detail: String,
    },
    /// The collective did not complete on this rank. Unless the cause is [`Cause::Busy`], the
    /// communicator is finished.
    #[error("{operation} failed (call {sequence} of this communicator)")]
    CollectiveFailed {
        /// The collective called.
        operation: Collective,
        /// Its place in the communicator's sequence of collectives, from 1.
        sequence: u64,
        /// The cause.
        #[source]
        cause: Cause,
    },
}

impl CommError {
    /// True if another thread was in a call, and nothing else is wrong.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(
            self,
            Self::CollectiveFailed {
                cause: Cause::Busy,
                ..
            }
        )
    }

    /// The MPI library's error code; 0 where the failure does not come from MPI.
    pub fn mpi_error_code(&self) -> i32 {
        match self {
            Self::CollectiveFailed {
                cause: Cause::Mpi { code, .. },
                ..
            } => *code,
            _ => 0,
        }
    }
}

impl ClassifiedError for CommError {
    /// The kind; a rank that learns why another has aborted has the kind that it gave.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::AllocationFailed { .. } => ErrorKind::Memory,
            Self::CollectiveFailed {
                cause: Cause::Aborted { kind, .. },
                ..
            } => *kind,
            _ => ErrorKind::Communication,
        }
    }

    fn fields(&self) -> Fields {
        let fields = Fields::default();
        let of = |operation: &Collective| fields.with(FieldName::Operation, operation.name());
        match self {
            Self::InvalidCommunicator { .. } => Fields::default(),
            Self::InvalidBufferSize { operation, .. } | Self::InvalidRoot { operation, .. } => {
                of(operation)
            }
            Self::AllocationFailed {
                operation, bytes, ..
            } => of(operation).with(FieldName::Bytes, *bytes),
            Self::CollectiveFailed {
                operation,
                sequence,
                cause,
            } => cause.add_to(of(operation).with(FieldName::Sequence, *sequence)),
        }
    }
}

impl Cause {
    fn add_to(&self, fields: Fields) -> Fields {
        match self {
            Self::RankLost {
                rank,
                host,
                pid,
                how,
                ..
            } => {
                let fields = rank_fields(fields, *rank, host, *pid);
                match how {
                    Loss::Signal(signal) => {
                        fields.with(FieldName::Signal, signal.unsigned_abs() as usize)
                    }
                    Loss::Exit(code) => {
                        fields.with(FieldName::ExitCode, code.unsigned_abs() as usize)
                    }
                    _ => fields,
                }
            }
            Self::Aborted {
                rank, host, pid, ..
            } => rank_fields(fields, *rank, host, *pid),
            Self::Deadline { missing, .. } => fields.with(FieldName::Ranks, &missing[..]),
            Self::Mismatch { left, right } => {
                fields.with(FieldName::Ranks, &[left.rank, right.rank][..])
            }
            _ => fields,
        }
    }
}

fn rank_fields(fields: Fields, rank: usize, host: &str, pid: u32) -> Fields {
    let fields = fields.with(FieldName::Rank, rank);
    fields
        .with(FieldName::Host, host)
        .with(FieldName::Pid, u64::from(pid))
}

/// A mistake in the buffers of a call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BufferProblem {
    /// An argument has the wrong number of elements.
    #[error("{argument} has {actual} elements, expected {expected}")]
    Length {
        /// The argument's name.
        argument: &'static str,
        /// Elements it must have.
        expected: usize,
        /// Elements it has.
        actual: usize,
    },
    /// A rank's block is not inside `recv`.
    #[error(
        "rank {rank}'s block of {count} elements at {displacement} leaves recv, which has {len}"
    )]
    BlockOutside {
        /// The rank whose block it is.
        rank: usize,
        /// The displacement of the block.
        displacement: usize,
        /// Its elements.
        count: usize,
        /// Elements in `recv`.
        len: usize,
    },
    /// Two ranks' blocks share elements of `recv`.
    #[error("the blocks of ranks {first} and {second} overlap")]
    BlocksOverlap {
        /// The lower of the two ranks.
        first: usize,
        /// The higher.
        second: usize,
    },
    /// The counts add up to more than memory can hold.
    #[error("the counts add up to more elements than memory can address")]
    TooLarge,
}

/// The cause of a collective's end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// A rank is gone. The record is the same on every surviving rank.
    #[error("rank {rank} (pid {pid} on {host}) {how}{}", CallPosition::after(*last))]
    RankLost {
        /// The rank that is gone.
        rank: usize,
        /// Its host.
        host: String,
        /// Its process id there.
        pid: u32,
        /// The way it was lost.
        how: Loss,
        /// The last collective it began; `None` if it began none, or nobody knows.
        last: Option<CallPosition>,
    },
    /// A rank called [`Communicator::abort`](crate::Communicator::abort).
    #[error("rank {rank} (pid {pid} on {host}) aborted: {reason}{}", CallPosition::after(*last))]
    Aborted {
        /// The rank that aborted.
        rank: usize,
        /// Its host.
        host: String,
        /// Its process id there.
        pid: u32,
        /// The kind of the error that it gave.
        kind: ErrorKind,
        /// The reason it gave.
        reason: String,
        /// The last collective it began; `None` if it began none, or nobody knows.
        last: Option<CallPosition>,
    },
    /// Two ranks made different calls; nothing was combined.
    #[error("rank {} made {} while rank {} made {}", left.rank, left.signature, right.rank, right.signature)]
    Mismatch {
        /// One side.
        left: Box<Call>,
        /// The other.
        right: Box<Call>,
    },
    /// The deadline that the user set has passed.
    #[error("no answer within {} s from {}", waited.as_secs_f64(), RankList(missing))]
    Deadline {
        /// The deadline.
        waited: Duration,
        /// Ranks that had not arrived; empty if all had, and data did not move.
        missing: Vec<usize>,
    },
    /// The MPI library reported an error.
    #[error("MPI error {code}: {message}")]
    Mpi {
        /// The library's code.
        code: i32,
        /// The library's text.
        message: String,
    },
    /// The operating system refused something.
    #[error("{action}: {message}")]
    Io {
        /// The operation that failed.
        action: String,
        /// The system's error.
        message: String,
    },
    /// Another thread is inside a collective of this communicator. The communicator is unharmed
    /// and the other ranks have seen nothing.
    #[error("another thread is in a collective of this communicator; one at a time")]
    Busy,
}

/// A collective of a communicator, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPosition {
    /// The collective.
    pub collective: Collective,
    /// Its place in the communicator's sequence of collectives, from 1.
    pub sequence: u64,
}

#[allow(
    dead_code,
    reason = "in a build with one-rank backends alone no record travels"
)]
impl CallPosition {
    /// The step in one word; never 0.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.sequence << 8 | self.collective as u64
    }

    /// Reads what [`word`](Self::word) gave; `None` if it is nothing of the kind.
    pub(crate) fn of_word(word: u64) -> Option<Self> {
        let (collective, sequence) = (Collective::of_number(word as u8)?, word >> 8);
        (sequence > 0).then_some(Self {
            collective,
            sequence,
        })
    }

    /// The collective that takes long, as the reports of a stall say it; before the first it is the start of the job.
    pub(crate) fn describe_stalled(step: Option<Self>) -> String {
        step.map_or_else(
            || "the start of the job".to_owned(),
            |step| step.to_string(),
        )
    }

    /// A rank's last call, as the reports of a stall say it.
    pub(crate) fn describe_last(last: Option<Self>) -> String {
        match last {
            Some(step) => format!("its last collective was {step}"),
            None => "it has begun no collective".to_owned(),
        }
    }

    /// A rank's last call at the end of the line that says how it failed; nothing without one.
    pub(crate) fn after(last: Option<Self>) -> String {
        let told = last.map(|_| format!("; {}", Self::describe_last(last)));
        told.unwrap_or_default()
    }
}

impl fmt::Display for CallPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (call {})", self.collective, self.sequence)
    }
}

/// The way in which a rank was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Killed by this signal.
    Signal(i32),
    /// Ended with this exit code while others still needed it.
    Exit(i32),
    /// Panicked with this text.
    Panic(String),
    /// Dropped its communicator while others still needed it.
    Left,
    /// Gone without a trace, or out of reach.
    Vanished,
    /// Gone without a trace, after a panic with this text that may have been caught.
    AfterPanic(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::Panic(text) => write!(f, "panicked: {text}"),
            Self::Left => f.write_str("left while others still needed it"),
            Self::Vanished => f.write_str("is gone"),
            Self::AfterPanic(text) => write!(f, "is gone; it had panicked: {text}"),
        }
    }
}

/// One rank's side of a mismatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The rank that made the call.
    pub rank: usize,
    /// The call.
    pub signature: CallSignature,
}

/// Error of the selection or the start of a communicator.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The backend is known but not part of this build.
    #[error(
        "{why}, and this build has {} alone; {}, or set {variable}=local to run this process by \
         itself",
        available.join(", "),
        remedy(requested),
        variable = crate::env::COMM_BACKEND
    )]
    BackendNotAvailable {
        /// The backend that is needed, which is also the feature it comes with.
        requested: &'static str,
        /// The setting or the caller that needs it.
        why: String,
        /// The backends of this build.
        available: Vec<&'static str>,
    },
    /// No backend has this name.
    #[error(
        "{variable}={requested} names no backend; use auto or one that this build has: {}",
        available.join(", "),
        variable = crate::env::COMM_BACKEND
    )]
    InvalidBackend {
        /// The name given.
        requested: String,
        /// The backends of this build.
        available: Vec<&'static str>,
    },
    /// A backend lacks a setting.
    #[error("the {backend} backend needs {variable}: {expected}")]
    MissingConfiguration {
        /// The backend.
        backend: &'static str,
        /// The variable to set.
        variable: String,
        /// The value to set it to.
        expected: String,
    },
    /// A setting has a value that means nothing.
    #[error("{variable}={value} is not {expected}")]
    InvalidConfiguration {
        /// The variable.
        variable: String,
        /// Its value.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// The backend could not start.
    #[error("the {backend} backend could not start: {reason}")]
    InitializationFailed {
        /// The backend.
        backend: &'static str,
        /// The error, and a remedy.
        reason: String,
    },
    /// Memory that the ranks share from the start could not be had.
    #[error("the {backend} backend could not start: {detail}")]
    OutOfMemory {
        /// The backend.
        backend: &'static str,
        /// Bytes that are needed.
        bytes: usize,
        /// The object that cannot have them, the system's error, and a remedy.
        detail: String,
    },
}

impl ClassifiedError for BackendError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfMemory { .. } => ErrorKind::Memory,
            _ => ErrorKind::Communication,
        }
    }

    fn fields(&self) -> Fields {
        let fields = Fields::default();
        match self {
            Self::BackendNotAvailable { requested, .. } => {
                fields.with(FieldName::Backend, *requested)
            }
            Self::InvalidBackend { requested, .. } => fields
                .with(FieldName::Variable, crate::env::COMM_BACKEND)
                .with(FieldName::Value, requested),
            Self::MissingConfiguration {
                backend,
                variable,
                expected,
            } => fields
                .with(FieldName::Backend, *backend)
                .with(FieldName::Variable, variable)
                .with(FieldName::Expected, expected),
            Self::InvalidConfiguration {
                variable,
                value,
                expected,
            } => fields
                .with(FieldName::Variable, variable)
                .with(FieldName::Value, value)
                .with(FieldName::Expected, expected),
            Self::InitializationFailed { backend, .. } => fields.with(FieldName::Backend, *backend),
            Self::OutOfMemory { backend, bytes, .. } => fields
                .with(FieldName::Backend, *backend)
                .with(FieldName::Bytes, *bytes),
        }
    }
}

/// Tells the user where to get a backend that this build does not have.
fn remedy(backend: &str) -> String {
    if crate::backends::KNOWN.contains(&backend) {
        format!("build cobre-comm with its feature `{backend}`")
    } else {
        format!("this version of Cobre has no {backend} backend: choose another")
    }
}

/// `rank 3` or `ranks 1, 4`.
struct RankList<'a>(&'a [usize]);

impl fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.len() {
            0 => "a rank that arrived but does not go on",
            1 => "rank",
            _ => "ranks",
        })?;
        for (i, rank) in self.0.iter().enumerate() {
            write!(f, "{} {rank}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(cause: Cause) -> CommError {
        CommError::CollectiveFailed {
            operation: Collective::Barrier,
            sequence: 3,
            cause,
        }
    }

    #[test]
    fn only_mpi_errors_have_an_mpi_code() {
        let mpi = failed(Cause::Mpi {
            code: 15,
            message: "truncated".into(),
        });
        assert_eq!(mpi.mpi_error_code(), 15);
        assert_eq!(failed(Cause::Busy).mpi_error_code(), 0);
    }

    #[test]
    fn a_mismatch_shows_both_sides() {
        let call = |rank, collective| {
            let signature = CallSignature::new(collective).at(7);
            Box::new(Call { rank, signature })
        };
        let cause = Cause::Mismatch {
            left: call(0, Collective::Barrier),
            right: call(2, Collective::Fence),
        };
        assert_eq!(
            cause.to_string(),
            "rank 0 made call 7: barrier while rank 2 made call 7: fence on region 0"
        );
    }

    #[test]
    fn the_cause_is_told_once() {
        use std::error::Error;
        let error = failed(Cause::Deadline {
            waited: Duration::from_secs(2),
            missing: vec![1, 4],
        });
        assert_eq!(
            error.to_string(),
            "barrier failed (call 3 of this communicator)"
        );
        let cause = error.source().unwrap().to_string();
        assert_eq!(cause, "no answer within 2 s from ranks 1, 4");
    }
}
