//! Messages of a rank to its launcher: the root cause of a failure, so that the launcher's first line is the cause
//! and not the first rank it happened to collect.
//!
//! The launcher hands every rank the write end of one pipe. A message is one line, short enough
//! for the kernel to write it whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use crate::env::Environment;
use crate::error_kind::ErrorKind;
use crate::terminal;

/// Longest message, below the 4096 bytes that POSIX pipes write in one piece on Linux; macOS
/// guarantees 512, and a longer line there may mix with another rank's.
const LONGEST: usize = 2048;

/// The time that a busy launcher may take before a message is given up.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that a rank waits at its start for a launcher that does not say that it watches the rank.
const WATCHING_TIMEOUT: Duration = Duration::from_secs(2);

/// A descriptor above those that a process inherits.
const ABOVE_OTHERS: i32 = 256;

/// One rank's message on why the job is failing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootCause {
    /// The rank that caused the failure.
    pub rank: usize,
    /// The rank that says so; equal to `rank` when it aborted itself.
    pub from: usize,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The reason, on one line.
    pub reason: String,
}

impl RootCause {
    /// The message as it travels: one line.
    pub fn encode(&self) -> String {
        let mut line = format!("{} {} {} ", self.rank, self.from, self.kind.name());
        for letter in terminal::one_line(&self.reason).chars() {
            if line.len() + letter.len_utf8() >= LONGEST {
                break;
            }
            line.push(letter);
        }
        line.push('\n');
        line
    }

    /// Reads a line made by [`RootCause::encode`]; `None` if it is not one.
    pub fn decode(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        Some(Self {
            rank: words.next()?.parse().ok()?,
            from: words.next()?.parse().ok()?,
            kind: words.next()?.parse().ok()?,
            reason: words.next()?.trim_end_matches('\n').to_owned(),
        })
    }
}

/// Descriptors of a rank that its launcher takes copies of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankDescriptors {
    /// A pipe that no other process has open: it ends with the process. The launcher writes one byte to it when it
    /// watches the process.
    pub pipe: i32,
    /// The socket to the process manager. The manager takes its end for the end of the rank, and kills the others.
    pub process_manager: Option<i32>,
}

/// A message of a rank to its launcher, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LauncherMessage {
    /// The root cause of a failure.
    RootCause(RootCause),
    /// A rank that another launcher started has joined the job.
    Joined {
        /// Its number.
        rank: usize,
        /// Its process.
        pid: u32,
        /// The host that runs it.
        host: String,
        /// Descriptors of that process, where it can make the pipe.
        descriptors: Option<RankDescriptors>,
    },
    /// It has taken leave of the others.
    Left {
        /// Its number.
        rank: usize,
    },
    /// The progress of a program; see [`progress`].
    Progress {
        /// Its number.
        rank: usize,
        /// One line.
        text: String,
    },
    /// A piece of what the program has to say at its end; see [`state`].
    Statement {
        /// Its number.
        rank: usize,
        /// True if the statement ends with this piece.
        last: bool,
        /// The piece.
        text: String,
    },
}

impl LauncherMessage {
    /// The message as it travels: one line.
    pub fn encode(&self) -> String {
        match self {
            Self::RootCause(cause) => cause.encode(),
            Self::Joined {
                rank,
                pid,
                host,
                descriptors,
            } => {
                let numbers = descriptors.map(|it| [Some(it.pipe), it.process_manager]);
                let mut line = format!("joined {rank} {pid} {host}");
                for number in numbers.into_iter().flatten().flatten() {
                    line.push(' ');
                    line.push_str(&number.to_string());
                }
                line + "\n"
            }
            Self::Left { rank } => format!("left {rank}\n"),
            Self::Progress { rank, text } => format!("at {rank} {text}\n"),
            Self::Statement { rank, last, text } => {
                let follows = if *last { "last" } else { "more" };
                format!("said {rank} {follows} {text}\n")
            }
        }
    }

