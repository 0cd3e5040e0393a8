//! Bytes on their way to a descriptor that does not block.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// With more than this waiting, the source has to wait too.
const FULL: usize = 256 << 10;

/// Makes a descriptor not block, with its other flags as they are.
pub(super) fn unblock(descriptor: &OwnedFd) -> io::Result<()> {
    let flags = fcntl_getfl(descriptor)?;
    Ok(fcntl_setfl(descriptor, flags | OFlags::NONBLOCK)?)
}

/// The bytes that wait for a descriptor.
pub(super) struct ByteQueue {
    /// `None` once nobody reads it.
    target: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl ByteQueue {
    /// A queue to `target`, which does not block from now on.
    pub(super) fn new(target: OwnedFd) -> io::Result<Self> {
        unblock(&target)?;
        Ok(Self {
            target: Some(target),
            bytes: Vec::new(),
        })
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.target.is_some() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The descriptor to wait for if something waits for it.
    pub(super) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        let target = self.target.as_ref().filter(|_| !self.bytes.is_empty())?;
        Some(target.as_fd())
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() > FULL
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// False once a write has failed: the reader is gone.
    pub(super) fn is_open(&self) -> bool {
        self.target.is_some()
    }

    /// Drops what waits.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Writes what goes without waiting, and returns how much that was.
    pub(super) fn write(&mut self) -> usize {
        let mut written = 0;
        while let Some(target) = &self.target
            && written < self.bytes.len()
        {
            match rustix::io::write(target, &self.bytes[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.target = None;
                    self.bytes.clear();
                    return written;
                }
            }
        }
        self.bytes.drain(..written);
        written
    }
}

/// The result of a read that does not wait.
pub(super) enum ReadResult {
    Some(usize),
    NoneYet,
    End,
}

/// Reads what is there.
pub(super) fn read(source: impl AsFd, buffer: &mut [u8]) -> ReadResult {
    match rustix::io::read(source, buffer) {
        Ok(0) => ReadResult::End,
        Ok(count) => ReadResult::Some(count),
        Err(Errno::INTR | Errno::AGAIN) => ReadResult::NoneYet,
        Err(_) => ReadResult::End,
    }
}
