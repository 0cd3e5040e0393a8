//! Names below a directory, resolved without following a link and without leaving it.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

/// The kind of thing that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Nothing,
    File,
    Directory,
    Link,
    /// A pipe, a socket, a device.
    Special,
}

impl EntryKind {
    /// The kind in words that follow a path.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Nothing => "is not there",
            Self::File => "is there already",
            Self::Directory => "is a directory",
            Self::Link => "is a link",
            Self::Special => "is no regular file",
        }
    }
}

/// The longest part of a name, in bytes: that of an unfinished file is one of Linux still.
const LONGEST_PART: usize = 255 - ".".len() - ".part".len();
/// The longest name, in bytes: with the directory before it, it is a path of Linux still.
const LONGEST_NAME: usize = 2048;

/// True if a text names something below a directory: parts with a slash between them, none of which leads up or
/// stays where it is, and none of which is too long for a file.
pub(crate) fn is_name(name: &str) -> bool {
    let sound = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.contains('\0') && part.len() <= LONGEST_PART
    };
    name.len() <= LONGEST_NAME && name.split('/').all(sound)
}

/// A directory and the last part of a name in it.
pub(crate) struct EntryPlace<'n> {
    directory: OwnedFd,
    last: &'n str,
}

/// The parts of a name that are no directories: the first of them, and what it is.
pub(crate) struct Blocked<'n> {
    pub(crate) part: &'n str,
    pub(crate) found: EntryKind,
}

/// Finds the place of a name; `Err` if one of its directories is something else, `Ok(None)` if one is not there.
pub(crate) fn find<'n>(
    root: &Path,
    name: &'n str,
) -> Result<Result<Option<EntryPlace<'n>>, Blocked<'n>>, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = match openat(CWD, root, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Ok(None)),
        opened => opened?,
    };
    let mut done = 0;
    while let Some(length) = name[done..].find('/') {
        let part = &name[done..done + length];
        done += length + 1;
        match openat(&directory, part, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(opened) => directory = opened,
            Err(Errno::NOENT) => return Ok(Ok(None)),
            // Linux says the one of a link and the other of anything else.
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let found = kind(&directory, part)?;
                let part = &name[..done - 1];
                return Ok(Err(Blocked { part, found }));
            }
            Err(error) => return Err(error),
        }
    }
    let last = &name[done..];
    Ok(Ok(Some(EntryPlace { directory, last })))
}

impl EntryPlace<'_> {
    /// The thing at this place.
    pub(crate) fn found(&self) -> Result<EntryKind, Errno> {
        kind(&self.directory, self.last)
    }

    /// The thing at the place of the unfinished file.
    pub(crate) fn found_part(&self) -> Result<EntryKind, Errno> {
        kind(&self.directory, &part_name(self.last))
    }

    /// Removes the file, never what a link leads to; that it is gone already is fine.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        remove(&self.directory, self.last, AtFlags::empty())
    }

    /// Removes the unfinished file.
    pub(crate) fn remove_part(&self) -> Result<(), Errno> {
        remove(&self.directory, &part_name(self.last), AtFlags::empty())
    }

    /// Removes the directory if it is empty.
    pub(crate) fn remove_directory(&self) -> Result<(), Errno> {
        match remove(&self.directory, self.last, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
            removed => removed,
        }
    }
}

/// The name of an unfinished file beside its place.
pub(crate) fn part_name(last: &str) -> String {
    format!(".{last}.part")
}

fn remove(directory: &OwnedFd, name: &str, flags: AtFlags) -> Result<(), Errno> {
    match unlinkat(directory, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

fn kind(directory: &OwnedFd, name: &str) -> Result<EntryKind, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(EntryKind::Nothing),
        stat => Ok(match FileType::from_raw_mode(stat?.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Special,
        }),
    }
}
