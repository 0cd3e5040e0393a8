//! Data connections: what is on its way to and from each peer, moved as far as the sockets let it.
//!
//! A socket takes what fits and gives what is there. All transfers of an exchange go on side by
//! side, so two ranks that send to each other at once never wait for each other's buffers.
//!
//! On a protected connection a frame travels as records with a tag each: the header, then the
//! payload in pieces of [`RECORD`] bytes. They are sealed just before they are sent and opened as
//! soon as they have come, where they lie, while the cache still has them.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};

use rustix::io::Errno;

use super::channel::{Channel, Forged, RECORD, TAG};
use super::connection::DataLink;
use super::frame::{FrameHeader, HEADER};
use super::system;

/// Pieces that one system call moves.
const AT_ONCE: usize = 64;
/// Records of a protected connection that one system call reads.
const RECORDS_AT_ONCE: usize = 8;
/// Bytes that are sealed before the first of them is sent.
const SEALED_AHEAD: usize = 4 * RECORD;

/// A frame on its way to a peer.
pub(super) struct Outgoing<'a> {
    pub(super) peer: usize,
    /// The header, until it is sealed.
    header: Option<[u8; HEADER]>,
    /// Bytes that are not sealed yet.
    parts: VecDeque<&'a [u8]>,
    /// Records that are sealed, and not sent yet.
    records: VecDeque<SealedRecord<'a>>,
    /// Bytes of the first record, tag included, that are sent.
    sent: usize,
}

struct SealedRecord<'a> {
    body: Body<'a>,
    tag: Option<[u8; TAG]>,
}

enum Body<'a> {
    Header([u8; HEADER]),
    /// The caller's bytes, in place.
    Lent(&'a [u8]),
    /// Gathered from several parts.
    Gathered(Vec<u8>),
}

/// A frame on its way from a peer, read straight to where it belongs.
pub(super) struct Incoming<'a> {
    pub(super) peer: usize,
    /// The header and its tag.
    head: [u8; HEADER + TAG],
    head_read: usize,
    head_len: usize,
    /// Payload bytes that this rank's own call expects.
    pub(super) expected: usize,
    /// Buffers that are left to fill or to open.
    parts: VecDeque<&'a mut [u8]>,
    /// Bytes in `parts`.
    left: usize,
    /// Bytes that were read of the records in `parts`, tags included.
    read: usize,
    /// The tags of these records.
    tags: [[u8; TAG]; RECORDS_AT_ONCE],
}

/// The progress of a transfer in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferProgress {
    /// The socket has nothing to read, or no room.
    Nothing,
    Something,
    /// The header has just become complete.
    Header,
}

/// The reason for which a transfer cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferError {
    Socket,
    Forged,
}

impl From<Forged> for TransferError {
    fn from(Forged: Forged) -> Self {
        Self::Forged
    }
}

