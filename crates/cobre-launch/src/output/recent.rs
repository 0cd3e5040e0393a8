//! Keeps the end of a stream.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The last bytes of a stream.
pub(crate) struct Recent {
    bytes: Vec<u8>,
    limit: usize,
}

impl Recent {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Only now and then, so that each byte is moved at most once.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.trim();
        }
    }

    /// At most `most` of the bytes kept.
    pub(crate) fn end(&self, most: usize) -> &[u8] {
        let start = self.bytes.len().saturating_sub(most.min(self.limit));
        &self.bytes[start..]
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.trim();
        std::mem::take(&mut self.bytes)
    }

    fn trim(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.limit);
        self.bytes.drain(..surplus);
    }
}

/// The last `limit` bytes of the file at `path`.
pub(crate) fn read_end(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit as u64)))?;
    let mut bytes = Vec::new();
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last `count` lines of `bytes`, as text.
pub(crate) fn last_lines(bytes: &[u8], count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.lines().collect();
    let first = lines.len().saturating_sub(count);
    lines[first..].iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_in_bounded_memory() {
        let mut recent = Recent::new(10);
        for number in 0..100 {
            recent.push(format!("{number:03}").as_bytes());
            assert!(recent.bytes.len() <= 20);
        }
        assert_eq!(recent.take(), b"6097098099");
    }

    #[test]
    fn last_lines_are_found_with_and_without_a_final_newline() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), ["b", "c"]);
        assert_eq!(last_lines(b"a\nb\nc", 2), ["b", "c"]);
        assert_eq!(last_lines(b"", 2), Vec::<String>::new());
    }
}
