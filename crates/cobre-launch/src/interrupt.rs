//! Being asked to end: a program that finishes what it is doing when a signal tells it to stop.

use std::io;

use crate::signals::SignalCatcher;

/// The signals that ask a program to end: SIGHUP is that of a terminal that closes, SIGUSR1 the warning of batch systems.
pub(crate) const ASKS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1];

/// Catches SIGINT, SIGTERM, SIGHUP and SIGUSR1 of this process while it lives. A second one ends the process at once.
pub struct Interrupt {
    catch: SignalCatcher,
    requested: bool,
}

impl Interrupt {
    /// Starts to catch; `None` if this process catches signals already, for a launch.
    ///
    /// # Errors
    /// When the system refuses a pipe.
    pub fn catch() -> io::Result<Option<Self>> {
        let caught = SignalCatcher::new(&ASKS)?;
        Ok(caught.map(|catch| Self {
            catch: catch.impatient(),
            requested: false,
        }))
    }

    /// True if a signal has asked this process to end.
    pub fn requested(&mut self) -> bool {
        self.requested |= !self.catch.read().is_empty();
        self.requested
    }
}
