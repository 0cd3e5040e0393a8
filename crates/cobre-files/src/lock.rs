//! One run at a time writes to a directory.

use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::FileError;

/// The file that is locked.
pub(crate) const LOCK: &str = ".lock";

/// The right to write to a directory. The system takes it back when the process ends, however it
/// ends, so nothing stale is ever in the way.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Gives it back at once: a process that another thread is starting at this instant has a copy of the descriptor, and
/// with it the lock, until it becomes its program.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Refuses a directory whose lock file Cobre did not write. Writes nothing.
    ///
    /// # Errors
    /// When it is such a file, or cannot be read.
    pub fn check(directory: &Path) -> Result<(), FileError> {
        let place = directory.join(LOCK);
        match place.symlink_metadata() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(FileError::io("lock", &place)(error)),
            Ok(found) if !found.is_file() => Err(FileError::foreign(place, "is no regular file")),
            Ok(_) => {
                // Something else may be there by now.
                let file = crate::regular::open(&place).map_err(FileError::io("lock", &place))?;
                owner(&place, &file).map(drop)
            }
        }
    }

    /// Takes it; `host` is the name of this machine, for those who come later.
    ///
    /// # Errors
    /// When another run has it, when the lock file is another program's, and when it cannot be opened.
    pub fn take(directory: &Path, host: &str) -> Result<Self, FileError> {
        Self::check(directory)?;
        let place = directory.join(LOCK);
        let error = || FileError::io("lock", &place);
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&place);
        let mut file = opened.map_err(error())?;
        if !file.metadata().map_err(error())?.is_file() {
            return Err(FileError::foreign(place, "is no regular file"));
        }
        let taken = file.try_lock();
        let owner = owner(&place, &file)?;
        match taken {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let owner = owner.trim();
                let told =
                    format!("another run writes there ({owner}); give this one another --output");
                return Err(FileError::io("use", directory)(io::Error::other(told)));
            }
            Err(TryLockError::Error(lost)) => return Err(error()(lost)),
        }
        restrict(&file, directory);
        let pid = std::process::id();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("process {pid} on {host}\n").as_bytes()))
            .map_err(error())?;
        Ok(Self { file })
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

/// The words of who has written a lock file.
fn owner(place: &Path, file: &File) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    let read = file.take(1024).read_to_end(&mut bytes);
    read.map_err(FileError::io("lock", place))?;
    let own = |text: &String| {
        let words = text.strip_prefix("process ");
        text.is_empty() || words.is_some_and(|words| words.contains(" on "))
    };
    String::from_utf8(bytes)
        .ok()
        .filter(own)
        .ok_or_else(|| FileError::foreign(place, "is there already"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_may_write_to_the_directory_can_open_the_lock() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join(LOCK);
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
            drop(Lock::take(directory.path(), "here").expect("nobody has it"));
            let found = place.metadata().expect("it is there").permissions().mode();
            assert_eq!(found & 0o777, of_lock, "{of_directory:o}");
        }
    }

    #[test]
    fn a_second_owner_is_told_of_the_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Lock::take(directory.path(), "here").expect("nobody has it");
        let error = Lock::take(directory.path(), "here").expect_err("it is taken");
        let FileError::Io { source, .. } = &error else {
            panic!("{error}");
        };
        let pid = std::process::id().to_string();
        assert!(source.to_string().contains(&pid), "{source}");
        drop(first);
        Lock::take(directory.path(), "here").expect("it is free again");
    }

    #[test]
    fn a_lock_is_given_back_while_a_process_that_is_being_started_has_a_copy() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Lock::take(directory.path(), "here").expect("nobody has it");
        let copy = first.file.try_clone().expect("a descriptor");
        drop(first);
        Lock::take(directory.path(), "here").expect("it is free again");
        drop(copy);
    }

    #[test]
    fn the_lock_of_another_program_and_a_link_are_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let (lock, other) = (directory.path().join(LOCK), directory.path().join("other"));
        std::fs::write(&lock, "4711").expect("a file");
        Lock::take(directory.path(), "here").expect_err("another program's");
        assert_eq!(std::fs::read(&lock).expect("it is there"), b"4711");
        std::fs::remove_file(&lock).expect("it is removed");
        std::fs::write(&other, "precious").expect("a file");
        std::os::unix::fs::symlink(&other, &lock).expect("a link");
        Lock::take(directory.path(), "here").expect_err("a link");
        assert_eq!(std::fs::read(&other).expect("it is there"), b"precious");
    }
}
