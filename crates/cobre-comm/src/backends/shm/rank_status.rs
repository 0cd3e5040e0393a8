//! Rank status: the part of the header that says of one rank whether it lives, its last call and its end.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::layout::header;
use super::segment::Mapping;
use crate::backends::host;
use crate::error::{CallPosition, Cause, Loss};

/// Set by the kernel in the word of a rank that died, or by the rank itself when it is about to.
pub(super) const OWNER_DIED: u32 = 0x4000_0000;

/// One rank's part of the header. Anyone reads it; the rank itself writes it, and the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankStatus<'a> {
    header: &'a Mapping,
    rank: usize,
}

impl<'a> RankStatus<'a> {
    #[inline]
    pub(super) fn of(header: &'a Mapping, rank: usize) -> Self {
        Self { header, rank }
    }

    /// The word that the kernel marks: 0 before the rank has come and after it has gone.
    pub(super) fn alive(self) -> &'a AtomicU32 {
        self.header.word32(header::alive(self.rank))
    }

    pub(super) fn pid(self) -> u32 {
        self.header
            .word32(header::PIDS + 4 * self.rank)
            .load(Relaxed)
    }

    /// The namespace of the rank's process id.
    pub(super) fn namespace(self) -> u64 {
        let word = self.header.word64(header::namespace(self.rank));
        word.load(Relaxed)
    }

    /// True if the rank has left in good order.
    #[inline]
    pub(super) fn has_left(self) -> bool {
        // Pairs with the release in `leave`: who sees that a rank left sees all it did.
        self.header.word32(header::left(self.rank)).load(Acquire) != 0
    }

    pub(super) fn leave(self) {
        self.header
            .word32(header::left(self.rank))
            .store(1, Release);
    }

    /// Notes that the rank begins a collective.
    #[inline]
    pub(super) fn begin(self, step: CallPosition) {
        let word = self.header.word64(header::step(self.rank));
        word.store(step.word(), Relaxed);
    }

    /// The last collective that the rank began.
    pub(super) fn step(self) -> Option<CallPosition> {
        CallPosition::of_word(self.header.word64(header::step(self.rank)).load(Relaxed))
    }

    /// Notes since when the rank sleeps in a collective; 0 if it does not.
    pub(super) fn sleep_since(self, since: u64) {
        let word = self.header.word64(header::asleep(self.rank));
        word.store(since, Relaxed);
    }

    /// The time for which the rank has slept in a collective; `None` if it does not.
    pub(super) fn asleep(self) -> Option<Duration> {
        let since = self.header.word64(header::asleep(self.rank)).load(Relaxed);
        (since != 0).then(|| ago(since))
    }

    /// Notes where the rank's process is.
    pub(super) fn publish_namespace(self) {
        let word = self.header.word64(header::namespace(self.rank));
        word.store(namespace(), Relaxed);
    }

    /// Notes that the rank's process runs.
    pub(super) fn publish_heartbeat(self) {
        let word = self.header.word64(header::seen(self.rank));
        word.store(now(), Relaxed);
    }

    /// The time since the rank's process last ran.
    pub(super) fn seen(self) -> Duration {
        ago(self.header.word64(header::seen(self.rank)).load(Relaxed))
    }

    /// Notes the signal that the rank is about to die of. Called in a signal handler.
    pub(super) fn publish_signal(self, signal: i32) {
        let word = self.header.word32(header::signal(self.rank));
        // The first one: what was installed before may raise another.
        let _ = word.compare_exchange(0, signal.cast_unsigned(), Relaxed, Relaxed);
        // Pairs with the acquire of who looks for the mark.
        self.alive().fetch_or(OWNER_DIED, Release);
    }

    /// Notes the text of a panic: it may be the rank's last. One that follows another, such as from
    /// a destructor, is its consequence.
    pub(super) fn publish_panic(self, text: &str) {
        let text = match self.panic() {
            Some(first) => format!("{first}; then {text}"),
            None => text.to_owned(),
        };
        let mut words = [0; header::WORDS];
        words[0] = self.panic_mark();
        let cut = text.floor_char_boundary(8 * (header::WORDS - 1));
        for (word, bytes) in words[1..].iter_mut().zip(text.as_bytes()[..cut].chunks(8)) {
            let bytes = bytes.iter().rev();
            *word = bytes.fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        self.header.store_words(header::words(self.rank), &words);
    }

    /// The word before the text of a panic in the present collective: a rank that has begun
    /// another since did not die of it.
    fn panic_mark(self) -> u64 {
        let step = self.header.word64(header::step(self.rank)).load(Relaxed);
        step.wrapping_add(1)
    }

    /// The text of a panic since the rank began its last collective.
    pub(super) fn panic(self) -> Option<String> {
        let words: [u64; header::WORDS] = self.header.load_words(header::words(self.rank));
        let bytes = words[1..].iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
        (words[0] == self.panic_mark()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The way in which the rank ended, as far as it published, once it is dead.
    pub(super) fn end(self) -> Loss {
        const ABORT: u32 = libc::SIGABRT.cast_unsigned();
        let signal = self.header.word32(header::signal(self.rank)).load(Relaxed);
        match (signal, self.panic()) {
            (0, None) => Loss::Vanished,
            (0, Some(text)) => Loss::AfterPanic(text),
            // A panic that cannot unwind ends in an abort.
            (ABORT, Some(text)) => Loss::Panic(text),
            (signal, _) => Loss::Signal(signal.cast_signed()),
        }
    }

    /// Notes the rank's number in its job.
    pub(super) fn publish_number(self, number: usize) {
        let word = self.header.word64(header::number(self.rank));
        word.store(number as u64, Relaxed);
    }

    /// The rank's number in its job, by which records name it: its rank here, unless the segment is
    /// a part of a larger job.
    pub(super) fn number(self) -> usize {
        let word = self.header.word64(header::number(self.rank));
        word.load(Relaxed) as usize
    }

    /// The record of the rank's loss.
    pub(super) fn lost(self, how: Loss) -> Cause {
        Cause::RankLost {
            rank: self.number(),
            host: host::name(),
            pid: self.pid(),
            how,
            last: self.step(),
        }
    }
}

/// The namespace of this process's id; 0 if the system does not tell.
#[cfg(not(cobre_portable))]
pub(super) fn namespace() -> u64 {
    rustix::fs::stat("/proc/self/ns/pid").map_or(0, |stat| stat.st_ino)
}

/// All processes have one table.
#[cfg(cobre_portable)]
pub(super) fn namespace() -> u64 {
    1
}

/// Milliseconds on the clock that the processes of a machine share, unless one has a namespace for
/// it.
pub(super) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
}

fn ago(then: u64) -> Duration {
    Duration::from_millis(now().saturating_sub(then))
}
