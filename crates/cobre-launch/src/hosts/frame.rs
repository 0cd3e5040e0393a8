//! Frames between the launcher and the agent of a host: a length, a kind and fields, over the remote shell's streams.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::output::Stream;
use crate::protocol::{self, Event, Order, RECORD};

/// The first bytes of an agent: what a login shell prints before them is no frame.
pub(super) const PREAMBLE: &[u8] = b"\0cobre host agent 1\n";
/// Longest frame; a longer one is none.
const LONGEST: usize = 16 << 20;
/// Bytes of a rank's output that travel in one frame.
pub(super) const PIECE: usize = 32 << 10;

/// From the launcher to an agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToHost {
    /// Listen for ranks on an address of this name.
    Listen {
        name: String,
    },
    /// Connect to the address at which ranks meet, and tell if that goes.
    Reach {
        address: String,
        port: u16,
    },
    Start(Box<HostJob>),
    Signal(Order),
    /// Write this file, which proves to other hosts that they see the same directory.
    WriteMark {
        path: OsString,
    },
    /// Tell if this file is there.
    FindMark {
        path: OsString,
    },
    RemoveMark,
    Heartbeat,
}

/// From an agent to the launcher.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromHost {
    Hello {
        version: String,
    },
    Listening {
        address: String,
        port: u16,
    },
    /// A request was carried out.
    Done,
    /// A request was not carried out, and why.
    Failed {
        reason: String,
    },
    /// The host has lost its ranks, and how.
    Lost {
        reason: String,
    },
    Event(Event),
    Output {
        rank: usize,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Report(Vec<u8>),
    /// The statuses of the host's ranks, in words.
    Status {
        job: LocalJob,
        ranks: Vec<String>,
    },
    Heartbeat,
}

/// The job of an agent, as a reader on the same machine can tell it from others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LocalJob {
    /// The machine, by a name of its own since it was started.
    pub(super) machine: String,
    /// The address of the report pipe.
    pub(super) address: String,
}

/// The ranks of one host, as its agent starts them.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct HostJob {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) directory: OsString,
    /// Variables beside those of the remote login.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The binding, as an option names it.
    pub(super) bind: String,
    /// The secret of the job, if its backend has one.
    pub(super) secret: Vec<u8>,
    /// The settings of each rank.
    pub(super) ranks: Vec<Vec<(String, String)>>,
}

/// Writes fields behind each other.
struct FieldWriter(Vec<u8>);

impl FieldWriter {
    fn new(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    fn number(mut self, number: usize) -> Self {
        self.0.extend((number as u64).to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self = self.number(bytes.len());
        self.0.extend(bytes);
        self
    }

    fn all<T>(self, items: &[T], one: impl Fn(Self, &T) -> Self) -> Self {
        let counted = self.number(items.len());
        items.iter().fold(counted, one)
    }

    /// The frame, with its length in front.
    fn frame(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// Reads fields that may be anything.
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    fn number(&mut self) -> Option<usize> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        usize::try_from(u64::from_le_bytes(*word)).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        Some(str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    fn os(&mut self) -> Option<OsString> {
        Some(OsString::from_vec(self.bytes()?.to_vec()))
    }

    /// Items of at least one field each, so that a count cannot ask for more than is there.
    fn all<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(one(self)?);
        }
        Some(items)
    }

    fn record<R: protocol::Record>(&mut self) -> Option<R> {
        let bytes = self.bytes().filter(|bytes| bytes.len() == RECORD)?;
        protocol::Decoder::default().feed(bytes).pop()
    }
}

fn os(fields: FieldWriter, text: &OsStr) -> FieldWriter {
    fields.bytes(text.as_bytes())
}

/// A message that travels as a frame.
pub(super) trait Frame: Sized {
    fn encode(&self) -> Vec<u8>;
    fn decode(kind: u8, fields: &[u8]) -> Option<Self>;
}

impl Frame for ToHost {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Listen { name } => FieldWriter::new(1).bytes(name.as_bytes()),
            Self::Start(job) => job.fields(FieldWriter::new(2)),
            Self::Signal(order) => FieldWriter::new(3).bytes(&protocol::encode(*order)),
            Self::WriteMark { path } => os(FieldWriter::new(4), path),
            Self::FindMark { path } => os(FieldWriter::new(5), path),
            Self::RemoveMark => FieldWriter::new(6),
            Self::Heartbeat => FieldWriter::new(7),
            Self::Reach { address, port } => FieldWriter::new(8)
                .bytes(address.as_bytes())
                .number(usize::from(*port)),
        }
        .frame()
    }

