//! Catching signals: a handler that writes their numbers into a pipe, which a loop can wait for.
#![expect(
    unsafe_code,
    reason = "signal handlers and masks are set by C functions, and a handler may call the one before it"
)]

use std::io;
use std::mem::{MaybeUninit, transmute};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use libc::{c_int, c_void, siginfo_t};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::plan::above_stdio;

/// One more than the highest signal number.
const SIGNALS: usize = 65;

/// The pipe that the handler writes to; it is never closed.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// By signal: the handler that was there before, to be called too; 0 if none.
static BEFORE: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
/// By signal: whether that one takes three arguments.
static BEFORE_TAKES_INFO: [AtomicBool; SIGNALS] = [const { AtomicBool::new(false) }; SIGNALS];
/// True if the second signal ends this process as if nothing caught it.
static IMPATIENT: AtomicBool = AtomicBool::new(false);
/// True if this process, and not the one that started it, has chosen to ignore SIGXFSZ.
static FILE_SIZE_IGNORED: AtomicBool = AtomicBool::new(false);
/// The time of the first signal, in milliseconds of some clock; 0 before.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// `timeout` and a closing terminal send their signal twice, a batch system sends it to ranks and launcher; so
/// soon after, it is the same one.
pub(crate) const SAME_SIGNAL: Duration = Duration::from_millis(200);

/// True if a [`SignalCatcher`] exists.
static TAKEN: AtomicBool = AtomicBool::new(false);

type PlainHandler = extern "C" fn(c_int);
type InfoHandler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: returns the address of this thread's `errno`, which lives as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid by the call above; the interrupted code must find its `errno` as it was.
    let saved = unsafe { errno.read() };
    let number = signal as u8;
    let pipe = PIPE.load(Ordering::Relaxed);
    // SAFETY: one byte from a live variable to a pipe that is never closed and does not block.
    unsafe { libc::write(pipe, (&raw const number).cast(), 1) };
    if IMPATIENT.load(Ordering::Relaxed) && is_second() {
        set_action(signal, &default_action());
        // SAFETY: sends this thread a signal, which arrives when this handler returns.
        unsafe { libc::raise(signal) };
    }
    // SAFETY: valid as above.
    unsafe { errno.write(saved) };
    let before = BEFORE[signal as usize].load(Ordering::Relaxed);
    if before == 0 {
    } else if BEFORE_TAKES_INFO[signal as usize].load(Ordering::Relaxed) {
        // SAFETY: the system had this address as a handler with SA_SIGINFO: it is such a function.
        let before = unsafe { transmute::<usize, InfoHandler>(before) };
        before(signal, info, context);
    } else {
        // SAFETY: the system had this address as a handler without SA_SIGINFO.
        let before = unsafe { transmute::<usize, PlainHandler>(before) };
        before(signal);
    }
}

/// True if another signal has arrived before this one.
fn is_second() -> bool {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: writes the time to the variable it is given the address of.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, now.as_mut_ptr()) };
    // SAFETY: filled above; all zeros is a time too.
    let now = unsafe { now.assume_init() };
    let now = 1 + now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000;
    match FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => false,
        Err(first) => now - first > SAME_SIGNAL.as_millis() as u64,
    }
}

/// Signals that arrive as bytes in a pipe until this is dropped, when their handlers are restored.
/// Signals that were ignored stay ignored.
pub(crate) struct SignalCatcher {
    pipe: &'static (OwnedFd, OwnedFd),
    before: Vec<(c_int, libc::sigaction)>,
}

impl SignalCatcher {
    /// Catches `signals`; `None` if another `SignalCatcher` of this process exists.
    pub(crate) fn new(signals: &[c_int]) -> io::Result<Option<Self>> {
        static SHARED: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let pipe = if let Some(pipe) = SHARED.get() {
            pipe
        } else {
            let pipe = self_pipe().inspect_err(|_| TAKEN.store(false, Ordering::Relaxed))?;
            SHARED.get_or_init(|| pipe)
        };
        let mut catch = Self::with(pipe, signals);
        // What an earlier one did not read.
        catch.read();
        Ok(Some(catch))
    }

    /// Lets the second signal end this process at once, as if nothing caught it.
    pub(crate) fn impatient(self) -> Self {
        FIRST.store(0, Ordering::Relaxed);
        IMPATIENT.store(true, Ordering::Relaxed);
        self
    }

    /// Catches `signals` in a process that was just forked, with a pipe of its own.
    pub(crate) fn after_fork(signals: &[c_int]) -> io::Result<Self> {
        Ok(Self::with(Box::leak(Box::new(self_pipe()?)), signals))
    }

