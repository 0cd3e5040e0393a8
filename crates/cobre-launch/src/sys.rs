//! Forking, and what only a forked process may do.
#![expect(
    unsafe_code,
    reason = "fork, the steps between fork and exec, and closing descriptors by number have no safe form"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

use crate::signals::BlockedSignals;

/// Runs `child` in a forked process that exits with its result, all signals blocked; the parent
/// gets the process.
///
/// `child` must be content with what a fork of a program with threads leaves usable: system calls
/// and allocation, but no lock that another thread may have held.
pub(crate) fn fork(child: impl FnOnce() -> i32) -> io::Result<Pid> {
    let _blocked = BlockedSignals::all();
    // SAFETY: the child runs only `child`, under the condition above, and never returns from here.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(101);
        // SAFETY: ends the forked process without running what the parent registered for its exit.
        unsafe { libc::_exit(code) }
    }
    Pid::from_raw(pid)
        .filter(|_| pid > 0)
        .ok_or_else(io::Error::last_os_error)
}

/// The mask of these processors; `None` for all of them, if there is none.
pub(crate) fn mask(processors: &[usize]) -> Option<CpuSet> {
    let mut mask = CpuSet::new();
    for &number in processors {
        mask.set(number);
    }
    (!processors.is_empty()).then_some(mask)
}

/// The steps of a rank's process before it becomes the program.
#[derive(Clone)]
pub(crate) struct Setup {
    /// The supervisor: the rank dies with it.
    pub(crate) parent: Pid,
    pub(crate) open_files: Rlimit,
    pub(crate) processors: Option<CpuSet>,
    /// The reading end of a pipe whose other end the supervisor alone holds.
    pub(crate) death_pipe: Option<RawFd>,
}

impl Setup {
    /// Makes `command` start its process with this set-up.
    pub(crate) fn install(self, command: &mut Command) {
        // SAFETY: `apply` makes system calls only; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(move || self.apply()) };
    }

    fn apply(&self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(self.parent) {
            // The supervisor died before the line above could take effect.
            rustix::process::kill_process(rustix::process::getpid(), Signal::KILL)?;
        }
        if let Some(processors) = &self.processors {
            rustix::thread::sched_setaffinity(None, processors)?;
        }
        rustix::process::setrlimit(Resource::Nofile, self.open_files)?;
        if let Some(death_pipe) = self.death_pipe {
            kill_group_on_hangup(death_pipe);
        }
        Ok(())
    }
}

/// Sets the signal of a descriptor: the number of Linux, which `libc` does not have everywhere.
const F_SETSIG: libc::c_int = 10;

/// Lets the kernel kill the process group that this process leads as soon as the last writer of the
/// pipe closes it: a pipe that sends a signal when its state changes, to a group, and the signal is
/// SIGKILL. That works while any process holds `death_pipe`, so this one keeps it, and so do its children.
///
/// The rank itself dies with the supervisor in any case; where the system refuses this, its group does not.
fn kill_group_on_hangup(death_pipe: RawFd) {
    let group = -rustix::process::getpid().as_raw_pid();
    let settings = [
        (libc::F_SETOWN, group),
        (F_SETSIG, libc::SIGKILL),
        (libc::F_SETFL, libc::O_ASYNC),
        // Last: it outlives the exec only if all the rest is as it should be.
        (libc::F_SETFD, 0),
    ];
    for (command, value) in settings {
        // SAFETY: takes no pointer; the descriptor is this process's own copy.
        if unsafe { libc::fcntl(death_pipe, command, value) } == -1 {
            return;
        }
    }
}

/// Closes every descriptor from 3 on that is not in `keep`. Only for a forked process that uses
/// nothing else of what it was forked from.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep
        .iter()
        .map(|descriptor| descriptor.cast_unsigned())
        .collect();
    keep.sort_unstable();
    let mut first = 3;
    for descriptor in keep {
        if first < descriptor {
            close_range(first, descriptor - 1);
        }
        first = descriptor + 1;
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    let (first_word, last_word) = (libc::c_ulong::from(first), libc::c_ulong::from(last));
    // SAFETY: takes no pointers; by the condition on `close_all_but` nobody uses these descriptors.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first_word, last_word, 0) };
    if closed == 0 {
        return;
    }
    // Kernels before 5.9 lack the call.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbers: Vec<u32> = numbers.collect();
    for number in numbers
        .into_iter()
        .filter(|number| (first..=last).contains(number))
    {
        // SAFETY: as above; the number of a descriptor that is already closed is refused.
        unsafe { libc::close(number.cast_signed()) };
    }
}

/// The kernel's description of a process, in the first version of it.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// In the mask: how it ended.
const INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, Info)`.
const GET_INFO: libc::Ioctl = 0xC040_FF0B;
const _: () = assert!(size_of::<Info>() == 0x40);

/// The status of the process, as `wait` gives it, once its parent has collected it; `None` before, and
/// where the kernel does not tell.
pub(crate) fn exit_status(process: BorrowedFd<'_>) -> Option<i32> {
    let mut info = Info {
        mask: INFO_EXIT,
        ..Info::default()
    };
    // SAFETY: the descriptor is open, and the kernel writes no more than the size in the request.
    let asked = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO, &raw mut info) };
    (asked == 0 && info.mask & INFO_EXIT != 0).then_some(info.exit_code)
}
