//! The outcome of a job.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use cobre_comm::report::RootCause;

use crate::message;

/// The status with which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl Status {
    pub(crate) fn from_wait(raw: i32) -> Self {
        let status = ExitStatus::from_raw(raw);
        match (status.signal(), status.code()) {
            (Some(signal), _) => Self::Killed(signal),
            (None, code) => Self::Exited(code.unwrap_or(raw)),
        }
    }

    /// True if it exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

/// The outcome of one rank.
#[derive(Debug, Clone)]
pub struct RankOutcome {
    /// Its process.
    pub pid: i32,
    /// Its host, as the list of hosts named it; `None` for this machine.
    pub host: Option<String>,
    /// The status with which that process ended.
    pub status: Status,
    /// The launcher had told it to end: its status is a consequence and not a cause.
    pub ended: bool,
    /// Its standard output, if captured.
    pub stdout: Vec<u8>,
    /// Its standard error, if captured.
    pub stderr: Vec<u8>,
}

/// The root cause of a job's failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureCause {
    /// A rank failed, and the launcher ended the others.
    Rank {
        /// The rank that failed first, by what ranks reported or else by the order of their ends.
        rank: usize,
        /// The report that named it.
        root_cause: Option<RootCause>,
        /// The last lines it wrote to its standard error or, with log files, to its log.
        tail: Vec<String>,
    },
    /// The deadline passed.
    Deadline {
        /// The time limit of the job.
        after: Duration,
        /// The ranks that were still running.
        running: Vec<usize>,
    },
    /// The launcher got a signal and passed it on.
    Signal(i32),
    /// The ranks' output could not be written any more, for this system error.
    Output(i32),
}

/// The outcome of a job, rank by rank and as a whole.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// One entry per rank; a single one, that of the MPI launcher, where that started the ranks.
    pub ranks: Vec<RankOutcome>,
    /// The root cause of the failure; `None` if every rank exited with code 0.
    pub cause: Option<FailureCause>,
    /// Processes of the job remain that could not be killed.
    pub survivors: bool,
    /// The MPI launcher that started the ranks; `None` if this launcher did.
    pub through: Option<&'static str>,
    /// The status of the rank that failed first without a message, where an MPI launcher started the ranks.
    pub root: Option<Status>,
    /// Statements of ranks at their end, by [`cobre_comm::report::state`].
    pub statements: BTreeMap<usize, String>,
}

impl Outcome {
    /// The code a launcher exits with: that of the rank that failed first, 128 + signal, 124 after
    /// the deadline, 141 when nobody reads the output any more, 0 if all is well.
    pub fn exit_code(&self) -> u8 {
        match &self.cause {
            None => 0,

            Some(FailureCause::Rank { rank, .. }) => {
                let RankOutcome { status, ended, .. } = self.ranks[*rank];
                match self.root.unwrap_or(status) {
                    _ if ended => 1,
                    Status::Exited(0) => 1,
                    Status::Exited(code) => code as u8,
                    Status::Killed(signal) => by_signal(signal),
                }
            }
            Some(FailureCause::Deadline { .. }) => 124,
            Some(FailureCause::Signal(signal)) => by_signal(*signal),
            Some(FailureCause::Output(libc::EPIPE)) => by_signal(libc::SIGPIPE),
            Some(FailureCause::Output(_)) => 2,
        }
    }

    /// The message for the user: the cause, the last lines of the rank that failed first, and one line
    /// for the other ranks. Each line starts with `name`; the text is empty if there is nothing to
    /// say.
    pub fn message(&self, name: &str) -> String {
        message::message(self, name)
    }
}

fn by_signal(signal: i32) -> u8 {
    128 + signal as u8
}
