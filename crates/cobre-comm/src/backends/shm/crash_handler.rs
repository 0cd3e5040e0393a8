#![expect(
    unsafe_code,
    reason = "handles fatal signals, and reaches its ranks from the handler"
)]
//! The crash handler: when a process takes a fatal signal, the other ranks are told before the
//! kernel writes a core dump; when it panics, the text is kept for the record. Then the process goes
//! on to die, or not, exactly as it would have: what was installed before is run after.

use std::any::Any;
use std::panic::PanicHookInfo;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use libc::{c_int, c_void, siginfo_t};

use super::death;
use super::rank_status::{self, RankStatus};
use super::segment::Mapping;
use crate::backends::fork_guard::ForkGuard;

/// Signals that dump core, which the kernel does before it says that the process is dead.
const FATAL: [c_int; 10] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGABRT,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGQUIT,
    libc::SIGXCPU,
    libc::SIGXFSZ,
];

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// A rank of this process.
#[derive(Debug)]
pub(super) struct LocalRank {
    pub(super) header: Arc<Mapping>,
    pub(super) rank: usize,
    pub(super) fork_guard: ForkGuard,
    /// The times since which its threads sleep in collectives, of those that do.
    sleepers: Mutex<Vec<u64>>,
}

impl LocalRank {
    pub(super) fn new(header: Arc<Mapping>, rank: usize) -> Self {
        Self {
            header,
            rank,
            fork_guard: ForkGuard::here(),
            sleepers: Mutex::default(),
        }
    }

    #[inline]
    pub(super) fn status(&self) -> RankStatus<'_> {
        RankStatus::of(&self.header, self.rank)
    }

    /// Notes that the calling thread sleeps in a collective, until the guard goes.
    pub(super) fn sleep(&self) -> SleepGuard<'_> {
        let since = rank_status::now().max(1);
        self.change_sleepers(|sleepers| sleepers.push(since));
        SleepGuard(self, since)
    }

    /// Several communicators may be waited on at once: the longest sleep is the one to tell.
    fn change_sleepers(&self, change: impl FnOnce(&mut Vec<u64>)) {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut sleepers);
        let longest = sleepers.iter().min().copied().unwrap_or(0);
        self.status().sleep_since(longest);
    }
}

/// Keeps a rank noted as asleep.
pub(super) struct SleepGuard<'a>(&'a LocalRank, u64);

impl Drop for SleepGuard<'_> {
    fn drop(&mut self) {
        self.0.change_sleepers(|sleepers| {
            if let Some(place) = sleepers.iter().position(|since| *since == self.1) {
                sleepers.swap_remove(place);
            }
        });
    }
}

/// The ranks of this process, for the handlers. A process is seldom more than one; a rank that
/// finds no room is found dead by the kernel's mark alone.
static REGISTERED: [AtomicPtr<LocalRank>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];
/// The number of threads that look through `REGISTERED`.
static READERS: AtomicU32 = AtomicU32::new(0);
/// The actions installed before, in the order of `FATAL`.
static PREVIOUS: [OnceLock<libc::sigaction>; FATAL.len()] =
    [const { OnceLock::new() }; FATAL.len()];

/// Registers a rank with the handlers until it is dropped.
#[derive(Debug)]
pub(super) struct CrashRegistration(Option<(usize, Arc<LocalRank>)>);

impl CrashRegistration {
    pub(super) fn of(local_rank: &Arc<LocalRank>) -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            listen_to_panics();
            (0..FATAL.len()).for_each(handle);
        });
        let pointer = Arc::as_ptr(local_rank).cast_mut();
        let free = |place: &AtomicPtr<LocalRank>| {
            let taken = place.compare_exchange(ptr::null_mut(), pointer, SeqCst, SeqCst);
            taken.is_ok()
        };
        let place = REGISTERED.iter().position(free);
        Self(place.map(|place| (place, local_rank.clone())))
    }
}

impl Drop for CrashRegistration {
    fn drop(&mut self) {
        let Some((place, local_rank)) = self.0.take() else {
            return;
        };
        REGISTERED[place].store(ptr::null_mut(), SeqCst);
        // Whoever took the pointer before is done with it in a moment, unless it was left behind by a
        // fork.
        for _ in 0..100_000 {
            if READERS.load(SeqCst) == 0 {
                return;
            }
            std::thread::yield_now();
        }
        std::mem::forget(local_rank);
    }
}

