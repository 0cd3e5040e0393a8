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
//! The caller of [`Launch::run`] is the *launcher*. It forks a *guard*, the guard a *keeper*, and the
//! keeper starts the ranks. The keeper is the parent of every rank and adopts every process a rank leaves behind, so
//! that it can end them all, also when the launcher was killed; it holds no output, no policy and
//! no text. The guard does the same should the keeper die. The launcher reads what ranks write, decides when to end the job, and finds the cause.
//!
//! Linux only: guard and keeper need a child subreaper and `/proc`.

mod abandoned;
mod binding;
mod blame;
mod course;
mod error;
mod interrupt;
mod keeper;
mod launch;
mod limits;
mod link;
mod members;
mod message;
mod mpiexec;
mod outcome;
mod output;
mod plan;
mod program;
mod protocol;
mod reports;
mod settings;
mod signal_name;
mod signals;
mod sys;
mod tcp;
mod watch;

pub use binding::Bind;
pub use cobre_comm::MAX_RANKS;
pub use error::LaunchError;
pub use interrupt::Interrupt;
pub use launch::{DEFAULT_GRACE, Launch};
pub use mpiexec::{MpiLaunchers, mpi_launchers};
pub use outcome::{Cause, Outcome, RankOutcome, Status};
pub use output::Output;
pub use signals::ignore_file_size_signal;
