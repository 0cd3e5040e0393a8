//! The open door: strangers may knock, and only ranks of this job get in.
//!
//! Before a guest is proven it gets little: [`HELLO`] + [`PROOF`] bytes, two seconds, and one of a
//! few places. When those are taken, the one who has stood there longest goes: a rank needs its
//! place for a millisecond, so a crowd of silent connections keeps nobody out.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::channel::{Channel, Protection, Side};
use super::connection::Connection;
use super::handshake::{self, CHALLENGE, Failure, HELLO, Hello, PROOF, Refusal};

/// Guests at the door at any one time.
const PLACES: usize = 64;
/// The time that a dialling process may take to prove itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause in accepting after the system could not give a descriptor.
const PAUSE: Duration = Duration::from_millis(20);
/// Refusals that are remembered.
const MOST_REFUSALS: usize = 16;

/// The identity that a dialling process must prove.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a> {
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

impl Job<'_> {
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

/// A listener and the guests that are not proven yet.
pub(super) struct Reception<'a> {
    listener: &'a TcpListener,
    job: Job<'a>,
    guests: Vec<Guest>,
    closed_until: Option<Instant>,
    /// Ranks that proved themselves and were refused all the same: who, from where, why.
    pub(super) refused: Vec<(u32, SocketAddr, Refusal)>,
    /// The last error of accepting a connection.
    pub(super) trouble: Option<io::Error>,
}

/// A connection whose other end is a rank of this job.
pub(super) struct Arrival {
    pub(super) hello: Hello,
    pub(super) connection: Connection,
    pub(super) from: SocketAddr,
}

struct Guest {
    stream: TcpStream,
    from: SocketAddr,
    since: Instant,
    /// The bytes received: a hello, then a proof.
    said: [u8; HELLO + PROOF],
    length: usize,
    /// The hello and the challenge, once the hello was read.
    asked: Option<(Hello, [u8; CHALLENGE])>,
}

impl<'a> Reception<'a> {
    pub(super) fn new(listener: &'a TcpListener, job: Job<'a>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            job,
            guests: Vec::new(),
            closed_until: None,
            refused: Vec::new(),
            trouble: None,
        })
    }

    /// The descriptors to poll.
    pub(super) fn sources(&self) -> Vec<PollFd<'_>> {
        let watched = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let door = self.closed_until.is_none().then(|| self.listener.as_fd());
        let guests = self.guests.iter().map(|guest| guest.stream.as_fd());
        door.into_iter().chain(guests).map(watched).collect()
    }

    /// The next rank that has come in; `None` if none is there. `judge` says whether a
    /// rank that has proven itself is welcome.
    pub(super) fn receive(
        &mut self,
        judge: impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> Option<Arrival> {
        self.open();
        let mut index = 0;
        while index < self.guests.len() {
            match self.guests[index].go_on(&self.job, &judge) {
                Progress::Waits if self.guests[index].since.elapsed() < PATIENCE => index += 1,
                Progress::Waits | Progress::Gone => drop(self.guests.swap_remove(index)),
                Progress::Refused(rank, refusal) => {
                    let guest = self.guests.swap_remove(index);
                    if self.refused.len() < MOST_REFUSALS {
                        self.refused.push((rank, guest.from, refusal));
                    }
                }
                Progress::Proven(hello, channel) => {
                    let guest = self.guests.swap_remove(index);
                    return Some(Arrival {
                        hello,
                        from: guest.from,
                        connection: Connection {
                            stream: guest.stream,
                            channel,
                        },
                    });
                }
            }
        }
        None
    }

    /// Lets waiting connections in, each at the price of the one that has waited longest.
    fn open(&mut self) {
        if self
            .closed_until
            .is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        self.closed_until = None;
        for _ in 0..PLACES {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if self.guests.len() >= PLACES {
                        self.send_longest_away();
                    }
                    // Without these it is useless; the rank will come again.
                    if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                        self.guests.push(Guest::new(stream, from));
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // The other side gave up before it was its turn.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    // No descriptors or no memory, which passes.
                    _ => {
                        self.send_longest_away();
                        self.closed_until = Some(Instant::now() + PAUSE);
                        self.trouble = Some(error);
                        return;
                    }
                },
            }
        }
    }

    fn send_longest_away(&mut self) {
        let longest = (0..self.guests.len()).min_by_key(|&guest| self.guests[guest].since);
        if let Some(longest) = longest {
            self.guests.swap_remove(longest);
        }
    }
}

