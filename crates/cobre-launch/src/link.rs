//! The launcher's end of the connection to the supervisor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{JoinHandle, sleep};
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

/// The other end of the connection.
enum OtherEnd {
    /// A guard, with the supervisor below it.
    Guard(Pid),
    /// The relay to the supervisors of several hosts; `None` once it was joined.
    Relay(Option<JoinHandle<Result<(), LaunchError>>>),
}

/// A running supervisor, under its guard, or the relay to several. Dropping this ends the job and waits until nothing of it
/// is left on this machine.
pub(crate) struct SupervisorLink {
    other_end: OtherEnd,
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
            other_end: OtherEnd::Guard(pid),
            socket: Some(ours),
            events: Decoder::default(),
        })
    }

    /// The connection to a relay that has the other end of `socket`.
    pub(crate) fn of_relay(socket: OwnedFd, relay: JoinHandle<Result<(), LaunchError>>) -> Self {
        Self {
            other_end: OtherEnd::Relay(Some(relay)),
            socket: Some(socket),
            events: Decoder::default(),
        }
    }

    /// True if the ranks are processes of this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.other_end, OtherEnd::Guard(_))
    }

    /// The reason why the other end is gone before the job was over.
    pub(crate) fn failure(&mut self) -> LaunchError {
        let pid = match &mut self.other_end {
            OtherEnd::Guard(pid) => *pid,
            OtherEnd::Relay(relay) => match relay.take().map(JoinHandle::join) {
                Some(Ok(Err(error))) => return error,
                _ => rustix::process::getpid(),
            },
        };
        LaunchError::SupervisorLost {
            pid: pid.as_raw_pid(),
        }
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
        let pid = match &mut self.other_end {
            OtherEnd::Guard(pid) => *pid,
            OtherEnd::Relay(relay) => {
                // It sees the closed socket, and drops its own connection to a supervisor.
                let _ = relay.take().map(JoinHandle::join);
                return;
            }
        };
        let until = Instant::now() + SUPERVISOR_LIMIT;
        let mut pause = Duration::from_micros(50);
        // An error means that the program collects all its children elsewhere.
        while let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG) {
            if Instant::now() > until {
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                return;
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// The two ends of a connection between launcher and supervisor.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((above_stdio(ours.into())?, above_stdio(theirs.into())?))
}
