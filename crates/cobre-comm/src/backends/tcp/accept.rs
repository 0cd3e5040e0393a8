//! The accepting side of connections: anyone may dial, and only ranks of this job are accepted.
//!
//! Before a connection is proven it gets little: [`HELLO`] + [`PROOF`] bytes, two seconds, and one of a
//! few slots. When those are taken, the oldest pending connection is closed: a rank needs its
//! slot for a millisecond, so a crowd of silent connections keeps nobody out.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use super::channel::{Channel, Protection, Side};
use super::connection::Connection;
use super::handshake::{self, CHALLENGE, HELLO, HandshakeError, Hello, PROOF, Refusal};
use super::system::{Instant, PollSource, TcpListener, TcpStream};

/// Pending connections at any one time.
const MOST_PENDING: usize = 64;
/// The time that a dialling process may take to prove itself.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause in accepting after the system could not give a descriptor.
const PAUSE: Duration = Duration::from_millis(20);
/// Refusals that are remembered.
const MOST_REFUSALS: usize = 16;

/// The identity that a dialling process must prove.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobIdentity<'a> {
    /// The rank that asks.
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) id: u64,
    pub(super) secret: &'a [u8],
    /// True if the secret is one that ranks of this machine have found by themselves: it opens
    /// nothing but loopback.
    pub(super) loopback_only: bool,
    /// The protection of connections within this machine; between hosts it is authentication at
    /// least.
    pub(super) on_loopback: Protection,
}

impl JobIdentity<'_> {
    /// The least protection that this rank accepts on a connection.
    pub(super) fn protection(&self, stream: &TcpStream) -> Protection {
        let is_loopback = |address: io::Result<SocketAddr>| {
            address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
        };
        if is_loopback(stream.local_addr()) && is_loopback(stream.peer_addr()) {
            self.on_loopback
        } else {
            self.on_loopback.max(Protection::Authentication)
        }
    }
}

/// A listener and the connections that are not proven yet.
pub(super) struct Acceptor<'a> {
    listener: &'a TcpListener,
    job: JobIdentity<'a>,
    pending: Vec<PendingConnection>,
    closed_until: Option<Instant>,
    /// Ranks that proved themselves and were refused all the same: who, from where, why.
    pub(super) refused: Vec<(u32, SocketAddr, Refusal)>,
    /// The last error of accepting a connection.
    pub(super) accept_error: Option<io::Error>,
}

/// A connection whose other end is a rank of this job.
pub(super) struct Arrival {
    pub(super) hello: Hello,
    pub(super) connection: Connection,
    pub(super) from: SocketAddr,
}

struct PendingConnection {
    stream: TcpStream,
    from: SocketAddr,
    since: Instant,
    /// The bytes received: a hello, then a proof.
    received: [u8; HELLO + PROOF],
    length: usize,
    /// The hello and the challenge, once the hello was read.
    challenged: Option<(Hello, [u8; CHALLENGE])>,
}

impl<'a> Acceptor<'a> {
    pub(super) fn new(listener: &'a TcpListener, job: JobIdentity<'a>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            job,
            pending: Vec::new(),
            closed_until: None,
            refused: Vec::new(),
            accept_error: None,
        })
    }

    /// The sockets to poll.
    pub(super) fn sources(&self) -> impl Iterator<Item = PollSource<'_>> {
        let is_open = self.closed_until.is_none();
        let listener = is_open.then_some(PollSource::Accept(self.listener));
        let pending = self.pending.iter();
        listener
            .into_iter()
            .chain(pending.map(|connection| PollSource::Read(&connection.stream)))
    }

    /// The next rank that was accepted; `None` if none is there. `judge` decides about a
    /// rank that has proven itself.
    pub(super) fn receive(
        &mut self,
        judge: impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> Option<Arrival> {
        self.open();
        let mut index = 0;
        while index < self.pending.len() {
            match self.pending[index].advance(&self.job, &judge) {
                HandshakeStep::Waits if self.pending[index].since.elapsed() < HANDSHAKE_TIMEOUT => {
                    index += 1;
                }
                HandshakeStep::Waits | HandshakeStep::Gone => drop(self.pending.swap_remove(index)),
                HandshakeStep::Refused(rank, refusal) => {
                    let connection = self.pending.swap_remove(index);
                    if self.refused.len() < MOST_REFUSALS {
                        self.refused.push((rank, connection.from, refusal));
                    }
                }
                HandshakeStep::Proven(hello, channel) => {
                    let connection = self.pending.swap_remove(index);
                    return Some(Arrival {
                        hello,
                        from: connection.from,
                        connection: Connection {
                            stream: connection.stream,
                            channel,
                        },
                    });
                }
            }
        }
        None
    }

    /// Accepts waiting connections; beyond the limit, each closes the oldest pending one.
    fn open(&mut self) {
        if self
            .closed_until
            .is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        self.closed_until = None;
        for _ in 0..MOST_PENDING {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if self.pending.len() >= MOST_PENDING {
                        self.close_oldest();
                    }
                    // Without these it is useless; the rank will come again.
                    if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                        self.pending.push(PendingConnection::new(stream, from));
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // The other side gave up before it was accepted.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    // No descriptors or no memory, which passes.
                    _ => {
                        self.close_oldest();
                        self.closed_until = Some(Instant::now() + PAUSE);
                        self.accept_error = Some(error);
                        return;
                    }
                },
            }
        }
    }

    fn close_oldest(&mut self) {
        let longest =
            (0..self.pending.len()).min_by_key(|&connection| self.pending[connection].since);
        if let Some(longest) = longest {
            self.pending.swap_remove(longest);
        }
    }
}

