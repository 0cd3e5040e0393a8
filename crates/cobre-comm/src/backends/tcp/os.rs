//! The operating system as this backend uses it: sockets, readiness, clock and threads. Everything in this folder
//! reaches the network, the time and other threads through these names. The unit tests put a simulation behind the
//! same names (`simulation/`).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags,
    SocketType, sockopt,
};

use super::sys::{self, CloseOnFork};
use crate::backends::spin::{Spin, spread};
use crate::{cpus, terminal};

pub(super) use std::net::{TcpListener, TcpStream};
pub(super) use std::os::unix::net::UnixStream;
pub(super) use std::thread::{JoinHandle, sleep, yield_now};
pub(super) use std::time::Instant;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// The size of a socket's send buffer: larger ones push data out of the
/// cache, smaller ones wait more often.
const SEND_BUFFER: usize = 512 * 1024;
/// Looks between which others may run, with more ranks than processors.
const YIELDS_IF_CROWDED: u32 = 1000;

/// A deliberate fault in the protocol, which the simulation has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlantedFault {
    /// Rank 0 does not mind that a watching connection has ended.
    DeafCoordinator,
    /// A worker does not mind that the watching connection to rank 0 has ended.
    DeafFollower,
    /// A rank whose data connection breaks decides by itself.
    OwnVerdict,
    /// Rank 0 keeps the verdict from the last rank.
    VerdictNotForAll,
    /// Data are combined without a look at the other side's call.
    UncheckedCall,
    /// Bytes that do not arrive are not looked for.
    LostBytesIgnored,
    /// A rank that does not answer for two seconds counts as lost.
    SilenceIsDeath,
    /// The verdict does not end the waits inside a host.
    NoHostAlarm,
    /// A rank takes the record of its host for the verdict.
    HostRecord,
    /// Ranks of a host do not wait in a barrier until their leader has met the others.
    NoLastMeeting,
}

/// False: only the simulation plants faults.
#[inline]
pub(super) const fn has(_: PlantedFault) -> bool {
    false
}

/// Something to wait for.
#[derive(Clone, Copy)]
pub(super) enum PollSource<'a> {
    Read(&'a TcpStream),
    Write(&'a TcpStream),
    Accept(&'a TcpListener),
    Wake(&'a UnixStream),
}

/// Waits until one of the sources is ready or has failed, or `limit` has passed. An interrupted wait is one that is
/// over.
pub(super) fn poll<'a>(sources: impl Iterator<Item = PollSource<'a>>, limit: Duration) {
    let mut sources: Vec<PollFd<'a>> = sources
        .map(|source| match source {
            PollSource::Read(stream) => PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN),
            PollSource::Write(stream) => PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::OUT),
            PollSource::Accept(listener) => {
                PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)
            }
            PollSource::Wake(receiver) => PollFd::from_borrowed_fd(receiver.as_fd(), PollFlags::IN),
        })
        .collect();
    let limit = Timespec::try_from(limit).ok();
    let _ = rustix::event::poll(&mut sources, limit.as_ref());
}

/// The number of sockets from which on a queue of events costs less than to try them all.
const MANY_SOCKETS: usize = 16;
/// Events that one wait takes.
const EVENTS_AT_ONCE: usize = 64;

pub(super) const fn many_sockets() -> usize {
    MANY_SOCKETS
}

/// Bytes that go from leader to leader at a time.
const CHAIN_PIECE: usize = 64 * 1024;

pub(super) const fn chain_piece() -> usize {
    CHAIN_PIECE
}

/// News of a socket since the last: that it may have something to read, or room.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketEvent {
    /// The number under which it was added.
    pub(super) number: usize,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
}

/// The kernel's queue of events of sockets. It tells of each change once: whoever takes an event reads until nothing is
/// left, or writes until there is no room.
#[derive(Debug)]
pub(super) struct EventQueue(CloseOnFork<OwnedFd>);

