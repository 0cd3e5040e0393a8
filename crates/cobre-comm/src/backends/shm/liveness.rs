#![expect(unsafe_code, reason = "blocks the signals of a thread")]
//! Detection of dead ranks. Each process has a thread that does two things: it holds a *robust* futex word in
//! the segment, which the kernel marks when the process dies, before it frees any memory; and it
//! waits for that mark on the words of the other ranks. The first to see one posts the record of
//! the loss and wakes everyone. Collectives pay nothing for it.
//!
//! The kernel wakes one watcher per death. Should that one die too, or the kernel know no robust
//! futexes, the others look again every few milliseconds, at the words and at the processes. The calls of the system are
//! in `death_linux.rs`, and in `death_posix.rs` for a portable build.

use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use super::crash_handler::{CrashRegistration, LocalRank, SleepGuard};
use super::event_count;
use super::group::SegmentHeader;
use super::rank_status::{OWNER_DIED, RankStatus};
use super::record;
use super::segment::Mapping;
use super::stall::Stall;
use super::system::death::{self, MOST_WATCHED, ProcessProbe, RankMark};
use super::system::{self, Instant, JoinHandle};
use crate::detector::Detector;
use crate::terminal;
use crate::transport::TransportFault;

/// The interval at which a rank looks for a stall.
const STALL_SLICE: Duration = Duration::from_millis(200);

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
            detector: death::detector(),
            probes: (0..size).map(|_| OnceLock::new()).collect(),
        };
        let stall = Stall::after(stall);
        let thread = system::spawn("cobre-liveness", 128 * 1024, move || {
            watcher.run(&registered, stall);
        })?;
        // The word must stand before this rank is counted.
        system::await_message(&ready);
        let local_rank = Arc::new(LocalRank::new(header, rank));
        Ok(Self {
            registration: system::has_own_signals().then(|| CrashRegistration::of(&local_rank)),
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
        death::wake_all(&self.quit);
        if let Some(thread) = self.thread.take() {
            system::unpark(&thread);
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
        let hold = RankMark::of(own);
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
            death::wait_for_quit(&self.quit);
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
        let words = self.others().filter_map(|rank| {
            let word = self.status(rank).alive();
            let seen = word.load(Relaxed);
            (seen != 0 && seen & OWNER_DIED == 0).then_some((word, seen))
        });
        death::wait(&self.quit, words, self.detector);
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

/// This thread must not run the program's signal handlers.
fn block_signals() {
    // SAFETY: an all-zero set is a valid one to fill.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is a valid set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: `all` is a valid set, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()) };
}
