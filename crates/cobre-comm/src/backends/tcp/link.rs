//! Data connections: what is on its way to and from each peer, moved as far as the sockets let it.
//!
//! A socket takes what fits and gives what is there. All transfers of an exchange go on side by
//! side, so two ranks that send to each other at once never wait for each other's buffers.

use std::io::{IoSlice, IoSliceMut};
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags};

use super::frame::{HEADER, Header};

/// Pieces that one system call moves.
const AT_ONCE: usize = 64;

/// A frame on its way to a peer.
pub(super) struct Outgoing<'a> {
    pub(super) peer: usize,
    head: [u8; HEADER],
    head_sent: usize,
    /// What is left to send.
    parts: Vec<&'a [u8]>,
}

/// A frame on its way from a peer, read straight to where it belongs.
pub(super) struct Incoming<'a> {
    pub(super) peer: usize,
    head: [u8; HEADER],
    head_read: usize,
    /// Bytes that this rank's own call expects.
    pub(super) expected: usize,
    /// What is left to fill.
    parts: Vec<&'a mut [u8]>,
}

/// How far a transfer got in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Nothing,
    Something,
    /// The header has just become complete.
    Header,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(peer: usize, header: &Header, parts: &[&'a [u8]]) -> Self {
        let length = parts.iter().map(|part| part.len()).sum::<usize>() as u64;
        let head = Header { length, ..*header }.encode();
        let parts = parts.iter().copied().filter(|part| !part.is_empty());
        let parts = parts.collect();
        Self {
            peer,
            head,
            head_sent: 0,
            parts,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.head_sent == HEADER && self.parts.is_empty()
    }

    /// Sends what fits.
    pub(super) fn advance(&mut self, socket: &TcpStream) -> Result<Moved, Errno> {
        let sent = {
            let head = &self.head[self.head_sent..];
            let flags = SendFlags::NOSIGNAL;
            let outcome = match &self.parts[..] {
                [] => rustix::net::send(socket, head, flags),
                [part] if head.is_empty() => rustix::net::send(socket, part, flags),
                parts => {
                    let head = (!head.is_empty()).then_some(head);
                    let pieces = head.into_iter().chain(parts.iter().copied());
                    let pieces: Vec<IoSlice<'_>> = pieces.take(AT_ONCE).map(IoSlice::new).collect();
                    rustix::net::sendmsg(
                        socket,
                        &pieces,
                        &mut SendAncillaryBuffer::default(),
                        flags,
                    )
                }
            };
            match outcome {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Moved::Nothing),
                Err(error) => return Err(error),
            }
        };
        let of_head = sent.min(HEADER - self.head_sent);
        self.head_sent += of_head;
        let mut left = sent - of_head;
        let mut finished = 0;
        for part in &mut self.parts {
            let taken = left.min(part.len());
            *part = &part[taken..];
            left -= taken;
            if !part.is_empty() {
                break;
            }
            finished += 1;
        }
        self.parts.drain(..finished);
        Ok(Moved::Something)
    }
}

impl<'a> Incoming<'a> {
    pub(super) fn new(peer: usize, parts: Vec<&'a mut [u8]>) -> Self {
        let expected = parts.iter().map(|part| part.len()).sum();
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Self {
            peer,
            head: [0; HEADER],
            head_read: 0,
            expected,
            parts,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.head_read == HEADER && self.parts.is_empty()
    }

    /// The header, once it is there; `None` if what came is none.
    pub(super) fn header(&self) -> Option<Header> {
        Header::decode(&self.head)
    }

    /// Reads what is there; the end of the stream is an error.
    pub(super) fn advance(&mut self, socket: &TcpStream) -> Result<Moved, Errno> {
        let read = {
            let head = &mut self.head[self.head_read..];
            let flags = RecvFlags::empty();
            let outcome = match &mut self.parts[..] {
                [] => rustix::net::recv(socket, head, flags).map(|(read, _)| read),
                [part] if head.is_empty() => {
                    rustix::net::recv(socket, &mut **part, flags).map(|(read, _)| read)
                }
                parts => {
                    let head = (!head.is_empty()).then_some(head);
                    let parts = parts.iter_mut().map(|part| &mut **part);
                    let pieces = head.into_iter().chain(parts).take(AT_ONCE);
                    let mut pieces: Vec<IoSliceMut<'_>> = pieces.map(IoSliceMut::new).collect();
                    let mut ancillary = RecvAncillaryBuffer::default();
                    rustix::net::recvmsg(socket, &mut pieces, &mut ancillary, flags)
                        .map(|message| message.bytes)
                }
            };
            match outcome {
                Ok(0) => return Err(Errno::CONNRESET),
                Ok(read) => read,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Moved::Nothing),
                Err(error) => return Err(error),
            }
        };
        let of_head = read.min(HEADER - self.head_read);
        self.head_read += of_head;
        let mut left = read - of_head;
        let mut finished = 0;
        for part in &mut self.parts {
            let taken = left.min(part.len());
            *part = &mut std::mem::take(part)[taken..];
            left -= taken;
            if !part.is_empty() {
                break;
            }
            finished += 1;
        }
        self.parts.drain(..finished);
        if of_head > 0 && self.head_read == HEADER {
            Ok(Moved::Header)
        } else {
            Ok(Moved::Something)
        }
    }
}
