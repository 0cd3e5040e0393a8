#![expect(
    unsafe_code,
    reason = "registers a word with the kernel that changes when this process dies"
)]
//! Detection of dead ranks. Each process has a thread that does two things: it holds a *robust* futex word in
//! the segment, which the kernel marks when the process dies, before it frees any memory; and it
//! waits for that mark on the words of the other ranks. The first to see one posts the record of
//! the loss and wakes everyone. Collectives pay nothing for it.
//!
//! The kernel wakes one watcher per death. Should that one die too, or the kernel know no robust
//! futexes, the others look again every few milliseconds, at the words and at the processes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::futex;

use super::crash_handler::{CrashRegistration, LocalRank, SleepGuard};
use super::event_count;
use super::group::SegmentHeader;
use super::rank_status::{self, OWNER_DIED, RankStatus};
use super::record;
use super::segment::Mapping;
use super::stall::Stall;
use crate::detector::Detector;
use crate::terminal;
use crate::transport::TransportFault;

/// Makes the kernel wake a watcher when it sets the mark.
const WAITERS: u32 = 0x8000_0000;
/// Futexes that the kernel waits for at once, less the one that ends the thread.
const MOST_WATCHED: usize = 126;
/// The time after which a death is found that nobody was woken for.
const SLICE: Duration = Duration::from_millis(10);
/// The same, where nobody is ever woken.
const SHORT_SLICE: Duration = Duration::from_millis(5);
/// The interval at which a rank looks for a stall.
const STALL_SLICE: Duration = Duration::from_millis(200);

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

/// This process as a live rank of a job. Dropping it is an orderly leave.
#[derive(Debug)]
pub(super) struct Liveness {
    local_rank: Arc<LocalRank>,
    registration: Option<CrashRegistration>,
    quit: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// Announces `rank` of `size` as alive and begins to watch the others.
    pub(super) fn begin(
        header: Arc<Mapping>,
        rank: usize,
        size: usize,
        stall: Duration,
    ) -> io::Result<Self> {
        let quit = Arc::new(AtomicU32::new(0));
        let (registered, ready) = mpsc::channel();
        let watcher = Watcher {
            header: header.clone(),
            quit: quit.clone(),
            rank,
            size,
            detector: detector(),
            probes: (0..size).map(|_| OnceLock::new()).collect(),
        };
        let stall = Stall::after(stall);
        let thread = std::thread::Builder::new()
            .name("cobre-liveness".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || watcher.run(&registered, stall))?;
        // The word must stand before this rank is counted.
        let _ = ready.recv();
        let local_rank = Arc::new(LocalRank::new(header, rank));
        Ok(Self {
            registration: Some(CrashRegistration::of(&local_rank)),
            local_rank,
            quit,
            thread: Some(thread),
        })
    }

    /// Refuses a process that is not the rank but a fork of it.
    #[inline]
    pub(super) fn check(&self) -> Result<(), TransportFault> {
        self.local_rank.fork_guard.check()
    }

    pub(super) fn is_here(&self) -> bool {
        self.local_rank.fork_guard.is_here()
    }

    pub(super) fn rank(&self) -> usize {
        self.local_rank.rank
    }

