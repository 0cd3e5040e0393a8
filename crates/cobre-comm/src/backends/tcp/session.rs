//! A secret that ranks of one user on one machine share without being given one: a file in a
//! directory that nobody else can enter.
//!
//! Every rank that looks for the others holds a shared lock on the file, so it is the same one for
//! all of them, whoever came first. Who can lock it alone when its own search is over is the last,
//! and removes it. A rank that was killed holds nothing: what it left is used by the next job, and
//! removed by that.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;

use super::system::Instant;

/// Bytes of a secret.
const LENGTH: usize = 32;
const NAME: &str = "cobre-tcp-secret";
/// Between two attempts, while another rank makes the file or removes it.
const PAUSE: Duration = Duration::from_millis(1);

/// The secret, and the file that others find it in until this is dropped.
pub(super) struct SessionSecret {
    bytes: [u8; LENGTH],
    file: LockedFile,
    directory: SecretDirectory,
}

/// A file whose lock goes with it: a process that another thread is starting has a copy of the descriptor, and would hold
/// the lock until it becomes its program.
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A directory of this user's that nobody else can enter.
struct SecretDirectory {
    handle: OwnedFd,
    /// Its path if it was made for the secret alone: it goes with that.
    made: Option<PathBuf>,
}

/// An attempt that did not succeed.
enum SessionError {
    /// Another rank was in between.
    Again,
    /// It will not succeed.
    Final(String),
}

impl From<Errno> for SessionError {
    fn from(error: Errno) -> Self {
        Self::Final(error.to_string())
    }
}

impl SessionSecret {
    /// The secret that this user's ranks share now; the first makes it.
    pub(super) fn share(preferred: Option<&Path>, deadline: Instant) -> Result<Self, String> {
        loop {
            match Self::attempt(preferred) {
                Ok(secret) => return Ok(secret),
                Err(SessionError::Final(problem)) => return Err(problem),
                Err(SessionError::Again) if Instant::now() >= deadline => {
                    return Err("other ranks keep changing it".to_owned());
                }
                Err(SessionError::Again) => std::thread::sleep(PAUSE),
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn attempt(preferred: Option<&Path>) -> Result<Self, SessionError> {
        let directory = SecretDirectory::find(preferred)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What is no file is refused below, and must not block until then.
        let flags = flags | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&directory.handle, NAME, flags, Mode::RUSR | Mode::WUSR);
        let file = match opened {
            Ok(file) => LockedFile(File::from(file)),
            // The directory went with the job before.
            Err(Errno::NOENT) => return Err(SessionError::Again),
            Err(error) => return Err(SessionError::Final(format!("{NAME}: {error}"))),
        };
        let found = fstat(&file.0)?;
        let is_own = found.st_uid == rustix::process::geteuid().as_raw();
        let is_plain = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_own || !is_plain || found.st_mode & 0o077 != 0 {
            let problem = "is no file that only this user can read: remove it";
            return Err(SessionError::Final(format!("{NAME} {problem}")));
        }
        match flock(&file.0, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            // Another rank writes or removes it.
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(SessionError::Again),
            Err(error) => return Err(error.into()),
        }
        if !directory.has(&file.0) {
            return Err(SessionError::Again);
        }
        let Some(bytes) = read(&file.0) else {
            fill(&file.0)?;
            // The lock was another one meanwhile: whoever had it may have removed the file.
            return Err(SessionError::Again);
        };
        Ok(Self {
            bytes,
            file,
            directory,
        })
    }
}

fn read(file: &File) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    file.read_exact_at(&mut bytes, 0).ok().map(|()| bytes)
}

/// Writes a secret into a file that nobody else looks at.
fn fill(file: &File) -> Result<(), SessionError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(SessionError::Again),
        Err(error) => return Err(error.into()),
    }
    // Another rank may have written it while this one changed its lock.
    if read(file).is_none() {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes).map_err(|error| SessionError::Final(error.to_string()))?;
        let written = file.write_all_at(&bytes, 0);
        written.map_err(|error| SessionError::Final(error.to_string()))?;
    }
    Ok(())
}

impl Drop for SessionSecret {
    fn drop(&mut self) {
        let alone = flock(&self.file.0, FlockOperation::NonBlockingLockExclusive).is_ok();
        if alone && self.directory.has(&self.file.0) {
            let _ = rustix::fs::unlinkat(&self.directory.handle, NAME, AtFlags::empty());
            if let Some(made) = &self.directory.made {
                // Not if another rank has made the next secret meanwhile.
                let _ = std::fs::remove_dir(made);
            }
        }
    }
}

