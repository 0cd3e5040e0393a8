//! A proxy between ranks of a job, which damages what crosses it at one place.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use cobre_testkit::random::Random;

/// Bytes of the first message on a connection.
const HELLO: usize = 64;
/// The time to wait for a rank 0 that is not there yet.
const PATIENCE: Duration = Duration::from_secs(30);

/// The purpose of a connection, as the first message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Watch = 1,
    Data = 2,
}

/// The way that bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToTarget,
    FromTarget,
}

/// The damage done to the bytes from a place on.
#[derive(Debug, Clone, Copy)]
pub enum Damage {
    /// These bits of one byte are changed.
    Flip(u8),
    /// So many bytes are left out.
    Drop(usize),
    /// The connection ends here, both ways.
    Truncate,
    /// So many bytes come twice.
    Repeat(usize),
    /// So many bytes come after as many that follow them.
    Swap(usize),
    /// So many bytes come in between.
    Insert(usize),
}

/// Damage, and its place: which connection by the rank that dials and the one that it dials, which way, and after how
/// many bytes.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    pub rank: u32,
    pub target: u16,
    pub purpose: Purpose,
    pub way: Way,
    pub after: usize,
    pub damage: Damage,
}

impl Attack {
    /// One of all kinds on a connection to rank 0 of a job of `size` ranks.
    pub fn random(random: &mut Random, size: usize) -> Self {
        let purpose = *random.pick(&[Purpose::Data, Purpose::Data, Purpose::Data, Purpose::Watch]);
        let rank = 1 + random.below(size - 1) as u32;
        Self::on_connection(random, (rank, 0), purpose)
    }

    /// One of all kinds on the connection of two other ranks of a job of `size` ranks.
    pub fn between_workers(random: &mut Random, size: usize) -> Self {
        let rank = 2 + random.below(size - 2);
        let target = 1 + random.below(rank - 1) as u16;
        Self::on_connection(random, (rank as u32, target), Purpose::Data)
    }

    fn on_connection(random: &mut Random, (rank, target): (u32, u16), purpose: Purpose) -> Self {
        let way = *random.pick(&[Way::ToTarget, Way::FromTarget]);
        // Bytes of the handshake, the same both ways.
        let handshake = 96;
        // A frame without data, and a message without a body, as they travel.
        let unit = if purpose == Purpose::Data { 136 } else { 48 };
        let reach = if purpose == Purpose::Data {
            1 << 20
        } else {
            1500
        };
        let after = match random.below(10) {
            0 => random.below(handshake),
            1..=3 => handshake + unit * random.below(20),
            4..=6 => handshake + random.below(4000),
            _ => handshake + random.below(reach),
        };
        let length = match random.below(3) {
            0 => unit,
            1 => 1 + random.below(64),
            _ => 1 + random.below(1000),
        };
        let damage = match random.below(8) {
            0..=2 => Damage::Flip(1 << random.below(8)),
            3 => Damage::Drop(length),
            4 => Damage::Truncate,
            5 => Damage::Repeat(length),
            6 => Damage::Swap(length),
            _ => Damage::Insert(length),
        };
        Self {
            rank,
            target,
            purpose,
            way,
            after,
            damage,
        }
    }
}

/// A port that leads to a rank. It ends with the connections that go through it.
pub struct Proxy {
    pub port: u16,
    /// True if the damage has begun.
    pub struck: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
}

impl Proxy {
    /// Passes everything on to `port`, or to the port that the first two bytes of a connection say if there is none,
    /// except what `attack` says.
    pub fn start(port: Option<u16>, attack: Attack) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let (struck, stopped) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (flag, stop) = (struck.clone(), stopped.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(SeqCst) {
                    return;
                }
                let flag = flag.clone();
                std::thread::spawn(move || drop(pass(&stream, port, attack, &flag)));
            }
        });
        Self {
            port: own,
            struck,
            stopped,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopped.store(true, SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

fn pass(
    client: &TcpStream,
    port: Option<u16>,
    attack: Attack,
    struck: &AtomicBool,
) -> io::Result<()> {
    let mut said = [0; 2];
    if port.is_none() {
        (&mut &*client).read_exact(&mut said)?;
    }
    let port = port.unwrap_or(u16::from_be_bytes(said));
    let mut hello = [0; HELLO];
    (&mut &*client).read_exact(&mut hello)?;
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    server.set_write_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let rank = u32::from_le_bytes(hello[16..20].try_into().unwrap());
    let target = u16::from_le_bytes(hello[14..16].try_into().unwrap());
    let aimed = (rank, target) == (attack.rank, attack.target) && hello[12] == attack.purpose as u8;
    let damage = |way| (aimed && way == attack.way).then(|| Filter::new(attack, struck));
    std::thread::scope(|scope| {
        scope.spawn(|| pump(&server, client, &[], damage(Way::FromTarget)));
        pump(client, &server, &hello, damage(Way::ToTarget));
    });
    Ok(())
}

/// Passes on what `from` says until it ends.
fn pump(mut from: &TcpStream, mut to: &TcpStream, first: &[u8], mut filter: Option<Filter<'_>>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut bytes = first.to_vec();
    loop {
        let (out, ends) = match &mut filter {
            Some(filter) => filter.apply(&bytes),
            None => (std::mem::take(&mut bytes), false),
        };
        if to.write_all(&out).is_err() || ends {
            break;
        }
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => bytes = buffer[..length].to_vec(),
        }
    }
    if let Some(filter) = filter {
        let _ = to.write_all(&filter.held);
        if matches!(filter.attack.damage, Damage::Truncate) && filter.is_done {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Damages a stream once.
struct Filter<'a> {
    attack: Attack,
    struck: &'a AtomicBool,
    passed: usize,
    /// Bytes that wait for those they change places with.
    held: Vec<u8>,
    dropped: usize,
    is_done: bool,
}

impl<'a> Filter<'a> {
    fn new(attack: Attack, struck: &'a AtomicBool) -> Self {
        Self {
            attack,
            struck,
            passed: 0,
            held: Vec::new(),
            dropped: 0,
            // Another connection of the same rank has had it.
            is_done: struck.load(SeqCst),
        }
    }

    /// The bytes that go on, and true if the stream ends here.
    fn apply(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        let before = self.attack.after.saturating_sub(self.passed);
        if self.is_done || bytes.len() <= before {
            self.passed += bytes.len();
            return (bytes.to_vec(), false);
        }
        let (clean, rest) = bytes.split_at(before);
        self.passed += clean.len();
        self.struck.store(true, SeqCst);
        let (mut out, mut rest) = (clean.to_vec(), rest.to_vec());
        match self.attack.damage {
            Damage::Flip(bits) => rest[0] ^= bits,
            Damage::Truncate => {
                self.is_done = true;
                return (out, true);
            }
            Damage::Insert(length) => out.extend((0..length).map(|byte| byte as u8)),
            Damage::Drop(length) => {
                let left = length - self.dropped;
                let taken = left.min(rest.len());
                rest.drain(..taken);
                self.dropped += taken;
                if self.dropped < length {
                    return (out, false);
                }
            }
            Damage::Repeat(length) => {
                self.held.append(&mut rest);
                if self.held.len() < length {
                    return (out, false);
                }
                out.extend(&self.held[..length]);
                rest = std::mem::take(&mut self.held);
            }
            Damage::Swap(length) => {
                self.held.append(&mut rest);
                if self.held.len() < 2 * length {
                    return (out, false);
                }
                rest = std::mem::take(&mut self.held);
                rest[..2 * length].rotate_left(length);
            }
        }
        self.is_done = true;
        out.append(&mut rest);
        (out, false)
    }
}
