//! The protocol between launcher and supervisor: records of a fixed size over one socket.

/// From the supervisor to the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A rank runs the program.
    Started { rank: usize, pid: i32 },
    /// A rank could not be started, for this system error; the supervisor ends the others.
    NotStarted { rank: usize, errno: i32 },
    /// A rank was collected.
    Exited(Exit),
    /// No process of the job is left, or only ones that survived every attempt to kill them.
    Done { survivors: bool },
}

/// The status with which the supervisor collected a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) rank: usize,
    /// As `wait` gives it.
    pub(crate) status: i32,
    /// Ranks collected in one wake-up of the supervisor share this number: their order is unknown.
    pub(crate) batch: u32,
    /// The launcher had sent it a signal before.
    pub(crate) ended: bool,
}

/// From the launcher to the supervisor: send `signal` to the process groups of all ranks not yet
/// collected, but not to that of `except`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) signal: i32,
    pub(crate) except: Option<usize>,
}

/// A message of a fixed number of words.
pub(crate) trait Record: Sized {
    fn to_words(self) -> [i32; WORDS];
    fn from_words(words: [i32; WORDS]) -> Option<Self>;
}

const WORDS: usize = 5;
/// Bytes of a record.
pub(crate) const RECORD: usize = WORDS * 4;

/// The bytes of `record`.
pub(crate) fn encode(record: impl Record) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    for (place, word) in bytes.chunks_exact_mut(4).zip(record.to_words()) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Puts records together from bytes that may arrive cut anywhere.
#[derive(Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// The records complete after `bytes` arrived.
    pub(crate) fn feed<R: Record>(&mut self, bytes: &[u8]) -> Vec<R> {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.len() / RECORD * RECORD;
        let records = self.pending[..whole]
            .chunks_exact(RECORD)
            .filter_map(decode)
            .collect();
        self.pending.drain(..whole);
        records
    }
}

fn decode<R: Record>(bytes: &[u8]) -> Option<R> {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = i32::from_ne_bytes(bytes.try_into().ok()?);
    }
    R::from_words(words)
}

/// A rank on its way; there are far fewer than fit.
fn word(rank: usize) -> i32 {
    i32::try_from(rank).unwrap_or(i32::MAX)
}

impl Record for Event {
    fn to_words(self) -> [i32; WORDS] {
        match self {
            Self::Started { rank, pid } => [1, word(rank), pid, 0, 0],
            Self::NotStarted { rank, errno } => [2, word(rank), errno, 0, 0],
            Self::Exited(exit) => {
                let batch = exit.batch.cast_signed();
                [
                    3,
                    word(exit.rank),
                    exit.status,
                    batch,
                    i32::from(exit.ended),
                ]
            }
            Self::Done { survivors } => [4, i32::from(survivors), 0, 0, 0],
        }
    }

    fn from_words([kind, first, second, third, fourth]: [i32; WORDS]) -> Option<Self> {
        let rank = usize::try_from(first).ok()?;
        Some(match kind {
            1 => Self::Started { rank, pid: second },
            2 => Self::NotStarted {
                rank,
                errno: second,
            },
            3 => Self::Exited(Exit {
                rank,
                status: second,
                batch: third.cast_unsigned(),
                ended: fourth != 0,
            }),
            4 => Self::Done {
                survivors: first != 0,
            },
            _ => return None,
        })
    }
}

impl Record for Order {
    fn to_words(self) -> [i32; WORDS] {
        [self.signal, self.except.map_or(-1, word), 0, 0, 0]
    }

    fn from_words([signal, except, ..]: [i32; WORDS]) -> Option<Self> {
        Some(Self {
            signal,
            except: usize::try_from(except).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_being_cut_anywhere() {
        let exit = Exit {
            rank: 255,
            status: 137,
            batch: u32::MAX,
            ended: true,
        };
        let sent = [
            Event::Started { rank: 0, pid: 4123 },
            Event::NotStarted { rank: 7, errno: 2 },
            Event::Exited(exit),
            Event::Done { survivors: false },
        ];
        let bytes: Vec<u8> = sent.into_iter().flat_map(encode).collect();
        for length in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let received: Vec<Event> = bytes
                .chunks(length)
                .flat_map(|piece| decoder.feed(piece))
                .collect();
            assert_eq!(received, sent);
        }
    }

    #[test]
    fn an_order_says_whom_to_spare() {
        for except in [None, Some(0), Some(255)] {
            let order = Order { signal: 15, except };
            let received: Vec<Order> = Decoder::default().feed(&encode(order));
            assert_eq!(received, [order]);
        }
    }
}
