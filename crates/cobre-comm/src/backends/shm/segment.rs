#![expect(unsafe_code, reason = "maps memory that other processes map too")]
//! A mapping that other processes share: words that are atomic, and bytes that are only copied.

use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use bytemuck::Pod;
use rustix::io::Result;
use rustix::mm::{MapFlags, ProtFlags};

/// A shared mapping of this process, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is memory like any other; words are atomic, and who may copy which bytes
// when is decided between processes, so which thread does it makes no difference.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file` from `start` on, a multiple of the page size; at least one page.
    pub(super) fn new(file: BorrowedFd<'_>, start: usize, len: usize) -> Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh address range chosen by the kernel; nothing of ours is mapped over.
        let base = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len.max(1),
                access,
                MapFlags::SHARED,
                file,
                start as u64,
            )
        }?;
        Ok(Self::owning(base, len))
    }

    /// A mapping of its own, for tests of what works on mappings.
    #[cfg(test)]
    pub(super) fn anonymous(len: usize) -> Self {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `new`.
        let base = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), len.max(1), access, MapFlags::SHARED)
        };
        Self::owning(base.expect("memory for a test"), len)
    }

    fn owning(base: *mut std::ffi::c_void, len: usize) -> Self {
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at address zero");
        Self { base, len }
    }

    /// Faults in the pages that are reserved already, so that no collective has to.
    #[cfg(not(cobre_portable))]
    pub(super) fn populate(&self, range: Range<usize>) {
        const PAGE: usize = 4096;
        let start = range.start / PAGE * PAGE;
        let bytes = self.bytes(start..range.end);
        // Only a hint: a kernel that does not know it faults pages in as they are touched.
        // SAFETY: the range is inside this mapping, and populating changes no byte of it.
        let _ = unsafe {
            rustix::mm::madvise(
                bytes.as_ptr().cast(),
                bytes.len(),
                rustix::mm::Advice::LinuxPopulateWrite,
            )
        };
    }

    /// Pages are faulted in as they are touched.
    #[cfg(cobre_portable)]
    pub(super) fn populate(&self, _: Range<usize>) {}

    fn checked<T>(&self, offset: usize) -> *mut T {
        assert!(offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.len);
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.as_ptr().add(offset).cast() }
    }

    /// The word at `offset`.
    #[inline]
    pub(super) fn word64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: aligned, mapped as long as `self`, and only ever accessed as an atomic.
        unsafe { AtomicU64::from_ptr(self.checked(offset)) }
    }

    /// Stores `words` from `offset` on; who reads them is told by a published number.
    #[inline]
    pub(super) fn store_words(&self, offset: usize, words: &[u64]) {
        for (word, place) in words.iter().zip(self.words(offset, words.len())) {
            place.store(*word, Relaxed);
        }
    }

    /// The words from `offset` on.
    pub(super) fn load_words<const N: usize>(&self, offset: usize) -> [u64; N] {
        let places = self.words(offset, N);
        std::array::from_fn(|i| places[i].load(Relaxed))
    }

    #[inline]
    fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        assert!(offset + 8 * count <= self.len);
        // SAFETY: inside the mapping, as just checked, and aligned; only accessed as atomics.
        unsafe { std::slice::from_raw_parts(self.checked(offset), count) }
    }

    /// The half word at `offset`.
    #[inline]
    pub(super) fn word32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as in `word64`.
        unsafe { AtomicU32::from_ptr(self.checked(offset)) }
    }

    /// The bytes in `range`, to be copied in or out.
    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> SharedBytes<'_> {
        assert!(range.start <= range.end && range.end <= self.len);
        SharedBytes {
            // SAFETY: inside the mapping, as just checked.
            base: unsafe { self.base.as_ptr().add(range.start) },
            len: range.end - range.start,
            mapping: PhantomData,
        }
    }

    /// `count` elements at `offset`, read in place.
    ///
    /// The caller is a point of the protocol where every rank that may write these bytes has
    /// published them and writes them again only after this rank has moved on.
    #[inline]
    pub(super) fn published<T: Pod>(&self, offset: usize, count: usize) -> &[T] {
        let bytes = self.bytes(offset..offset + count * size_of::<T>());
        assert!(bytes.base.cast::<T>().is_aligned());
        // SAFETY: inside the mapping and aligned, as just checked; any bits are a `T`; no rank
        // writes them while the slice lives, by the protocol.
        unsafe { std::slice::from_raw_parts(bytes.base.cast(), count) }
    }

    /// `count` elements at `offset`, written in place.
    ///
    /// The caller is a point of the protocol where these bytes are this rank's alone, and the
    /// exclusive borrow of whatever owns the mapping keeps this process from a second slice.
    #[inline]
    pub(super) fn owned<T: Pod>(&mut self, offset: usize, count: usize) -> &mut [T] {
        let bytes = self.bytes(offset..offset + count * size_of::<T>());
        assert!(bytes.base.cast::<T>().is_aligned());
        // SAFETY: as in `published`; no other rank reads or writes these bytes, by the protocol,
        // and this process holds the mapping exclusively.
        unsafe { std::slice::from_raw_parts_mut(bytes.base.cast(), count) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and nothing borrowed from it is left.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len.max(1)) };
    }
}

/// A range of a mapping that may only be copied, since other processes can write it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedBytes<'a> {
    base: *mut u8,
    len: usize,
    mapping: PhantomData<&'a Mapping>,
}

impl SharedBytes<'_> {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn as_ptr(self) -> *mut u8 {
        self.base
    }

    /// The bytes in `range` of these.
    #[inline]
    pub(super) fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len);
        Self {
            // SAFETY: inside this range, as just checked.
            base: unsafe { self.base.add(range.start) },
            len: range.end - range.start,
            mapping: PhantomData,
        }
    }
}
