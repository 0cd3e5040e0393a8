//! Peers that know the secret and do not keep to the protocol: an error, never a panic and never a
//! wait without end.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use super::TcpBackend;
use super::accept::{Acceptor, JobIdentity};
use super::channel::Protection;
use super::connection::Connection;
use super::dial;
use super::frame::{self, FrameHeader};
use super::handshake::{ConnectionPurpose, Hello};
use super::message::{Inbox, Message, MessageKind};
use super::peer_table::{self, PeerInfo};
use super::system::{Instant, TcpListener};
use crate::backends::wire;
use crate::call_signature::{CallSignature, Collective};
use crate::communicator::{Communicator, ReduceOp};
use crate::env::{self, TcpConfig, TcpProtection, TcpSharedMemory, TcpTopology};
use crate::error::{CallPosition, Cause};
use crate::error_kind::ErrorKind;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// Jobs without [`COUNT`] set.
const JOBS: u64 = 60;
const COUNT: &str = "COBRE_HOSTILE";
const SEED: &str = "COBRE_HOSTILE_SEED";

fn setting(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().expect(variable))
}

/// splitmix64.
struct RandomBytes(u64);

impl RandomBytes {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.bits() as u8).collect()
    }

    /// A number that means something, or is at a limit, or is any.
    fn figure(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => 1,
            2 => self.below(300),
            3 => u64::MAX - self.below(3),
            4 => 1 << self.below(64),
            _ => self.bits(),
        }
    }

    /// A message of any kind, with a body that may belong to it.
    fn message(&mut self) -> Message {
        let kind = MessageKind::ALL[self.below(MessageKind::ALL.len() as u64) as usize];
        self.message_of(kind)
    }

    fn message_of(&mut self, kind: MessageKind) -> Message {
        let mut body = match self.below(5) {
            0 => Vec::new(),
            1 => self.bytes(300),
            2 => peer_table::encode(&vec![
                PeerInfo::own(self.bits() as u16);
                self.below(4) as usize
            ]),
            3 => wire::encode(&self.cause()),
            _ => vec![self.bits() as u8; self.below(64 * 1024) as usize],
        };
        if !body.is_empty() && self.below(2) == 0 {
            let at = self.below(body.len() as u64) as usize;
            body[at] ^= 1 << self.below(8);
        }
        Message::with_body(kind, [self.figure(), self.figure()], body)
    }

    fn cause(&mut self) -> Cause {
        match self.below(3) {
            0 => Cause::Aborted {
                rank: self.figure() as usize,
                host: "\u{1b}[2J".to_owned(),
                pid: self.bits() as u32,
                kind: ErrorKind::Io,
                reason: String::from_utf8_lossy(&self.bytes(100)).into_owned(),
                last: CallPosition::of_word(self.figure()),
            },
            1 => Cause::Deadline {
                waited: Duration::from_millis(self.figure()),
                missing: vec![self.figure() as usize; self.below(400) as usize],
            },
            _ => Cause::Io {
                action: "x".to_owned(),
                message: String::new(),
            },
        }
    }

    /// A message that fits this moment, changed or not, or another one.
    fn instead_of(&mut self, right: Message) -> Message {
        match self.below(8) {
            0 => self.message(),
            1 => self.message_of(right.kind),
            2 => Message {
                figures: [self.figure(), self.figure()],
                ..right
            },
            3 => Message {
                body: self.bytes(400),
                ..right
            },
            _ => right,
        }
    }

    /// Bytes on a data connection: frames of any call, or anything.
    fn frames(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.below(4) {
            let mut signature = CallSignature::new(Collective::Allreduce).at(self.below(4));
            if self.below(2) == 0 {
                signature = signature.elements::<f64>(self.figure() as usize);
            }
            let header = FrameHeader {
                kind: frame::FrameKind::Direct,
                round: self.below(3),
                signature,
                length: self.figure(),
            };
            out.extend(header.encode());
            out.extend(self.bytes(200));
        }
        out
    }
}

/// A file with the secret.
struct SecretFile(PathBuf);

