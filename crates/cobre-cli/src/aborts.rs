#![expect(
    unsafe_code,
    reason = "an allocator that notes what fails, and a handler of SIGABRT"
)]
//! Aborts of this process as errors in JSON: for want of memory, or in a library.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cobre_comm::ErrorKind;

use crate::exit;

#[global_allocator]
static ALLOCATOR: NotingAllocator = NotingAllocator;

/// Bytes of the latest allocation that failed; 0 if none has.
static FAILED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which notes allocations that fail.
struct NotingAllocator;

#[inline]
fn noted(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        FAILED.store(bytes, Relaxed);
    }
    pointer
}

// SAFETY: every call goes to the system's allocator with the arguments of the caller, and its answer is returned.
unsafe impl GlobalAlloc for NotingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        noted(unsafe { System.realloc(pointer, layout, bytes) }, bytes)
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Makes an abort of this process print a line of JSON first. One for want of memory ends with the code of that kind.
pub(crate) fn tell_json() {
    let handler: extern "C" fn(c_int) = aborting;
    // SAFETY: the handler calls only what POSIX allows in one.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
}

extern "C" fn aborting(_signal: c_int) {
    let (rank, memory) = (ErrorKind::Rank.name(), ErrorKind::Memory.name());
    let bytes = FAILED.load(Relaxed);
    let mut line = [0; 256];
    let mut rest = &mut line[..];
    // A slice takes it without an allocation.
    let _ = match bytes {
        0 => writeln!(
            rest,
            r#"{{"error":{{"kind":"{rank}","message":"the process aborted"}}}}"#
        ),
        _ => writeln!(
            rest,
            r#"{{"error":{{"bytes":{bytes},"kind":"{memory}","message":"out of memory"}}}}"#
        ),
    };
    let length = 256 - rest.len();
    // SAFETY: the buffer has this length, and a handler may write.
    unsafe { libc::write(libc::STDOUT_FILENO, line.as_ptr().cast(), length) };
    if bytes > 0 {
        // SAFETY: a handler may end the process.
        unsafe { libc::_exit(c_int::from(exit::of(ErrorKind::Memory))) };
    }
    // SAFETY: a handler may change dispositions.
    unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
    // SAFETY: a handler may raise signals; this one comes after its return.
    unsafe { libc::raise(libc::SIGABRT) };
}
