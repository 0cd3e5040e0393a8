//! Proof by content, for files that the user names one by one and that are on no register.

use std::io::Read;
use std::path::Path;

use crate::error::FileError;

/// Bytes of a file that a proof may look at.
const HEAD: u64 = 1 << 20;

/// Refuses to replace a file that Cobre did not write. `is_own` looks at the first MiB of it; an empty file may be
/// replaced too.
///
/// # Errors
/// When something else is at `place`, or it cannot be read.
pub fn replaceable(place: &Path, is_own: impl FnOnce(&[u8]) -> bool) -> Result<(), FileError> {
    let found = match place.metadata() {
        Ok(found) => found,
        // A link that leads nowhere is not replaced either.
        Err(_) if place.is_symlink() => return Err(FileError::foreign(place, "is a link")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FileError::io("look at", place)(error)),
    };
    if found.is_dir() {
        return Err(FileError::foreign(place, "is a directory"));
    }
    if !found.is_file() {
        return Err(FileError::foreign(place, "is no regular file"));
    }
    let mut head = Vec::new();
    // Something else may be there by now.
    let opened = crate::regular::open(place);
    let read = opened.and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_err(FileError::io("read", place))?;
    if head.is_empty() || is_own(&head) {
        return Ok(());
    }
    Err(FileError::foreign(place, "is there already"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_proved_or_empty_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("page");
        let own = |bytes: &[u8]| bytes.starts_with(b"ours");
        replaceable(&place, own).expect("nothing is there");
        for (text, sound) in [("", true), ("ours, too", true), ("a thesis", false)] {
            std::fs::write(&place, text).expect("a file");
            assert_eq!(replaceable(&place, own).is_ok(), sound, "{text}");
        }
        replaceable(directory.path(), |_| true).expect_err("a directory");
    }
}
