#![expect(
    unsafe_code,
    reason = "an allocator that notes what fails, and handlers of SIGABRT and of C++"
)]
//! Aborts of this process as errors: for want of memory, or in a library.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cobre_comm::{ErrorKind, report};

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

/// The number of bytes of an allocation of C++ that failed: nobody says.
const UNKNOWN: usize = usize::MAX;

/// The channels of an abort.
struct Channels {
    /// True to print a line of JSON.
    json: bool,
    /// The launcher's pipe, and the beginning of a statement of the error.
    launcher: Option<(i32, String)>,
}

static CHANNELS: OnceLock<Channels> = OnceLock::new();

unsafe extern "C" {
    /// `std::set_new_handler` of the C++ library, which HiGHS is linked to.
    #[link_name = "_ZSt15set_new_handlerPFvvE"]
    fn set_new_handler(handler: extern "C" fn()) -> *mut c_void;
}

/// Makes an abort of this process an error that is told: as JSON, and to the launcher that is `listening`. One for
/// want of memory ends with the code of that kind.
pub(crate) fn catch(json: bool, listening: bool) {
    let launcher = report::statement_channel().filter(|_| listening);
    let launcher = launcher.map(|(pipe, said)| (pipe, said + r#"{"second_hand":false,"#));
    let json = json && !listening;
    let _ = CHANNELS.set(Channels { json, launcher });
    let handler: extern "C" fn(c_int) = aborting;
    // SAFETY: the handler calls only what POSIX allows in one.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
    // SAFETY: the handler does not return, as C++ allows.
    unsafe { set_new_handler(no_memory) };
}

/// Called by C++ if there is no memory: HiGHS would throw an exception through Rust.
extern "C" fn no_memory() {
    FAILED.store(UNKNOWN, Relaxed);
    let text = b"memory allocation failed in the C++ library\n";
    // SAFETY: the text has this length.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    // SAFETY: ends the process; the handler of the signal tells why.
    unsafe { libc::abort() };
}

extern "C" fn aborting(_signal: c_int) {
    let bytes = FAILED.load(Relaxed);
    if let Some(channels) = CHANNELS.get() {
        if channels.json {
            write(libc::STDOUT_FILENO, "{", bytes);
        }
        match &channels.launcher {
            // Without a statement the launcher tells of the signal.
            Some((pipe, beginning)) if bytes > 0 => write(*pipe, beginning, bytes),
            _ => {}
        }
    }
    if bytes > 0 {
        // SAFETY: a handler may end the process.
        unsafe { libc::_exit(c_int::from(exit::of(ErrorKind::Memory))) };
    }
    // SAFETY: a handler may change dispositions.
    unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
    // SAFETY: a handler may raise signals; this one comes after its return.
    unsafe { libc::raise(libc::SIGABRT) };
}

/// Writes a beginning and an error as the last key of an object of JSON. Allocates nothing.
fn write(descriptor: c_int, beginning: &str, bytes: usize) {
    let (rank, memory) = (ErrorKind::Rank.name(), ErrorKind::Memory.name());
    let mut line = [0; 512];
    let mut rest = &mut line[..];
    let _ = match bytes {
        0 => writeln!(
            rest,
            r#"{beginning}"error":{{"kind":"{rank}","message":"the process aborted"}}}}"#
        ),
        UNKNOWN => writeln!(
            rest,
            r#"{beginning}"error":{{"kind":"{memory}","message":"out of memory"}}}}"#
        ),
        _ => writeln!(
            rest,
            r#"{beginning}"error":{{"bytes":{bytes},"kind":"{memory}","message":"out of memory"}}}}"#
        ),
    };
    let length = 512 - rest.len();
    // SAFETY: the buffer has this length, and a handler may write.
    unsafe { libc::write(descriptor, line.as_ptr().cast(), length) };
}
