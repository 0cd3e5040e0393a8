//! The dialling side of connections.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use super::accept::JobIdentity;
use super::channel::{Channel, Side};
use super::connection::Connection;
use super::handshake::{
    self, CHALLENGE, ConnectionPurpose, HandshakeError, Hello, Refusal, WELCOME,
};
use super::message::read_all;
use super::system::{self, Instant, TcpStream};
use crate::env::{self, TcpConfig};

/// The time that one attempt to connect may take: another address may be the right one.
const CONNECT: Duration = Duration::from_secs(2);
/// The time that the other side may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The reason for which there is no connection.
#[derive(Debug)]
pub(super) enum DialError {
    /// It may work later.
    Temporary(DialCause),
    /// It will never work.
    Permanent(DialCause),
    /// The deadline left it no time: an earlier attempt tells more.
    Late,
}

#[derive(Debug)]
pub(super) enum DialCause {
    System(io::Error),
    Handshake(HandshakeError),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Temporary(DialCause::System(error))
    }
}

impl From<HandshakeError> for DialError {
    fn from(failure: HandshakeError) -> Self {
        match failure {
            // It has proven that it belongs to this job.
            HandshakeError::Refused(Refusal::Size(_) | Refusal::Rank) => {
                Self::Permanent(DialCause::Handshake(failure))
            }
            // Something else has the port, or the job before this one; anyone can say no.
            _ => Self::Temporary(DialCause::Handshake(failure)),
        }
    }
}

impl DialError {
    /// The error at `address`, and what to do about it.
    pub(super) fn text(&self, address: SocketAddr, config: &TcpConfig) -> String {
        let failure = match self {
            Self::Late => return format!("{address}: timed out"),
            Self::Temporary(DialCause::System(error))
            | Self::Permanent(DialCause::System(error)) => {
                return format!("{address}: {error}");
            }
            Self::Temporary(DialCause::Handshake(failure))
            | Self::Permanent(DialCause::Handshake(failure)) => failure,
        };
        let (rank, size) = (config.rank, config.size);
        match failure {
            HandshakeError::NotCobre => format!("the process at {address} is no rank of Cobre"),
            HandshakeError::Unproven | HandshakeError::Refused(Refusal::Secret) => format!(
                "{address} has another secret than this rank ({})",
                env::TCP_SECRET_FILE
            ),
            HandshakeError::Refused(Refusal::Version(version)) => format!(
                "{address} runs another version of Cobre (protocol {version}): run one build in \
                 all ranks"
            ),
            HandshakeError::Refused(Refusal::ByteOrder) => {
                format!("{address} is a machine with another byte order")
            }
            HandshakeError::Refused(Refusal::JobIdentity) => {
                format!("{address} belongs to another job ({})", env::TCP_JOB)
            }
            HandshakeError::Refused(Refusal::Size(theirs)) => format!(
                "{address} was started for {theirs} ranks, rank {rank} for {size} ({})",
                env::TCP_SIZE
            ),
            HandshakeError::Refused(Refusal::Target(theirs)) => {
                format!("{address} is rank {theirs}, not the rank that was dialled")
            }
            HandshakeError::Refused(Refusal::Rank) => format!(
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
    purpose: ConnectionPurpose,
    job: &JobIdentity<'_>,
    deadline: Instant,
) -> Result<Connection, DialError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(DialError::Late);
    }
    let connected = TcpStream::connect_timeout(&address, left.min(CONNECT));
    let stream = connected.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut if left < CONNECT => DialError::Late,
        _ => error.into(),
    })?;
    // A port that nobody has can be given to the very socket that asks for it.
    if stream.local_addr()? == address {
        return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
    }
    stream.set_nodelay(true)?;
    let channel = authenticate(&stream, target, purpose, job, deadline)?;
    Ok(Connection { stream, channel })
}

/// As [`connect`], again and again until the deadline: a busy rank may close a pending connection.
pub(super) fn connect_until(
    address: SocketAddr,
    target: usize,
    purpose: ConnectionPurpose,
    job: &JobIdentity<'_>,
    deadline: Instant,
) -> Result<Connection, DialError> {
    let mut last = DialError::Late;
    loop {
        match connect(address, target, purpose, job, deadline) {
            Err(DialError::Late) => return Err(last),
            Err(outcome @ DialError::Temporary(_)) => last = outcome,
            outcome => return outcome,
        }
        system::sleep(PAUSE);
    }
}

fn authenticate(
    mut stream: &TcpStream,
    target: usize,
    purpose: ConnectionPurpose,
    job: &JobIdentity<'_>,
    deadline: Instant,
) -> Result<Channel, DialError> {
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
