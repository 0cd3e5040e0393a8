#![expect(
    unsafe_code,
    reason = "maps a page that the kernel clears in a forked child"
)]
//! Fork guard: tells the process that joined a job from a child it forked. A child has all
//! of its parent's memory, and must not speak for it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[cfg(not(cobre_portable))]
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::transport::TransportFault;

const PAGE: usize = 4096;

/// The process that made it. Asking costs one load.
#[derive(Debug)]
pub(crate) struct ForkGuard {
    /// 1 here and 0 in a forked child; `None` where the kernel cannot do that.
    page: Option<NonNull<AtomicU32>>,
    pid: u32,
}

// SAFETY: the page is only ever accessed as an atomic, and unmapped when the owner is dropped.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// This process.
    pub(crate) fn here() -> Self {
        let pid = std::process::id();
        Self { page: page(), pid }
    }

    /// True if the calling process is the one that made this.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        match self.page {
            // SAFETY: mapped and aligned as long as `self` lives.
            Some(page) => unsafe { page.as_ref() }.load(Relaxed) != 0,
            None => std::process::id() == self.pid,
        }
    }

    /// Refuses a forked child.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), TransportFault> {
        if self.is_here() {
            Ok(())
        } else {
            Err(self.refusal())
        }
    }

    #[cold]
    fn refusal(&self) -> TransportFault {
        let reason = format!(
            "process {} was forked from process {}, which is the rank; let that one make the call",
            std::process::id(),
            self.pid
        );
        TransportFault::Unusable { reason }
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            // SAFETY: mapped by `page` below, and nothing borrowed from it is left.
            let _ = unsafe { rustix::mm::munmap(page.as_ptr().cast(), PAGE) };
        }
    }
}

/// No page is cleared in a forked child: a guard asks for the number of the process.
#[cfg(cobre_portable)]
fn page() -> Option<NonNull<AtomicU32>> {
    None
}

/// A page that holds 1 and that the kernel clears in a forked child.
#[cfg(not(cobre_portable))]
fn page() -> Option<NonNull<AtomicU32>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh address range chosen by the kernel; nothing of ours is mapped over.
    let base = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), PAGE, access, MapFlags::PRIVATE)
    };
    let base = base.ok()?;
    // SAFETY: the range was just mapped, and holds nothing yet.
    if unsafe { rustix::mm::madvise(base, PAGE, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: as above.
        let _ = unsafe { rustix::mm::munmap(base, PAGE) };
        return None;
    }
    let word: NonNull<AtomicU32> = NonNull::new(base.cast())?;
    // SAFETY: mapped, aligned to a page, and any bits are a word.
    unsafe { word.as_ref() }.store(1, Relaxed);
    Some(word)
}

/// Runs a test that forks in a process of its own: a forked child waits for ever for a lock that another test's thread
/// held at that instant. True in that process.
#[cfg(test)]
pub(crate) fn is_own_process(module: &str, test: &str) -> bool {
    let alone = "--exact";
    if std::env::args().any(|word| word == alone) {
        return true;
    }
    let module = module.split_once("::").map_or("", |(_, inner)| inner);
    let program = std::env::current_exe().expect("this program");
    let mut command = std::process::Command::new(program);
    command.args([alone, &format!("{module}::{test}"), "--test-threads=1"]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{output:?}"
    );
    false
}

/// Runs `child` in a forked process and returns its exit code.
#[cfg(test)]
pub(crate) fn in_a_fork(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs `child` and ends; glibc keeps memory allocation usable in it.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        // SAFETY: ends the child without running what the test harness registered.
        unsafe { libc::_exit(code.unwrap_or(99)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made; `status` is valid to write.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    libc::WEXITSTATUS(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_is_told_from_its_parent() {
        if !is_own_process(module_path!(), "a_forked_child_is_told_from_its_parent") {
            return;
        }
        let with_page = ForkGuard::here();
        let without = ForkGuard {
            page: None,
            pid: std::process::id(),
        };
        for fork_guard in [with_page, without] {
            assert!(fork_guard.is_here());
            assert_eq!(in_a_fork(|| i32::from(fork_guard.is_here())), 0);
            assert!(fork_guard.is_here());
        }
    }
}
