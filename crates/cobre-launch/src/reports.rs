//! Reads what ranks report: that they are there, that they leave, and the cause of a failure.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cobre_comm::report::LauncherMessage;
use rustix::io::Errno;

/// Longer lines are no reports.
const LONGEST: usize = 4096;

/// Most bytes of a statement.
const LARGEST: usize = 64 << 20;

/// The launcher's end of the report pipe.
pub(crate) struct Reports {
    /// `None` after its end.
    pipe: Option<OwnedFd>,
    pending: Vec<u8>,
}

impl Reports {
    /// Reads from `pipe`, which does not block.
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe: Some(pipe),
            pending: Vec::new(),
        }
    }

    /// The pipe itself, for one who passes reports on unread.
    pub(crate) fn into_pipe(self) -> Option<OwnedFd> {
        self.pipe
    }

    /// The pipe to wait for; `None` at its end.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// The reports that have arrived, at most one pipe full of them.
    pub(crate) fn read(&mut self) -> Vec<LauncherMessage> {
        let mut messages = Vec::new();
        let mut buffer = [0; LONGEST];
        for _ in 0..16 {
            let Some(pipe) = &self.pipe else {
                break;
            };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.take(&buffer[..length], &mut messages),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.pipe = None,
            }
        }
        messages
    }

    fn take(&mut self, bytes: &[u8], messages: &mut Vec<LauncherMessage>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.pending);
                messages.extend(str::from_utf8(&line).ok().and_then(LauncherMessage::decode));
            } else if self.pending.len() > LONGEST {
                self.pending.clear();
            }
        }
    }
}

/// The statements of ranks, put together from their pieces.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    begun: BTreeMap<usize, String>,
    complete: BTreeMap<usize, String>,
}

impl Statements {
    /// Takes in a piece. Of several statements of a rank the last one counts.
    pub(crate) fn take(&mut self, rank: usize, last: bool, piece: &str) {
        let text = self.begun.entry(rank).or_default();
        if text.len() + piece.len() <= LARGEST {
            text.push_str(piece);
        }
        if last && let Some(text) = self.begun.remove(&rank) {
            self.complete.insert(rank, text);
        }
    }

    /// Those that came to their end, by rank.
    pub(crate) fn complete(self) -> BTreeMap<usize, String> {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn statements_are_put_together_by_rank() {
        let mut statements = Statements::default();
        for (rank, last, piece) in [
            (1, false, "a "),
            (0, false, "x"),
            (1, true, "b"),
            (0, false, "y"),
        ] {
            statements.take(rank, last, piece);
        }
        let complete = statements.complete();
        assert_eq!(
            complete.into_iter().collect::<Vec<_>>(),
            [(1, "a b".to_owned())]
        );
    }

    #[test]
    fn reports_are_found_among_lines_that_are_none() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut reports = Reports::new(reader.into());
        writer
            .write_all(b"2 0 rank no answer\n2 0 no kind\nnonsense\n\xff\n")
            .unwrap();
        writer.write_all(&vec![b'x'; 3 * LONGEST]).unwrap();
        writer.write_all(b"\n1 1 io late\nunfinished").unwrap();
        drop(writer);
        let found = reports.read();
        let found: Vec<_> = found
            .iter()
            .filter_map(|message| match message {
                LauncherMessage::RootCause(root_cause) => {
                    Some((root_cause.rank, root_cause.reason.as_str()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(found, [(2, "no answer"), (1, "late")]);
        assert!(reports.pipe().is_none());
    }
}
