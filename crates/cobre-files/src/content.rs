//! Proofs of content: the size and the SHA-256 of a file as Cobre wrote it.
//!
//! Both are taken once, when the file is complete. A check reads the file again only if its time of change or its inode
//! differ from those noted then: results of gigabytes that nobody has touched cost one system call, and a copy of a
//! directory is still known.

use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Bytes that are hashed at a time.
const BLOCK: usize = 1 << 18;

/// A file as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentProof {
    bytes: u64,
    sha256: String,
    /// Nanoseconds since 1970, and the inode: of the file that was written, not of copies.
    changed: i64,
    inode: u64,
}

impl ContentProof {
    /// The proof of a regular file as it is now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let file = crate::regular::open(path)?;
        let found = file.metadata()?;
        let sha256 = sha256(file)?;
        Ok(Self {
            bytes: found.len(),
            sha256,
            changed: changed(&found),
            inode: found.ino(),
        })
    }

    /// True if a regular file is as it was written.
    pub(crate) fn holds(&self, path: &Path) -> io::Result<bool> {
        let file = crate::regular::open(path)?;
        let found = file.metadata()?;
        if found.len() != self.bytes {
            return Ok(false);
        }
        let untouched = changed(&found) == self.changed && found.ino() == self.inode;
        Ok(untouched || sha256(file)? == self.sha256)
    }

    /// The keys of a line of the register.
    pub(crate) fn json(&self, name: &str) -> Value {
        json!({
            "name": name,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "changed": self.changed,
            "inode": self.inode,
        })
    }

    /// The proof that a line has, if it has one.
    pub(crate) fn from_json(line: &Value) -> Option<Self> {
        Some(Self {
            bytes: line["bytes"].as_u64()?,
            sha256: line["sha256"].as_str()?.to_owned(),
            changed: line["changed"].as_i64()?,
            inode: line["inode"].as_u64()?,
        })
    }
}

fn changed(found: &Metadata) -> i64 {
    let seconds = found.mtime().saturating_mul(1_000_000_000);
    seconds.saturating_add(found.mtime_nsec())
}

fn sha256(mut file: File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => hasher.update(&block[..read]),
        }
    }
    let mut digits = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a text does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_known_and_a_change_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: &str| directory.path().join(name);
        std::fs::write(place("a"), "ours").expect("a file");
        let proof = ContentProof::of(&place("a")).expect("it is read");
        let line = proof.json("a");
        assert_eq!(ContentProof::from_json(&line), Some(proof.clone()));
        assert!(proof.holds(&place("a")).expect("it is read"));
        std::fs::copy(place("a"), place("b")).expect("a copy");
        assert!(proof.holds(&place("b")).expect("it is read"));
        for text in ["mine", "longer", ""] {
            std::fs::write(place("b"), text).expect("a file");
            assert!(!proof.holds(&place("b")).expect("it is read"), "{text}");
        }
    }
}
