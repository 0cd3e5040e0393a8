//! The network of a simulation: ranks with an address each, connections between them, and TCP as a program sees it.
//!
//! A segment arrives after the delay of its connection, in order. While the way is blocked it is sent again every
//! 200 ms, and so is one whose receiver has no room. It is acknowledged if the way back is open. A host acknowledges
//! for a process that is stopped. A process that closes a connection with bytes unread resets it, as Linux does.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::random::SeededRandom;

/// The time after which an unacknowledged segment is sent again.
const AGAIN: Duration = Duration::from_millis(200);
/// The time after which a receiver without room is asked again.
pub(super) const NO_ROOM: Duration = Duration::from_millis(10);
/// Idle time before the first probe of a connection with keepalive, and the time after which it fails.
const PROBE: Duration = Duration::from_secs(1);
const PROBES_FAIL: Duration = Duration::from_secs(3);

/// The properties of the network of a job.
#[derive(Debug, Clone)]
pub(super) struct Properties {
    /// Longest delay of a connection; each has its own, below it.
    pub(super) delay: Duration,
    /// Room of the buffers of senders and receivers.
    pub(super) send_room: usize,
    pub(super) receive_room: usize,
    /// True if calls move fewer bytes than they could.
    pub(super) is_choppy: bool,
}

enum SegmentContent {
    Data(Vec<u8>),
    End,
    Reset,
}

struct TcpSegment {
    due: Duration,
    content: SegmentContent,
}

/// One end of a connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "the state of a socket has these sides, each by itself"
)]
pub(super) struct Socket {
    pub(super) rank: usize,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    peer: usize,
    peer_rank: usize,
    delay: Duration,
    /// On the way to the other end, and bytes that the other end has not acknowledged.
    outgoing: VecDeque<TcpSegment>,
    unacknowledged: usize,
    /// Of these, bytes that have arrived.
    arrived: usize,
    unacknowledged_since: Option<Duration>,
    heard: Duration,
    received: VecDeque<u8>,
    has_end: bool,
    error: Option<io::ErrorKind>,
    /// True once the connection is over for this end, whatever the other one sends.
    is_broken: bool,
    pub(super) is_closed: bool,
    is_write_closed: bool,
    /// True since a write found no room, until there is some.
    is_full: bool,
    /// Counts of what a queue of events tells: arrivals, and times of new room.
    arrivals: u64,
    openings: u64,
    /// Set for a watching connection.
    silence: Option<Duration>,
    pub(super) is_nonblocking: bool,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
}

struct Listener {
    rank: usize,
    address: SocketAddr,
    queue: Vec<usize>,
    is_open: bool,
}

pub(super) struct SimulatedNetwork {
    properties: Properties,
    random: SeededRandom,
    sockets: Vec<Socket>,
    listeners: Vec<Listener>,
    /// Ways that are blocked: from, to.
    blocked: Vec<Vec<bool>>,
    /// Hosts that are lost.
    lost: Vec<bool>,
    next_port: u16,
}

pub(super) fn address_of(rank: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, rank as u8 + 1))
}

fn rank_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => usize::from(address.octets()[3]).checked_sub(1),
        IpAddr::V6(_) => None,
    }
}

impl SimulatedNetwork {
    pub(super) fn new(size: usize, properties: Properties, random: SeededRandom) -> Self {
        Self {
            properties,
            random,
            sockets: Vec::new(),
            listeners: Vec::new(),
            blocked: vec![vec![false; size]; size],
            lost: vec![false; size],
            next_port: 40_000,
        }
    }

    pub(super) fn socket(&mut self, number: usize) -> &mut Socket {
        &mut self.sockets[number]
    }

    pub(super) fn set_blocked(&mut self, from: usize, to: usize, blocked: bool) {
        self.blocked[from][to] = blocked;
    }

    pub(super) fn lose_host(&mut self, rank: usize) {
        self.lost[rank] = true;
    }

    fn is_blocked(&self, from: usize, to: usize) -> bool {
        self.blocked[from][to] || self.lost[from] || self.lost[to]
    }

    fn is_open_way(&self, one: usize, other: usize) -> bool {
        !self.is_blocked(one, other) && !self.is_blocked(other, one)
    }

    fn port(&mut self) -> u16 {
        self.next_port += 1;
        self.next_port
    }

    pub(super) fn listen(&mut self, rank: usize, mut address: SocketAddr) -> usize {
        if address.port() == 0 {
            address.set_port(self.port());
        }
        self.listeners.push(Listener {
            rank,
            address,
            queue: Vec::new(),
            is_open: true,
        });
        self.listeners.len() - 1
    }

