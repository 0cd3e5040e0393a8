#![expect(
    unsafe_code,
    reason = "handles fatal signals, and reaches its ranks from the handler"
)]
//! A rank's last words: when its process takes a fatal signal, the other ranks are told before the
//! kernel writes a core dump; when it panics, the text is kept for the record. Then the process goes
//! on to die, or not, exactly as it would have: what was installed before is run after.

use std::any::Any;
use std::panic::PanicHookInfo;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Once, OnceLock};

use libc::{c_int, c_void, siginfo_t};
use rustix::thread::futex;

use super::seat::Seat;
use super::segment::Mapping;
use crate::backends::origin::Origin;

/// Signals that end a process because of what it did.
const FATAL: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGABRT,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// A rank that this process is.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) header: Arc<Mapping>,
    pub(super) rank: usize,
    pub(super) origin: Origin,
}

impl Member {
    #[inline]
    pub(super) fn seat(&self) -> Seat<'_> {
        Seat::of(&self.header, self.rank)
    }
}

/// The ranks of this process that have last words to say. A process is seldom more than one; who
/// finds no room is found dead by the kernel's mark alone.
static MEMBERS: [AtomicPtr<Member>; 8] = [const { AtomicPtr::new(ptr::null_mut()) }; 8];
/// How many threads look through `MEMBERS`.
static READERS: AtomicU32 = AtomicU32::new(0);
/// What was installed before, in the order of `FATAL`.
static BEFORE: [OnceLock<libc::sigaction>; FATAL.len()] = [const { OnceLock::new() }; FATAL.len()];

/// Lets a rank speak until it is dropped.
#[derive(Debug)]
pub(super) struct Voice(Option<(usize, Arc<Member>)>);

impl Voice {
    pub(super) fn of(member: &Arc<Member>) -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            listen_to_panics();
            (0..FATAL.len()).for_each(handle);
        });
        let pointer = Arc::as_ptr(member).cast_mut();
        let free = |place: &AtomicPtr<Member>| {
            let taken = place.compare_exchange(ptr::null_mut(), pointer, SeqCst, SeqCst);
            taken.is_ok()
        };
        let place = MEMBERS.iter().position(free);
        Self(place.map(|place| (place, member.clone())))
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        if let Some((place, _member)) = &self.0 {
            MEMBERS[*place].store(ptr::null_mut(), SeqCst);
            // Whoever took the pointer before is done with it in a moment.
            while READERS.load(SeqCst) != 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// Calls `say` for every rank that this process is.
fn for_each(say: impl Fn(Seat<'_>)) {
    READERS.fetch_add(1, SeqCst);
    for place in &MEMBERS {
        // SAFETY: null, or a member whose `Voice` keeps it until there are no readers.
        if let Some(member) = unsafe { place.load(SeqCst).as_ref() }
            && member.origin.is_here()
        {
            say(member.seat());
        }
    }
    READERS.fetch_sub(1, SeqCst);
}

/// Notes every panic, caught or not: only the rank's end makes it the cause.
fn listen_to_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = text_of(info);
        for_each(|seat| seat.say_panic(&text));
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

/// Installs the handler for one signal and keeps what was there.
fn handle(which: usize) {
    let handler: Handler = on_fatal;
    if let Some(mut action) = action_of(FATAL[which])
        && BEFORE[which].set(action).is_ok()
    {
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler does only what a signal handler may, and what was there is kept.
        unsafe { libc::sigaction(FATAL[which], &raw const action, ptr::null_mut()) };
    }
}

/// Tells the other ranks, and leaves the rest to what was installed before: atomics and system
/// calls alone, as nothing else is safe here.
extern "C" fn on_fatal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    for_each(|seat| {
        seat.say_signal(signal);
        let _ = futex::wake(seat.alive(), futex::Flags::empty(), i32::MAX as u32);
    });
    let which = FATAL.iter().position(|fatal| *fatal == signal);
    match which.and_then(|which| BEFORE[which].get()) {
        Some(before) if ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) => {
            run(before, signal, info, context);
        }
        // Nobody ignores a fault of his own, and an abort is meant.
        _ => set_default(signal),
    }
    // A fault of the program's own happens again when this returns, and is fatal if what was
    // installed before has given up on it. A signal that somebody sent does not happen again.
    // SAFETY: the kernel passes valid information with the signal.
    let sent = unsafe { (*info).si_code } <= 0;
    if sent && action_of(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL) {
        // SAFETY: sends a signal to this thread, which takes it when this returns.
        unsafe { libc::raise(signal) };
    }
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

/// What happens on `signal`.
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