impl EventQueue {
    pub(super) fn new() -> io::Result<Self> {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self(CloseOnFork::new(queue)))
    }

    /// Adds a socket under a number, for both ways; it goes by itself when it is closed.
    pub(super) fn add(&self, source: PollSource<'_>, number: usize) -> io::Result<()> {
        let socket = match source {
            PollSource::Read(stream) | PollSource::Write(stream) => stream.as_fd(),
            PollSource::Accept(listener) => listener.as_fd(),
            PollSource::Wake(receiver) => receiver.as_fd(),
        };
        let data = epoll::EventData::new_u64(number as u64);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        Ok(epoll::add(&*self.0, socket, data, flags)?)
    }

    /// Takes events, or waits for some, at most for `limit`. An interrupted wait is one that is over.
    pub(super) fn wait(&self, limit: Duration, mut take: impl FnMut(SocketEvent)) {
        let none = epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        };
        let mut events = [none; EVENTS_AT_ONCE];
        let limit = Timespec::try_from(limit).ok();
        let count = epoll::wait(&*self.0, &mut events[..], limit.as_ref()).unwrap_or_default();
        for event in &events[..count] {
            let flags = event.flags;
            let is_over = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            take(SocketEvent {
                number: event.data.u64() as usize,
                is_readable: is_over || flags.contains(epoll::EventFlags::IN),
                is_writable: is_over || flags.contains(epoll::EventFlags::OUT),
            });
        }
    }
}

/// Sends what fits of these pieces.
#[inline]
pub(super) fn send(stream: &TcpStream, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL;
    match pieces {
        [piece] => rustix::net::send(stream, piece, flags),
        pieces => {
            let mut ancillary = SendAncillaryBuffer::default();
            rustix::net::sendmsg(stream, pieces, &mut ancillary, flags)
        }
    }
}

/// Receives what is there into these pieces.
#[inline]
pub(super) fn receive(stream: &TcpStream, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
    let flags = RecvFlags::empty();
    match pieces {
        [piece] => rustix::net::recv(stream, &mut **piece, flags).map(|(read, _)| read),
        pieces => {
            let mut ancillary = RecvAncillaryBuffer::default();
            rustix::net::recvmsg(stream, pieces, &mut ancillary, flags).map(|message| message.bytes)
        }
    }
}

/// A listening socket whose port can be taken again at once when the job is over.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Stops listening, also on a copy of the socket that another process may still have.
pub(super) fn stop_listening(listener: &TcpListener) {
    let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
}

/// Sets up a data connection. There is no timeout on it: only the watch ends a job.
pub(super) fn prepare_data(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(None)?;
    stream.set_nonblocking(true)?;
    sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER)?;
    Ok(())
}

/// Sets on a watching connection what finds out that the other host is gone: bytes that stay unacknowledged for
/// `silence`, or three seconds without an answer to a probe.
pub(super) fn prepare_watch(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    sockopt::set_tcp_user_timeout(stream, silence.as_millis() as u32)?;
    Ok(())
}

/// True if the other side's kernel has everything that was sent, or there is no other side.
pub(super) fn has_arrived(stream: &TcpStream) -> bool {
    sys::has_arrived(stream)
}

/// Both ends of a waker: neither blocks.
pub(super) fn waker() -> io::Result<(UnixStream, UnixStream)> {
    let (waker, receiver) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    receiver.set_nonblocking(true)?;
    Ok((waker, receiver))
}

/// Wakes the thread that polls the other end. A waker that is full has something to read already.
pub(super) fn wake(waker: &UnixStream) {
    let _ = (&mut &*waker).write(&[1]);
}

/// Takes what was written by [`wake`].
pub(super) fn silence(receiver: &UnixStream) {
    let mut rung = [0; 64];
    while matches!((&mut &*receiver).read(&mut rung), Ok(length) if length > 0) {}
}

/// Starts a thread.
pub(super) fn spawn(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new();
    builder.name(name.to_owned()).stack_size(stack).spawn(work)
}

/// Writes to standard error, in the calling thread.
pub(super) fn warn(text: &str) {
    terminal::complain(text);
}

/// Writes to standard error from a thread of its own: who watches must neither end nor wait, even if
/// nobody reads.
pub(super) fn complain(text: String) {
    let say = move || terminal::complain(&terminal::one_line(text.trim_end()));
    let _ = spawn("cobre-report", 64 * 1024, say);
}

/// Moves this rank to its share of the processors, and says how it waits there.
pub(super) fn settle(rank: usize, size: usize, is_crowded: bool) -> Spin {
    spread(rank, size, &cpus::allowed());
    Spin::new(is_crowded, YIELDS_IF_CROWDED)
}

/// News that threads of this process wait for.
#[derive(Debug, Default)]
pub(super) struct News {
    lock: Mutex<()>,
    told: Condvar,
}

impl News {
    pub(super) fn tell(&self) {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.told.notify_all();
    }

    /// Waits while `is_waiting`, at most for `limit`; the condition ends before [`tell`](Self::tell).
    pub(super) fn wait_while(&self, limit: Duration, is_waiting: impl Fn() -> bool) {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _waited = self.told.wait_timeout_while(held, limit, |()| is_waiting());
    }
}