impl SecretFile {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("peers-{}-{name}", std::process::id()));
        std::fs::write(&path, SECRET).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        Self(path)
    }

    fn config(&self, rank: usize, size: usize, port: u16) -> TcpConfig {
        TcpConfig {
            rank,
            size,
            coordinator: Some("127.0.0.1".to_owned()),
            port,
            bind: None,
            secret_file: Some(self.0.clone()),
            runtime_directory: None,
            protection: TcpProtection::None,
            topology: TcpTopology::Star,
            shared_memory: TcpSharedMemory::Off,
            host: None,
            job: None,
            listener: None,
            secret_descriptor: None,
            timeout: Some(Duration::from_secs(2)),
            stall: env::DEFAULT_STALL,
        }
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn job(rank: usize, size: usize) -> JobIdentity<'static> {
    JobIdentity {
        rank,
        size,
        id: peer_table::hash(b""),
        secret: SECRET,
        loopback_only: false,
        on_loopback: Protection::None,
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// A rank 0 that says what `script` wants: first a place, then the table of peers, then the start.
struct FalseRank0 {
    listener: TcpListener,
}

impl FalseRank0 {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { listener }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn accept(acceptor: &mut Acceptor<'_>, purpose: ConnectionPurpose) -> Option<Connection> {
        let deadline = Instant::now() + Duration::from_secs(6);
        let fits = |hello: &Hello| {
            (hello.purpose == purpose)
                .then_some(())
                .ok_or(super::handshake::Refusal::Rank)
        };
        while Instant::now() < deadline {
            if let Some(arrival) = acceptor.receive(fits) {
                arrival.connection.stream.set_nonblocking(false).unwrap();
                return Some(arrival.connection);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// Its side of a job of `size` ranks; what it has when it is over ends with it.
    fn play(
        &self,
        size: usize,
        mut script: impl FnMut(Message) -> Message,
        last: impl FnOnce(&Connection, &Connection),
    ) {
        let mut acceptor = Acceptor::new(&self.listener, job(0, size)).unwrap();
        let Some(watch) = Self::accept(&mut acceptor, ConnectionPurpose::Watch) else {
            return;
        };
        let mut say = |message| {
            let message = script(message);
            let _ = message.send(&watch.stream, &watch.channel);
            message
        };
        let accepted = say(Message::new(MessageKind::Accepted, [2000, 0]));
        if accepted.kind != MessageKind::Accepted {
            return;
        }
        let mut inbox = Inbox::default();
        let _ = inbox.wait(&watch.stream, &watch.channel, soon());
        let Some(data) = Self::accept(&mut acceptor, ConnectionPurpose::Data) else {
            return;
        };
        let peer_infos = vec![PeerInfo::own(0); size];
        say(Message::with_body(
            MessageKind::PeerTable,
            [0; 2],
            peer_table::encode(&peer_infos),
        ));
        say(Message::new(MessageKind::Start, [0, 0]));
        last(&watch, &data);
    }
}

/// The error that a rank of a job with false peers gets, which is no panic.
fn outcome(config: &TcpConfig) -> String {
    let run = || -> Result<(), String> {
        let comm = TcpBackend::connect(config).map_err(|error| error.to_string())?;
        for _ in 0..3 {
            let mut sum = [0.0; 4];
            let reduced = comm.allreduce(&[1.0; 4], &mut sum, ReduceOp::Sum);
            reduced.map_err(|error| format!("{error:?}"))?;
        }
        Ok(())
    };
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let text = outcome.expect("no panic").err().unwrap_or_default();
    assert!(!text.contains("panicked"), "{text}");
    text
}

#[test]
fn a_start_that_does_not_fit_is_an_error() {
    let secret = SecretFile::new("start");
    for figures in [[1, 1], [1, 0], [0, 1]] {
        let false_rank_0 = FalseRank0::new();
        let config = secret.config(1, 3, false_rank_0.port());
        let text = std::thread::scope(|scope| {
            scope.spawn(|| {
                let script = |message: Message| match message.kind {
                    MessageKind::Start => Message::new(MessageKind::Start, figures),
                    _ => message,
                };
                false_rank_0.play(3, script, |_, _| {});
            });
            outcome(&config)
        });
        assert!(text.contains("do not exist"), "{figures:?}: {text}");
    }
}

#[test]
fn a_rank_0_that_waits_for_ever_is_an_error_and_no_overflow() {
    let secret = SecretFile::new("timeout");
    let false_rank_0 = FalseRank0::new();
    let config = secret.config(1, 3, false_rank_0.port());
    let text = std::thread::scope(|scope| {
        scope.spawn(|| {
            let script = |message: Message| match message.kind {
                MessageKind::Accepted => Message::new(MessageKind::Accepted, [u64::MAX, 0]),
                _ => Message::new(MessageKind::Leave, [0; 2]),
            };
            false_rank_0.play(3, script, |_, _| {});
        });
        outcome(&config)
    });
    assert!(text.contains("unexpected message"), "{text}");
}

#[test]
fn whatever_a_rank_0_says_that_knows_the_secret_is_no_panic() {
    let secret = SecretFile::new("rank-0");
    let (jobs, seed) = (setting(COUNT, JOBS), setting(SEED, 1));
    for number in 0..jobs {
        println!("job {number} of seed {seed}");
        let (mut random, mut after) = (
            RandomBytes(seed ^ number << 20),
            RandomBytes(seed ^ !number),
        );
        let size = 2 + random.below(3) as usize;
        let false_rank_0 = FalseRank0::new();
        let config = secret.config(1, size, false_rank_0.port());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                false_rank_0.play(
                    size,
                    |message| random.instead_of(message),
                    |watch, data| {
                        let _ = (&data.stream).write_all(&after.frames());
                        for _ in 0..after.below(6) {
                            let _ = after.message().send(&watch.stream, &watch.channel);
                        }
                    },
                );
            });
            outcome(&config);
        });
    }
}

#[test]
fn whatever_a_worker_says_that_knows_the_secret_is_no_panic() {
    let secret = SecretFile::new("worker");
    let (jobs, seed) = (setting(COUNT, JOBS), setting(SEED, 1));
    for number in 0..jobs {
        println!("job {number} of seed {seed}");
        let mut random = RandomBytes(seed ^ number << 20);
        let size = 2 + random.below(3) as usize;
        let port = FalseRank0::new().port();
        let config = TcpConfig {
            topology: [TcpTopology::Star, TcpTopology::Auto][random.below(2) as usize],
            ..secret.config(0, size, port)
        };
        std::thread::scope(|scope| {
            for rank in 1..size {
                let mut random = RandomBytes(random.bits());
                scope.spawn(move || false_worker(&mut random, rank, size, port));
            }
            outcome(&config);
        });
    }
}

/// A worker that joins and then says anything.
fn false_worker(random: &mut RandomBytes, rank: usize, size: usize, port: u16) {
    let (job, address) = (job(rank, size), (Ipv4Addr::LOCALHOST, port).into());
    let deadline = Instant::now() + Duration::from_secs(2);
    let Ok(watch) = dial::connect_until(address, 0, ConnectionPurpose::Watch, &job, deadline)
    else {
        return;
    };
    let say = |message: Message| {
        let _ = message.send(&watch.stream, &watch.channel);
    };
    let peer_info = peer_table::encode([&PeerInfo::own(random.bits() as u16)]);
    say(random.instead_of(Message::with_body(MessageKind::PeerInfo, [0; 2], peer_info)));
    let Ok(data) = dial::connect_until(address, 0, ConnectionPurpose::Data, &job, deadline) else {
        return;
    };
    let meshed = Message::new(MessageKind::Meshed, [random.below(2), 0]);
    say(random.instead_of(meshed));
    let _ = (&data.stream).write_all(&random.frames());
    for _ in 0..random.below(6) {
        say(random.message());
    }
    std::thread::sleep(Duration::from_millis(random.below(20)));
}
