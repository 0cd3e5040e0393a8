#![expect(
    unsafe_code,
    reason = "registers a word with the kernel that changes when this process dies"
)]
//! The kernel's part in the detection of dead ranks, on Linux: robust futexes, waits on many words, process descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::futex;

use super::rank_status::{self, OWNER_DIED};
use crate::detector::Detector;

/// Makes the kernel wake a watcher when it sets the mark.
const WAITERS: u32 = 0x8000_0000;
/// Futexes that the kernel waits for at once, less the one that ends the thread.
pub(super) const MOST_WATCHED: usize = 126;
/// The time after which a death is found that nobody was woken for.
const SLICE: Duration = Duration::from_millis(10);
/// The same, where nobody is ever woken.
const SHORT_SLICE: Duration = Duration::from_millis(5);

/// The detector that works here, found out by trying it once: a thread ends with its word held, as a
/// process would. A kernel that accepts the call may still do nothing with it.
pub(in crate::backends) fn detector() -> Detector {
    static FOUND: OnceLock<Detector> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let own = || ProcessProbe::of(std::process::id(), rank_status::namespace());
        match (marks_words(), waits_on_many()) {
            (true, true) => Detector::Woken,
            (true, false) => Detector::Marked,
            (false, _) if own().has_ended() == Some(false) => Detector::Processes,
            (false, _) => Detector::Nothing,
        }
    })
}

fn marks_words() -> bool {
    let word = Arc::new(AtomicU32::new(0));
    let held = word.clone();
    let ended = std::thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(move || {
            RobustFutex::of(&held);
        })
        .is_ok_and(|thread| thread.join().is_ok());
    ended && word.load(Acquire) & OWNER_DIED != 0
}

fn waits_on_many() -> bool {
    let word = AtomicU32::new(1);
    let flags = futex::WaitvFlags::empty();
    // The value is wrong on purpose: a kernel that knows the call returns at once and says so.
    let answer = futex::waitv(&[waiter(&word, 0)], flags, None, futex::ClockId::Monotonic);
    matches!(answer, Ok(_) | Err(Errno::AGAIN))
}

/// Waits until `quit` or one of the words with the value that was seen changes, or it is time to look again.
pub(super) fn wait<'a>(
    quit: &AtomicU32,
    words: impl Iterator<Item = (&'a AtomicU32, u32)>,
    detector: Detector,
) {
    if detector != Detector::Woken {
        let slice = timespec(SHORT_SLICE);
        let _ = futex::wait(quit, futex::Flags::empty(), 0, Some(&slice));
        return;
    }
    let mut waits = vec![waiter(quit, 0)];
    waits.extend(words.map(|(word, seen)| waiter(word, seen)));
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32);
    let until = timespec(now + SLICE);
    let flags = futex::WaitvFlags::empty();
    // Woken, late or changed before: the caller looks again in any case.
    let _ = futex::waitv(&waits, flags, Some(&until), futex::ClockId::Monotonic);
}

/// Waits until `quit` changes, or returns early.
pub(super) fn wait_for_quit(quit: &AtomicU32) {
    let _ = futex::wait(quit, futex::Flags::empty(), 0, None);
}

/// Wakes who waits for a change of the word. A signal handler may call it.
pub(super) fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Another way to know whether a process lives, where the kernel marks no word.
#[derive(Debug)]
pub(super) enum ProcessProbe {
    /// A descriptor of it, which neither a process that nobody has collected nor a number that is
    /// used again can deceive.
    Descriptor(OwnedFd),
    /// Its entry in the process table.
    Entry(u32),
    /// The process was gone before it could be had.
    Gone,
    /// Its number belongs to another namespace.
    None,
}

impl ProcessProbe {
    pub(super) fn of(pid: u32, namespace: u64) -> Self {
        let here = rank_status::namespace();
        let number = Pid::from_raw(pid.cast_signed());
        match number.filter(|_| here != 0 && namespace == here) {
            None => Self::None,
            Some(number) => match pidfd_open(number, PidfdFlags::empty()) {
                Ok(descriptor) => Self::Descriptor(descriptor),
                Err(Errno::SRCH) => Self::Gone,
                Err(_) => Self::Entry(pid),
            },
        }
    }

    /// `None` if it cannot tell.
    pub(super) fn has_ended(&self) -> Option<bool> {
        match self {
            Self::Descriptor(descriptor) => {
                let at_once = futex::Timespec::default();
                let mut process = [PollFd::new(descriptor, PollFlags::IN)];
                poll(&mut process, Some(&at_once)).ok()?;
                let told = process[0].revents();
                // Somebody else may have closed it.
                (!told.contains(PollFlags::NVAL)).then(|| told.contains(PollFlags::IN))
            }
            Self::Entry(pid) => match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
                Ok(line) => {
                    // The state follows the name, which may contain anything.
                    let (_, rest) = line.rsplit_once(')')?;
                    Some(rest.trim_start().starts_with(['Z', 'X']))
                }
                Err(error) => Some(error.kind() == io::ErrorKind::NotFound),
            },
            Self::Gone => Some(true),
            Self::None => None,
        }
    }
}

fn timespec(time: Duration) -> futex::Timespec {
    futex::Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn waiter(word: &AtomicU32, seen: u32) -> futex::Wait {
    let mut wait = futex::Wait::new();
    wait.val = seen.into();
    wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
    wait.flags = futex::WaitFlags::SIZE_U32;
    wait
}

/// The list that the kernel walks when a thread dies. Lives in private memory, so that no other process can
/// mislead the kernel.
#[repr(C)]
struct RobustListNode {
    next: *mut RobustListNode,
}

#[repr(C)]
struct RobustListHead {
    list: RobustListNode,
    futex_offset: libc::c_long,
    pending: *mut RobustListNode,
}

/// The mark of a rank: a robust word.
pub(super) type RankMark = RobustFutex;

/// The calling thread's hold on a robust word.
pub(super) struct RobustFutex {
    head: *mut RobustListHead,
}

impl RobustFutex {
    /// Makes `word` this thread's: the kernel marks it if the thread dies.
    pub(super) fn of(word: &AtomicU32) -> Self {
        // Never freed: the kernel may read both until the thread is gone. A few bytes per job.
        let node = Box::leak(Box::new(RobustListNode {
            next: std::ptr::null_mut(),
        }));
        let head = Box::leak(Box::new(RobustListHead {
            list: RobustListNode { next: node },
            futex_offset: word.as_ptr() as libc::c_long - (&raw const *node) as libc::c_long,
            pending: std::ptr::null_mut(),
        }));
        node.next = &raw mut head.list;
        let head: *mut RobustListHead = head;
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .cast_unsigned();
        word.store(tid | WAITERS, Release);
        // SAFETY: the list is well formed and stays where it is. A kernel that refuses leaves the
        // word unmarked, as the trial at the start has found out.
        unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<RobustListHead>()) };
        Self { head }
    }

    /// Gives the word up in good order.
    pub(super) fn release(self, word: &AtomicU32) {
        // SAFETY: `head` was leaked by `of`.
        let list = unsafe { &raw mut (*self.head).list };
        // SAFETY: only this thread and, at its death, the kernel use it; the list becomes empty.
        unsafe { (*list).next = list };
        word.store(0, Release);
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }
}
