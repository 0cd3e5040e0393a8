//! The guard: parent of the keeper, child of the launcher. It ends what a keeper leaves that is killed, and
//! all of the job if the launcher is. So any two of launcher, guard and keeper may die at once.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, WaitOptions, waitpid};

use super::{detach, keep, sweep, title, wait_for};
use crate::plan::Plan;
use crate::sys::fork;

/// The whole life of the guard; the result is its exit code.
pub(crate) fn guard(plan: Plan, socket: OwnedFd, launcher: Pid) -> i32 {
    let own = rustix::process::getpid();
    // Before anything else, so that it becomes the parent of whatever the keeper may leave.
    if rustix::process::set_child_subreaper(Some(own)).is_err() {
        return 1;
    }
    let Ok(keeper) = fork(|| keep(plan, socket, own)) else {
        return 1;
    };
    // The pipes and the socket are the keeper's now: who waits for their ends must see them.
    let Ok(mut catch) = detach(&[]) else {
        sweep::end_descendants();
        return 1;
    };
    title::set(title::GUARD);
    loop {
        let orphaned = rustix::process::getppid() != Some(launcher);
        match waitpid(Some(keeper), WaitOptions::NOHANG) {
            // It has ended all that can be ended.
            Ok(Some((_, status))) if status.exit_status() == Some(0) => return 0,
            Ok(None) if !orphaned => {}
            _ => {
                sweep::end_descendants();
                return 1;
            }
        }
        wait_for(&catch, &[]);
        catch.read();
    }
}
