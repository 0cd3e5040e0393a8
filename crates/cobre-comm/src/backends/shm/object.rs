//! Named shared-memory objects: created for this user alone, locked by their creator as long as it
//! lives, and removed with it.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::shm;

use crate::env::SHM_PREFIX;

const DIRECTORY: &str = "/dev/shm";

/// The first bytes of a finished segment.
pub(super) const MAGIC: [u8; 8] = *b"cobreshm";

/// How long a name may look taken before it is.
const BRIEF: Duration = Duration::from_millis(100);

/// An object that this process created. Dropping it removes the name, if it is still there.
#[derive(Debug)]
pub(super) struct Created {
    file: OwnedFd,
    name: String,
    named: bool,
}

/// Why an object could not be created or opened.
#[derive(Debug)]
pub(super) enum Refusal {
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

impl fmt::Display for Refusal {
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

impl Created {
    /// Creates and locks `name`. What a dead job left under it is removed first.
    pub(super) fn new(name: &str) -> Result<Self, Refusal> {
        let patience = Instant::now() + BRIEF;
        loop {
            let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
            match shm::open(name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    if let Some(created) = Self::locked(file, name)? {
                        return Ok(created);
                    }
                }
                Err(Errno::EXIST) => {
                    // Others who look whether it is abandoned hold its lock for an instant.
                    if !remove_if_abandoned(name)? && Instant::now() > patience {
                        return Err(Refusal::Taken);
                    }
                    std::thread::yield_now();
                }
                Err(error) => return Err(Refusal::System(error)),
            }
        }
    }

    /// Locks the object; `None` if someone took it for abandoned before it was locked.
    fn locked(file: OwnedFd, name: &str) -> Result<Option<Self>, Refusal> {
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(Refusal::System)?;
        let stat = rustix::fs::fstat(&file).map_err(Refusal::System)?;
        // The name, if it exists again, is then another's.
        Ok((stat.st_nlink > 0).then(|| Self {
            file,
            name: name.to_owned(),
            named: true,
        }))
    }

    /// Removes the name: from here on nothing is left behind, whatever dies.
    pub(super) fn unlink(&mut self) {
        if std::mem::take(&mut self.named) {
            let _ = shm::unlink(&self.name);
        }
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        self.unlink();
    }
}

impl AsFd for Created {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens `name`, which must be this user's alone.
pub(super) fn open(name: &str) -> Result<OwnedFd, Refusal> {
    let no_links = shm::OFlags::from_bits_retain(OFlags::NOFOLLOW.bits());
    let file = match shm::open(name, shm::OFlags::RDWR | no_links, Mode::empty()) {
        Err(Errno::LOOP) => return Err(Refusal::Special),
        // Another user's object cannot be opened at all: its status says why.
        Err(Errno::ACCESS) => return Err(status_of(name).unwrap_or(Refusal::System(Errno::ACCESS))),
        other => other.map_err(Refusal::System)?,
    };
    let stat = rustix::fs::fstat(&file).map_err(Refusal::System)?;
    check(&stat).map(|()| file)
}

fn status_of(name: &str) -> Option<Refusal> {
    let path = format!("{DIRECTORY}/{}", name.trim_start_matches('/'));
    check(&rustix::fs::lstat(path).ok()?).err()
}

fn check(stat: &Stat) -> Result<(), Refusal> {
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(Refusal::Special);
    }
    let mode = stat.st_mode & 0o777;
    if stat.st_uid == rustix::process::geteuid().as_raw() && mode == 0o600 {
        Ok(())
    } else {
        Err(Refusal::Foreign {
            owner: stat.st_uid,
            mode,
        })
    }
}

/// Whether the creator of an object is gone. The kernel releases its lock whatever ends it.
pub(super) fn is_abandoned(file: BorrowedFd<'_>) -> bool {
    let free = rustix::fs::flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        let _ = rustix::fs::flock(file, FlockOperation::Unlock);
    }
    free
}

/// Removes `name` if its creator is gone; true if the name is free now.
fn remove_if_abandoned(name: &str) -> Result<bool, Refusal> {
    let file = match open(name) {
        Ok(file) => file,
        Err(Refusal::System(Errno::NOENT)) => return Ok(true),
        Err(refusal) => return Err(refusal),
    };
    // Held until the name is gone, so that of several sweepers one removes it, once.
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    let stat = rustix::fs::fstat(&file).map_err(Refusal::System)?;
    if stat.st_nlink > 0 {
        if !is_segment(file.as_fd()) {
            return Err(Refusal::Unknown);
        }
        let _ = shm::unlink(name);
    }
    Ok(true)
}

/// Whether an object begins as segments do, in any state of being made.
fn is_segment(file: BorrowedFd<'_>) -> bool {
    let mut first = [0; 8];
    match rustix::io::pread(file, &mut first, 0) {
        Ok(0) => true,
        Ok(8) => first == [0; 8] || first == MAGIC,
        _ => false,
    }
}

/// Removes what this user's dead jobs left behind, and nothing else.
pub(super) fn sweep() {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else {
        return;
    };
    for entry in entries.flatten() {
        if let Some(name) = entry.file_name().to_str()
            && name.starts_with(SHM_PREFIX)
        {
            // What cannot be removed is someone else's, or was removed meanwhile.
            let _ = remove_if_abandoned(name);
        }
    }
}

/// Reserves `range` of `file`, so that no later touch can fail for want of memory.
pub(super) fn reserve(file: BorrowedFd<'_>, range: std::ops::Range<usize>) -> Result<(), Errno> {
    if range.is_empty() {
        return Ok(());
    }
    let (start, len) = (range.start as u64, range.len() as u64);
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), start, len) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// What to tell a user whose `/dev/shm` has no room for `bytes`.
pub(super) fn no_room(bytes: usize, error: Errno) -> String {
    let free = rustix::fs::statvfs(DIRECTORY).map_or_else(
        |_| "an unknown amount".to_owned(),
        |stat| format!("{} MiB", (stat.f_bavail * stat.f_frsize) >> 20),
    );
    format!(
        "{bytes} bytes of shared memory are needed and {free} are free in {DIRECTORY} ({error}); \
         raise it with docker run --shm-size=1g, a memory-backed emptyDir in Kubernetes, or \
         mount -o remount,size=1G {DIRECTORY}"
    )
}