    pub(super) fn listening_address(&self, listener: usize) -> SocketAddr {
        self.listeners[listener].address
    }

    pub(super) fn stop_listening(&mut self, listener: usize, now: Duration) {
        self.listeners[listener].is_open = false;
        for socket in std::mem::take(&mut self.listeners[listener].queue) {
            self.reset(socket, now);
        }
    }

    /// A connection that waits to be accepted: any of them.
    pub(super) fn accept(&mut self, listener: usize) -> Option<usize> {
        let queue = &mut self.listeners[listener].queue;
        if queue.is_empty() {
            return None;
        }
        Some(queue.swap_remove(self.random.below(queue.len())))
    }

    pub(super) fn has_waiting(&self, listener: usize) -> bool {
        !self.listeners[listener].queue.is_empty()
    }

    pub(super) fn delay(&mut self) -> Duration {
        let most = self.properties.delay.as_micros() as u64;
        self.random.micros(1, most.max(2))
    }

    /// The dialling end of a new connection; `None` if the way is blocked now.
    pub(super) fn connect(
        &mut self,
        rank: usize,
        to: SocketAddr,
        now: Duration,
    ) -> Option<io::Result<usize>> {
        let refused = || Some(Err(io::ErrorKind::ConnectionRefused.into()));
        let Some(other) = rank_of(to.ip()).filter(|&rank| rank < self.blocked.len()) else {
            return refused();
        };
        if !self.is_open_way(rank, other) {
            return None;
        }
        let is_it = |listener: &Listener| listener.is_open && listener.address == to;
        let Some(listener) = self.listeners.iter().position(is_it) else {
            return refused();
        };
        let from = SocketAddr::new(address_of(rank), self.port());
        let (number, delay) = (self.sockets.len(), self.delay());
        let end = |rank, local, remote, peer, peer_rank| Socket {
            rank,
            local,
            remote,
            peer,
            peer_rank,
            delay,
            outgoing: VecDeque::new(),
            unacknowledged: 0,
            arrived: 0,
            unacknowledged_since: None,
            heard: now,
            received: VecDeque::new(),
            has_end: false,
            error: None,
            is_broken: false,
            is_closed: false,
            is_write_closed: false,
            is_full: false,
            arrivals: 0,
            openings: 0,
            silence: None,
            is_nonblocking: false,
            read_timeout: None,
            write_timeout: None,
        };
        self.sockets.push(end(rank, from, to, number + 1, other));
        self.sockets.push(end(other, to, from, number, rank));
        self.listeners[listener].queue.push(number + 1);
        Some(Ok(number))
    }

    fn push(&mut self, number: usize, content: SegmentContent, now: Duration) {
        let jitter = self.random.micros(0, 50);
        let socket = &mut self.sockets[number];
        let due = now + socket.delay + jitter;
        let due = due.max(socket.outgoing.back().map_or(due, |last| last.due));
        socket.outgoing.push_back(TcpSegment { due, content });
    }

