//! Named shared-memory objects: made without a name for this user alone, locked by their creator as
//! long as it lives, named once their identity is written, and removed with it.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::env::{self, SHM_PREFIX, random_words};
use crate::file_status;

/// The directory of objects: files in memory.
#[cfg(not(cobre_portable))]
fn directory() -> &'static str {
    "/dev/shm"
}

/// The directory of objects: files in memory where the system has such a directory, else in the one for temporary files.
/// Objects of `shm_open` can be neither listed nor locked nor given a second name, so nobody could tell which are abandoned.
#[cfg(cobre_portable)]
fn directory() -> &'static str {
    static FOUND: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    FOUND.get_or_init(|| {
        let memory = "/dev/shm";
        if std::path::Path::new(memory).is_dir() {
            return memory.to_owned();
        }
        let path = std::env::temp_dir().to_string_lossy().into_owned();
        path.trim_end_matches('/').to_owned()
    })
}

/// Begins the name of an object in the making, where the file system has no files without a name.
/// 32 hexadecimal digits follow.
const DRAFT_PREFIX: &str = ".cobre-draft-";

/// The first bytes of every object; the version follows.
const MAGIC: [u8; 8] = *b"cobreshm";
/// Changes with the meaning of an object's bytes. All versions lock in the same way, so that a dead
/// object of an earlier one is known for what it is.
pub(super) const VERSION: u64 = 3;
/// Bytes of magic and version.
pub(super) const IDENTITY: usize = 16;
/// The offset of the data of an object that has nothing else of its own: a multiple of every page size.
pub(super) const DATA: usize = 64 << 10;

/// The time for which a name may look taken before it is: a process that checks whether it is abandoned holds the lock
/// for an instant, on a busy machine for a turn of the scheduler.
const BRIEF: Duration = Duration::from_secs(1);

/// An object in the making. It has its identity and is locked, and nobody else can find it.
#[derive(Debug)]
pub(super) struct ObjectDraft {
    /// The name on file systems without unnamed files. Before the file: the lock outlives it.
    own_name: Option<Name>,
    file: OwnedFd,
    /// The path to link from.
    path: String,
}

/// An object of this process that others can find. Dropping it removes the name, if it is still
/// there.
#[derive(Debug)]
pub(super) struct Created {
    /// Before the file: the lock outlives it.
    name: Option<Name>,
    file: OwnedFd,
}

/// A path that is removed when dropped.
#[derive(Debug)]
struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.0);
    }
}