    fn decode(kind: u8, fields: &[u8]) -> Option<Self> {
        let mut rest = FieldReader(fields);
        Some(match kind {
            8 => Self::Reach {
                address: rest.text()?,
                port: u16::try_from(rest.number()?).ok()?,
            },
            1 => Self::Listen { name: rest.text()? },
            2 => Self::Start(Box::new(HostJob::read(&mut rest)?)),
            3 => Self::Signal(rest.record()?),
            4 => Self::WriteMark { path: rest.os()? },
            5 => Self::FindMark { path: rest.os()? },
            6 => Self::RemoveMark,
            7 => Self::Heartbeat,
            _ => return None,
        })
    }
}

impl Frame for FromHost {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version } => FieldWriter::new(1).bytes(version.as_bytes()),
            Self::Listening { address, port } => FieldWriter::new(2)
                .bytes(address.as_bytes())
                .number((*port).into()),
            Self::Done => FieldWriter::new(3),
            Self::Failed { reason } => FieldWriter::new(4).bytes(reason.as_bytes()),
            Self::Event(event) => FieldWriter::new(5).bytes(&protocol::encode(*event)),
            Self::Output {
                rank,
                stream,
                bytes,
            } => FieldWriter::new(if *stream == Stream::Out { 6 } else { 7 })
                .number(*rank)
                .bytes(bytes),
            Self::Report(bytes) => FieldWriter::new(8).bytes(bytes),
            Self::Heartbeat => FieldWriter::new(9),
            Self::Lost { reason } => FieldWriter::new(11).bytes(reason.as_bytes()),
            Self::Status { job, ranks } => FieldWriter::new(10)
                .bytes(job.machine.as_bytes())
                .bytes(job.address.as_bytes())
                .all(ranks, |fields, words| fields.bytes(words.as_bytes())),
        }
        .frame()
    }

    fn decode(kind: u8, fields: &[u8]) -> Option<Self> {
        let mut rest = FieldReader(fields);
        Some(match kind {
            1 => Self::Hello {
                version: rest.text()?,
            },
            2 => Self::Listening {
                address: rest.text()?,
                port: rest.number()?.try_into().ok()?,
            },
            3 => Self::Done,
            4 => Self::Failed {
                reason: rest.text()?,
            },
            5 => Self::Event(rest.record()?),
            6 | 7 => Self::Output {
                rank: rest.number()?,
                stream: if kind == 6 { Stream::Out } else { Stream::Err },
                bytes: rest.bytes()?.to_vec(),
            },
            8 => Self::Report(rest.bytes()?.to_vec()),
            9 => Self::Heartbeat,
            11 => Self::Lost {
                reason: rest.text()?,
            },
            10 => Self::Status {
                job: LocalJob {
                    machine: rest.text()?,
                    address: rest.text()?,
                },
                ranks: rest.all(FieldReader::text)?,
            },
            _ => return None,
        })
    }
}

impl HostJob {
    fn fields(&self, fields: FieldWriter) -> FieldWriter {
        let fields = os(fields, &self.program).all(&self.args, |fields, arg| os(fields, arg));
        let fields = os(fields, &self.directory);
        let fields = fields.all(&self.environment, |fields, (name, value)| {
            os(os(fields, name), value)
        });
        let fields = fields.bytes(self.bind.as_bytes()).bytes(&self.secret);
        fields.all(&self.ranks, |fields, settings| {
            fields.all(settings, |fields, (name, value)| {
                fields.bytes(name.as_bytes()).bytes(value.as_bytes())
            })
        })
    }

    fn read(rest: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self {
            program: rest.os()?,
            args: rest.all(FieldReader::os)?,
            directory: rest.os()?,
            environment: rest.all(|rest| Some((rest.os()?, rest.os()?)))?,
            bind: rest.text()?,
            secret: rest.bytes()?.to_vec(),
            ranks: rest.all(|rest| rest.all(|rest| Some((rest.text()?, rest.text()?))))?,
        })
    }
}

