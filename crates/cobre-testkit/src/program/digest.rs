//! One number for a sequence of results.

use std::fmt;

use crate::random::mix;

/// Depends on every byte absorbed, on their order and on where one result ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest(u64);

impl Digest {
    /// Adds a result.
    pub fn absorb(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0 ^ bytes.len() as u64);
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.0 = mix(self.0 ^ u64::from_le_bytes(word));
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(results: &[&[u8]]) -> Digest {
        let mut digest = Digest::default();
        for result in results {
            digest.absorb(result);
        }
        digest
    }

    #[test]
    fn order_ends_and_trailing_zeros_count() {
        let digests = [
            of(&[]),
            of(&[&[]]),
            of(&[&[1, 2]]),
            of(&[&[2, 1]]),
            of(&[&[1], &[2]]),
            of(&[&[1, 2, 0]]),
        ];
        for (i, a) in digests.iter().enumerate() {
            assert!(!digests[i + 1..].contains(a), "digest {i} occurs again");
        }
    }

    #[test]
    fn a_digest_is_sixteen_digits() {
        assert_eq!(of(&[]).to_string(), "0000000000000000");
    }
}