/// Calls `publish` for every registered rank of this process.
fn for_each(publish: impl Fn(RankStatus<'_>)) {
    READERS.fetch_add(1, SeqCst);
    for place in &REGISTERED {
        // SAFETY: null, or a rank whose `CrashRegistration` keeps it until there are no readers.
        if let Some(local_rank) = unsafe { place.load(SeqCst).as_ref() }
            && local_rank.fork_guard.is_here()
        {
            publish(local_rank.status());
        }
    }
    READERS.fetch_sub(1, SeqCst);
}

/// Notes every panic, caught or not: only the rank's end makes it the cause.
fn listen_to_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = text_of(info);
        for_each(|status| status.publish_panic(&text));
        before(info);
    }));
}

fn text_of(info: &PanicHookInfo<'_>) -> String {
    let payload: &dyn Any = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no text");
    match info.location() {
        Some(place) => format!("{text} ({place})"),
        None => text.to_owned(),
    }
}

/// True if the signal tells of broken memory that nobody has touched.
#[cfg(not(cobre_portable))]
fn is_advice(signal: c_int, code: c_int) -> bool {
    (signal, code) == (libc::SIGBUS, libc::BUS_MCEERR_AO)
}

/// Only Linux tells of broken memory that nobody has touched.
#[cfg(cobre_portable)]
fn is_advice(_: c_int, _: c_int) -> bool {
    false
}

/// Installs the handler for one signal and keeps what was there. Who ignores a signal goes on to.
fn handle(which: usize) {
    let handler: Handler = on_fatal;
    let Some(mut action) = action_of(FATAL[which]) else {
        return;
    };
    if action.sa_sigaction == libc::SIG_IGN || PREVIOUS[which].set(action).is_err() {
        return;
    }
    // A handler that was there gets what it asked for.
    if action.sa_sigaction == libc::SIG_DFL {
        action.sa_flags = libc::SA_ONSTACK;
    }
    action.sa_flags = action.sa_flags & !libc::SA_RESETHAND | libc::SA_SIGINFO;
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the handler does only what a signal handler may, and what was there is kept.
    unsafe { libc::sigaction(FATAL[which], &raw const action, ptr::null_mut()) };
}

/// Tells the other ranks, and leaves the rest to what was installed before: atomics and system
/// calls alone, as nothing else is safe here.
extern "C" fn on_fatal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    for_each(|status| {
        status.publish_signal(signal);
        death::wake_all(status.alive());
    });
    let which = FATAL.iter().position(|fatal| *fatal == signal);
    let before = which.and_then(|which| PREVIOUS[which].get());
    let before = before.filter(|before| before.sa_sigaction != libc::SIG_DFL);
    if before.is_none_or(|before| before.sa_flags & libc::SA_RESETHAND != 0) {
        set_default(signal);
    }
    if let Some(before) = before {
        run(before, signal, info, context);
    }
    // A fault happens again when this returns, and is fatal if what was installed before has given
    // up on it. Whatever else brought the signal does not happen again.
    // SAFETY: the kernel passes valid information with the signal.
    let code = unsafe { (*info).si_code };
    if !happens_again(signal, code)
        && action_of(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL)
    {
        // SAFETY: sends a signal to this thread, which takes it when this returns.
        unsafe { libc::raise(signal) };
    }
}

/// True if the signal comes from an instruction that is tried again.
fn happens_again(signal: c_int, code: c_int) -> bool {
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
    // Broken memory that nobody has touched yet is no fault, and who sends a signal has no code
    // above zero.
    faults.contains(&signal) && code > 0 && !is_advice(signal, code)
}

/// Calls a handler that was installed before.
fn run(before: &libc::sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if before.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: an action with this flag holds a function of this type.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(before.sa_sigaction) };
        handler(signal, info, context);
    } else {
        // SAFETY: an action without the flag holds a function of this type.
        let handler =
            unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(before.sa_sigaction) };
        handler(signal);
    }
}

/// The action installed for `signal`.
fn action_of(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: an all-zero action is a valid one to fill.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks for the present action only; `action` is valid to write.
    let known = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } == 0;
    known.then_some(action)
}

fn set_default(signal: c_int) {
    // SAFETY: an all-zero action is the default one.
    let action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the default action has no requirements.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::super::layout::HEADER;
    use super::*;

    #[test]
    fn a_rank_sleeps_as_long_as_any_of_its_threads() {
        let local_rank = LocalRank::new(Arc::new(Mapping::anonymous(HEADER)), 3);
        assert_eq!(local_rank.status().asleep(), None);
        let (one, other) = (local_rank.sleep(), local_rank.sleep());
        drop(one);
        assert!(local_rank.status().asleep().is_some());
        drop(other);
        assert_eq!(local_rank.status().asleep(), None);
    }
}
