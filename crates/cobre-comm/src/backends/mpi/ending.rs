//! The end of a job before its time: one line with the rank and the reason, then MPI's own end of all ranks.
//!
//! MPI cannot make the call of another rank fail. A rank that cannot go on therefore ends the job;
//! the launcher kills the others. So it does when a rank is killed.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ferrompi::{Communicator as Comm, Error};

use super::sys;
use crate::backends::fork_guard::ForkGuard;
use crate::backends::host;
use crate::env;
use crate::error::{CallPosition, Cause, Loss};
use crate::error_kind::ErrorKind;
use crate::report;
use crate::terminal;

/// Exit code of a job whose rank panicked, as that of a Rust program.
pub(super) const PANIC: i32 = 101;

/// Prints a line of the communication layer, whole.
pub(super) fn tell(text: &str) {
    terminal::complain(&format!("cobre: {}", terminal::one_line(text)));
}

/// Says why, and ends all ranks.
pub(super) fn end(comm: &Comm, rank: usize, kind: ErrorKind, reason: &str, code: i32) -> ! {
    tell(&format!("{} {reason}", who(rank)));
    report::abort(kind, reason);
    allow_exit();
    // Launchers pass on the lowest eight bits.
    comm.abort((code & 0xff).max(1))
}

/// Says that `rank` is the cause, and ends all ranks.
pub(super) fn end_because_of(comm: &Comm, rank: usize, who: &str, reason: &str) -> ! {
    tell(&format!("{who} {reason}"));
    report::root_cause(rank, reason);
    allow_exit();
    comm.abort(1)
}

/// `rank 2 (pid 41 on node-7)`.
pub(super) fn who(rank: usize) -> String {
    host::process(rank, std::process::id(), &host::name())
}

/// The line for a rank that panicked.
pub(super) fn panicked(last: Option<CallPosition>) -> String {
    format!("panicked (see above){}", CallPosition::after(last))
}

/// The line for a rank that aborts.
pub(super) fn aborted(reason: &str, last: Option<CallPosition>) -> String {
    format!("aborted: {reason}{}", CallPosition::after(last))
}

/// The record of this rank when it leaves before the others.
pub(super) fn left(rank: usize, last: Option<CallPosition>) -> Cause {
    Cause::RankLost {
        rank,
        host: host::name(),
        pid: std::process::id(),
        how: Loss::Left,
        last,
    }
}

/// An error of MPI, or of the layer in front of it, as a cause.
pub(super) fn cause_of(error: &Error) -> Cause {
    match error {
        Error::Mpi { code, message, .. } => Cause::Mpi {
            code: *code,
            message: message.clone(),
        },
        other => Cause::Io {
            action: "calling MPI".to_owned(),
            message: other.to_string(),
        },
    }
}

/// Without the check others do not learn that this rank has left: waits until they leave as well,
/// and says so if that takes long.
pub(super) fn wait_for_all(comm: &Comm, rank: usize) {
    let start = Instant::now();
    let mut told = false;
    let outcome = ferrompi::scope(|scope| {
        let mut request = comm.ibarrier(scope)?;
        while request.test()?.is_none() {
            let waited = start.elapsed();
            if waited > env::DEFAULT_STALL && !told {
                told = true;
                tell(&format!(
                    "{} has left and waits for the others to leave, for {} s so far; with \
                     {}=off they are not told if they still need it",
                    who(rank),
                    waited.as_secs(),
                    env::MPI_CHECK,
                ));
            }
            if waited > Duration::from_millis(10) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        let reason = format!("failed while leaving: {error}");
        end(comm, rank, ErrorKind::Communication, &reason, 1);
    }
}

/// This rank and its process, if others would wait for it.
static RANK: OnceLock<(usize, ForkGuard)> = OnceLock::new();
static EXIT_ALLOWED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True if this thread is in a call of MPI, which may end the process when another rank has
    /// ended the job: that rank has said why.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call of MPI.
#[inline]
pub(super) fn inside<R>(call: impl FnOnce() -> R) -> R {
    INSIDE.set(true);
    let outcome = call();
    INSIDE.set(false);
    outcome
}

/// From here on the process may not end without announcing it: MPI launchers then kill the other
/// ranks, and some of them call that a success.
pub(super) fn forbid_early_exit(rank: usize, size: usize) {
    if size > 1 && RANK.set((rank, ForkGuard::here())).is_ok() {
        report::joined(host::name());
        sys::at_exit(exiting);
    }
}

/// The process may end.
pub(super) fn allow_exit() {
    EXIT_ALLOWED.store(true, Relaxed);
}

extern "C" fn exiting() {
    if let Some((rank, fork_guard)) = RANK.get()
        && !EXIT_ALLOWED.load(Relaxed)
        && !INSIDE.get()
        && fork_guard.is_here()
    {
        let reason = "exited without dropping its communicator: the others still need it";
        tell(&format!("{} {reason}", who(*rank)));
        report::abort(ErrorKind::Rank, reason);
        sys::exit_now(1);
    }
}
