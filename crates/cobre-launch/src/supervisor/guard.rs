//! The guard: parent of the supervisor, child of the launcher. It tells the supervisor of the launcher's death, and
//! ends what a supervisor leaves that is killed. So the launcher and either of the two may die at once.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::{detach, supervise, sweep, title, wait_for};
use crate::plan::{Plan, above_stdio};
use crate::sys::fork;

/// The time that the supervisor may take to end everything, which it does better alive than dead: as long as it
/// lives, the guard is not needed.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(6);

/// The whole life of the guard; the result is its exit code.
pub(crate) fn guard(plan: Plan, socket: OwnedFd, launcher: Pid) -> i32 {
    let own = rustix::process::getpid();
    // Before anything else, so that it becomes the parent of whatever the supervisor may leave.
    if rustix::process::set_child_subreaper(Some(own)).is_err() {
        return 1;
    }
    let Ok((theirs, ours)) = pipe_with(PipeFlags::CLOEXEC) else {
        return 1;
    };
    let (Ok(theirs), Ok(ours)) = (above_stdio(theirs), above_stdio(ours)) else {
        return 1;
    };
    // Before there are ranks: who kills launchers by name must not find a guard among them.
    title::set(title::GUARD);
    let Ok(supervisor) = fork(|| supervise(plan, socket, theirs, own)) else {
        return 1;
    };
    // The pipes and the socket are the supervisor's now: who waits for their ends must see them.
    let Ok(mut catch) = detach(&[ours.as_raw_fd()]) else {
        sweep::end_descendants();
        return 1;
    };
    let mut guard_pipe = Some(ours);
    let mut deadline = None;
    loop {
        if guard_pipe.is_some() && rustix::process::getppid() != Some(launcher) {
            guard_pipe = None;
            deadline = Some(Instant::now() + SUPERVISOR_TIMEOUT);
        }
        match waitpid(Some(supervisor), WaitOptions::NOHANG) {
            // It has ended all that can be ended.
            Ok(Some((_, status))) if status.exit_status() == Some(0) => return 0,
            Ok(None) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
            _ => {
                sweep::end_descendants();
                return 1;
            }
        }
        wait_for(&catch, &[]);
        catch.read();
    }
}