impl SealedRecord<'_> {
    fn body(&self) -> &[u8] {
        match &self.body {
            Body::Header(bytes) => bytes,
            Body::Lent(bytes) => bytes,
            Body::Gathered(bytes) => bytes,
        }
    }

    /// Encrypts the record, of the caller's bytes a copy; its tag.
    fn encrypt(&mut self, channel: &Channel) -> Option<[u8; TAG]> {
        if let Body::Lent(bytes) = self.body {
            self.body = Body::Gathered(bytes.to_vec());
        }
        match &mut self.body {
            Body::Header(bytes) => channel.seal(bytes),
            Body::Gathered(bytes) => channel.seal(bytes),
            Body::Lent(_) => None,
        }
    }

    fn tag(&self) -> &[u8] {
        self.tag.as_ref().map_or(&[], |tag| &tag[..])
    }

    fn len(&self) -> usize {
        self.body().len() + self.tag().len()
    }
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(peer: usize, header: &FrameHeader, parts: &[&'a [u8]]) -> Self {
        let length = parts.iter().map(|part| part.len()).sum::<usize>() as u64;
        let parts = parts.iter().copied().filter(|part| !part.is_empty());
        Self {
            peer,
            header: Some(FrameHeader { length, ..*header }.encode()),
            parts: parts.collect(),
            records: VecDeque::new(),
            sent: 0,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.header.is_none() && self.parts.is_empty() && self.records.is_empty()
    }

    /// Sends what fits.
    pub(super) fn advance(&mut self, link: &DataLink) -> Result<TransferProgress, TransferError> {
        self.seal(&link.channel);
        let sent = {
            let mut skip = self.sent;
            let records = self.records.iter();
            let pieces = records.flat_map(|record| [record.body(), record.tag()]);
            let pieces = pieces.filter_map(|piece| {
                let skipped = skip.min(piece.len());
                skip -= skipped;
                (skipped < piece.len()).then(|| IoSlice::new(&piece[skipped..]))
            });
            let pieces: Vec<IoSlice<'_>> = pieces.take(AT_ONCE).collect();
            match system::send(&link.socket, &pieces) {
                Ok(sent) => sent,
                Err(Errno::AGAIN) => return Ok(TransferProgress::Nothing),
                Err(Errno::INTR) => return Ok(TransferProgress::Something),
                Err(_) => return Err(TransferError::Socket),
            }
        };
        link.traffic.note_sent(sent);
        self.sent += sent;
        while let Some(first) = self.records.front()
            && self.sent >= first.len()
        {
            self.sent -= first.len();
            self.records.pop_front();
        }
        Ok(TransferProgress::Something)
    }

    /// Makes the next records ready, as many as are soon sent.
    fn seal(&mut self, channel: &Channel) {
        if let Some(header) = self.header.take() {
            self.push(channel, Body::Header(header));
        }
        if channel.tag_len() == 0 {
            let records = self.parts.drain(..).map(|part| SealedRecord {
                body: Body::Lent(part),
                tag: None,
            });
            self.records.extend(records);
            return;
        }
        let mut ahead: usize = self.records.iter().map(SealedRecord::len).sum();
        while ahead < self.sent + SEALED_AHEAD
            && let Some(body) = self.next_body()
        {
            self.push(channel, body);
            ahead += RECORD;
        }
    }

    fn push(&mut self, channel: &Channel, body: Body<'a>) {
        let mut record = SealedRecord { body, tag: None };
        record.tag = if channel.encrypts() {
            record.encrypt(channel)
        } else {
            channel.tag(record.body())
        };
        self.records.push_back(record);
    }

    /// The next [`RECORD`] bytes of the payload, or all that are left.
    fn next_body(&mut self) -> Option<Body<'a>> {
        let alone = self.parts.len() == 1;
        let first = self.parts.front_mut()?;
        let (now, later) = first.split_at(first.len().min(RECORD));
        if now.len() == RECORD || alone {
            if later.is_empty() {
                self.parts.pop_front();
            } else {
                *first = later;
            }
            return Some(Body::Lent(now));
        }
        let mut gathered = Vec::with_capacity(RECORD);
        while gathered.len() < RECORD
            && let Some(part) = self.parts.front_mut()
        {
            let (now, later) = part.split_at(part.len().min(RECORD - gathered.len()));
            gathered.extend(now);
            if later.is_empty() {
                self.parts.pop_front();
            } else {
                *part = later;
            }
        }
        Some(Body::Gathered(gathered))
    }
}

impl<'a> Incoming<'a> {
    pub(super) fn new(peer: usize, parts: Vec<&'a mut [u8]>) -> Self {
        let expected = parts.iter().map(|part| part.len()).sum();
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Self {
            peer,
            head: [0; HEADER + TAG],
            head_read: 0,
            head_len: HEADER + TAG,
            expected,
            parts,
            left: expected,
            read: 0,
            tags: [[0; TAG]; RECORDS_AT_ONCE],
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.head_read == self.head_len && self.left == 0
    }

    /// The header, once it is there; `None` if what came is none.
    pub(super) fn header(&self) -> Option<FrameHeader> {
        FrameHeader::decode(self.head.first_chunk()?)
    }

    /// Reads what is there; the end of the stream is an error. A header that is complete is opened,
    /// the payload is not: see [`open`](Self::open).
    pub(super) fn advance(&mut self, link: &DataLink) -> Result<TransferProgress, TransferError> {
        let tag_len = link.channel.tag_len();
        self.head_len = HEADER + tag_len;
        let read = {
            let mut pieces = self.pieces(tag_len);
            match system::receive(&link.socket, &mut pieces) {
                Ok(0) => return Err(TransferError::Socket),
                Ok(read) => read,
                Err(Errno::AGAIN) => return Ok(TransferProgress::Nothing),
                Err(Errno::INTR) => return Ok(TransferProgress::Something),
                Err(_) => return Err(TransferError::Socket),
            }
        };
        link.traffic.note_received(read);
        let of_head = read.min(self.head_len - self.head_read);
        self.head_read += of_head;
        self.read += read - of_head;
        if of_head == 0 || self.head_read < self.head_len {
            return Ok(TransferProgress::Something);
        }
        if let Some((head, tag)) = self.head.split_first_chunk_mut::<HEADER>()
            && let Ok(tag) = (&*tag).try_into()
        {
            link.channel.open(head, tag)?;
        }
        Ok(TransferProgress::Header)
    }

    /// The place for the next bytes.
    fn pieces(&mut self, tag_len: usize) -> Vec<IoSliceMut<'_>> {
        let mut pieces = Vec::with_capacity(4);
        let head = &mut self.head[self.head_read..self.head_len];
        if !head.is_empty() {
            pieces.push(IoSliceMut::new(head));
        }
        let (mut skip, mut left) = (self.read, self.left);
        let mut parts = self.parts.iter_mut();
        let mut part: &mut [u8] = &mut [];
        for tag in &mut self.tags {
            let mut record = left.min(if tag_len == 0 { usize::MAX } else { RECORD });
            if record == 0 || pieces.len() + 2 > AT_ONCE {
                break;
            }
            left -= record;
            while record > 0 && pieces.len() < AT_ONCE {
                if part.is_empty() {
                    match parts.next() {
                        Some(next) => part = next,
                        None => return pieces,
                    }
                }
                let length = record.min(part.len());
                let (now, later) = std::mem::take(&mut part).split_at_mut(length);
                (part, record) = (later, record - now.len());
                push(&mut pieces, now, &mut skip);
            }
            if record > 0 {
                break;
            }
            push(&mut pieces, &mut tag[..tag_len], &mut skip);
        }
        pieces
    }

