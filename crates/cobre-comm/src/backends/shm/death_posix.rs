//! Detection of dead ranks where only POSIX is to be had: ranks look every few milliseconds whether the processes of the
//! others are in the process table. A process that its parent has not collected is there, and counts as alive.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::detector::Detector;

/// Ranks that a rank watches: each look is a system call.
pub(super) const MOST_WATCHED: usize = 16;
/// The time between two looks.
const SLICE: Duration = Duration::from_millis(5);

/// The detector of every portable build.
pub(in crate::backends) fn detector() -> Detector {
    Detector::Processes
}

/// Waits until it is time to look again. Who sets `quit` unparks the thread.
pub(super) fn wait<'a>(
    quit: &AtomicU32,
    _: impl Iterator<Item = (&'a AtomicU32, u32)>,
    _: Detector,
) {
    wait_for_quit(quit);
}

/// Waits for a while, unless `quit` is set.
pub(super) fn wait_for_quit(quit: &AtomicU32) {
    if quit.load(Relaxed) == 0 {
        std::thread::park_timeout(SLICE);
    }
}

/// Nobody sleeps on a word.
pub(super) fn wake_all(_: &AtomicU32) {}

/// The mark of a rank: a word that says it is there.
pub(super) type RankMark = PresenceWord;

/// A rank's presence in its word, which the kernel does not mark.
pub(super) struct PresenceWord;

impl PresenceWord {
    /// Makes `word` say that the rank is there.
    pub(super) fn of(word: &AtomicU32) -> Self {
        word.store(1, Release);
        Self
    }

    /// Gives the word up in good order.
    #[allow(clippy::unused_self, reason = "a mark is given up once, as on Linux")]
    pub(super) fn release(self, word: &AtomicU32) {
        word.store(0, Release);
    }
}

/// The way to know whether a process lives.
pub(super) type ProcessProbe = ProcessNumber;

/// A process by its number; `None` if it has no number that another process can have.
#[derive(Debug)]
pub(super) struct ProcessNumber(Option<Pid>);

impl ProcessNumber {
    /// All ranks have one process table: `namespace` tells nothing here.
    pub(super) fn of(pid: u32, _: u64) -> Self {
        Self(Pid::from_raw(pid.cast_signed()))
    }

    /// `None` if it cannot tell.
    pub(super) fn has_ended(&self) -> Option<bool> {
        match test_kill_process(self.0?) {
            Ok(()) | Err(Errno::PERM) => Some(false),
            Err(Errno::SRCH) => Some(true),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_it_is_collected() {
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("a process");
        let probe = ProcessProbe::of(child.id(), 0);
        assert_eq!(probe.has_ended(), Some(false));
        child.wait().expect("it ends");
        assert_eq!(probe.has_ended(), Some(true));
        assert_eq!(
            ProcessProbe::of(std::process::id(), 0).has_ended(),
            Some(false)
        );
        assert_eq!(ProcessProbe::of(0, 0).has_ended(), None);
    }
}
