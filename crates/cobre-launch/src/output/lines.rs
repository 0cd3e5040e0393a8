//! Cuts what a rank writes into lines and puts its number in front of each.

/// Longest line passed on in one piece; bounds what is held back for a rank.
const PIECE: usize = 64 * 1024;

/// The unfinished line of one stream of one rank.
pub(crate) struct Lines {
    prefix: Vec<u8>,
    pending: Vec<u8>,
}

impl Lines {
    /// Lines with the number of `rank` in front.
    pub(crate) fn of(rank: usize) -> Self {
        Self {
            prefix: format!("[{rank}] ").into_bytes(),
            ..Self::plain()
        }
    }

    /// Lines as they are.
    pub(crate) fn plain() -> Self {
        Self {
            prefix: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Takes in `bytes` and appends the lines they complete to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let complete = line.strip_suffix(b"\n");
            let mut content = complete.unwrap_or(line);
            while self.pending.len() + content.len() > PIECE {
                let (piece, rest) = content.split_at(PIECE - self.pending.len());
                self.emit(piece, out);
                content = rest;
            }
            if complete.is_some() {
                self.emit(content, out);
            } else {
                self.pending.extend_from_slice(content);
            }
        }
    }

    /// The stream is at its end: what is left becomes a line.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            self.emit(b"", out);
        }
    }

    fn emit(&mut self, end: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        out.append(&mut self.pending);
        out.extend_from_slice(end);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
