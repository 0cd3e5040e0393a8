//! Regular files: whatever else a path names is refused before anything is read from it.
//!
//! Opening a FIFO waits for a writer, and a device may have no end.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The largest JSON or CSV file that is read, in bytes: 256 MiB.
pub const MOST_TEXT_BYTES: u64 = 256 << 20;

/// Opens a regular file for reading, without waiting.
///
/// # Errors
/// When there is no such file, it cannot be opened, or it is a directory, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Not to wait for the other end of a pipe, and not to become the terminal's process.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        // A socket, or a device without a driver.
        Some(libc::ENXIO) => strange("a socket or a device"),
        _ => error,
    })?;
    let kind = file.metadata()?.file_type();
    let found = match () {
        () if kind.is_file() => return Ok(file),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () => "a device",
    };
    Err(strange(found))
}

fn strange(found: &str) -> io::Error {
    let told = format!("it is {found}; a file is expected");
    io::Error::new(ErrorKind::InvalidInput, told)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and when the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= most {
        bytes.reserve_exact(usize::try_from(length).unwrap_or(0));
        // It may grow while it is read.
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    let found = length.max(bytes.len() as u64);
    if found > most {
        let told = format!("it has {found} bytes; at most {most} are read");
        return Err(io::Error::new(ErrorKind::FileTooLarge, told));
    }
    Ok(bytes)
}

/// Reads a regular file of at most [`MOST_TEXT_BYTES`] as text.
///
/// # Errors
/// As [`read`], and when the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read(path, MOST_TEXT_BYTES)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refused(path: &Path) -> String {
        open(path).expect_err("it is no regular file").to_string()
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        let status = std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo is there");
        assert!(status.success());
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        for (path, found) in [
            (pipe.as_path(), "it is a pipe; a file is expected"),
            (directory.path(), "it is a directory; a file is expected"),
            (
                socket.as_path(),
                "it is a socket or a device; a file is expected",
            ),
            (Path::new("/dev/zero"), "it is a device; a file is expected"),
        ] {
            assert_eq!(refused(path), found);
        }
        let missing = open(&directory.path().join("none")).expect_err("it is not there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_larger_than_allowed_is_refused_with_both_sizes() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "12345").expect("it is written");
        assert_eq!(read(file.path(), 5).expect("it fits"), b"12345");
        let error = read(file.path(), 4).expect_err("it is larger");
        assert_eq!(error.to_string(), "it has 5 bytes; at most 4 are read");
        // A sparse file of 1 TiB takes no memory.
        file.as_file().set_len(1 << 40).expect("it is sparse");
        let error = read_text(file.path()).expect_err("it is larger");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
