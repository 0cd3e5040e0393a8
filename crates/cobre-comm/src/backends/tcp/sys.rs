#![expect(
    unsafe_code,
    reason = "closes descriptors in a forked child, and asks the kernel what it has not delivered"
)]
//! Sockets as the kernel sees them: a forked child would keep them open when the rank is dead, and
//! what was sent may not have arrived.

use std::net::TcpStream;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Sockets of a process that are looked after: more than those of several jobs of 256 ranks.
const ENTRIES: usize = 4096;
const FREE: RawFd = -1;

/// The descriptors that a forked child closes. Atomic, as the handler may not wait for a lock that
/// a thread held which the child does not have.
static CLOSED_ON_FORK: [AtomicI32; ENTRIES] = [const { AtomicI32::new(FREE) }; ENTRIES];

/// A socket of this process alone: a forked child closes it before it does anything else, so the
/// other side learns when the rank ends, whatever lives on of it.
#[derive(Debug)]
pub(super) struct CloseOnFork<S> {
    /// Dropped before the socket: another file may get its number.
    _place: Option<DescriptorEntry>,
    socket: S,
}

impl<S: AsRawFd> CloseOnFork<S> {
    pub(super) fn new(socket: S) -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: the handler is a function of this program that makes only calls which are
            // allowed after a fork; without it children keep sockets, as they would anyway.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
        });
        Self {
            _place: DescriptorEntry::take(socket.as_raw_fd()),
            socket,
        }
    }
}

impl<S> Deref for CloseOnFork<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.socket
    }
}

/// An entry of [`CLOSED_ON_FORK`].
#[derive(Debug)]
struct DescriptorEntry(usize);

impl DescriptorEntry {
    fn take(descriptor: RawFd) -> Option<Self> {
        if descriptor == FREE {
            return None;
        }
        let taken = |place: &AtomicI32| {
            place
                .compare_exchange(FREE, descriptor, Relaxed, Relaxed)
                .is_ok()
        };
        CLOSED_ON_FORK.iter().position(taken).map(Self)
    }
}

impl Drop for DescriptorEntry {
    fn drop(&mut self) {
        CLOSED_ON_FORK[self.0].store(FREE, Relaxed);
    }
}

/// In a forked child. What owns these sockets there is never dropped: it belongs to a thread that
/// the child does not have.
extern "C" fn close_in_child() {
    for place in &CLOSED_ON_FORK {
        let descriptor = place.swap(FREE, Relaxed);
        if descriptor != FREE {
            // SAFETY: a socket of the parent that this process has a copy of and never uses.
            let _ = unsafe { libc::close(descriptor) };
        }
    }
}

/// True if the other side's kernel has everything that was sent, or there is no other side.
pub(super) fn has_arrived(stream: &TcpStream) -> bool {
    let mut unsent: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as the stream; the call writes one number.
    let asked = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut unsent) };
    asked != 0 || unsent == 0 || is_over(stream)
}

/// True if the connection has ended both ways.
fn is_over(stream: &TcpStream) -> bool {
    let mut source = [PollFd::new(stream, PollFlags::empty())];
    let asked = poll(&mut source, Some(&Timespec::default()));
    asked.is_ok() && !source[0].revents().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::fork_guard::{in_a_fork, is_own_process};
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn a_forked_child_has_none_of_the_sockets() {
        if !is_own_process(module_path!(), "a_forked_child_has_none_of_the_sockets") {
            return;
        }
        let (one, other) = pair();
        let (one, dropped) = (CloseOnFork::new(one), CloseOnFork::new(other));
        let number = dropped.as_raw_fd();
        drop(dropped);
        // Another file under the number of a socket that is gone stays the child's.
        let file = std::fs::File::open("/dev/null").unwrap();
        let is_open = |number: RawFd| std::fs::metadata(format!("/dev/fd/{number}")).is_ok();
        let kept = file.as_raw_fd();
        let child =
            in_a_fork(|| i32::from(is_open(one.as_raw_fd())) + 2 * i32::from(is_open(kept)));
        assert_eq!(child, 2, "{number} {kept}");
        assert!(is_open(one.as_raw_fd()));
    }

    #[test]
    fn what_nobody_reads_has_not_arrived() {
        let (mut one, other) = pair();
        one.set_nonblocking(true).unwrap();
        assert!(has_arrived(&one));
        while one.write(&[0; 4096]).is_ok() {}
        assert!(!has_arrived(&one));
        drop(other);
        let begin = std::time::Instant::now();
        while !has_arrived(&one) {
            assert!(begin.elapsed() < std::time::Duration::from_secs(30));
        }
    }
}