    /// Takes as many of `bytes` as there is room for; `None` if there is none.
    pub(super) fn write(
        &mut self,
        number: usize,
        bytes: &[u8],
        now: Duration,
    ) -> Option<io::Result<usize>> {
        let room = self.properties.send_room;
        let is_choppy = self.properties.is_choppy && self.random.once_in(3);
        let socket = &mut self.sockets[number];
        if let Some(error) = socket.error.take() {
            return Some(Err(error.into()));
        }
        if socket.is_broken || socket.is_write_closed {
            return Some(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = room.saturating_sub(socket.unacknowledged);
        if room == 0 && !bytes.is_empty() {
            socket.is_full = true;
            return None;
        }
        let mut length = room.min(bytes.len());
        if is_choppy && length > 1 {
            length = 1 + self.random.below(length);
        }
        let socket = &mut self.sockets[number];
        socket.unacknowledged += length;
        socket.unacknowledged_since.get_or_insert(now);
        self.push(number, SegmentContent::Data(bytes[..length].to_vec()), now);
        Some(Ok(length))
    }

    /// Gives what has come; `None` if nothing has.
    pub(super) fn read(&mut self, number: usize, into: &mut [u8]) -> Option<io::Result<usize>> {
        let is_choppy = self.properties.is_choppy && self.random.once_in(3);
        let socket = &mut self.sockets[number];
        if socket.received.is_empty() {
            if let Some(error) = socket.error.take() {
                return Some(Err(error.into()));
            }
            let is_over = socket.has_end || socket.is_broken;
            return is_over.then_some(Ok(0));
        }
        let mut length = into.len().min(socket.received.len());
        if is_choppy && length > 1 {
            length = 1 + self.random.below(length);
        }
        let received = &mut self.sockets[number].received;
        let (front, back) = received.as_slices();
        let of_front = front.len().min(length);
        into[..of_front].copy_from_slice(&front[..of_front]);
        into[of_front..length].copy_from_slice(&back[..length - of_front]);
        received.drain(..length);
        Some(Ok(length))
    }

    pub(super) fn is_readable(&self, number: usize) -> bool {
        let socket = &self.sockets[number];
        !socket.received.is_empty() || socket.has_end || socket.is_broken
    }

    pub(super) fn is_writable(&self, number: usize) -> bool {
        let socket = &self.sockets[number];
        socket.is_broken
            || socket.is_write_closed
            || socket.unacknowledged < self.properties.send_room
    }

    /// Counts of the socket's events: arrivals, and times of new room.
    pub(super) fn events(&self, number: usize) -> [u64; 2] {
        let socket = &self.sockets[number];
        [socket.arrivals, socket.openings]
    }

    pub(super) fn has_arrived(&self, number: usize) -> bool {
        let socket = &self.sockets[number];
        socket.unacknowledged == 0 || socket.is_broken || (socket.has_end && socket.is_write_closed)
    }

    pub(super) fn watch(&mut self, number: usize, silence: Duration, now: Duration) {
        let socket = &mut self.sockets[number];
        socket.silence = Some(silence);
        socket.heard = socket.heard.max(now);
    }

    pub(super) fn close_writing(&mut self, number: usize, now: Duration) {
        let socket = &mut self.sockets[number];
        if !socket.is_write_closed && !socket.is_broken {
            socket.is_write_closed = true;
            self.push(number, SegmentContent::End, now);
        }
    }

    /// The process gives the socket back; what was written still goes out.
    pub(super) fn close(&mut self, number: usize, now: Duration) {
        if std::mem::replace(&mut self.sockets[number].is_closed, true) {
            return;
        }
        if self.sockets[number].received.is_empty() {
            self.close_writing(number, now);
        } else {
            self.reset(number, now);
        }
    }

    /// Ends the connection at this end at once, and at the other if the news arrives there.
    fn reset(&mut self, number: usize, now: Duration) {
        if !self.sockets[number].is_broken {
            self.fail(number, io::ErrorKind::ConnectionReset);
            self.sockets[number].error = None;
            self.push(number, SegmentContent::Reset, now);
        }
        self.sockets[number].is_closed = true;
    }

    fn fail(&mut self, number: usize, error: io::ErrorKind) {
        let socket = &mut self.sockets[number];
        socket.outgoing.clear();
        (socket.unacknowledged, socket.arrived) = (0, 0);
        socket.unacknowledged_since = None;
        socket.error = Some(error);
        socket.is_broken = true;
        socket.arrivals += 1;
        socket.openings += 1;
    }

    /// Breaks any one connection at both ends, as a box on the way does that forgets it.
    pub(super) fn break_connection(&mut self, choice: usize) -> Option<(usize, usize)> {
        let is_whole = |number: &usize| {
            let one = &self.sockets[*number];
            let other = &self.sockets[one.peer];
            [one, other]
                .iter()
                .all(|end| !end.is_closed && !end.is_broken)
        };
        let whole: Vec<usize> = (0..self.sockets.len()).filter(is_whole).collect();
        let number = *whole.get(choice % whole.len().max(1))?;
        let peer = self.sockets[number].peer;
        for end in [number, peer] {
            self.fail(end, io::ErrorKind::ConnectionReset);
        }
        let socket = &self.sockets[number];
        Some((socket.rank, socket.peer_rank))
    }

    /// Ends everything that a process has.
    pub(super) fn end_process(&mut self, rank: usize, now: Duration) {
        for listener in 0..self.listeners.len() {
            if self.listeners[listener].rank == rank && self.listeners[listener].is_open {
                self.stop_listening(listener, now);
            }
        }
        for number in 0..self.sockets.len() {
            if self.sockets[number].rank == rank {
                self.close(number, now);
            }
        }
    }

    /// Everything of a rank that is still open.
    pub(super) fn open_of(&self, rank: usize) -> usize {
        let sockets = self.sockets.iter();
        let sockets = sockets.filter(|socket| socket.rank == rank && !socket.is_closed);
        let listeners = self.listeners.iter();
        let listeners = listeners.filter(|listener| listener.rank == rank && listener.is_open);
        sockets.count() + listeners.count()
    }

    /// Lets everything happen that is due.
    pub(super) fn advance(&mut self, now: Duration) {
        for number in 0..self.sockets.len() {
            self.acknowledge(number, now);
            while let Some(front) = self.sockets[number].outgoing.front()
                && front.due <= now
            {
                self.deliver(number, now);
            }
            self.probe(number, now);
        }
    }

    fn acknowledge(&mut self, number: usize, now: Duration) {
        let socket = &self.sockets[number];
        if socket.arrived == 0 || !self.is_open_way(socket.rank, socket.peer_rank) {
            return;
        }
        let socket = &mut self.sockets[number];
        socket.unacknowledged -= std::mem::take(&mut socket.arrived);
        if std::mem::take(&mut socket.is_full) {
            socket.openings += 1;
        }
        socket.heard = now;
        socket.unacknowledged_since = (socket.unacknowledged > 0).then_some(now);
    }

    /// The first segment reaches the other host, or is sent again later.
    fn deliver(&mut self, number: usize, now: Duration) {
        let Socket {
            rank,
            peer,
            peer_rank,
            ..
        } = self.sockets[number];
        let way_back = !self.is_blocked(peer_rank, rank);
        let Some(segment) = self.sockets[number].outgoing.pop_front() else {
            return;
        };
        let (is_blocked, room) = (
            self.is_blocked(rank, peer_rank),
            self.properties.receive_room,
        );
        let other = &mut self.sockets[peer];
        let later = |due| Some(now + due);
        let again = match &segment.content {
            SegmentContent::Reset => None,
            _ if is_blocked => later(AGAIN),
            SegmentContent::Data(_) if other.is_closed || other.is_broken => {
                if way_back {
                    self.fail(number, io::ErrorKind::ConnectionReset);
                    return;
                }
                later(AGAIN)
            }
            SegmentContent::Data(_) if other.received.len() >= room => later(NO_ROOM),
            _ => None,
        };
        if let Some(due) = again {
            let segment = TcpSegment { due, ..segment };
            self.sockets[number].outgoing.push_front(segment);
            return;
        }
        match segment.content {
            SegmentContent::Reset if is_blocked || other.is_broken => {}
            SegmentContent::Reset => self.fail(peer, io::ErrorKind::ConnectionReset),
            SegmentContent::End => {
                (other.has_end, other.heard) = (true, now);
                other.arrivals += 1;
            }
            SegmentContent::Data(bytes) => {
                other.heard = now;
                other.arrivals += 1;
                let length = bytes.len();
                other.received.extend(bytes);
                self.sockets[number].arrived += length;
                self.acknowledge(number, now);
            }
        }
    }

    /// The kernel's own test of a watching connection.
    fn probe(&mut self, number: usize, now: Duration) {
        let socket = &self.sockets[number];
        let Some(silence) = socket.silence.filter(|_| !socket.is_broken) else {
            return;
        };
        let is_open_way = self.is_open_way(socket.rank, socket.peer_rank);
        match socket.unacknowledged_since {
            Some(since) if now >= since + silence => self.fail(number, io::ErrorKind::TimedOut),
            None if now >= socket.heard + PROBE && is_open_way => {
                if self.sockets[socket.peer].is_broken {
                    self.fail(number, io::ErrorKind::ConnectionReset);
                } else {
                    self.sockets[number].heard = now;
                }
            }
            None if now >= socket.heard + PROBES_FAIL => {
                self.fail(number, io::ErrorKind::TimedOut);
            }
            _ => {}
        }
    }

    /// The time of the next thing that happens by itself, after `now`.
    pub(super) fn next(&self, now: Duration) -> Option<Duration> {
        let of_socket = |socket: &Socket| {
            let segment = socket.outgoing.front().map(|segment| segment.due);
            let silence = socket
                .silence
                .filter(|_| !socket.is_broken && !socket.is_closed);
            let probe = silence.map(|silence| match socket.unacknowledged_since {
                Some(since) => since + silence,
                None if now < socket.heard + PROBE => socket.heard + PROBE,
                None => socket.heard + PROBES_FAIL,
            });
            [segment, probe]
        };
        let events = self.sockets.iter().flat_map(of_socket).flatten();
        events.filter(|due| *due > now).min()
    }
}
