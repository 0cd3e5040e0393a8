//! One run at a time writes to a directory.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
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
            .mode(0o600)
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
        restrict(&file, directory);
        let (pid, host) = (std::process::id(), host());
        file.set_len(0)
            .and_then(|()| file.write_all(format!("process {pid} on {host}\n").as_bytes()))
            .map_err(error())?;
        Ok(Self { _file: file })
    }
}

/// Lets those open the lock who may write to the directory, and nobody else: whoever can open it can lock it, and keep
/// all later runs out. What a file system or another owner does not allow stays as it is.
fn restrict(file: &File, directory: &Path) {
    let Ok(found) = directory.metadata() else {
        return;
    };
    let (bits, sticky) = (found.permissions().mode(), 0o1000);
    let mut allowed = 0o600;
    if bits & sticky == 0 {
        let writers = bits & 0o022;
        allowed |= writers | writers << 1;
    }
    let _ = file.set_permissions(Permissions::from_mode(allowed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_may_write_to_the_directory_can_open_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join(".lock");
        std::fs::write(&place, "").expect("a file");
        for (of_directory, of_lock) in [
            (0o755, 0o600),
            (0o700, 0o600),
            (0o775, 0o660),
            (0o777, 0o666),
            (0o1777, 0o600),
        ] {
            let wide = |mode| Permissions::from_mode(mode);
            std::fs::set_permissions(&place, wide(0o644)).expect("it is ours");
            std::fs::set_permissions(directory.path(), wide(of_directory)).expect("it is ours");
            drop(Lock::take(directory.path()).expect("nobody has it"));
            let found = place.metadata().expect("it is there").permissions().mode();
            assert_eq!(found & 0o777, of_lock, "{of_directory:o}");
        }
    }

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
