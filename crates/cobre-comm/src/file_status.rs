//! The status of a file in types that are the same on every system.
#![allow(
    clippy::unnecessary_cast,
    reason = "the types of a file's status differ between systems"
)]

use rustix::fs::Stat;

/// Device and inode: two open files with the same are one.
pub(crate) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino)
}

/// The permission bits.
#[allow(
    dead_code,
    reason = "asked for by a backend that this build may not have"
)]
pub(crate) fn permissions(stat: &Stat) -> u32 {
    (stat.st_mode & 0o777) as u32
}
