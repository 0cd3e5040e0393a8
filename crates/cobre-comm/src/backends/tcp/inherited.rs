#![expect(
    unsafe_code,
    reason = "takes over a socket that the launcher left open under a number"
)]
//! Descriptors that the launcher hands on: the socket that rank 0 listens on, and the secret.
//!
//! An address is `descriptor:device:inode`. A program between launcher and rank may have closed
//! the descriptor and opened something else under its number; then it is left alone.

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use super::system::TcpListener;

/// The number, if what is open under it is what the address says.
fn number(address: &str) -> Option<RawFd> {
    let (descriptor, identity) = address.split_once(':')?;
    let descriptor: RawFd = descriptor.parse().ok().filter(|number| *number > 2)?;
    let metadata = std::fs::metadata(format!("/dev/fd/{descriptor}")).ok()?;
    (identity == format!("{}:{}", metadata.dev(), metadata.ino())).then_some(descriptor)
}

/// Takes the descriptor there; it belongs to the caller from now on, and programs that it starts do not get it.
fn take(address: &str) -> Option<OwnedFd> {
    let descriptor = number(address)?;
    // SAFETY: the launcher opened this for this rank alone and left it under this number, which was
    // checked just now; nothing else in this process knows of it.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    rustix::io::fcntl_setfd(&owned, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(owned)
}

/// A file, opened once more: each reader begins at its start. The launcher's own is closed here.
pub(super) fn reopen(address: &str) -> Option<File> {
    let descriptor = number(address)?;
    let file = File::open(format!("/dev/fd/{descriptor}")).ok();
    drop(take(address));
    file
}

/// The listening socket.
pub(super) fn listener(address: &str) -> Option<TcpListener> {
    take(address).map(TcpListener::from)
}

/// Closes the listening socket where nobody listens.
pub(super) fn close(address: &str) {
    drop(take(address));
}
