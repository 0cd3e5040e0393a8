#![expect(
    unsafe_code,
    reason = "runs before main, and asks the system for signal handlers"
)]
//! Signal dispositions as the parent of this process set them.
//!
//! MPICH of Debian loads UCX, which takes SIGHUP and the signals of crashes as soon as it is loaded,
//! whether MPI is used or not: `nohup cobre run` would end with the terminal. The disposition of each
//! signal is read before any library is initialised, and put back, where UCX has taken it, before
//! Rust's runtime starts.

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Signals that were ignored, one bit each.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Run before the initialisers of shared libraries.
#[used]
#[unsafe(link_section = ".preinit_array")]
static FIRST: extern "C" fn() = read;

/// Run after them, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LAST: extern "C" fn() = put_back;

/// The signals with a disposition: all but those of real time.
fn signals() -> impl Iterator<Item = c_int> {
    1..32
}

extern "C" fn read() {
    for signal in signals() {
        if handler(signal) == libc::SIG_IGN {
            IGNORED.fetch_or(1 << signal, Relaxed);
        }
    }
}

extern "C" fn put_back() {
    for signal in signals() {
        if !is_of_ucx(handler(signal)) {
            continue;
        }
        let before = if IGNORED.load(Relaxed) & (1 << signal) == 0 {
            libc::SIG_DFL
        } else {
            libc::SIG_IGN
        };
        // SAFETY: neither disposition runs any code of this process.
        unsafe { libc::signal(signal, before) };
    }
}

/// The handler of a signal, `SIG_DFL` or `SIG_IGN`; `SIG_DFL` for numbers that are no signal.
fn handler(signal: c_int) -> libc::sighandler_t {
    // SAFETY: all of its fields may be zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null action sets nothing, and `action` is valid for writing.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    action.sa_sigaction
}

/// True if the handler is a function of UCX's library of services.
fn is_of_ucx(handler: libc::sighandler_t) -> bool {
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return false;
    }
    // SAFETY: all of its fields may be zero.
    let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for, and `place` is valid for writing.
    let found = unsafe { libc::dladdr(handler as *const _, &raw mut place) };
    if found == 0 || place.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the loader's name of a library that is loaded, a string that ends with zero.
    let library = unsafe { CStr::from_ptr(place.dli_fname) };
    library.to_bytes().windows(6).any(|part| part == b"libucs")
}
