//! Writes to the launcher's own standard output and error, never blocking: a pager that waits for
//! a key must not keep the launcher from ending a job.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::Stream;

/// With more than this waiting, ranks have to wait too.
const FULL: usize = 256 * 1024;
/// A pipe that is ready takes this much without blocking.
const PIPE_BITE: usize = 4096;
const FILE_BITE: usize = 64 * 1024;

/// The lines on their way to standard output and standard error.
pub(crate) struct Console {
    out: Queue,
    err: Queue,
    /// Stream of which a line is half written: the other one waits, as both may be one terminal.
    unfinished: Option<Stream>,
}

struct Queue {
    /// `None` if the launcher has no such stream, or nobody reads it any more.
    target: Option<BorrowedFd<'static>>,
    bite: usize,
    /// Whole lines; those before `start` are written.
    lines: Vec<u8>,
    start: usize,
}

impl Console {
    pub(crate) fn new() -> Self {
        Self {
            out: Queue::new(rustix::stdio::stdout()),
            err: Queue::new(rustix::stdio::stderr()),
            unfinished: None,
        }
    }

    /// The buffer to which whole lines for `stream` are appended.
    pub(crate) fn queue(&mut self, stream: Stream) -> &mut Vec<u8> {
        let side = self.side(stream);
        if side.target.is_none() {
            side.lines.clear();
        }
        &mut side.lines
    }

    pub(crate) fn is_full(&self, stream: Stream) -> bool {
        self.peek(stream).waiting() > FULL
    }

    /// Bytes not yet written.
    pub(crate) fn waiting(&self) -> usize {
        self.out.waiting() + self.err.waiting()
    }

    /// The descriptors that must become writable before [`Console::write`] can go on.
    pub(crate) fn targets(&self) -> impl Iterator<Item = BorrowedFd<'static>> {
        self.turns()
            .into_iter()
            .flatten()
            .filter_map(|stream| self.peek(stream).target)
    }

    /// Writes as much as goes without blocking.
    pub(crate) fn write(&mut self) -> Result<(), Errno> {
        while let Some(stream) = self
            .turns()
            .into_iter()
            .flatten()
            .find(|stream| self.ready(*stream))
        {
            match self.side(stream).write() {
                Ok(whole) => self.unfinished = (!whole).then_some(stream),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Drops what waits and all that comes.
    pub(crate) fn close(&mut self) {
        self.unfinished = None;
        for queue in [&mut self.out, &mut self.err] {
            queue.target = None;
            queue.lines.clear();
            queue.start = 0;
        }
    }

    /// The streams that may be written now and have something to write.
    fn turns(&self) -> [Option<Stream>; 2] {
        let waiting = |stream| (self.peek(stream).waiting() > 0).then_some(stream);
        match self.unfinished {
            Some(stream) => [Some(stream), None],
            None => [waiting(Stream::Err), waiting(Stream::Out)],
        }
    }

    fn ready(&self, stream: Stream) -> bool {
        let Some(target) = self.peek(stream).target else {
            return false;
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut targets = [PollFd::from_borrowed_fd(target, PollFlags::OUT)];
        poll(&mut targets, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    fn peek(&self, stream: Stream) -> &Queue {
        match stream {
            Stream::Out => &self.out,
            Stream::Err => &self.err,
        }
    }

    fn side(&mut self, stream: Stream) -> &mut Queue {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

impl Queue {
    fn new(target: BorrowedFd<'static>) -> Self {
        let kind = rustix::fs::fstat(target).map(|stat| FileType::from_raw_mode(stat.st_mode));
        Self {
            target: kind.is_ok().then_some(target),
            bite: if kind == Ok(FileType::RegularFile) {
                FILE_BITE
            } else {
                PIPE_BITE
            },
            lines: Vec::new(),
            start: 0,
        }
    }

    fn waiting(&self) -> usize {
        // Without a reader there is nothing to wait for.
        self.target.map_or(0, |_| self.lines.len() - self.start)
    }

    /// Writes some of what waits; whether it ended with a whole line.
    fn write(&mut self) -> Result<bool, Errno> {
        let Some(target) = self.target else {
            return Ok(true);
        };
        let bite = bite(&self.lines[self.start..], self.bite);
        let written = rustix::io::write(target, bite)?;
        let whole = bite[..written].last().is_none_or(|last| *last == b'\n');
        self.start += written;
        if self.start == self.lines.len() {
            self.lines.clear();
            self.start = 0;
        } else if self.start > 4 * FULL {
            self.lines.drain(..self.start);
            self.start = 0;
        }
        Ok(whole)
    }
}

/// As many whole lines as fit, or the beginning of one that does not.
fn bite(lines: &[u8], most: usize) -> &[u8] {
    let Some(window) = lines.get(..most) else {
        return lines;
    };
    let newline = window.iter().rposition(|byte| *byte == b'\n');
    &window[..newline.map_or(most, |place| place + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bites_end_with_lines_where_they_can() {
        assert_eq!(bite(b"one\ntwo\nthree\n", 10), b"one\ntwo\n");
        assert_eq!(bite(b"one\n", 10), b"one\n");
        assert_eq!(bite(b"longer than a bite\n", 6), b"longer");
    }
}