    /// Reads a line made by [`LauncherMessage::encode`]; `None` if it is not one.
    pub fn decode(line: &str) -> Option<Self> {
        let line = line.trim_end_matches('\n');
        let mut words = line.splitn(4, ' ');
        match words.next()? {
            "joined" => {
                let mut words = line.split(' ').skip(1);
                let (rank, pid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let host = words.next()?.to_owned();
                let mut number = || words.next().map(str::parse::<i32>).transpose().ok();
                let (pipe, process_manager) = (number()?, number()?);
                let descriptors = pipe.map(|pipe| RankDescriptors {
                    pipe,
                    process_manager,
                });
                Some(Self::Joined {
                    rank,
                    pid,
                    host,
                    descriptors,
                })
            }
            "left" => {
                let rank = words.next()?.parse().ok()?;
                Some(Self::Left { rank })
            }
            "at" => {
                let (_, rest) = line.split_once(' ')?;
                let (rank, text) = rest.split_once(' ')?;
                Some(Self::Progress {
                    rank: rank.parse().ok()?,
                    text: text.to_owned(),
                })
            }
            "said" => Some(Self::Statement {
                rank: words.next()?.parse().ok()?,
                last: match words.next()? {
                    "last" => true,
                    "more" => false,
                    _ => return None,
                },
                text: words.next()?.to_owned(),
            }),
            _ => RootCause::decode(line).map(Self::RootCause),
        }
    }
}

/// The launcher's variable for a pipe with this descriptor number, device and inode.
pub fn address(descriptor: i32, device: u64, inode: u64) -> String {
    format!("{descriptor}:{device}:{inode}")
}

/// Tells the launcher that this process gives up because of `reason`. Does nothing in a process
/// that no launcher started; a report that cannot be delivered must not hide the failure itself.
pub(crate) fn abort(kind: ErrorKind, reason: &str) {
    send(None, kind, reason);
}

/// Tells the launcher that this process fails because of `rank`.
#[allow(
    dead_code,
    reason = "in a build with one-rank backends alone there is no other rank"
)]
pub(crate) fn root_cause(rank: usize, reason: &str) {
    send(Some(rank), ErrorKind::Rank, reason);
}

/// Tells the launcher that this process is a rank of a job, and waits until the launcher watches it: the launcher names
/// the rank that ended first only among those that it watches.
#[allow(dead_code, reason = "said by a backend that this build may not have")]
pub(crate) fn joined(host: String) {
    let environment = Environment::process();
    let Some((rank, address)) = environment.launch_report() else {
        return;
    };
    let pipe = end_pipe();
    let message = LauncherMessage::Joined {
        rank,
        pid: std::process::id(),
        host,
        descriptors: pipe.as_ref().map(|pipe| RankDescriptors {
            pipe: pipe.as_raw_fd(),
            process_manager: environment.pmi_descriptor(),
        }),
    };
    let is_delivered = deliver(&address, &message).is_some();
    if let Some(pipe) = pipe {
        let until = Instant::now() + WATCHING_TIMEOUT;
        while is_delivered && !is_acknowledged(&pipe) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
        // It ends with the process.
        let _ = pipe.into_raw_fd();
    }
}

/// Takes the byte that says that the launcher watches this process.
fn is_acknowledged(pipe: &OwnedFd) -> bool {
    matches!(rustix::io::read(pipe, &mut [0_u8]), Ok(1))
}

/// The read end, which does not block, of a pipe whose write end stays open until this process ends. Linux closes the
/// files of a process that dies from the highest descriptor down, and makes its end known last. An MPI launcher that sees
/// its own low descriptor closed, and kills the other ranks, can therefore do so before the death of this process is
/// known, and the others can be gone first; but not before this pipe has ended.
fn end_pipe() -> Option<OwnedFd> {
    let (reader, writer) = io::pipe().ok()?;
    rustix::io::ioctl_fionbio(&reader, true).ok()?;
    let high = |end: BorrowedFd<'_>| {
        let high = rustix::io::fcntl_dupfd_cloexec(end, ABOVE_OTHERS);
        high.or_else(|_| rustix::io::fcntl_dupfd_cloexec(end, 3))
            .ok()
    };
    let (reader, writer) = (high(reader.as_fd())?, high(writer.as_fd())?);
    let _ = writer.into_raw_fd();
    Some(reader)
}

/// Tells the launcher that this rank has taken leave of the others.
#[allow(dead_code, reason = "said by a backend that this build may not have")]
pub(crate) fn left() {
    tell(|rank| LauncherMessage::Left { rank });
}

/// Makes a statement to the launcher that started this process, which has it in the job's outcome: what this program
/// has to say at its end. Returns whether it was delivered; a program that no launcher started, or whose launcher
/// does not listen, must say it itself. The text is one line.
pub fn state(text: &str) -> bool {
    let Some((rank, address)) = Environment::process().launch_report() else {
        return false;
    };
    let mut rest = text;
    loop {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST / 2));
        let message = LauncherMessage::Statement {
            rank,
            last: after.is_empty(),
            text: piece.replace('\n', " "),
        };
        if deliver(&address, &message).is_none() {
            return false;
        }
        if after.is_empty() {
            return true;
        }
        rest = after;
    }
}