enum HandshakeStep {
    Waits,
    Gone,
    Refused(u32, Refusal),
    Proven(Hello, Channel),
}

impl PendingConnection {
    fn new(stream: TcpStream, from: SocketAddr) -> Self {
        Self {
            stream,
            from,
            since: Instant::now(),
            received: [0; HELLO + PROOF],
            length: 0,
            challenged: None,
        }
    }

    fn advance(
        &mut self,
        job: &JobIdentity<'_>,
        judge: &impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> HandshakeStep {
        loop {
            // Never more than the message it owes: what follows is not for the handshake.
            let owed = HELLO + if self.challenged.is_some() { PROOF } else { 0 };
            match self.stream.read(&mut self.received[self.length..owed]) {
                Ok(0) => return HandshakeStep::Gone,
                Ok(length) => self.length += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return HandshakeStep::Waits;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return HandshakeStep::Gone,
            }
            if self.length < owed {
                continue;
            }
            match self.challenged.take() {
                None => match self.send_challenge(job) {
                    Some(challenged) => self.challenged = Some(challenged),
                    None => return HandshakeStep::Gone,
                },
                Some((hello, challenge)) => {
                    return self.send_welcome(job, hello, &challenge, judge);
                }
            }
        }
    }

    /// Answers a hello; `None` if there is nothing more to say.
    fn send_challenge(&mut self, job: &JobIdentity<'_>) -> Option<(Hello, [u8; CHALLENGE])> {
        let received: &[u8; HELLO] = self.received.first_chunk()?;
        match Hello::decode(received) {
            Ok(hello) => {
                let mut nonce = [0; 32];
                getrandom::fill(&mut nonce).ok()?;
                let challenge = handshake::challenge(Ok((nonce, job.protection(&self.stream))));
                self.send(&challenge)?;
                Some((hello, challenge))
            }
            Err(HandshakeError::Refused(refusal)) => {
                self.send(&handshake::challenge(Err(refusal)))?;
                None
            }
            Err(_) => None,
        }
    }

    fn send_welcome(
        &mut self,
        job: &JobIdentity<'_>,
        hello: Hello,
        challenge: &[u8; CHALLENGE],
        judge: &impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> HandshakeStep {
        let (received, proof) = self.received.split_at(HELLO);
        let (Ok(received), Ok(proof)) = (received.try_into(), proof.try_into()) else {
            return HandshakeStep::Gone;
        };
        let proven = handshake::is_proven(job.secret, received, challenge, proof);
        let answer = if !proven {
            Err(Refusal::Secret)
        } else if hello.job != job.id {
            Err(Refusal::JobIdentity)
        } else if hello.size as usize != job.size {
            Err(Refusal::Size(job.size as u32))
        } else if usize::from(hello.target) != job.rank {
            Err(Refusal::Target(job.rank as u32))
        } else {
            judge(&hello)
        };
        let welcome = handshake::welcome(job.secret, received, challenge, answer);
        let channel = handshake::channel(job.secret, Side::Listener, received, challenge);
        if self.send(&welcome).is_none() {
            return HandshakeStep::Gone;
        }
        match answer {
            Ok(()) => HandshakeStep::Proven(hello, channel),
            Err(Refusal::Secret) => HandshakeStep::Gone,
            Err(refusal) => HandshakeStep::Refused(hello.rank, refusal),
        }
    }

    /// A fresh connection has room for these few bytes; one that has not is let go.
    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::tcp::dial::{self, DialCause, DialError};
    use crate::backends::tcp::handshake::ConnectionPurpose;
    use std::net::Ipv4Addr;

    #[test]
    fn a_rank_that_dials_the_wrong_rank_is_told_who_is_here() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let job = |rank| JobIdentity {
            rank,
            size: 4,
            id: 7,
            secret: b"a secret of two",
            loopback_only: false,
            on_loopback: Protection::None,
        };
        let mut acceptor = Acceptor::new(&listener, job(1)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let dial = move |target| {
            dial::connect(address, target, ConnectionPurpose::Data, &job(3), deadline)
        };
        let pending = std::thread::spawn(move || (dial(2), dial(1)));
        let arrived = loop {
            match acceptor.receive(|_| Ok(())) {
                Some(arrival) => break arrival.hello,
                None => assert!(Instant::now() < deadline),
            }
        };
        assert_eq!((arrived.rank, arrived.target), (3, 1));
        let (lost, found) = pending.join().unwrap();
        let told = |outcome: DialError| match outcome {
            DialError::Temporary(DialCause::Handshake(HandshakeError::Refused(refusal))) => {
                Some(refusal)
            }
            _ => None,
        };
        assert_eq!(lost.err().and_then(told), Some(Refusal::Target(1)));
        assert!(found.is_ok());
    }
}
