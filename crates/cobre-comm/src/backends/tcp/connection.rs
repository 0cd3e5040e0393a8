//! A connection to a rank that has proven itself: its socket, and how what crosses it is protected.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::channel::Channel;
use super::message::{Inbox, Message};
use super::sys::CloseOnFork;
use super::system::TcpStream;

/// A socket and its channel.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) channel: Channel,
}

/// A data connection, as the collectives use it.
#[derive(Debug)]
pub(super) struct DataLink {
    pub(super) socket: CloseOnFork<TcpStream>,
    pub(super) channel: Channel,
    pub(super) traffic: Traffic,
}

/// A connection for the watch, and what has come on it.
#[derive(Debug)]
pub(super) struct WatchLink {
    pub(super) socket: CloseOnFork<TcpStream>,
    pub(super) channel: Channel,
    pub(super) inbox: Inbox,
    /// Sealed bytes that the kernel has not taken yet.
    outbox: RefCell<Vec<u8>>,
}

/// Counts of the bytes that have crossed a data connection. Written by the computing thread, read by the one that
/// watches.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Bytes that the kernel has taken.
    sent: AtomicU64,
    /// Bytes that have come.
    received: AtomicU64,
    /// True if this rank sleeps until more comes.
    awaited: AtomicBool,
    /// True if this rank sleeps until the kernel takes more.
    held: AtomicBool,
}

impl DataLink {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            socket: CloseOnFork::new(connection.stream),
            channel: connection.channel,
            traffic: Traffic::default(),
        }
    }
}

impl WatchLink {
    pub(super) fn new(connection: Connection, inbox: Inbox) -> Self {
        Self {
            socket: CloseOnFork::new(connection.stream),
            channel: connection.channel,
            inbox,
            outbox: RefCell::default(),
        }
    }

    /// Sends a message, as far as the kernel takes it now; the rest follows with [`flush`](Self::flush). A connection that
    /// cannot be written to says so when it is read.
    pub(super) fn send(&self, message: &Message) {
        self.outbox.borrow_mut().extend(message.seal(&self.channel));
        self.flush();
    }

    /// Sends more of what the kernel has not taken yet.
    pub(super) fn flush(&self) {
        let mut outbox = self.outbox.borrow_mut();
        while !outbox.is_empty() {
            match (&mut &*self.socket).write(&outbox) {
                Ok(length) if length > 0 => drop(outbox.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => outbox.clear(),
            }
        }
    }

    /// True if the kernel has taken all messages.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.borrow().is_empty()
    }
}

/// The bytes that have crossed a data connection, by one rank's count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) awaited: bool,
    /// True if more is to be sent, and the kernel does not take it.
    pub(super) held: bool,
}

/// Bytes of a flow on its way.
const FLOW: usize = 16;

/// Flows as they travel; the highest bit of the bytes sent says that more are held, that of those received that more
/// are awaited.
pub(super) fn encode_flows(flows: &[Flow]) -> Vec<u8> {
    let words = flows.iter().flat_map(|flow| {
        let (held, awaited) = (u64::from(flow.held) << 63, u64::from(flow.awaited) << 63);
        [flow.sent | held, flow.received | awaited]
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Those of exactly `count` connections, or none.
pub(super) fn decode_flows(bytes: &[u8], count: usize) -> Vec<Flow> {
    if bytes.len() != count * FLOW {
        return Vec::new();
    }
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, &b| word << 8 | u64::from(b))
    };
    let flows = bytes.chunks_exact(FLOW).map(|flow| {
        let (sent, received) = flow.split_at(8);
        let (sent, received) = (word(sent), word(received));
        Flow {
            sent: sent & !(1 << 63),
            received: received & !(1 << 63),
            awaited: received >> 63 == 1,
            held: sent >> 63 == 1,
        }
    });
    flows.collect()
}

impl Traffic {
    pub(super) fn flow(&self) -> Flow {
        Flow {
            sent: self.sent.load(Relaxed),
            received: self.received.load(Relaxed),
            awaited: self.awaited.load(Relaxed),
            held: self.held.load(Relaxed),
        }
    }

    pub(super) fn note_sent(&self, bytes: usize) {
        add(&self.sent, bytes);
        self.held.store(false, Relaxed);
    }

    pub(super) fn note_received(&self, bytes: usize) {
        add(&self.received, bytes);
        self.awaited.store(false, Relaxed);
    }

    pub(super) fn note_held(&self) {
        self.held.store(true, Relaxed);
    }

    pub(super) fn note_awaited(&self) {
        self.awaited.store(true, Relaxed);
    }
}

/// One thread at a time adds.
fn add(count: &AtomicU64, bytes: usize) {
    count.store(count.load(Relaxed) + bytes as u64, Relaxed);
}