impl SecretDirectory {
    /// The user's runtime directory, or one in `/tmp` that is made for this.
    fn find(preferred: Option<&Path>) -> Result<Self, SessionError> {
        let user = rustix::process::geteuid().as_raw();
        let session = PathBuf::from(format!("/run/user/{user}"));
        let existing = preferred.into_iter().chain([&*session]);
        let mut existing = existing.filter(|path| path.is_absolute());
        if let Some(handle) = existing.find_map(|path| open(path).ok()) {
            return Ok(Self { handle, made: None });
        }
        let path = PathBuf::from(format!("/tmp/cobre-{user}"));
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(SessionError::Final(format!("{}: {error}", path.display()))),
        }
        match open(&path) {
            Ok(handle) => Ok(Self {
                handle,
                made: Some(path),
            }),
            Err(problem) if problem == Errno::NOENT.to_string() => Err(SessionError::Again),
            Err(problem) => Err(SessionError::Final(format!(
                "{}: {problem}",
                path.display()
            ))),
        }
    }

    /// True if the name in it is still that of this file.
    fn has(&self, file: &File) -> bool {
        let named = rustix::fs::statat(&self.handle, NAME, AtFlags::SYMLINK_NOFOLLOW);
        let same = |named: rustix::fs::Stat| {
            fstat(file).is_ok_and(|open| (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino))
        };
        named.is_ok_and(same)
    }
}

/// Opens a directory if it is this user's and nobody else can enter it.
fn open(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty());
    let handle = handle.map_err(|error| error.to_string())?;
    let found = fstat(&handle).map_err(|error| error.to_string())?;
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", found.st_uid));
    }
    let mode = found.st_mode & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("it has mode {mode:o}, so other users can enter it"));
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    /// A directory of this user's own, removed when it is dropped.
    struct Session(PathBuf);

    impl Session {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("session-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join(NAME)
        }
    }

    impl Drop for Session {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn ranks_that_search_at_once_share_one_secret_and_leave_nothing() {
        let session = Session::new("shared");
        for _ in 0..50 {
            let ranks: Vec<SessionSecret> = std::thread::scope(|scope| {
                let share = || SessionSecret::share(Some(&session.0), soon()).unwrap();
                let ranks: Vec<_> = (0..8).map(|_| scope.spawn(share)).collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            assert!(ranks.iter().all(|rank| rank.bytes == ranks[0].bytes));
            assert_ne!(ranks[0].bytes, [0; LENGTH]);
            let mode = std::fs::metadata(session.file())
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
            drop(ranks);
            assert!(!session.file().exists());
        }
    }

    #[test]
    fn a_copy_that_a_process_being_started_has_keeps_no_file() {
        let session = Session::new("copied");
        let share = || SessionSecret::share(Some(&session.0), soon()).unwrap();
        let (one, two) = (share(), share());
        let copy = one.file.0.try_clone().unwrap();
        drop(one);
        drop(two);
        assert!(!session.file().exists());
        drop(copy);
    }

    /// The next job's ranks come while the last of this one go.
    #[test]
    fn who_holds_a_secret_is_never_left_with_one_that_nobody_finds() {
        let session = Session::new("turnover");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let one = SessionSecret::share(Some(&session.0), soon()).unwrap();
                        let two = SessionSecret::share(Some(&session.0), soon()).unwrap();
                        assert_eq!(one.bytes, two.bytes);
                    }
                });
            }
        });
        assert!(!session.file().exists());
    }

    #[test]
    fn what_a_killed_rank_left_is_used_or_filled() {
        let session = Session::new("left");
        for left in [&[7; LENGTH][..], &[7; 5], &[]] {
            std::fs::write(session.file(), left).unwrap();
            std::fs::set_permissions(session.file(), PermissionsExt::from_mode(0o600)).unwrap();
            let secret = SessionSecret::share(Some(&session.0), soon()).unwrap();
            assert_eq!(secret.bytes == [7; LENGTH], left.len() == LENGTH);
            drop(secret);
            assert!(!session.file().exists());
        }
    }

    #[test]
    fn links_and_files_that_others_can_read_are_refused() {
        let session = Session::new("planted");
        let elsewhere = session.0.join("elsewhere");
        std::fs::write(&elsewhere, [7; LENGTH]).unwrap();
        std::os::unix::fs::symlink(&elsewhere, session.file()).unwrap();
        assert!(SessionSecret::share(Some(&session.0), soon()).is_err());
        std::fs::remove_file(session.file()).unwrap();
        std::fs::rename(&elsewhere, session.file()).unwrap();
        std::fs::set_permissions(session.file(), PermissionsExt::from_mode(0o644)).unwrap();
        let refused = SessionSecret::share(Some(&session.0), soon())
            .err()
            .unwrap();
        assert!(refused.contains("remove it"), "{refused}");
    }

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let session = Session::new("open");
        std::fs::set_permissions(&session.0, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(open(&session.0).unwrap_err().contains("mode 755"));
        let link = session.0.join("link");
        std::fs::set_permissions(&session.0, PermissionsExt::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&session.0, &link).unwrap();
        assert!(open(&link).is_err());
        assert!(open(&session.0).is_ok());
    }
}
