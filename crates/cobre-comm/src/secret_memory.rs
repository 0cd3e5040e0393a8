//! Secrets that ranks get by descriptor: random bytes, and memory without a name that holds them.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::file_status;

/// Bytes of a fresh secret.
pub const LENGTH: usize = 32;

/// Random bytes.
///
/// # Errors
/// When the system has none to give.
pub fn fresh() -> io::Result<[u8; LENGTH]> {
    let mut secret = [0; LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

/// A file without a name that only this user can have opened.
#[cfg(cobre_portable)]
fn nameless() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let [high, low] = crate::env::random_words();
    let path = std::env::temp_dir().join(format!(".cobre-secret-{high:016x}{low:016x}"));
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Memory without a name.
#[cfg(not(cobre_portable))]
fn nameless() -> io::Result<File> {
    let memory = rustix::fs::memfd_create("cobre-secret", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(memory))
}

/// Memory without a name that holds `secret`, to be read from its start.
///
/// # Errors
/// When the system refuses the memory or its descriptor.
pub fn hold(secret: &[u8]) -> io::Result<OwnedFd> {
    let mut memory = nameless()?;
    memory.write_all(secret)?;
    memory.rewind()?;
    above_stdio(memory.into())
}

/// Moves a descriptor out of 0 to 2, which a rank takes for its standard streams.
///
/// # Errors
/// When there is no other number for it.
pub fn above_stdio(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() > 2 {
        return Ok(descriptor);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&descriptor, 3)?)
}

/// The address by which a rank knows a descriptor: `descriptor:device:inode`.
///
/// # Errors
/// When the descriptor cannot be examined.
pub fn address(descriptor: &OwnedFd) -> io::Result<String> {
    let stat = rustix::fs::fstat(descriptor.as_fd())?;
    let number = descriptor.as_raw_fd();
    let (device, inode) = file_status::identity(&stat);
    Ok(crate::report::address(number, device, inode))
}
