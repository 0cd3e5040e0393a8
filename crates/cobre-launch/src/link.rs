//! The launcher's end of the connection to the supervisor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::error::LaunchError;
use crate::plan::{Plan, above_stdio};
use crate::protocol::{Decoder, Event, Order, RECORD, encode};
use crate::supervisor::guard;
use crate::sys::fork;

/// The time that supervisor and guard may take to end everything once the connection is closed.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(6);

/// A running supervisor, under its guard. Dropping this ends the job and waits until nothing of it is left.
pub(crate) struct SupervisorLink {
    /// The guard.
    pub(crate) pid: Pid,
    /// `None` only while it is dropped.
    socket: Option<OwnedFd>,
    events: Decoder,
}

impl SupervisorLink {
    /// Forks a guard, which forks the supervisor, which starts the ranks of `plan`.
    pub(crate) fn start(plan: Plan) -> Result<Self, LaunchError> {
        let action = "connect to the supervisor of the ranks";
        let (ours, theirs) = pair().map_err(LaunchError::system(action))?;
        let launcher = rustix::process::getpid();
        let pid = fork(move || guard(plan, theirs, launcher))
            .map_err(LaunchError::system("fork the supervisor of the ranks"))?;
        Ok(Self {
            pid,
            socket: Some(ours),
            events: Decoder::default(),
        })
    }

    /// The descriptor to poll.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("closed only by drop").as_fd()
    }

    /// The events that have come; `None` if the supervisor is gone.
    pub(crate) fn receive(&mut self) -> Option<Vec<Event>> {
        let mut bytes = [0; 256 * RECORD];
        match rustix::net::recv(self.socket(), &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => None,
            Ok((length, _)) => Some(self.events.feed(&bytes[..length])),
            Err(Errno::AGAIN | Errno::INTR) => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// A supervisor that cannot be told is gone, which [`SupervisorLink::receive`] will show.
    pub(crate) fn send(&self, order: Order) {
        let bytes = encode(order);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::net::send(self.socket(), rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for SupervisorLink {
    fn drop(&mut self) {
        self.socket = None;
        let until = Instant::now() + SUPERVISOR_LIMIT;
        let mut pause = Duration::from_micros(50);
        // An error means that the program collects all its children elsewhere.
        while let Ok(None) = waitpid(Some(self.pid), WaitOptions::NOHANG) {
            if Instant::now() > until {
                let _ = kill_process(self.pid, Signal::KILL);
                let _ = waitpid(Some(self.pid), WaitOptions::empty());
                return;
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((above_stdio(ours.into())?, above_stdio(theirs.into())?))
}
