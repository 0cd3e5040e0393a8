//! Control messages between the ranks and rank 0 beside the collectives: heartbeats, the table of peers, reports and
//! the verdict.

use std::io::{self, Read, Write};
use std::time::Duration;

use super::channel::{Channel, TAG};
use super::system::{Instant, TcpStream};

/// Bytes in front of every message's body.
const HEAD: usize = 32;
const MAGIC: u32 = 0x6362_7257;
/// Longest body: a table of peers of 256 ranks.
const LONGEST: usize = 64 * 1024;

/// The kind of a message. The two figures mean something else in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// A rank's description of itself, in the body.
    PeerInfo = 1,
    /// The table of all ranks.
    PeerTable = 2,
    /// The result of a rank's connections to its peers: 1 if it reached all, else the body says why not.
    Meshed = 3,
    /// The job begins: 1 if ranks are connected directly.
    Start = 4,
    Ping = 5,
    /// The rank's step, and for how many milliseconds it has waited in it.
    Pong = 6,
    /// Something has gone wrong: the body is the cause.
    Report = 7,
    /// The connection to a rank, the first figure, is broken.
    LinkLost = 8,
    /// The deadline of a step, the first figure, has passed; it is so many milliseconds.
    Late = 9,
    /// The cause of the job's failure, for all.
    Verdict = 10,
    /// The sender has finished; the first figure is its last step.
    Leave = 11,
    /// A rank has its place; rank 0 waits for so many milliseconds more for the others.
    Accepted = 12,
}

impl MessageKind {
    pub(super) const ALL: [Self; 12] = [
        Self::PeerInfo,
        Self::PeerTable,
        Self::Meshed,
        Self::Start,
        Self::Ping,
        Self::Pong,
        Self::Report,
        Self::LinkLost,
        Self::Late,
        Self::Verdict,
        Self::Leave,
        Self::Accepted,
    ];

    fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: MessageKind,
    pub(super) figures: [u64; 2],
    pub(super) body: Vec<u8>,
}

impl Message {
    pub(super) fn new(kind: MessageKind, figures: [u64; 2]) -> Self {
        Self::with_body(kind, figures, Vec::new())
    }

    pub(super) fn with_body(kind: MessageKind, figures: [u64; 2], body: Vec<u8>) -> Self {
        Self {
            kind,
            figures,
            body,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.body.len());
        out.extend(MAGIC.to_le_bytes());
        out.extend((self.kind as u32).to_le_bytes());
        out.extend(self.figures.iter().flat_map(|figure| figure.to_le_bytes()));
        out.extend((self.body.len() as u32).to_le_bytes());
        out.extend([0; 4]);
        out.extend(&self.body);
        out
    }

    /// The message with its tags, as the next one on its connection: the head is a record and so
    /// is the body, if there is one.
    pub(super) fn seal(&self, channel: &Channel) -> Vec<u8> {
        let mut out = self.encode();
        let head = channel.seal(&mut out[..HEAD]);
        let body = (!self.body.is_empty()).then(|| channel.seal(&mut out[HEAD..]));
        out.splice(HEAD..HEAD, head.into_iter().flatten());
        out.extend(body.flatten().into_iter().flatten());
        out
    }

    /// Writes the whole message, or fails.
    pub(super) fn send(&self, stream: &TcpStream, channel: &Channel) -> io::Result<()> {
        let mut stream = stream;
        stream.write_all(&self.seal(channel))
    }
}

/// Messages that are still coming.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// The head of the first message, once it is there and is one.
    head: Option<MessageHeader>,
}

#[derive(Debug, Clone, Copy)]
struct MessageHeader {
    kind: MessageKind,
    figures: [u64; 2],
    length: usize,
}

impl MessageHeader {
    fn decode(bytes: &[u8; HEAD]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let figure = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let (kind, length) = (MessageKind::of_number(word(4))?, word(24) as usize);
        let is_one = word(0) == MAGIC && length <= LONGEST && word(28) == 0;
        is_one.then_some(Self {
            kind,
            figures: [figure(8), figure(16)],
            length,
        })
    }
}

/// The error of a message that the other side did not send, or not now.
fn forged<E>(_: E) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, FORGED)
}

/// The error of a message that fails authentication.
pub(super) const FORGED: &str = "it was changed, left out, repeated or moved on the way";

