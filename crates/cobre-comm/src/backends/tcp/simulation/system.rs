//! The names of `os.rs` in unit tests: threads of a simulation get its sockets, its clock and its threads, all others
//! those of the operating system.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::ops::Add;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

use super::world::{Interest, SimulatedWorld, Wait, current};
use crate::backends::spin::Spin;
use crate::backends::tcp::os;

pub(in super::super) use os::PlantedFault;

/// The time after which a connection that was not answered is tried again.
const AGAIN: Duration = Duration::from_millis(300);
/// The number of a descriptor that is none.
const NO_DESCRIPTOR: RawFd = -1;

/// A time of the world that the thread belongs to, or of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::backends) struct Instant(Duration);

impl Instant {
    pub(in crate::backends) fn now() -> Self {
        static BEGIN: LazyLock<os::Instant> = LazyLock::new(os::Instant::now);
        Self(match current() {
            Some((world, _)) => world.state().now,
            None => BEGIN.elapsed(),
        })
    }

    pub(in crate::backends) fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    pub(in super::super) fn duration_since(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    pub(in crate::backends) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

pub(in super::super) fn has(mutant: PlantedFault) -> bool {
    current().map_or(os::has(mutant), |(world, _)| world.has(mutant))
}

/// Something that the network of a world knows by a number.
#[derive(Clone)]
pub(in crate::backends) struct Numbered {
    world: Arc<SimulatedWorld>,
    number: usize,
}

impl std::fmt::Debug for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

/// The thread that makes a call.
fn me() -> usize {
    current().expect("sockets of a world stay in it").1
}

#[derive(Debug)]
pub(in super::super) enum TcpStream {
    System(os::TcpStream),
    Simulated(Numbered),
}

#[derive(Debug)]
pub(in super::super) enum TcpListener {
    System(os::TcpListener),
    Simulated(Numbered),
}

#[derive(Debug)]
pub(in super::super) enum UnixStream {
    System(os::UnixStream),
    Simulated(Numbered),
}

#[derive(Debug)]
pub(in crate::backends) enum JoinHandle<T> {
    System(os::JoinHandle<T>),
    Simulated(Numbered),
}

impl JoinHandle<()> {
    pub(in crate::backends) fn join(self) -> std::thread::Result<()> {
        match self {
            Self::System(handle) => handle.join(),
            Self::Simulated(Numbered { world, number }) => {
                world.block(me(), Wait::Thread(number), None);
                Ok(())
            }
        }
    }
}

impl TcpStream {
    #[cfg(test)]
    pub(in super::super) fn connect(address: SocketAddr) -> io::Result<Self> {
        os::TcpStream::connect(address).map(Self::System)
    }

    pub(in super::super) fn connect_timeout(
        address: &SocketAddr,
        limit: Duration,
    ) -> io::Result<Self> {
        let Some((world, me)) = current() else {
            return os::TcpStream::connect_timeout(address, limit).map(Self::System);
        };
        let (rank, until) = (world.rank_of(me), world.state().now + limit);
        loop {
            let delay = world.state().network.delay();
            pause(&world, me, delay);
            let now = world.state().now;
            let connected = world.state().network.connect(rank, *address, now);
            match connected {
                None if now >= until => return Err(io::ErrorKind::TimedOut.into()),
                None => pause(&world, me, AGAIN.min(until.saturating_sub(now))),
                Some(connected) => {
                    let stream = connected.map(|number| {
                        Self::Simulated(Numbered {
                            world: world.clone(),
                            number,
                        })
                    });
                    pause(&world, me, delay);
                    return stream;
                }
            }
        }
    }

    pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(stream) => stream.local_addr(),
            Self::Simulated(it) => Ok(it.world.state().network.socket(it.number).local),
        }
    }