    #[inline]
    pub(super) fn status(&self) -> RankStatus<'_> {
        self.local_rank.status()
    }

    pub(super) fn sleep(&self) -> SleepGuard<'_> {
        self.local_rank.sleep()
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        if !self.is_here() {
            // A forked child has neither the thread nor the right to write the rank's status.
            std::mem::forget((self.registration.take(), self.thread.take()));
            return;
        }
        self.status().leave();
        event_count::notify_all(&SegmentHeader(&self.local_rank.header));
        self.quit.store(1, Relaxed);
        let _ = futex::wake(&self.quit, futex::Flags::empty(), 1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watcher {
    header: Arc<Mapping>,
    quit: Arc<AtomicU32>,
    rank: usize,
    size: usize,
    detector: Detector,
    /// Of each rank that has come.
    probes: Vec<OnceLock<ProcessProbe>>,
}

impl Watcher {
    fn run(&self, registered: &mpsc::Sender<()>, mut stall: Stall) {
        block_signals();
        let status = self.status(self.rank);
        status.publish_namespace();
        status.publish_heartbeat();
        let own = status.alive();
        let hold = RobustFutex::of(own);
        let _ = registered.send(());
        let mut looked = Instant::now();
        while self.quit.load(Relaxed) == 0 {
            if let Some(dead) = self.others().find(|&rank| self.is_dead(rank)) {
                let status = self.status(dead);
                record::post(&self.header, &status.lost(status.end()));
                event_count::notify_all(&SegmentHeader(&self.header));
                break;
            }
            self.status(self.rank).publish_heartbeat();
            if looked.elapsed() > STALL_SLICE {
                looked = Instant::now();
                if let Some(report) = stall.due(&self.header, self.rank, self.size) {
                    tell(report);
                }
            }
            self.sleep();
        }
        // Whether it ends early or not, the word stays until the rank leaves.
        while self.quit.load(Relaxed) == 0 {
            let _ = futex::wait(&self.quit, futex::Flags::empty(), 0, None);
        }
        hold.release(own);
    }

    fn status(&self, rank: usize) -> RankStatus<'_> {
        RankStatus::of(&self.header, rank)
    }

    /// The ranks this one watches: with very many, each has enough watchers all the same.
    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        (1..self.size.min(MOST_WATCHED + 1)).map(|step| (self.rank + step) % self.size)
    }

    /// True if `rank` has joined, has not left, and is gone.
    fn is_dead(&self, rank: usize) -> bool {
        let status = self.status(rank);
        // Pairs with the kernel's mark, and with a rank's own in `RankStatus::publish_signal`.
        let word = status.alive().load(Acquire);
        if word == 0 || status.has_left() {
            return false;
        }
        if word & OWNER_DIED != 0 {
            return true;
        }
        // Where the kernel marks nothing, the process itself says the same.
        let probe =
            || self.probes[rank].get_or_init(|| ProcessProbe::of(status.pid(), status.namespace()));
        self.detector == Detector::Processes && probe().has_ended() == Some(true)
    }

    /// Waits until a word changes, this rank leaves, or it is time to look again.
    fn sleep(&self) {
        if self.detector != Detector::Woken {
            let slice = timespec(SHORT_SLICE);
            let _ = futex::wait(&self.quit, futex::Flags::empty(), 0, Some(&slice));
            return;
        }
        let mut waits = vec![waiter(&self.quit, 0)];
        for rank in self.others() {
            let word = self.status(rank).alive();
            let seen = word.load(Relaxed);
            if seen != 0 && seen & OWNER_DIED == 0 {
                waits.push(waiter(word, seen));
            }
        }
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32);
        let until = timespec(now + SLICE);
        let flags = futex::WaitvFlags::empty();
        // Woken, late or changed before: the caller looks again in any case.
        let _ = futex::waitv(&waits, flags, Some(&until), futex::ClockId::Monotonic);
    }
}

/// Another way to know whether a process lives, where the kernel marks no word.
#[derive(Debug)]
enum ProcessProbe {
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
    fn of(pid: u32, namespace: u64) -> Self {
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
    fn has_ended(&self) -> Option<bool> {
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

/// Writes to standard error from a thread of its own: who watches must neither end nor wait, even if
/// nobody reads.
fn tell(text: String) {
    let _ = std::thread::Builder::new()
        .name("cobre-report".to_owned())
        .stack_size(64 * 1024)
        .spawn(move || {
            block_signals();
            terminal::complain(&text);
        });
}

fn waiter(word: &AtomicU32, seen: u32) -> futex::Wait {
    let mut wait = futex::Wait::new();
    wait.val = seen.into();
    wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
    wait.flags = futex::WaitFlags::SIZE_U32;
    wait
}

/// This thread must not run the program's signal handlers.
fn block_signals() {
    // SAFETY: an all-zero set is a valid one to fill.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is a valid set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: `all` is a valid set, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()) };
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

/// The calling thread's hold on a robust word.
struct RobustFutex {
    head: *mut RobustListHead,
}

impl RobustFutex {
    /// Makes `word` this thread's: the kernel marks it if the thread dies.
    fn of(word: &AtomicU32) -> Self {
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
    fn release(self, word: &AtomicU32) {
        // SAFETY: `head` was leaked by `of`.
        let list = unsafe { &raw mut (*self.head).list };
        // SAFETY: only this thread and, at its death, the kernel use it; the list becomes empty.
        unsafe { (*list).next = list };
        word.store(0, Release);
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }
}
