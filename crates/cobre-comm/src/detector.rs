//! The means by which ranks of `shm` notice that another rank has died.

use std::fmt;

/// The failure detector of `shm` on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detector {
    /// The kernel marks a word and wakes the others.
    Woken,
    /// The kernel marks a word; the others look every few milliseconds.
    Marked,
    /// The others look every few milliseconds whether the process is still there.
    Processes,
    /// Nothing works here: only a deadline ends a wait for a rank that died.
    Nothing,
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Woken => "robust futex, woken by the kernel",
            Self::Marked => "robust futex, looked at every 5 ms (no futex_waitv here)",
            Self::Processes => "their processes, looked at every 5 ms (no robust futex here)",
            Self::Nothing => "nothing: no robust futex, no process descriptors, no /proc",
        })
    }
}