    pub(in super::super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(stream) => stream.peer_addr(),
            Self::Simulated(it) => Ok(it.world.state().network.socket(it.number).remote),
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "as the operating system's")]
    pub(in super::super) fn set_nodelay(&self, is_set: bool) -> io::Result<()> {
        match self {
            Self::System(stream) => stream.set_nodelay(is_set),
            Self::Simulated(_) => Ok(()),
        }
    }

    pub(in super::super) fn set_nonblocking(&self, is_set: bool) -> io::Result<()> {
        match self {
            Self::System(stream) => stream.set_nonblocking(is_set)?,
            Self::Simulated(it) => {
                let mut state = it.world.state();
                state.network.socket(it.number).is_nonblocking = is_set;
            }
        }
        Ok(())
    }

    pub(in super::super) fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::System(stream) => stream.set_read_timeout(limit)?,
            Self::Simulated(it) => {
                it.world.state().network.socket(it.number).read_timeout = limit;
            }
        }
        Ok(())
    }

    pub(in super::super) fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::System(stream) => stream.set_write_timeout(limit)?,
            Self::Simulated(it) => {
                it.world.state().network.socket(it.number).write_timeout = limit;
            }
        }
        Ok(())
    }

    pub(in super::super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::System(stream) => stream.shutdown(how)?,
            Self::Simulated(it) => {
                assert_eq!(how, Shutdown::Write, "the only one that is simulated");
                let mut state = it.world.state();
                let now = state.now;
                state.network.close_writing(it.number, now);
            }
        }
        Ok(())
    }
}

/// A time in which a thread does nothing.
fn pause(world: &SimulatedWorld, me: usize, time: Duration) {
    let until = world.state().now.checked_add(time);
    world.block(me, Wait::Time, until);
}

impl Numbered {
    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.transfer(Interest::Read(self.number), |world| {
            world.state().network.read(self.number, into)
        })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.transfer(Interest::Write(self.number), |world| {
            let mut state = world.state();
            let now = state.now;
            state.network.write(self.number, bytes, now)
        })
    }

    fn transfer(
        &self,
        interest: Interest,
        mut attempt: impl FnMut(&SimulatedWorld) -> Option<io::Result<usize>>,
    ) -> io::Result<usize> {
        let (world, me) = (&self.world, me());
        world.tick(me);
        let (is_nonblocking, limit) = {
            let mut state = world.state();
            let socket = state.network.socket(self.number);
            let limit = match interest {
                Interest::Read(_) => socket.read_timeout,
                _ => socket.write_timeout,
            };
            (socket.is_nonblocking, limit)
        };
        let until = limit.map(|limit| world.state().now + limit);
        loop {
            if let Some(outcome) = attempt(world) {
                return outcome;
            }
            if is_nonblocking || until.is_some_and(|until| world.state().now >= until) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            world.block(me, Wait::Sources(vec![interest]), until);
        }
    }
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            TcpStream::System(stream) => (&mut &*stream).read(into),
            TcpStream::Simulated(it) => it.read(into),
        }
    }
}

impl Read for TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            TcpStream::System(stream) => (&mut &*stream).write(bytes),
            TcpStream::Simulated(it) => it.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::System(stream) => stream.as_raw_fd(),
            Self::Simulated(_) => NO_DESCRIPTOR,
        }
    }
}

impl AsRawFd for UnixStream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::System(stream) => stream.as_raw_fd(),
            Self::Simulated(_) => NO_DESCRIPTOR,
        }
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        if let Self::Simulated(it) = self {
            let mut state = it.world.state();
            let now = state.now;
            state.network.close(it.number, now);
        }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        stop_listening(self);
    }
}

impl From<OwnedFd> for TcpListener {
    fn from(descriptor: OwnedFd) -> Self {
        Self::System(descriptor.into())
    }
}

impl TcpListener {
    #[cfg(test)]
    pub(in super::super) fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        os::TcpListener::bind(address).map(Self::System)
    }

    pub(in super::super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(listener) => listener.local_addr(),
            Self::Simulated(it) => Ok(it.world.state().network.listening_address(it.number)),
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "as the operating system's")]
    pub(in super::super) fn set_nonblocking(&self, is_set: bool) -> io::Result<()> {
        match self {
            Self::System(listener) => listener.set_nonblocking(is_set),
            Self::Simulated(_) => Ok(()),
        }
    }

    pub(in super::super) fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::System(listener) => listener
                .accept()
                .map(|(stream, from)| (TcpStream::System(stream), from)),
            Self::Simulated(it) => {
                it.world.tick(me());
                let mut state = it.world.state();
                let accepted = state.network.accept(it.number);
                let number = accepted.ok_or(io::ErrorKind::WouldBlock)?;
                let from = state.network.socket(number).remote;
                let world = it.world.clone();
                Ok((TcpStream::Simulated(Numbered { world, number }), from))
            }
        }
    }
}

