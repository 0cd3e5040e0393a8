//! Starts N ranks of a program on this machine, watches them, says which one failed first, and
//! leaves nothing behind.
//!
//! ```
//! use cobre_launch::{Launch, Output};
//!
//! let outcome = Launch::new("sh", 2)
//!     .args(["-c", "echo hello"])
//!     .output(Output::Capture { limit: 1 << 20 })
//!     .run()?;
//! assert_eq!(outcome.exit_code(), 0);
//! assert_eq!(outcome.ranks[1].stdout, b"hello\n");
//! # Ok::<(), cobre_launch::LaunchError>(())
//! ```
//!
//! # Who is who
//!
//! The caller of [`Launch::run`] is the *launcher*. It forks a *guard*, the guard a *supervisor*, and the
//! supervisor starts the ranks. The supervisor is the parent of every rank and adopts every process a rank leaves behind, so
//! that it can end them all, also when the launcher was killed; it holds no output, no policy and
//! no text. The guard does the same should the supervisor die. The launcher reads what ranks write, decides when to end the job, and finds the cause.
//!
//! With [`Launch::hosts`] there is such a tree on each host, below an *agent* that a remote shell starts.
//!
//! Linux only: guard and supervisor need a child subreaper and `/proc`.

#[cfg(not(target_os = "linux"))]
compile_error!("the launcher needs Linux: its supervisor is a subreaper, and reads /proc");

mod abandoned;
mod binding;
mod error;
mod hosts;
mod interrupt;
mod launch;
mod limits;
mod link;
mod message;
mod mpi_ranks;
mod mpiexec;
mod outcome;
mod output;
mod plan;
mod program;
mod protocol;
mod reports;
mod root_cause;
mod settings;
mod shutdown_policy;
mod signal_name;
mod signals;
mod supervisor;
mod sys;
mod tcp;
mod topology;
mod watch;

pub use binding::Bind;
pub use cobre_comm::MAX_RANKS;
pub use error::LaunchError;
pub use hosts::{
    DEFAULT_REMOTE_SHELL, Host, HostList, Hosts, RemoteShell, StatusOfHost, answers, check_shared,
    host_agent, this_machine,
};
pub use interrupt::Interrupt;
pub use launch::{DEFAULT_GRACE, Launch};
pub use mpiexec::{MpiLaunchers, mpi_launchers};
pub use outcome::{FailureCause, Outcome, RankOutcome, Status};
pub use output::Output;
pub use signals::ignore_file_size_signal;
pub use topology::{Topology, list as processor_list};
