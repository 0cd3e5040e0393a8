#![expect(
    unsafe_code,
    reason = "registers a word with the kernel that changes when this process dies"
)]
//! Who is alive. Each process has a thread that does two things: it holds a *robust* futex word in
//! the segment, which the kernel marks when the process dies, before it frees any memory; and it
//! waits for that mark on the words of the other ranks. The first to see one posts the record of
//! the loss and wakes everyone. Collectives pay nothing for it.
//!
//! The kernel wakes one watcher per death. Should that one die too, or the kernel know no robust
//! futexes, the others look again every few milliseconds, at the words and at the process ids.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::futex;

use super::gate;
use super::group::Header;
use super::layout::header;
use super::record;
use super::segment::Mapping;
use crate::error::{Cause, Loss, Step};

/// Set by the kernel in the word of a thread that died.
const OWNER_DIED: u32 = 0x4000_0000;
/// Makes the kernel wake a watcher when it sets the mark.
const WAITERS: u32 = 0x8000_0000;
/// Futexes that the kernel waits for at once, less the one that ends the thread.
const MOST_WATCHED: usize = 126;
/// How soon a death is found that nobody was woken for.
const SLICE: Duration = Duration::from_millis(10);

/// This process's presence in a job. Dropping it is an orderly leave.
#[derive(Debug)]
pub(super) struct Liveness {
    header: Arc<Mapping>,
    rank: usize,
    quit: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Liveness {
    /// Announces `rank` of `size` as alive and begins to watch the others.
    pub(super) fn begin(header: Arc<Mapping>, rank: usize, size: usize) -> io::Result<Self> {
        let quit = Arc::new(AtomicU32::new(0));
        let (registered, ready) = mpsc::channel();
        let watcher = Watcher {
            header: header.clone(),
            quit: quit.clone(),
            rank,
            size,
            visible: (0..size).map(|_| AtomicBool::new(false)).collect(),
        };
        let thread = std::thread::Builder::new()
            .name("cobre-liveness".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || watcher.run(&registered))?;
        // The word must stand before this rank is counted.
        let _ = ready.recv();
        Ok(Self {
            header,
            rank,
            quit,
            thread: Some(thread),
        })
    }

    /// Whether `rank` has left in good order.
    #[inline]
    pub(super) fn has_left(header: &Mapping, rank: usize) -> bool {
        // Pairs with the release in `drop`: who sees that a rank left sees all it did.
        header.word32(header::left(rank)).load(Acquire) != 0
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        self.header
            .word32(header::left(self.rank))
            .store(1, Release);
        gate::ring(&Header(&self.header));
        self.quit.store(1, Relaxed);
        let _ = futex::wake(&self.quit, futex::Flags::empty(), 1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The record of a rank that was lost.
pub(super) fn lost(header: &Mapping, rank: usize, how: Loss) -> Cause {
    let uname = rustix::system::uname();
    Cause::RankLost {
        rank,
        host: uname.nodename().to_string_lossy().into_owned(),
        pid: header.word32(header::PIDS + 4 * rank).load(Relaxed),
        how,
        last: last_step(header, rank),
    }
}

/// Notes that `rank`, which is this process, begins a collective.
#[inline]
pub(super) fn note_step(header: &Mapping, rank: usize, step: Step) {
    header
        .word64(header::step(rank))
        .store(step.word(), Relaxed);
}

/// The last collective that `rank` began.
pub(super) fn last_step(header: &Mapping, rank: usize) -> Option<Step> {
    Step::of_word(header.word64(header::step(rank)).load(Relaxed))
}

struct Watcher {
    header: Arc<Mapping>,
    quit: Arc<AtomicU32>,
    rank: usize,
    size: usize,
    /// Ranks whose process id means something here.
    visible: Vec<AtomicBool>,
}

impl Watcher {
    fn run(&self, registered: &mpsc::Sender<()>) {
        block_signals();
        let own = self.word(self.rank);
        let hold = Hold::of(own);
        let _ = registered.send(());
        while self.quit.load(Relaxed) == 0 {
            if let Some(dead) = self.others().find(|&rank| self.is_dead(rank)) {
                record::post(&self.header, &lost(&self.header, dead, Loss::Vanished));
                gate::ring(&Header(&self.header));
                break;
            }
            self.sleep();
        }
        // Whether it ends early or not, the word stays until the rank leaves.
        while self.quit.load(Relaxed) == 0 {
            let _ = futex::wait(&self.quit, futex::Flags::empty(), 0, None);
        }
        hold.release(own);
    }

    fn word(&self, rank: usize) -> &AtomicU32 {
        self.header.word32(header::alive(rank))
    }

    /// The ranks this one watches: with very many, each has enough watchers all the same.
    fn others(&self) -> impl Iterator<Item = usize> + '_ {
        (1..self.size.min(MOST_WATCHED + 1)).map(|step| (self.rank + step) % self.size)
    }

    /// Whether `rank` was here, has not left, and is gone.
    fn is_dead(&self, rank: usize) -> bool {
        let word = self.word(rank).load(Acquire);
        if word == 0 || Liveness::has_left(&self.header, rank) {
            return false;
        }
        if word & OWNER_DIED != 0 {
            return true;
        }
        // Where the kernel marks nothing, a process id that is gone says the same; ids of another
        // namespace say nothing.
        let pid = self.header.word32(header::PIDS + 4 * rank).load(Relaxed);
        let visible = &self.visible[rank];
        match Pid::from_raw(pid.cast_signed()).map(rustix::process::test_kill_process) {
            Some(Err(rustix::io::Errno::SRCH)) => visible.load(Relaxed),
            Some(Ok(())) => {
                visible.store(true, Relaxed);
                false
            }
            _ => false,
        }
    }

    /// Waits until a word changes, this rank leaves, or it is time to look again.
    fn sleep(&self) {
        let mut waits = vec![waiter(&self.quit, 0)];
        for rank in self.others() {
            let word = self.word(rank);
            let seen = word.load(Relaxed);
            if seen != 0 && seen & OWNER_DIED == 0 {
                waits.push(waiter(word, seen));
            }
        }
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let nanos = now.tv_nsec + i64::from(SLICE.subsec_nanos());
        let until = futex::Timespec {
            tv_sec: now.tv_sec + nanos / 1_000_000_000,
            tv_nsec: nanos % 1_000_000_000,
        };
        let flags = futex::WaitvFlags::empty();
        let woken = futex::waitv(&waits, flags, Some(&until), futex::ClockId::Monotonic);
        if matches!(
            woken,
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM | rustix::io::Errno::INVAL)
        ) {
            std::thread::sleep(SLICE / 2);
        }
    }
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

/// What the kernel walks when a thread dies. Lives in private memory, so that no other process can
/// lead the kernel astray.
#[repr(C)]
struct List {
    next: *mut List,
}

#[repr(C)]
struct Head {
    list: List,
    futex_offset: libc::c_long,
    pending: *mut List,
}

/// The calling thread's hold on a robust word.
struct Hold {
    head: *mut Head,
}

impl Hold {
    /// Makes `word` this thread's: the kernel marks it if the thread dies.
    fn of(word: &AtomicU32) -> Self {
        // Never freed: the kernel may read both until the thread is gone. A few bytes per job.
        let node = Box::leak(Box::new(List {
            next: std::ptr::null_mut(),
        }));
        let head = Box::leak(Box::new(Head {
            list: List { next: node },
            futex_offset: word.as_ptr() as libc::c_long - (&raw const *node) as libc::c_long,
            pending: std::ptr::null_mut(),
        }));
        node.next = &raw mut head.list;
        let head: *mut Head = head;
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .cast_unsigned();
        word.store(tid | WAITERS, Release);
        // SAFETY: the list is well formed and stays where it is. A kernel that refuses leaves the
        // word unmarked, and deaths are then found by process id.
        unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) };
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