/// The pipe on which this process can make a statement to its launcher without an allocation, and the beginning of the
/// line: a text of one line and a line break follow. For handlers of signals; `None` as for [`state`].
pub fn statement_channel() -> Option<(i32, String)> {
    let (rank, address) = Environment::process().launch_report()?;
    let (descriptor, text) = (own_pipe(&address)?, String::new());
    let message = LauncherMessage::Statement {
        rank,
        last: true,
        text,
    };
    Some((descriptor, message.encode().trim_end().to_owned() + " "))
}

/// Tells the launcher that started this process how far it is, in one short line. Does nothing in a process that no
/// launcher started.
pub fn progress(text: &str) {
    let text = terminal::one_line(text);
    if text.len() < LONGEST / 2 {
        tell(|rank| LauncherMessage::Progress { rank, text });
    }
}

fn send(rank: Option<usize>, kind: ErrorKind, reason: &str) {
    tell(|from| {
        LauncherMessage::RootCause(RootCause {
            rank: rank.unwrap_or(from),
            from,
            kind,
            reason: reason.to_owned(),
        })
    });
}

fn tell(message: impl FnOnce(usize) -> LauncherMessage) {
    if let Some((rank, address)) = Environment::process().launch_report() {
        deliver(&address, &message(rank));
    }
}

/// The descriptor at `address` if it is still the launcher's: a program between launcher and rank may have closed it
/// and opened something else under its number.
fn own_pipe(address: &str) -> Option<i32> {
    let (descriptor, identity) = address.split_once(':')?;
    let descriptor: i32 = descriptor.parse().ok()?;
    let metadata = std::fs::metadata(format!("/dev/fd/{descriptor}")).ok()?;
    let found = format!("{}:{}", metadata.dev(), metadata.ino());
    (identity == found).then_some(descriptor)
}

/// Writes to the pipe at `address`, and returns it.
fn deliver(address: &str, message: &LauncherMessage) -> Option<File> {
    let path = format!("/dev/fd/{}", own_pipe(address)?);
    let mut pipe = OpenOptions::new()
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .ok()?;
    let line = message.encode();
    let until = Instant::now() + DELIVERY_TIMEOUT;
    loop {
        // A line is taken whole or not at all.
        match pipe.write_all(line.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            written => return written.ok().map(|()| pipe),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn root_cause(reason: &str) -> RootCause {
        RootCause {
            rank: 3,
            from: 1,
            kind: ErrorKind::Io,
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_message_survives_its_journey() {
        let sent = root_cause("the disk is full");
        assert_eq!(RootCause::decode(&sent.encode()), Some(sent.clone()));
        let joined = LauncherMessage::Joined {
            rank: 2,
            pid: 41,
            host: "node-7".to_owned(),
            descriptors: None,
        };
        let with_descriptors = |process_manager| LauncherMessage::Joined {
            rank: 0,
            pid: 40,
            host: "node-7".to_owned(),
            descriptors: Some(RankDescriptors {
                pipe: 257,
                process_manager,
            }),
        };
        let said = LauncherMessage::Statement {
            rank: 2,
            last: true,
            text: "{\"a\": \"b  c \"}".to_owned(),
        };
        for message in [
            LauncherMessage::RootCause(sent),
            joined,
            with_descriptors(None),
            with_descriptors(Some(8)),
            LauncherMessage::Left { rank: 2 },
            said,
        ] {
            assert_eq!(LauncherMessage::decode(&message.encode()), Some(message));
        }
        assert_eq!(LauncherMessage::decode("joined 2 x"), None);
        assert_eq!(LauncherMessage::decode("joined 2 41 node-7 257 x"), None);
    }

    #[test]
    fn a_message_is_one_short_line_whatever_the_reason() {
        let line = root_cause(&"ä\n\r\0".repeat(5000)).encode();
        assert!(line.len() <= LONGEST);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(RootCause::decode(&line).is_some());
    }

    #[test]
    fn a_message_reaches_the_pipe_it_is_addressed_to() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let metadata = std::fs::metadata(format!("/dev/fd/{}", writer.as_raw_fd())).unwrap();
        let address = address(writer.as_raw_fd(), metadata.dev(), metadata.ino());
        assert!(deliver(&address, &LauncherMessage::RootCause(root_cause("here"))).is_some());
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, root_cause("here").encode());
    }

    #[test]
    fn another_file_under_the_same_number_is_left_alone() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let address = address(writer.as_raw_fd(), 0, 0);
        let message = LauncherMessage::RootCause(root_cause("x"));
        assert!(deliver(&address, &message).is_none());
        assert!(deliver("not an address", &message).is_none());
    }
}
