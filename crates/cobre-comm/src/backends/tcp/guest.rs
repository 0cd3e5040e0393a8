//! The side of a handshake that connects.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::channel::{Channel, Side};
use super::connection::Connection;
use super::handshake::{self, CHALLENGE, Failure, Hello, Purpose, Refusal, WELCOME};
use super::message::read_all;
use super::reception::Job;
use crate::env::{self, TcpConfig};

/// The time that one attempt to connect may take: another address may be the right one.
const CONNECT: Duration = Duration::from_secs(2);
/// The time that the other side may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The reason for which there is no connection.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It may work later.
    Again(Trouble),
    /// It will never work.
    Final(Trouble),
}

#[derive(Debug)]
pub(super) enum Trouble {
    System(io::Error),
    Handshake(Failure),
}

impl From<io::Error> for Outcome {
    fn from(error: io::Error) -> Self {
        Self::Again(Trouble::System(error))
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            // It has proven that it belongs to this job.
            Failure::Refused(Refusal::Size(_) | Refusal::Rank) => {
                Self::Final(Trouble::Handshake(failure))
            }
            // Something else has the port, or the job before this one; anyone can say no.
            _ => Self::Again(Trouble::Handshake(failure)),
        }
    }
}

impl Outcome {
    /// The error at `address`, and what to do about it.
    pub(super) fn text(&self, address: SocketAddr, config: &TcpConfig) -> String {
        let (Self::Again(trouble) | Self::Final(trouble)) = self;
        let failure = match trouble {
            Trouble::System(error) => return format!("{address}: {error}"),
            Trouble::Handshake(failure) => failure,
        };
        let (rank, size) = (config.rank, config.size);
        match failure {
            Failure::Stranger => format!("what answers at {address} is no rank of Cobre"),
            Failure::Unproven | Failure::Refused(Refusal::Secret) => format!(
                "{address} has another secret than this rank ({})",
                env::TCP_SECRET_FILE
            ),
            Failure::Refused(Refusal::Version(version)) => format!(
                "{address} runs another version of Cobre (protocol {version}): run one build in \
                 all ranks"
            ),
            Failure::Refused(Refusal::ByteOrder) => {
                format!("{address} is a machine with another byte order")
            }
            Failure::Refused(Refusal::Job) => {
                format!("{address} is of another job ({})", env::TCP_JOB)
            }
            Failure::Refused(Refusal::Size(theirs)) => format!(
                "{address} was started for {theirs} ranks, rank {rank} for {size} ({})",
                env::TCP_SIZE
            ),
            Failure::Refused(Refusal::Target(theirs)) => {
                format!("{address} is rank {theirs}, which was not looked for")
            }
            Failure::Refused(Refusal::Rank) => format!(
                "two processes are rank {rank} ({}): {address} has another one already",
                env::TCP_RANK
            ),
        }
    }
}

/// Connects to `address` and makes sure that `target` is there.
pub(super) fn connect(
    address: SocketAddr,
    target: usize,
    purpose: Purpose,
    job: &Job<'_>,
    deadline: Instant,
) -> Result<Connection, Outcome> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::from(io::ErrorKind::TimedOut).into());
    }
    let stream = TcpStream::connect_timeout(&address, left.min(CONNECT))?;
    // A port that nobody has can be given to the very socket that asks for it.
    if stream.local_addr()? == address {
        return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
    }
    stream.set_nodelay(true)?;
    let channel = shake(&stream, target, purpose, job, deadline)?;
    Ok(Connection { stream, channel })
}

/// As [`connect`], again and again until the deadline: at a busy door one may be sent away.
pub(super) fn persist(
    address: SocketAddr,
    target: usize,
    purpose: Purpose,
    job: &Job<'_>,
    deadline: Instant,
) -> Result<Connection, Outcome> {
    loop {
        match connect(address, target, purpose, job, deadline) {
            Err(Outcome::Again(_)) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}

fn shake(
    mut stream: &TcpStream,
    target: usize,
    purpose: Purpose,
    job: &Job<'_>,
    deadline: Instant,
) -> Result<Channel, Outcome> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(io::Error::from)?;
    let hello = Hello {
        purpose,
        protection: job.protection(stream),
        target: target as u16,
        rank: job.rank as u32,
        size: job.size as u32,
        job: job.id,
        nonce,
    };
    let hello = hello.encode();
    let deadline = deadline.min(Instant::now() + ANSWER);
    stream.write_all(&hello)?;
    let mut challenge = [0; CHALLENGE];
    read_all(stream, &mut challenge, deadline)?;
    let proof = handshake::proof(job.secret, &hello, &challenge)?;
    stream.write_all(&proof)?;
    let mut welcome = [0; WELCOME];
    read_all(stream, &mut welcome, deadline)?;
    handshake::welcomed(job.secret, &hello, &challenge, &welcome)?;
    Ok(handshake::channel(
        job.secret,
        Side::Dialer,
        &hello,
        &challenge,
    ))
}