pub(in super::super) type PollSource<'a> = AnyPollSource<'a>;

#[derive(Clone, Copy)]
pub(in super::super) enum AnyPollSource<'a> {
    Read(&'a TcpStream),
    Write(&'a TcpStream),
    Accept(&'a TcpListener),
    Wake(&'a UnixStream),
}

impl<'a> AnyPollSource<'a> {
    fn system(self) -> Option<os::PollSource<'a>> {
        match self {
            Self::Read(TcpStream::System(stream)) => Some(os::PollSource::Read(stream)),
            Self::Write(TcpStream::System(stream)) => Some(os::PollSource::Write(stream)),
            Self::Accept(TcpListener::System(listener)) => Some(os::PollSource::Accept(listener)),
            Self::Wake(UnixStream::System(receiver)) => Some(os::PollSource::Wake(receiver)),
            _ => None,
        }
    }

    fn simulated(self) -> Option<Interest> {
        match self {
            Self::Read(TcpStream::Simulated(it)) => Some(Interest::Read(it.number)),
            Self::Write(TcpStream::Simulated(it)) => Some(Interest::Write(it.number)),
            Self::Accept(TcpListener::Simulated(it)) => Some(Interest::Accept(it.number)),
            Self::Wake(UnixStream::Simulated(it)) => Some(Interest::Wake(it.number)),
            _ => None,
        }
    }
}

pub(in super::super) fn poll<'a>(sources: impl Iterator<Item = PollSource<'a>>, limit: Duration) {
    let Some((world, me)) = current() else {
        return os::poll(sources.filter_map(PollSource::system), limit);
    };
    world.tick(me);
    let interests = sources.filter_map(PollSource::simulated).collect();
    let until = world.state().now.checked_add(limit);
    world.block(me, Wait::Sources(interests), until);
}

/// In every other simulation all sockets are tried.
pub(in super::super) fn many_sockets() -> usize {
    match current() {
        Some((world, _)) if world.has_event_queues => 1,
        Some(_) => usize::MAX,
        None => os::many_sockets(),
    }
}

/// As small beside the stage of a simulated host as pieces are beside real stages.
pub(in super::super) fn chain_piece() -> usize {
    current().map_or(os::chain_piece(), |_| 1024)
}

pub(in super::super) type EventQueue = AnyEventQueue;

/// A source in a simulated queue: its number there, and its events that were told.
#[derive(Debug)]
pub(in super::super) struct QueuedSource {
    source: Interest,
    number: usize,
    told: u64,
}

#[derive(Debug)]
pub(in super::super) enum AnyEventQueue {
    System(os::EventQueue),
    Simulated(Mutex<Vec<QueuedSource>>),
}

impl AnyEventQueue {
    pub(in super::super) fn new() -> io::Result<Self> {
        match current() {
            Some(_) => Ok(Self::Simulated(Mutex::default())),
            None => os::EventQueue::new().map(Self::System),
        }
    }

    pub(in super::super) fn add(&self, source: PollSource<'_>, number: usize) -> io::Result<()> {
        let sources = match self {
            Self::System(queue) => {
                let source = source.system().expect("sockets of one system");
                return queue.add(source, number);
            }
            Self::Simulated(sources) => sources,
        };
        let source = source.simulated().expect("sockets of one world");
        let ways = match source {
            Interest::Read(socket) => vec![source, Interest::Write(socket)],
            other => vec![other],
        };
        let (world, _) = current().expect("a queue stays in its world");
        let state = world.state();
        // What is there already is an event.
        let added = ways.into_iter().map(|source| QueuedSource {
            source,
            number,
            told: state.events(source).wrapping_sub(1),
        });
        lock(sources).extend(added);
        Ok(())
    }

    pub(in super::super) fn wait(&self, limit: Duration, mut take: impl FnMut(os::SocketEvent)) {
        let sources = match self {
            Self::System(queue) => return queue.wait(limit, take),
            Self::Simulated(sources) => sources,
        };
        let (world, me) = current().expect("a queue stays in its world");
        world.tick(me);
        if limit > Duration::ZERO {
            let told = lock(sources)
                .iter()
                .map(|it| (it.source, it.told))
                .collect();
            let until = world.state().now.checked_add(limit);
            world.block(me, Wait::Events(told), until);
        }
        let state = world.state();
        for queued in lock(sources).iter_mut() {
            let events = state.events(queued.source);
            if events != queued.told && state.has_news(queued.source) {
                queued.told = events;
                take(os::SocketEvent {
                    number: queued.number,
                    is_readable: !matches!(queued.source, Interest::Write(_)),
                    is_writable: matches!(queued.source, Interest::Write(_)),
                });
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(in super::super) fn send(stream: &TcpStream, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
    match stream {
        TcpStream::System(stream) => os::send(stream, pieces),
        TcpStream::Simulated(it) => {
            let mut bytes = Vec::new();
            for piece in pieces {
                bytes.extend_from_slice(piece);
            }
            it.write(&bytes).map_err(errno)
        }
    }
}

pub(in super::super) fn receive(
    stream: &TcpStream,
    pieces: &mut [IoSliceMut<'_>],
) -> Result<usize, Errno> {
    match stream {
        TcpStream::System(stream) => os::receive(stream, pieces),
        TcpStream::Simulated(it) => {
            let mut bytes = vec![0; pieces.iter().map(|piece| piece.len()).sum()];
            let length = it.read(&mut bytes).map_err(errno)?;
            let mut left = &bytes[..length];
            for piece in pieces {
                let (now, later) = left.split_at(left.len().min(piece.len()));
                piece[..now.len()].copy_from_slice(now);
                left = later;
            }
            Ok(length)
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::WouldBlock => Errno::AGAIN,
        io::ErrorKind::TimedOut => Errno::TIMEDOUT,
        io::ErrorKind::BrokenPipe => Errno::PIPE,
        _ => Errno::CONNRESET,
    }
}

pub(in super::super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let Some((world, me)) = current() else {
        return os::bind(address).map(TcpListener::System);
    };
    world.tick(me);
    let rank = world.rank_of(me);
    let number = world.state().network.listen(rank, address);
    Ok(TcpListener::Simulated(Numbered { world, number }))
}

pub(in super::super) fn stop_listening(listener: &TcpListener) {
    match listener {
        TcpListener::System(listener) => os::stop_listening(listener),
        TcpListener::Simulated(it) => {
            let mut state = it.world.state();
            let now = state.now;
            state.network.stop_listening(it.number, now);
        }
    }
}

pub(in super::super) fn prepare_data(stream: &TcpStream) -> io::Result<()> {
    match stream {
        TcpStream::System(stream) => os::prepare_data(stream),
        TcpStream::Simulated(_) => {
            stream.set_read_timeout(None)?;
            stream.set_nonblocking(true)
        }
    }
}

pub(in super::super) fn prepare_watch(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    match stream {
        TcpStream::System(stream) => os::prepare_watch(stream, silence)?,
        TcpStream::Simulated(it) => {
            let mut state = it.world.state();
            let now = state.now;
            state.network.watch(it.number, silence, now);
        }
    }
    Ok(())
}

pub(in super::super) fn has_arrived(stream: &TcpStream) -> bool {
    match stream {
        TcpStream::System(stream) => os::has_arrived(stream),
        TcpStream::Simulated(it) => {
            it.world.tick(me());
            it.world.state().network.has_arrived(it.number)
        }
    }
}

pub(in super::super) fn waker() -> io::Result<(UnixStream, UnixStream)> {
    let Some((world, _)) = current() else {
        let (waker, receiver) = os::waker()?;
        return Ok((UnixStream::System(waker), UnixStream::System(receiver)));
    };
    let mut state = world.state();
    state.wakes.push(0);
    state.all_wakes.push(0);
    let number = state.wakes.len() - 1;
    drop(state);
    let end = || {
        UnixStream::Simulated(Numbered {
            world: world.clone(),
            number,
        })
    };
    Ok((end(), end()))
}

/// No other thread runs in between: the caller holds a lock.
pub(in super::super) fn wake(waker: &UnixStream) {
    match waker {
        UnixStream::System(waker) => os::wake(waker),
        UnixStream::Simulated(it) => {
            let mut state = it.world.state();
            state.wakes[it.number] += 1;
            state.all_wakes[it.number] += 1;
        }
    }
}

pub(in super::super) fn silence(receiver: &UnixStream) {
    match receiver {
        UnixStream::System(receiver) => os::silence(receiver),
        UnixStream::Simulated(it) => it.world.state().wakes[it.number] = 0,
    }
}

pub(in crate::backends) fn spawn(
    name: &str,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let Some((world, me)) = current() else {
        return os::spawn(name, stack, work).map(JoinHandle::System);
    };
    let number = world.spawn(world.rank_of(me), work);
    Ok(JoinHandle::Simulated(Numbered { world, number }))
}

/// Threads of a world do not park.
pub(in crate::backends) fn unpark(thread: &JoinHandle<()>) {
    if let JoinHandle::System(thread) = thread {
        thread.thread().unpark();
    }
}

pub(in crate::backends) fn sleep(time: Duration) {
    match current() {
        Some((world, me)) => pause(&world, me, time),
        None => os::sleep(time),
    }
}

pub(in crate::backends) fn yield_now() {
    match current() {
        Some((world, me)) => world.block(me, Wait::Nothing, None),
        None => os::yield_now(),
    }
}

/// A warning of a rank about itself: no report of a stall.
pub(in super::super) fn warn(text: &str) {
    if current().is_none() {
        os::warn(text);
    }
}

pub(in super::super) fn complain(text: String) {
    let Some((world, me)) = current() else {
        return os::complain(text);
    };
    let rank = world.rank_of(me);
    let mut state = world.state();
    let now = state.now;
    state.reports.push((now, rank, text));
}

/// In a simulation nobody gains by looking again: few looks, then sleep.
pub(in super::super) fn settle(rank: usize, size: usize, is_crowded: bool) -> Spin {
    let Some((world, _)) = current() else {
        return os::settle(rank, size, is_crowded);
    };
    let yields = world.state().random.below(3) as u32;
    Spin { spins: 0, yields }
}

pub(in super::super) type News = AnyNews;

#[derive(Debug)]
pub(in super::super) enum AnyNews {
    System(os::News),
    Simulated(Numbered),
}

impl Default for AnyNews {
    fn default() -> Self {
        let Some((world, _)) = current() else {
            return Self::System(os::News::default());
        };
        let mut state = world.state();
        state.news.push(0);
        let number = state.news.len() - 1;
        drop(state);
        Self::Simulated(Numbered { world, number })
    }
}

impl AnyNews {
    pub(in super::super) fn tell(&self) {
        match self {
            Self::System(news) => news.tell(),
            Self::Simulated(it) => it.world.state().news[it.number] += 1,
        }
    }

    pub(in super::super) fn wait_while(&self, limit: Duration, is_waiting: impl Fn() -> bool) {
        let it = match self {
            Self::System(news) => return news.wait_while(limit, is_waiting),
            Self::Simulated(it) => it,
        };
        let until = it.world.state().now.checked_add(limit);
        while is_waiting() {
            let state = it.world.state();
            let (now, seen, is_over) = (state.now, state.news[it.number], state.end.is_some());
            drop(state);
            if until.is_some_and(|until| now >= until) || is_over && std::thread::panicking() {
                return;
            }
            it.world.block(me(), Wait::News(it.number, seen), until);
        }
    }
}
