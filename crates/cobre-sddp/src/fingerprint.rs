//! Short names for long things: two that differ in one bit have different ones.

use std::fmt::{self, Write as _};

use bytemuck::{Pod, Zeroable};
use sha2::{Digest, Sha256};

/// A SHA-256; as text it is in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of all that `value` says of itself.
    pub(crate) fn of(value: &impl fmt::Debug) -> Self {
        let mut hasher = Hasher(Sha256::new());
        write!(hasher, "{value:?}").expect("hashing does not fail");
        hasher.0.into()
    }

    /// That of bytes in parts.
    pub(crate) fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        hasher.into()
    }
}

impl From<Sha256> for Fingerprint {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes what is written to it.
struct Hasher(Sha256);

impl fmt::Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