/// Error of creating or opening an object.
#[derive(Debug)]
pub(super) enum ObjectError {
    /// A live process holds an object of this name.
    Taken,
    /// It is not this user's alone.
    Foreign {
        owner: u32,
        mode: u32,
    },
    /// It is no plain object.
    Special,
    /// It is not a segment of Cobre.
    Unknown,
    System(Errno),
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("the name is taken by a job that is running"),
            Self::Foreign { owner, mode } => write!(
                f,
                "it belongs to user {owner} with mode {mode:o}, not to this user alone"
            ),
            Self::Special => f.write_str("it is a link or something else that is no shared memory"),
            Self::Unknown => f.write_str("something that is no segment of Cobre has this name"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl ObjectDraft {
    /// A new object, which ends with this process until it is published.
    pub(super) fn new() -> Result<Self, Errno> {
        // Whatever else is wrong shows again the other way.
        Self::without_name().or_else(|_| Self::under_a_name_of_its_own())
    }

    /// Only Linux has files that get a name later.
    #[cfg(cobre_portable)]
    fn without_name() -> Result<Self, Errno> {
        Err(Errno::NOSYS)
    }

    #[cfg(not(cobre_portable))]
    fn without_name() -> Result<Self, Errno> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(directory(), flags, Mode::RUSR | Mode::WUSR)?;
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        // Where `/proc` is missing or shows other processes, it could never be given a name.
        if !is_same(&file, rustix::fs::stat(&path)) {
            return Err(Errno::NOENT);
        }
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Self::with_identity(None, file, path)
    }

    /// Under a name that nobody looks for, and that the sweep knows: empty or with its identity.
    fn under_a_name_of_its_own() -> Result<Self, Errno> {
        loop {
            let [high, low] = random_words();
            let path = format!("{}/{DRAFT_PREFIX}{high:016x}{low:016x}", directory());
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
            let own_name = Name(path.clone());
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            // Else a sweep took it for abandoned before it was locked.
            if is_same(&file, rustix::fs::lstat(&path)) {
                return Self::with_identity(Some(own_name), file, path);
            }
        }
    }

    fn with_identity(own_name: Option<Name>, file: OwnedFd, path: String) -> Result<Self, Errno> {
        // Whatever the mask for new files is.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        let mut identity = [0; IDENTITY];
        identity[..8].copy_from_slice(&MAGIC);
        identity[8..].copy_from_slice(&VERSION.to_ne_bytes());
        match rustix::io::pwrite(&file, &identity, 0)? {
            IDENTITY => Ok(Self {
                own_name,
                file,
                path,
            }),
            _ => Err(Errno::NOSPC),
        }
    }

    /// Gives the object a name that nobody has. What a dead job left under it is removed first.
    pub(super) fn publish(self, name: &str) -> Result<Created, ObjectError> {
        let target = path_of(name).map_err(ObjectError::System)?;
        let wait_policy = Instant::now() + BRIEF;
        loop {
            match rustix::fs::linkat(CWD, &self.path, CWD, &target, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => {
                    drop(self.own_name);
                    return Ok(Created {
                        name: Some(Name(target)),
                        file: self.file,
                    });
                }
                Err(Errno::EXIST) => {
                    if !remove_if_abandoned(&target)? && Instant::now() > wait_policy {
                        return Err(ObjectError::Taken);
                    }
                    std::thread::yield_now();
                }
                Err(error) => return Err(ObjectError::System(error)),
            }
        }
    }
}

#[cfg(any(test, fuzzing))]
impl ObjectDraft {
    /// The file as another process opens it.
    pub(super) fn reopened(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::open(&self.path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
    }
}

impl AsFd for ObjectDraft {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Created {
    /// Removes the name: from here on nothing is left behind, whatever dies.
    pub(super) fn unlink(&mut self) {
        self.name = None;
    }
}

impl AsFd for Created {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The path of the object called `name`: one word, with or without a slash before it.
fn path_of(name: &str) -> Result<String, Errno> {
    let word = name.trim_start_matches('/');
    match word {
        "" | "." | ".." => Err(Errno::INVAL),
        _ if word.contains(['/', '\0']) => Err(Errno::INVAL),
        _ if word.len() > 255 => Err(Errno::NAMETOOLONG),
        _ => Ok(format!("{}/{word}", directory())),
    }
}

/// True if `found`, the status of a path, is that of the open `file`.
fn is_same(file: &OwnedFd, found: Result<Stat, Errno>) -> bool {
    let identity = |stat: Stat| file_status::identity(&stat);
    let own = rustix::fs::fstat(file).map(identity);
    own.is_ok() && own == found.map(identity)
}

/// Opens `name`, which must be this user's alone.
pub(super) fn open(name: &str) -> Result<OwnedFd, ObjectError> {
    open_path(&path_of(name).map_err(ObjectError::System)?)
}

fn open_path(path: &str) -> Result<OwnedFd, ObjectError> {
    // A device or a pipe must not hold up who only looks at it.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(ObjectError::Special),
        // Another user's object cannot be opened at all: its status says why.
        Err(Errno::ACCESS) => {
            return Err(status_of(path).unwrap_or(ObjectError::System(Errno::ACCESS)));
        }
        other => other.map_err(ObjectError::System)?,
    };
    let stat = rustix::fs::fstat(&file).map_err(ObjectError::System)?;
    check(&stat).map(|()| file)
}

fn status_of(path: &str) -> Option<ObjectError> {
    check(&rustix::fs::lstat(path).ok()?).err()
}

fn check(stat: &Stat) -> Result<(), ObjectError> {
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(ObjectError::Special);
    }
    let mode = file_status::permissions(stat);
    if stat.st_uid == rustix::process::geteuid().as_raw() && mode == 0o600 {
        Ok(())
    } else {
        Err(ObjectError::Foreign {
            owner: stat.st_uid,
            mode,
        })
    }
}

/// The version of an object of ours; `None` of anything else.
pub(super) fn version(file: BorrowedFd<'_>) -> Option<u64> {
    let mut identity = [0; IDENTITY];
    let read = rustix::io::pread(file, &mut identity, 0).ok()?;
    let (magic, version) = identity.split_first_chunk::<8>()?;
    let version = version.try_into().map(u64::from_ne_bytes).ok()?;
    (read == IDENTITY && *magic == MAGIC).then_some(version)
}

/// True if the creator of an object is gone. The kernel releases its lock whatever ends it.
pub(super) fn is_abandoned(file: BorrowedFd<'_>) -> bool {
    let free = rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        let _ = rustix::fs::flock(file, FlockOperation::Unlock);
    }
    free
}

/// Removes the object at `path` if its creator is gone; true if the path is free now.
fn remove_if_abandoned(path: &str) -> Result<bool, ObjectError> {
    let file = match open_path(path) {
        Ok(file) => file,
        Err(ObjectError::System(Errno::NOENT)) => return Ok(true),
        Err(refusal) => return Err(refusal),
    };
    let stat = rustix::fs::fstat(&file).map_err(ObjectError::System)?;
    let ours = version(file.as_fd()).is_some_and(|version| (1..=VERSION).contains(&version));
    let unwritten = stat.st_size == 0 && is_draft(path);
    if !ours && !unwritten {
        return Err(ObjectError::Unknown);
    }
    // Held until the name is gone, so that of several sweepers one removes it, once.
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    if is_same(&file, rustix::fs::lstat(path)) {
        let _ = rustix::fs::unlink(path);
    }
    Ok(true)
}

/// True if the path is that of an object in the making.
fn is_draft(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.strip_prefix(DRAFT_PREFIX)
        .is_some_and(env::are_digits_of_words)
}

/// Removes what this user's dead jobs left behind, and nothing else.
pub(super) fn sweep() {
    let Ok(entries) = std::fs::read_dir(directory()) else {
        return;
    };
    for entry in entries.flatten() {
        if let Some(name) = entry.file_name().to_str()
            && (name.starts_with(SHM_PREFIX) || is_draft(name))
        {
            // What cannot be removed is someone else's, or was removed meanwhile.
            let _ = remove_if_abandoned(&format!("{}/{name}", directory()));
        }
    }
}

/// Reserves `range` of `file`, so that no later touch can fail for want of memory.
pub(super) fn reserve(file: BorrowedFd<'_>, range: std::ops::Range<usize>) -> Result<(), Errno> {
    if range.is_empty() {
        return Ok(());
    }
    allocate(file, range)
}

#[cfg(not(cobre_portable))]
fn allocate(file: BorrowedFd<'_>, range: std::ops::Range<usize>) -> Result<(), Errno> {
    let (start, len) = (range.start as u64, range.len() as u64);
    loop {
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), start, len) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Writes what is there already, zeros: who reserves memory is the only one to write it, and has not begun to. A file
/// grows to its size before.
#[cfg(cobre_portable)]
fn allocate(file: BorrowedFd<'_>, range: std::ops::Range<usize>) -> Result<(), Errno> {
    const ZEROS: &[u8] = &[0; 64 << 10];
    let mut start = range.start;
    // The identity stands already.
    if start == 0 {
        start = IDENTITY.min(range.end);
    }
    while start < range.end {
        let piece = &ZEROS[..ZEROS.len().min(range.end - start)];
        match rustix::io::pwrite(file, piece, start as u64) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => start += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The message for a user whose system does not give `bytes` of shared memory to the object `what`.
pub(super) fn no_room(what: &str, bytes: usize, error: Errno) -> String {
    if error == Errno::FBIG {
        let limit = getrlimit(Resource::Fsize).current;
        let limit = limit.map_or_else(String::new, |limit| format!(" of {limit} bytes"));
        return format!(
            "{what} needs {bytes} bytes of shared memory, and the limit on the size of files{limit}, which holds for it \
             too, does not let it grow ({error}); raise the limit (ulimit -f unlimited), or choose the backend tcp"
        );
    }
    let free = rustix::fs::statvfs(directory()).map_or_else(
        |_| "an unknown amount".to_owned(),
        |stat| format!("{} MiB", (stat.f_bavail * stat.f_frsize) >> 20),
    );
    let place = directory();
    format!(
        "{what} needs {bytes} bytes of shared memory, and {free} are free in {place} ({error}); \
         raise it with docker run --shm-size=1g, a memory-backed emptyDir in Kubernetes, or \
         mount -o remount,size=1G {place}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::fresh_shm_name;

    fn exists(name: &str) -> bool {
        std::fs::symlink_metadata(path_of(name).unwrap()).is_ok()
    }

    /// Both ways to make an object; a portable build has one.
    fn drafts() -> Vec<ObjectDraft> {
        vec![
            #[cfg(not(cobre_portable))]
            ObjectDraft::without_name().expect("a /dev/shm with files without a name"),
            ObjectDraft::under_a_name_of_its_own().unwrap(),
        ]
    }

    #[test]
    fn an_object_has_its_identity_and_its_lock_before_it_has_a_name() {
        for draft in drafts() {
            let own_path = draft.own_name.as_ref().map(|name| name.0.clone());
            let name = fresh_shm_name();
            assert!(!exists(&name));
            let created = draft.publish(&name).unwrap();
            // Only the one name is left.
            assert!(own_path.is_none_or(|path| std::fs::symlink_metadata(path).is_err()));
            let found = open(&name).unwrap();
            assert_eq!(version(found.as_fd()), Some(VERSION));
            assert!(!is_abandoned(found.as_fd()));
            sweep();
            assert!(exists(&name), "a live one is not swept");
            drop(created);
            assert!(!exists(&name));
        }
    }

    #[test]
    fn a_name_that_is_taken_is_an_error() {
        for draft in drafts() {
            let name = fresh_shm_name();
            let _first = ObjectDraft::new().unwrap().publish(&name).unwrap();
            assert!(matches!(draft.publish(&name), Err(ObjectError::Taken)));
            assert!(exists(&name));
        }
    }

    /// As a creator leaves it that is killed.
    fn abandon(mut object: Created) -> String {
        let name = object.name.take().unwrap();
        let path = name.0.clone();
        std::mem::forget(name);
        give_up(&object.file);
        path
    }

    /// Gives up the lock on a file. A process that another test is starting has a copy of the descriptor, and would hold
    /// it for a while.
    fn give_up(file: &OwnedFd) {
        rustix::fs::flock(file, FlockOperation::Unlock).unwrap();
    }

    /// Sweeps until the path is free: the sweep of another test may be about to remove it.
    fn is_swept(path: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::path::Path::new(path).exists() && Instant::now() < deadline {
            sweep();
        }
        !std::path::Path::new(path).exists()
    }

    #[test]
    fn a_dead_object_gives_its_name_up_and_is_swept() {
        for draft in drafts() {
            let name = fresh_shm_name();
            abandon(ObjectDraft::new().unwrap().publish(&name).unwrap());
            let path = abandon(draft.publish(&name).unwrap());
            assert!(is_swept(&path));
        }
    }

    #[test]
    fn a_draft_whose_creator_is_dead_is_swept_and_a_live_one_is_not() {
        let live = ObjectDraft::under_a_name_of_its_own().unwrap();
        let mut dead = ObjectDraft::under_a_name_of_its_own().unwrap();
        std::mem::forget(dead.own_name.take());
        let dead_path = dead.path.clone();
        give_up(&dead.file);
        drop(dead);
        let empty_path = format!("{}/{DRAFT_PREFIX}{:032x}", directory(), std::process::id());
        std::fs::write(&empty_path, "").unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&empty_path, private).unwrap();
        for path in [dead_path, empty_path] {
            assert!(is_swept(&path), "{path}");
        }
        assert!(std::path::Path::new(&live.path).exists());
    }

    #[test]
    fn only_one_word_is_a_name() {
        for name in ["", "/", ".", "..", "/..", "a/b", "a\0b", &"x".repeat(256)] {
            assert!(path_of(name).is_err(), "{name}");
        }
        assert_eq!(path_of("/a").unwrap(), format!("{}/a", directory()));
        assert_eq!(path_of("a").unwrap(), format!("{}/a", directory()));
    }
}
