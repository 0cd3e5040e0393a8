//! One run at a time writes to a directory.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use super::facts::host;
use crate::error::SddpError;

/// The right to write to a directory. The system takes it back when the process ends, however it
/// ends, so nothing stale is ever in the way.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it.
    ///
    /// # Errors
    /// When another run has it, or the file cannot be opened.
    pub(super) fn take(directory: &Path) -> Result<Self, SddpError> {
        let place = directory.join(".lock");
        let error = || SddpError::io("lock", &place);
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&place);
        let mut file = opened.map_err(error())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim();
                let told =
                    format!("another run writes there ({owner}); give this one another --output");
                return Err(SddpError::io("use", directory)(io::Error::other(told)));
            }
            Err(TryLockError::Error(lost)) => return Err(error()(lost)),
        }
        let (pid, host) = (std::process::id(), host());
        file.set_len(0)
            .and_then(|()| file.write_all(format!("process {pid} on {host}\n").as_bytes()))
            .map_err(error())?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_told_of_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Lock::take(directory.path()).expect("nobody has it");
        let error = Lock::take(directory.path()).expect_err("it is taken");
        let SddpError::Io { source, .. } = &error else {
            panic!("{error}");
        };
        let pid = std::process::id().to_string();
        assert!(source.to_string().contains(&pid), "{source}");
        drop(first);
        Lock::take(directory.path()).expect("it is free again");
    }
}