enum Progress {
    Waits,
    Gone,
    Refused(u32, Refusal),
    Proven(Hello, Channel),
}

impl Guest {
    fn new(stream: TcpStream, from: SocketAddr) -> Self {
        Self {
            stream,
            from,
            since: Instant::now(),
            said: [0; HELLO + PROOF],
            length: 0,
            asked: None,
        }
    }

    fn go_on(&mut self, job: &Job<'_>, judge: &impl Fn(&Hello) -> Result<(), Refusal>) -> Progress {
        loop {
            // Never more than the message it owes: what follows is not for the handshake.
            let owed = HELLO + if self.asked.is_some() { PROOF } else { 0 };
            match self.stream.read(&mut self.said[self.length..owed]) {
                Ok(0) => return Progress::Gone,
                Ok(length) => self.length += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Waits,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Progress::Gone,
            }
            if self.length < owed {
                continue;
            }
            match self.asked.take() {
                None => match self.ask(job) {
                    Some(asked) => self.asked = Some(asked),
                    None => return Progress::Gone,
                },
                Some((hello, challenge)) => return self.answer(job, hello, &challenge, judge),
            }
        }
    }

    /// Answers a hello; `None` if there is nothing more to say.
    fn ask(&mut self, job: &Job<'_>) -> Option<(Hello, [u8; CHALLENGE])> {
        let said: &[u8; HELLO] = self.said.first_chunk()?;
        match Hello::decode(said) {
            Ok(hello) => {
                let mut nonce = [0; 32];
                getrandom::fill(&mut nonce).ok()?;
                let challenge = handshake::challenge(Ok((nonce, job.protection(&self.stream))));
                self.say(&challenge)?;
                Some((hello, challenge))
            }
            Err(Failure::Refused(refusal)) => {
                self.say(&handshake::challenge(Err(refusal)))?;
                None
            }
            Err(_) => None,
        }
    }

    fn answer(
        &mut self,
        job: &Job<'_>,
        hello: Hello,
        challenge: &[u8; CHALLENGE],
        judge: &impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> Progress {
        let (said, proof) = self.said.split_at(HELLO);
        let (Ok(said), Ok(proof)) = (said.try_into(), proof.try_into()) else {
            return Progress::Gone;
        };
        let proven = handshake::is_proven(job.secret, said, challenge, proof);
        let answer = if !proven {
            Err(Refusal::Secret)
        } else if hello.job != job.id {
            Err(Refusal::Job)
        } else if hello.size as usize != job.size {
            Err(Refusal::Size(job.size as u32))
        } else if usize::from(hello.target) != job.rank {
            Err(Refusal::Target(job.rank as u32))
        } else {
            judge(&hello)
        };
        let welcome = handshake::welcome(job.secret, said, challenge, answer);
        let channel = handshake::channel(job.secret, Side::Listener, said, challenge);
        if self.say(&welcome).is_none() {
            return Progress::Gone;
        }
        match answer {
            Ok(()) => Progress::Proven(hello, channel),
            Err(Refusal::Secret) => Progress::Gone,
            Err(refusal) => Progress::Refused(hello.rank, refusal),
        }
    }

    /// A fresh connection has room for these few bytes; one that has not is let go.
    fn say(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::tcp::guest::{self, Outcome, Trouble};
    use crate::backends::tcp::handshake::Purpose;
    use std::net::Ipv4Addr;

    #[test]
    fn a_guest_that_looks_for_another_rank_is_told_who_is_here() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let job = |rank| Job {
            rank,
            size: 4,
            id: 7,
            secret: b"a secret of two",
            loopback_only: false,
            on_loopback: Protection::None,
        };
        let mut reception = Reception::new(&listener, job(1)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let knock = move |target| guest::connect(address, target, Purpose::Data, &job(3), deadline);
        let guests = std::thread::spawn(move || (knock(2), knock(1)));
        let arrived = loop {
            match reception.receive(|_| Ok(())) {
                Some(arrival) => break arrival.hello,
                None => assert!(Instant::now() < deadline),
            }
        };
        assert_eq!((arrived.rank, arrived.target), (3, 1));
        let (lost, found) = guests.join().unwrap();
        let told = |outcome: Outcome| match outcome {
            Outcome::Again(Trouble::Handshake(Failure::Refused(refusal))) => Some(refusal),
            _ => None,
        };
        assert_eq!(lost.err().and_then(told), Some(Refusal::Target(1)));
        assert!(found.is_ok());
    }
}