/// The bytes are none that the other end sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadFrame;

/// Puts frames together from bytes that may arrive cut anywhere.
#[derive(Default)]
pub(super) struct FrameDecoder {
    pending: Vec<u8>,
}

impl FrameDecoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete frame.
    pub(super) fn next<F: Frame>(&mut self) -> Result<Option<F>, BadFrame> {
        let Some((length, rest)) = self.pending.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(1..=LONGEST).contains(&length) {
            return Err(BadFrame);
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = F::decode(body[0], &body[1..]).ok_or(BadFrame)?;
        self.pending.drain(..4 + length);
        Ok(Some(frame))
    }
}

/// Takes away what is in front of the preamble, and the preamble; `None` while it is not there.
pub(super) fn after_preamble(bytes: &[u8]) -> Option<&[u8]> {
    let place = bytes
        .windows(PREAMBLE.len())
        .position(|window| window == PREAMBLE)?;
    Some(&bytes[place + PREAMBLE.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Exit;

    fn job() -> HostJob {
        HostJob {
            program: "cobre".into(),
            args: vec!["run".into(), OsString::from_vec(vec![0xff, b' '])],
            directory: "/study".into(),
            environment: vec![("A".into(), "b c".into())],
            bind: "cores:2".to_owned(),
            secret: vec![0, 1, 255],
            ranks: vec![vec![("R".to_owned(), "0".to_owned())], Vec::new()],
        }
    }

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let sent = || {
            [
                ToHost::Listen {
                    name: "b".to_owned(),
                },
                ToHost::Reach {
                    address: "::1".to_owned(),
                    port: 65535,
                },
                ToHost::Start(Box::new(job())),
                ToHost::Signal(Order {
                    signal: 15,
                    except: Some(3),
                }),
                ToHost::FindMark { path: "/a".into() },
                ToHost::Heartbeat,
            ]
        };
        let bytes: Vec<u8> = sent().iter().flat_map(Frame::encode).collect();
        for length in [1, 3, 7, bytes.len()] {
            let mut frames = FrameDecoder::default();
            let mut received = Vec::new();
            for piece in bytes.chunks(length) {
                frames.push(piece);
                while let Some(frame) = frames.next::<ToHost>().unwrap() {
                    received.push(frame);
                }
            }
            assert_eq!(received, sent());
        }
    }

    #[test]
    fn what_agents_say_arrives() {
        let exit = Exit {
            rank: 2,
            status: 9,
            batch: 7,
            ended: true,
        };
        for sent in [
            FromHost::Hello {
                version: "1".to_owned(),
            },
            FromHost::Listening {
                address: "::1".to_owned(),
                port: 65535,
            },
            FromHost::Done,
            FromHost::Failed {
                reason: "no".to_owned(),
            },
            FromHost::Lost {
                reason: "gone".to_owned(),
            },
            FromHost::Event(Event::Exited(exit)),
            FromHost::Output {
                rank: 1,
                stream: Stream::Err,
                bytes: vec![0, 10],
            },
            FromHost::Report(b"left 1\n".to_vec()),
            FromHost::Status {
                job: LocalJob::default(),
                ranks: vec!["1 0 2".to_owned(), String::new()],
            },
            FromHost::Heartbeat,
        ] {
            let mut frames = FrameDecoder::default();
            frames.push(&sent.encode());
            assert_eq!(frames.next(), Ok(Some(sent)));
        }
    }

    #[test]
    fn lengths_and_counts_that_lie_are_refused() {
        for bytes in [
            vec![0, 0, 0, 0],
            vec![255, 255, 255, 255],
            vec![1, 0, 0, 0, 200],
            // An argument list of 2^56 items.
            vec![
                17, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            ],
        ] {
            let mut frames = FrameDecoder::default();
            frames.push(&bytes);
            assert_eq!(frames.next::<ToHost>(), Err(BadFrame), "{bytes:?}");
        }
    }

    #[test]
    fn what_a_login_shell_prints_is_skipped() {
        let mut bytes = b"welcome\n\0cobre host".to_vec();
        assert_eq!(after_preamble(&bytes), None);
        bytes.extend(PREAMBLE);
        bytes.push(9);
        assert_eq!(after_preamble(&bytes), Some(&[9][..]));
    }
}
