//! Errors of starting or watching a job; the end of a job is an [`Outcome`](crate::Outcome).

use std::io;
use std::path::PathBuf;

use cobre_comm::{ClassifiedError, ErrorKind, FieldName, Fields, MAX_RANKS};

use crate::message::list;

/// The launcher could not do its part. In every case no process of the job is left running, except
/// where the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The number of ranks is out of range.
    #[error("cannot start {asked} ranks: from 1 to {MAX_RANKS} are possible")]
    RankCount {
        /// The number asked for.
        asked: usize,
    },
    /// This build has no such backend.
    #[error(
        "backend {asked:?} is not available; this build has {}, and others come with the feature \
         of cobre-comm that has their name",
        available.join(", ")
    )]
    BackendNotAvailable {
        /// The name asked for.
        asked: String,
        /// The names that would have worked.
        available: Vec<&'static str>,
    },
    /// This backend does not connect ranks on several hosts that this launcher starts.
    #[error(
        "backend {asked:?} does not connect ranks that this launcher starts on several hosts; tcp does (for mpi, give \
         the hosts to mpiexec)"
    )]
    BackendNotOnHosts {
        /// The name asked for.
        asked: String,
    },
    /// Ranks of this backend are started by another program.
    #[error("ranks of backend {backend:?} are not started by this launcher but by their own")]
    BackendNotLaunched {
        /// The name asked for.
        backend: &'static str,
    },
    /// The launcher of the MPI library of this build is not installed.
    #[error(
        "no launcher of {library}, the MPI library of this build, is in the directories of PATH \
         ({looked}, or an mpiexec of that library); on Debian: apt-get install {package}"
    )]
    MpiexecNotFound {
        /// The library, as it calls itself.
        library: String,
        /// The names looked for.
        looked: String,
        /// The Debian package that has one.
        package: &'static str,
    },
    /// The ranks are to have more cores than there are.
    #[error(
        "{ranks} ranks on {each} cores each need {}, and this process may use {there}; start fewer ranks, or bind \
         them to fewer cores",
        ranks * each
    )]
    Cores {
        /// Ranks asked for.
        ranks: usize,
        /// Cores asked for each.
        each: usize,
        /// Cores that this process may use.
        there: usize,
    },
    /// The job needs more open files than this process may have.
    #[error(
        "{ranks} ranks need {needed} open files, but the hard limit is {limit}; \
         raise it (ulimit -n {needed}) or write to log files"
    )]
    Descriptors {
        /// Ranks asked for.
        ranks: usize,
        /// Open files the launcher needs.
        needed: u64,
        /// The hard limit of this process.
        limit: u64,
    },
    /// No such program.
    #[error("program {program:?} was not found: {looked}")]
    ProgramNotFound {
        /// As given.
        program: String,
        /// The places searched.
        looked: String,
    },
    /// The program exists but cannot be executed.
    #[error("program {program:?} (looked up {looked}) cannot be executed")]
    ProgramNotExecutable {
        /// As given.
        program: String,
        /// The places searched.
        looked: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused to start a rank.
    #[error("rank {rank} ({program:?}) could not be started{hint}")]
    NotStarted {
        /// The rank.
        rank: usize,
        /// The program, as given.
        program: String,
        /// A remedy, starting with a separator; empty if none is known.
        hint: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A log file cannot be written.
    #[error("cannot create log file {}", path.display())]
    Log {
        /// The file, or its directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another launch of this process handles signals.
    #[error("another launch of this process already handles signals")]
    SignalsTaken,
    /// A system call of the launcher failed.
    #[error("cannot {action}")]
    System {
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A host is gone, or its agent never began. What of the job is on other hosts was ended.
    #[error("host {host}: {reason}{}", tail_of(tail))]
    HostLost {
        /// The host.
        host: String,
        /// The way in which it was found out.
        reason: String,
        /// The last lines of the remote shell.
        tail: Vec<String>,
    },
    /// A host cannot do its part, and would not on another try.
    #[error("host {host}: {reason}")]
    HostRefused {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The process between launcher and ranks vanished; the ranks were killed.
    #[error(
        "internal error: the supervisor of the ranks or its guard (pid {pid}) died unexpectedly, so the job was ended"
    )]
    SupervisorLost {
        /// The guard's process.
        pid: i32,
    },
    /// Some ranks are still there although they were killed, as when a file system does not answer.
    #[error("ranks {} do not die, although they were killed", list(ranks))]
    Unkillable {
        /// Those ranks.
        ranks: Vec<usize>,
    },
}

impl ClassifiedError for LaunchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::RankCount { .. } => ErrorKind::Usage,
            Self::BackendNotAvailable { .. }
            | Self::BackendNotLaunched { .. }
            | Self::BackendNotOnHosts { .. }
            | Self::Cores { .. }
            | Self::MpiexecNotFound { .. } => ErrorKind::Input,
            Self::HostLost { .. } | Self::SupervisorLost { .. } | Self::Unkillable { .. } => {
                ErrorKind::Rank
            }
            _ => ErrorKind::Io,
        }
    }

    fn fields(&self) -> Fields {
        let fields = Fields::default();
        match self {
            Self::BackendNotAvailable { asked, .. } | Self::BackendNotOnHosts { asked } => {
                fields.with(FieldName::Backend, asked)
            }
            Self::BackendNotLaunched { backend } => fields.with(FieldName::Backend, *backend),
            Self::MpiexecNotFound { .. } => fields.with(FieldName::Backend, "mpi"),
            Self::ProgramNotFound { program, .. } | Self::ProgramNotExecutable { program, .. } => {
                fields.with(FieldName::File, program)
            }
            Self::NotStarted { rank, program, .. } => fields
                .with(FieldName::Rank, *rank)
                .with(FieldName::File, program),
            Self::Log { path, .. } => fields.with(FieldName::File, path.as_path()),
            Self::HostLost { host, .. } | Self::HostRefused { host, .. } => {
                fields.with(FieldName::Host, host)
            }
            Self::Unkillable { ranks } => fields.with(FieldName::Ranks, &ranks[..]),
            _ => fields,
        }
    }
}

impl LaunchError {
    /// For `map_err`: the failed system call by what it was for.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            action,
            source: source.into(),
        }
    }
}

/// Lines behind a message, as part of it.
fn tail_of(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines => format!(" ({})", lines.join("; ")),
    }
}
