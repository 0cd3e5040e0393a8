//! The launcher's end of one stream of one rank.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::console::Console;
use super::lines::Lines;
use super::recent::Recent;
use super::{Output, Stream};

/// Bytes of a rank's standard error that are kept for the message about its end.
pub(crate) const TAIL_BYTES: usize = 8 * 1024;
/// Bytes taken at a time, so that no rank starves the others.
const BITE: usize = 64 * 1024;
/// Most bytes taken after the job is over: what is in a pipe then was written by someone outside
/// the job if it is more than this.
const LEFTOVER: usize = 64 * 1024 * 1024;

/// One stream of one rank, on its way to the console or into memory.
pub(crate) struct Feed {
    /// `None` after its end.
    pipe: Option<OwnedFd>,
    pub(crate) rank: usize,
    pub(crate) stream: Stream,
    /// The stream of the launcher that its lines go to.
    pub(crate) shown_on: Stream,
    lines: Option<Lines>,
    kept: Recent,
}

impl Feed {
    /// Reads from `pipe`, which does not block.
    pub(crate) fn new(pipe: OwnedFd, rank: usize, stream: Stream, output: &Output) -> Self {
        let lines = match (output, rank) {
            (Output::Plain | Output::Diagnostics, 0) => Lines::plain(),
            _ => Lines::of(rank),
        };
        let (lines, limit) = match (output, stream) {
            (Output::Capture { limit }, _) => (None, *limit),
            (_, Stream::Out) => (Some(lines), 0),
            (_, Stream::Err) => (Some(lines), TAIL_BYTES),
        };
        Self {
            pipe: Some(pipe),
            rank,
            stream,
            shown_on: match output {
                Output::Diagnostics => Stream::Err,
                _ => stream,
            },
            lines,
            kept: Recent::new(limit),
        }
    }

    /// The pipe to wait for; `None` at its end.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, at most one bite; whether there may be more at once.
    pub(crate) fn read(&mut self, console: &mut Console, buffer: &mut Vec<u8>) -> bool {
        let Some(pipe) = &self.pipe else {
            return false;
        };
        buffer.resize(BITE, 0);
        match rustix::io::read(pipe, &mut buffer[..]) {
            Ok(0) => self.close(console),
            Ok(length) => {
                self.kept.push(&buffer[..length]);
                if let Some(lines) = &mut self.lines {
                    lines.push(&buffer[..length], console.queue(self.shown_on));
                }
                return true;
            }
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => {}
            Err(_) => self.close(console),
        }
        false
    }

    /// Takes all that is there and ends: the job is over, whoever still holds the pipe.
    pub(crate) fn drain(&mut self, console: &mut Console, buffer: &mut Vec<u8>) {
        let mut bites = LEFTOVER / BITE;
        while bites > 0 && self.read(console, buffer) {
            bites -= 1;
        }
        self.close(console);
    }

    fn close(&mut self, console: &mut Console) {
        self.pipe = None;
        if let Some(lines) = &mut self.lines {
            lines.finish(console.queue(self.shown_on));
        }
    }

    /// The last bytes that were kept of the stream, at most `most`.
    pub(crate) fn end(&self, most: usize) -> &[u8] {
        self.kept.end(most)
    }

    /// The captured bytes of the stream.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.kept.take()
    }
}
