//! Fuzz targets: what comes from a socket.

use std::path::Path;

use super::channel::{Channel, Protection, Side};
use super::connection;
use super::frame::{self, FrameHeader};
use super::handshake::{self, CHALLENGE, HELLO, Hello, PROOF, WELCOME};
use super::message::{Inbox, Message, MessageKind};
use super::peer_table;
use crate::backends::{MAX_RANKS, wire};
use crate::fuzzing::Target;

pub(crate) const TARGETS: &[Target] = &[
    ("handshake", handshake as _, 2_000),
    ("frame", frame as _, 20_000),
    ("message", message as _, 5_000),
    ("cause", cause as _, 20_000),
];

/// The first `N` bytes of an input, with zeros where it ends, and the rest.
fn take<const N: usize>(input: &[u8]) -> ([u8; N], &[u8]) {
    let (taken, rest) = input.split_at(input.len().min(N));
    let mut bytes = [0; N];
    bytes[..taken.len()].copy_from_slice(taken);
    (bytes, rest)
}

/// The four messages of a handshake, each from a side that does not know the secret: none is accepted.
fn handshake(_: &Path, input: &[u8]) {
    const SECRET: &[u8] = b"the secret of a job";
    let (hello, rest) = take::<HELLO>(input);
    let (challenge, rest) = take::<CHALLENGE>(rest);
    let (proof, rest) = take::<PROOF>(rest);
    let (welcome, _) = take::<WELCOME>(rest);
    if let Ok(read) = Hello::decode(&hello) {
        assert_eq!(read.encode(), hello);
    }
    let _ = handshake::proof(SECRET, &hello, &challenge);
    assert!(!handshake::is_proven(SECRET, &hello, &challenge, &proof));
    assert!(handshake::welcomed(SECRET, &hello, &challenge, &welcome).is_err());
    let channel = handshake::channel(SECRET, Side::Listener, &hello, &challenge);
    assert!(channel.tag_len() == 0 || channel.open(&mut [0; 64], &[0; 16]).is_err());
}

/// The header of a frame, as it came and with the checksum that it should have.
fn frame(_: &Path, input: &[u8]) {
    let (bytes, _) = take(input);
    for bytes in [bytes, frame::forged(bytes)] {
        if let Some(header) = FrameHeader::decode(&bytes) {
            assert_eq!(header.encode(), bytes);
            assert!(!header.signature.to_string().is_empty());
        }
    }
}

/// Control messages in pieces, with and without tags. A tag cannot be right.
fn message(_: &Path, input: &[u8]) {
    let Some((cut, bytes)) = input.split_first() else {
        return;
    };
    let protected = Channel::new(Protection::Authentication, Side::Listener, b"secret", &[]);
    let mut inbox = Inbox::default();
    inbox.take(bytes);
    assert!(!matches!(inbox.next(&protected), Ok(Some(_))));
    let plain = Channel::plain();
    let mut inbox = Inbox::default();
    for piece in bytes.chunks(1 + usize::from(*cut)) {
        inbox.take(piece);
        loop {
            match inbox.next(&plain) {
                Ok(Some(message)) => understood(&message),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// Reads the body of a message as its receiver does, and the message itself again.
fn understood(message: &Message) {
    let mut inbox = Inbox::default();
    inbox.take(&message.seal(&Channel::plain()));
    let again = inbox.next(&Channel::plain()).expect("a message");
    assert_eq!(again.as_ref(), Some(message));
    let body = &message.body;
    match message.kind {
        MessageKind::PeerInfo | MessageKind::PeerTable => {
            for count in [1, 2, 3, MAX_RANKS] {
                if let Some(table) = peer_table::decode(body, count) {
                    let _ = peer_table::is_crowded(&table, count - 1, Some(1.5));
                    let written = peer_table::encode(&table);
                    let again = peer_table::decode(&written, count).expect("a table");
                    assert_eq!(peer_table::encode(&again), written);
                }
            }
        }
        MessageKind::Pong => drop(connection::decode_flows(body, 2)),
        MessageKind::Report | MessageKind::Verdict => cause(Path::new(""), body),
        _ => {}
    }
}

/// The cause of a failure: if it is read, it can be shown, and written and read again.
fn cause(_: &Path, input: &[u8]) {
    if let Some(cause) = wire::decode(input) {
        assert!(!cause.to_string().is_empty());
        let written = wire::encode(&cause);
        assert!(written.len() <= wire::LONGEST);
        let again = wire::decode(&written).expect("a cause is read back");
        assert_eq!(wire::encode(&again), written);
    }
}
