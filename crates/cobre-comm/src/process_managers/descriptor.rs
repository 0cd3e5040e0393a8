#![expect(
    unsafe_code,
    reason = "takes over a socket that the process manager left open under a number"
)]
//! The socket to the process manager, which it leaves open under a number.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True once this process has taken the socket: it is closed after the one conversation that it is for.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the socket under this number; programs that this process starts do not get it.
pub(super) fn take(number: RawFd) -> Result<UnixStream, String> {
    let metadata = std::fs::metadata(format!("/dev/fd/{number}"));
    if number < 3 || !metadata.is_ok_and(|found| found.file_type().is_socket()) {
        return Err(format!(
            "descriptor {number} is no open socket: a program between the process manager and this one does not \
             pass descriptors on"
        ));
    }
    if TAKEN.swap(true, Relaxed) {
        return Err(
            "this process has joined its job already: use the communicator that it has".to_owned(),
        );
    }
    // SAFETY: the process manager opened this socket for this process alone; it is open, as checked just now, and
    // `TAKEN` makes this the one owner.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)
        .map_err(|error| format!("descriptor {number}: {error}"))?;
    Ok(UnixStream::from(socket))
}