    /// Opens the records that have come whole. Until then nothing of them may be used.
    pub(super) fn open(&mut self, channel: &Channel) -> Result<(), Forged> {
        if channel.tag_len() == 0 {
            let read = std::mem::take(&mut self.read);
            self.let_go(read);
            return Ok(());
        }
        loop {
            let record = self.left.min(RECORD);
            if record == 0 || self.read < record + TAG {
                return Ok(());
            }
            match self.parts.front_mut() {
                Some(part) if part.len() >= record => {
                    channel.open(&mut part[..record], &self.tags[0])?;
                }
                _ => {
                    let mut gathered = self.gather(record);
                    channel.open(&mut gathered, &self.tags[0])?;
                    if channel.encrypts() {
                        self.scatter(&gathered);
                    }
                }
            }
            self.let_go(record);
            self.read -= record + TAG;
            self.tags.rotate_left(1);
        }
    }

    /// The first bytes of several parts.
    fn gather(&self, length: usize) -> Vec<u8> {
        let mut gathered = Vec::with_capacity(length);
        for part in &self.parts {
            let taken = part.len().min(length - gathered.len());
            gathered.extend(&part[..taken]);
        }
        gathered
    }

    /// Puts bytes into the first parts.
    fn scatter(&mut self, mut bytes: &[u8]) {
        for part in &mut self.parts {
            let (now, later) = bytes.split_at(part.len().min(bytes.len()));
            part[..now.len()].copy_from_slice(now);
            bytes = later;
        }
    }

    /// Bytes that have their place, and are not looked at again here.
    fn let_go(&mut self, mut bytes: usize) {
        self.left -= bytes;
        while bytes > 0
            && let Some(part) = self.parts.pop_front()
        {
            let taken = bytes.min(part.len());
            bytes -= taken;
            if taken < part.len() {
                self.parts.push_front(&mut part[taken..]);
            }
        }
    }
}