    fn with(pipe: &'static (OwnedFd, OwnedFd), signals: &[c_int]) -> Self {
        PIPE.store(pipe.1.as_raw_fd(), Ordering::Relaxed);
        let mut before = Vec::new();
        for &signal in signals {
            let old = action(signal);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let chained = if old.sa_sigaction == libc::SIG_DFL {
                0
            } else {
                old.sa_sigaction
            };
            let takes_info = old.sa_flags & libc::SA_SIGINFO != 0;
            BEFORE_TAKES_INFO[signal as usize].store(takes_info, Ordering::Relaxed);
            BEFORE[signal as usize].store(chained, Ordering::Relaxed);
            let mut new = default_action();
            new.sa_sigaction = handler as *const () as usize;
            new.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK;
            set_action(signal, &new);
            before.push((signal, old));
        }
        Self { pipe, before }
    }

    /// The descriptor to poll.
    pub(crate) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.0.as_fd()
    }

    /// The signals that have arrived.
    pub(crate) fn read(&mut self) -> Vec<c_int> {
        let mut numbers = [0; 64];
        let count = rustix::io::read(&self.pipe.0, &mut numbers).unwrap_or(0);
        numbers[..count]
            .iter()
            .map(|number| c_int::from(*number))
            .collect()
    }
}

impl Drop for SignalCatcher {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            set_action(*signal, before);
        }
        IMPATIENT.store(false, Ordering::Relaxed);
        TAKEN.store(false, Ordering::Relaxed);
    }
}

/// Gives every signal that has a handler its default action. For a process that was just forked:
/// the handlers are those of the program it came from.
pub(crate) fn reset_all() {
    IMPATIENT.store(false, Ordering::Relaxed);
    for (signal, before) in (0..).zip(&BEFORE).skip(1) {
        before.store(0, Ordering::Relaxed);
        let ignored = action(signal).sa_sigaction == libc::SIG_IGN;
        // An ignored SIGCHLD would make children vanish uncollected.
        let ours = match signal {
            libc::SIGCHLD => true,
            libc::SIGXFSZ => FILE_SIZE_IGNORED.load(Ordering::Relaxed),
            _ => false,
        };
        if !ignored || ours {
            set_action(signal, &default_action());
        }
    }
}

/// Makes a write beyond the limit on file sizes an error, as a full disk is one, instead of a signal that ends the
/// process without a message. Programs that a launch of this process starts are spared.
pub fn ignore_file_size_signal() {
    if action(libc::SIGXFSZ).sa_sigaction == libc::SIG_DFL {
        let mut ignored = default_action();
        ignored.sa_sigaction = libc::SIG_IGN;
        set_action(libc::SIGXFSZ, &ignored);
        FILE_SIZE_IGNORED.store(true, Ordering::Relaxed);
    }
}

/// Lets this thread receive every signal.
pub(crate) fn unblock_all() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: fills the set it is given the address of.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set was filled above; no old mask is asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) };
}

/// This thread receives no signal until this is dropped.
pub(crate) struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    pub(crate) fn all() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: fills the set it is given the address of.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: the set was filled above, and there is room for the old mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: the call above cannot fail with these arguments, so it has written the old mask.
        let before = unsafe { before.assume_init() };
        Self { before }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: `before` is a mask the system gave; no old mask is asked for.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

fn self_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((above_stdio(reader)?, above_stdio(writer)?))
}

/// The default action, which takes no flags and blocks no other signal.
fn default_action() -> libc::sigaction {
    // SAFETY: all zeros is SIG_DFL with an empty mask and no flags.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The action installed for `signal`; the default for a number the C library keeps for itself.
fn action(signal: c_int) -> libc::sigaction {
    let mut action = default_action();
    // SAFETY: writes the action to the variable it is given the address of, or leaves it alone.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    action
}

/// Sets what happens on `signal`; does nothing for a number that cannot be set.
fn set_action(signal: c_int, action: &libc::sigaction) {
    // SAFETY: the action is the default, one the system gave, or the handler above, which makes
    // only calls that a handler may make.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, as it uses the process's only [`SignalCatcher`].
    #[test]
    fn signals_are_caught_chained_and_given_back() {
        static SEEN: AtomicBool = AtomicBool::new(false);
        extern "C" fn earlier(_: c_int) {
            SEEN.store(true, Ordering::Relaxed);
        }
        let mut own = default_action();
        own.sa_sigaction = earlier as *const () as usize;
        set_action(libc::SIGUSR2, &own);

        let mut catch = SignalCatcher::new(&[libc::SIGUSR2]).unwrap().unwrap();
        assert!(
            SignalCatcher::new(&[libc::SIGUSR2]).unwrap().is_none(),
            "only one at a time"
        );
        // SAFETY: sends this thread a signal that has a handler.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert_eq!(catch.read(), [libc::SIGUSR2]);
        assert!(SEEN.load(Ordering::Relaxed), "the earlier handler runs too");

        drop(catch);
        assert_eq!(action(libc::SIGUSR2).sa_sigaction, own.sa_sigaction);
        drop(
            SignalCatcher::new(&[libc::SIGUSR2])
                .unwrap()
                .expect("free again"),
        );
    }
}