impl Inbox {
    /// Takes what has come on a stream that does not block; the end of the stream is an error.
    pub(super) fn fill(&mut self, stream: &TcpStream) -> io::Result<()> {
        let (mut stream, mut piece) = (stream, [0; 4096]);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.bytes.extend(&piece[..length]);
                    if self.bytes.len() > 2 * (HEAD + TAG + LONGEST + TAG) {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes bytes that have come.
    #[cfg(any(test, fuzzing))]
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The next message that is complete; an error if what came is none.
    pub(super) fn next(&mut self, channel: &Channel) -> io::Result<Option<Message>> {
        let MessageHeader {
            kind,
            figures,
            length,
        } = match self.head {
            Some(head) => head,
            None => match self.take_head(channel)? {
                Some(head) => *self.head.insert(head),
                None => return Ok(None),
            },
        };
        let Some(body) = self.take_record(length, channel)? else {
            return Ok(None);
        };
        self.head = None;
        Ok(Some(Message::with_body(kind, figures, body)))
    }

    fn take_head(&mut self, channel: &Channel) -> io::Result<Option<MessageHeader>> {
        let Some(bytes) = self.take_record(HEAD, channel)? else {
            return Ok(None);
        };
        let head = bytes.first_chunk().and_then(MessageHeader::decode);
        head.map(Some).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// The next record, of this length, once it is there and was opened.
    fn take_record(&mut self, length: usize, channel: &Channel) -> io::Result<Option<Vec<u8>>> {
        let whole = length + if length > 0 { channel.tag_len() } else { 0 };
        if self.bytes.len() < whole {
            return Ok(None);
        }
        let rest = self.bytes.split_off(whole);
        let mut record = std::mem::replace(&mut self.bytes, rest);
        if let Some((record, tag)) = record.split_at_mut_checked(length)
            && let Ok(tag) = (&*tag).try_into()
        {
            channel.open(record, tag).map_err(forged)?;
        }
        record.truncate(length);
        Ok(Some(record))
    }

    /// Waits for the next message until `deadline`, on a stream that blocks.
    pub(super) fn wait(
        &mut self,
        stream: &TcpStream,
        channel: &Channel,
        deadline: Instant,
    ) -> io::Result<Message> {
        let mut piece = [0; 4096];
        loop {
            if let Some(message) = self.next(channel)? {
                return Ok(message);
            }
            match read_some(stream, &mut piece, deadline)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => self.bytes.extend(&piece[..length]),
            }
        }
    }
}

/// Fills `buffer` until `deadline`.
pub(super) fn read_all(
    stream: &TcpStream,
    mut buffer: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match read_some(stream, buffer, deadline)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => buffer = &mut buffer[length..],
        }
    }
    Ok(())
}

fn read_some(stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_micros(1) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut reader = stream;
        match reader.read(buffer) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::tcp::channel::{Protection, Side};
    use proptest::prelude::*;

    fn inbox(bytes: Vec<u8>) -> Inbox {
        Inbox { bytes, head: None }
    }

    fn pair(protection: Protection) -> (Channel, Channel) {
        let channel = |side| Channel::new(protection, side, b"secret", &[b"transcript"]);
        (channel(Side::Dialer), channel(Side::Listener))
    }

    proptest! {
        #[test]
        fn messages_survive_any_cut(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..5),
            cut in 1..200usize, protected in 0..3usize,
        ) {
            let protections = [Protection::None, Protection::Authentication, Protection::Encryption];
            let protection = protections[protected];
            let (one, other) = pair(protection);
            let sent: Vec<Message> = bodies
                .into_iter()
                .map(|body| Message::with_body(MessageKind::Report, [7, u64::MAX], body))
                .collect();
            let bytes: Vec<u8> = sent.iter().flat_map(|message| message.seal(&one)).collect();
            let (mut inbox, mut found) = (Inbox::default(), Vec::new());
            for piece in bytes.chunks(cut) {
                inbox.take(piece);
                while let Some(message) = inbox.next(&other).unwrap() {
                    found.push(message);
                }
            }
            prop_assert_eq!(found, sent);
        }

        #[test]
        fn arbitrary_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), HEAD..200)) {
            prop_assert!(inbox(bytes).next(&Channel::plain()).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_of_a_protected_message_is_refused(
            body in proptest::collection::vec(any::<u8>(), 0..100), at: usize, change in 1..=255u8,
        ) {
            let (one, other) = pair(Protection::Authentication);
            let message = Message::with_body(MessageKind::Report, [7, 8], body);
            let mut bytes = message.seal(&one);
            let at = at % bytes.len();
            bytes[at] ^= change;
            prop_assert!(inbox(bytes).next(&other).is_err());
        }
    }

    #[test]
    fn a_repeated_message_is_refused() {
        let (one, other) = pair(Protection::Authentication);
        let bytes = Message::new(MessageKind::Leave, [9, 0]).seal(&one);
        let mut inbox = inbox([&bytes[..], &bytes[..]].concat());
        assert!(inbox.next(&other).unwrap().is_some());
        assert!(inbox.next(&other).is_err());
    }

    #[test]
    fn a_length_beyond_all_is_refused_before_anything_is_kept_for_it() {
        let mut bytes = Message::new(MessageKind::PeerInfo, [0; 2]).encode();
        bytes[24..28].fill(0xff);
        assert!(inbox(bytes).next(&Channel::plain()).is_err());
    }
}