/// Adds what is left of `piece` when `skip` bytes are skipped.
fn push<'a>(pieces: &mut Vec<IoSliceMut<'a>>, piece: &'a mut [u8], skip: &mut usize) {
    let skipped = piece.len().min(*skip);
    *skip -= skipped;
    if skipped < piece.len() {
        pieces.push(IoSliceMut::new(&mut piece[skipped..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::tcp::channel::{Protection, Side};
    use crate::backends::tcp::connection::Connection;
    use crate::backends::tcp::frame::FrameKind;
    use crate::backends::tcp::system::{TcpListener, TcpStream};
    use crate::call_signature::{CallSignature, Collective};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    const PROTECTIONS: [Protection; 3] = [
        Protection::None,
        Protection::Authentication,
        Protection::Encryption,
    ];

    fn links(protection: Protection) -> (DataLink, DataLink) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        let link = |stream: TcpStream, side| {
            stream.set_nonblocking(true).unwrap();
            let channel = Channel::new(protection, side, b"secret", &[b"transcript"]);
            DataLink::new(Connection { stream, channel })
        };
        (link(one, Side::Dialer), link(other, Side::Listener))
    }

    fn header() -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Direct,
            round: 7,
            signature: CallSignature::new(Collective::Barrier).at(3),
            length: 0,
        }
    }

    /// `payload` cut at these places.
    fn cut(mut payload: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        for cut in cuts {
            let (part, rest) = payload.split_at((*cut).min(payload.len()));
            parts.push(part.to_vec());
            payload = rest;
        }
        parts.push(payload.to_vec());
        parts
    }

    fn moves(protection: Protection, payload: &[u8], from: &[usize], into: &[usize]) {
        let (one, other) = links(protection);
        // Twice: records are numbered on.
        for _ in 0..2 {
            let sent = cut(payload, from);
            let sent: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
            let mut there = cut(&vec![0; payload.len()], into);
            let mut outgoing = Outgoing::new(1, &header(), &sent);
            let slots = there.iter_mut().map(Vec::as_mut_slice).collect();
            let mut incoming = Incoming::new(0, slots);
            while !outgoing.is_done() || !incoming.is_done() {
                if !outgoing.is_done() {
                    outgoing.advance(&one).unwrap();
                }
                if !incoming.is_done()
                    && incoming.advance(&other).unwrap() == TransferProgress::Header
                {
                    let length = payload.len() as u64;
                    assert_eq!(incoming.header(), Some(FrameHeader { length, ..header() }));
                }
                incoming.open(&other.channel).unwrap();
            }
            assert_eq!(there.concat(), payload);
        }
    }

    fn payload(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn frames_arrive_however_they_are_cut(
            protected in 0..3usize,
            length in prop_oneof![0..300usize, 0..5 * RECORD, Just(RECORD), Just(2 * RECORD)],
            from in proptest::collection::vec(prop_oneof![0..50usize, 0..2 * RECORD], 0..100),
            into in proptest::collection::vec(prop_oneof![0..50usize, 0..2 * RECORD], 0..100),
        ) {
            let protection = PROTECTIONS[protected];
            moves(protection, &payload(length), &from, &into);
        }
    }

    #[test]
    fn a_frame_that_is_larger_than_all_buffers_arrives() {
        for protection in PROTECTIONS {
            moves(protection, &payload(20 << 20), &[], &[7]);
        }
    }

    /// Bytes as someone between the two ranks reads them.
    #[test]
    fn encrypted_bytes_on_the_way_show_nothing_of_the_payload() {
        let payload: Vec<u8> = b"a word that is a secret of this job ".repeat(4000);
        for protection in PROTECTIONS {
            let (one, other) = links(protection);
            let mut outgoing = Outgoing::new(1, &header(), &[&payload[..7], &payload[7..]]);
            let mut seen: Vec<u8> = Vec::new();
            while !outgoing.is_done() || seen.len() < payload.len() {
                if !outgoing.is_done() {
                    outgoing.advance(&one).unwrap();
                }
                let mut piece = [0; 4096];
                let mut pieces = [IoSliceMut::new(&mut piece)];
                if let Ok(read) = system::receive(&other.socket, &mut pieces) {
                    seen.extend(&piece[..read]);
                }
            }
            let shows = |word: &[u8]| seen.windows(word.len()).any(|it| it == word);
            let is_open = protection != Protection::Encryption;
            assert_eq!(shows(b"a secret of this job"), is_open);
            let encoded = FrameHeader {
                length: payload.len() as u64,
                ..header()
            };
            assert_eq!(shows(&encoded.encode()[..8]), is_open);
        }
    }

    /// A call of another length: its header is read as what it is, and nothing else is opened.
    #[test]
    fn a_frame_of_another_length_shows_its_header() {
        let (one, other) = links(Protection::Authentication);
        let sent = payload(1000);
        let mut outgoing = Outgoing::new(1, &header(), &[&sent]);
        outgoing.advance(&one).unwrap();
        let mut place = vec![0; 400];
        let mut incoming = Incoming::new(0, vec![&mut place]);
        while incoming.advance(&other).unwrap() != TransferProgress::Header {}
        assert_eq!(incoming.header().unwrap().length, 1000);
        while incoming.open(&other.channel).is_ok() {
            assert!(
                !incoming.is_done(),
                "400 bytes of a record opened as a record"
            );
            incoming.advance(&other).unwrap();
        }
    }
}
