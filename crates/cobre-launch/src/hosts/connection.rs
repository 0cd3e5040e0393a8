//! The launcher's end of the connection to one host: the streams of its remote shell.

use std::os::fd::OwnedFd;
use std::time::Instant;

use super::frame::{BadFrame, Frame, FrameDecoder, FromHost, PIECE, ToHost, after_preamble};
use super::stream::{ByteQueue, ReadResult, read};
use crate::message::{TAIL_LINES, ended};
use crate::outcome::Status;
use crate::output::last_lines;

/// Bytes that a login shell may print before the agent begins.
const NOISE: usize = 64 << 10;
/// Bytes of the remote shell's standard error that are kept.
const KEPT: usize = 8 << 10;

/// Letters of a line of it that are shown.
const LONGEST_LINE: usize = 300;

/// The way of a host to the address at which ranks meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Untried,
    Open,
    /// It is closed, and why.
    Closed(String),
}

pub(super) struct HostConnection {
    pub(super) name: String,
    /// The first of its ranks.
    pub(super) first: usize,
    pub(super) ranks: usize,
    pub(super) requests: ByteQueue,
    /// `None` after its end.
    pub(super) answers: Option<OwnedFd>,
    pub(super) errors: Option<OwnedFd>,
    frames: FrameDecoder,
    /// Bytes that came before the agent began.
    before: Option<Vec<u8>>,
    said: Vec<u8>,
    /// Something came that is no frame.
    bad: bool,
    pub(super) greeted: bool,
    /// It reaches the address at which ranks meet.
    pub(super) way: Route,
    /// Its ranks are gone; whether something survives.
    pub(super) done: Option<bool>,
    pub(super) heard: Instant,
    /// The time at which its answers ended.
    pub(super) closed: Option<Instant>,
    /// The status of the remote shell.
    pub(super) shell: Option<Status>,
}

impl HostConnection {
    pub(super) fn new(
        name: String,
        (first, ranks): (usize, usize),
        requests: ByteQueue,
        answers: OwnedFd,
        errors: OwnedFd,
    ) -> Self {
        Self {
            name,
            first,
            ranks,
            requests,
            answers: Some(answers),
            errors: Some(errors),
            frames: FrameDecoder::default(),
            before: Some(Vec::new()),
            said: Vec::new(),
            bad: false,
            greeted: false,
            way: Route::Untried,
            done: None,
            heard: Instant::now(),
            closed: None,
            shell: None,
        }
    }

    pub(super) fn send(&mut self, request: &ToHost) {
        self.requests.push(&request.encode());
        self.requests.write();
    }

    /// The frames that have come. Those before bytes that are no frame count; the next call fails.
    pub(super) fn receive(&mut self) -> Result<Vec<FromHost>, BadFrame> {
        if self.bad {
            return Err(BadFrame);
        }
        let mut buffer = vec![0; PIECE];
        let Some(source) = &self.answers else {
            return Ok(Vec::new());
        };
        match read(source, &mut buffer) {
            ReadResult::NoneYet => return Ok(Vec::new()),
            ReadResult::End => {
                self.answers = None;
                self.closed = Some(Instant::now());
                return Ok(Vec::new());
            }
            ReadResult::Some(count) => self.take(&buffer[..count])?,
        }
        self.heard = Instant::now();
        let mut received = Vec::new();
        loop {
            match self.frames.next() {
                Ok(Some(frame)) => received.push(frame),
                Ok(None) => return Ok(received),
                Err(_) if !received.is_empty() => {
                    self.bad = true;
                    return Ok(received);
                }
                Err(bad) => return Err(bad),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), BadFrame> {
        let Some(before) = &mut self.before else {
            self.frames.push(bytes);
            return Ok(());
        };
        before.extend_from_slice(bytes);
        if let Some(rest) = after_preamble(before) {
            self.frames.push(rest);
            self.before = None;
        } else if before.len() > NOISE {
            return Err(BadFrame);
        }
        Ok(())
    }

    /// Keeps what the remote shell says on its standard error.
    pub(super) fn take_errors(&mut self) {
        let mut buffer = [0; 4096];
        let Some(source) = &self.errors else {
            return;
        };
        match read(source, &mut buffer) {
            ReadResult::Some(count) => {
                self.said.extend_from_slice(&buffer[..count]);
                let over = self.said.len().saturating_sub(KEPT);
                self.said.drain(..over);
            }
            ReadResult::NoneYet => {}
            ReadResult::End => self.errors = None,
        }
    }

    /// The last lines that the remote shell said, or what came in place of an agent.
    pub(super) fn last_words(&mut self) -> Vec<String> {
        while self.errors.is_some() {
            let before = self.said.len();
            self.take_errors();
            if self.said.len() == before {
                break;
            }
        }
        let mut lines = last_lines(&self.said, TAIL_LINES);
        if lines.is_empty() {
            lines = last_lines(self.before.as_deref().unwrap_or_default(), TAIL_LINES);
        }
        for line in &mut lines {
            if let Some((end, _)) = line.char_indices().nth(LONGEST_LINE) {
                line.truncate(end);
                line.push('…');
            }
        }
        lines
    }

    /// The sentence about a connection that has ended.
    pub(super) fn end(&self, shell: &str) -> String {
        let what = if self.greeted {
            "the connection ended"
        } else {
            "no agent began"
        };
        match self.shell {
            // What shells say of a program that is not there or cannot be executed.
            Some(status @ Status::Exited(126 | 127)) if !self.greeted => format!(
                "{what}: {shell} {}; if cobre has another path there, give it with --remote-cobre",
                ended(status)
            ),
            Some(status) => format!("{what}: {shell} {}", ended(status)),
            None => what.to_owned(),
        }
    }
}
