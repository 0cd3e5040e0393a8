#![expect(unsafe_code, reason = "maps a page that other processes read")]
//! The status page of a rank: which collective it is in and since when, in memory that other processes of its user can read
//! while it runs. A rank writes it with a few stores per collective; `cobre top` reads it through `/proc`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::call_signature::Collective;

/// The name of the memory, by which readers find it among the descriptors of a process.
const NAME: &str = "cobre-status";
/// The first word; another layout has another one.
const MAGIC: u64 = u64::from_le_bytes(*b"cobretop");
/// Bytes of the page.
const PAGE: usize = 4096;
/// Generations of processes below which no rank is looked for.
const DEPTH: usize = 6;

/// The words of a page.
#[derive(Clone, Copy)]
enum Word {
    Magic,
    Rank,
    Size,
    /// The name of the backend in eight letters.
    Backend,
    /// The time of the last change, in nanoseconds of the system's monotonic clock.
    Since,
    /// The number of the newest collective, and in the lowest byte which one it is; 0 once it is over.
    Call,
}

const WORDS: usize = 6;

/// The status page of this process in one communicator; other processes see what it says until it is dropped.
#[derive(Debug)]
pub struct StatusPage {
    words: NonNull<[AtomicU64; WORDS]>,
    /// Open as long as the page is to be found.
    _memory: OwnedFd,
}

// SAFETY: the page is memory of this process that only atomic stores touch.
unsafe impl Send for StatusPage {}
// SAFETY: as above.
unsafe impl Sync for StatusPage {}

impl StatusPage {
    /// The page of this rank.
    pub(crate) fn new(rank: usize, size: usize, backend: &str) -> io::Result<Self> {
        let memory = named_memory()?;
        rustix::fs::ftruncate(&memory, PAGE as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh address range chosen by the kernel; nothing of ours is mapped over.
        let base = unsafe {
            rustix::mm::mmap(ptr::null_mut(), PAGE, access, MapFlags::SHARED, &memory, 0)
        }?;
        let words = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        let page = Self {
            words,
            _memory: memory,
        };
        let mut name = [0; 8];
        let letters = backend.bytes().take(name.len());
        name.iter_mut()
            .zip(letters)
            .for_each(|(place, letter)| *place = letter);
        page.store(Word::Rank, rank as u64);
        page.store(Word::Size, size as u64);
        page.store(Word::Backend, u64::from_le_bytes(name));
        page.store(Word::Since, now());
        page.store(Word::Magic, MAGIC);
        Ok(page)
    }

    fn store(&self, word: Word, value: u64) {
        // SAFETY: the words are the start of the page, which is mapped as long as this lives, and atomic.
        let words = unsafe { self.words.as_ref() };
        // A reader takes each word for itself; none orders other memory.
        words[word as usize].store(value, Relaxed);
    }

    /// This rank begins a collective.
    #[inline]
    pub(crate) fn enter(&self, sequence: u64, collective: Collective) {
        self.store(Word::Since, now());
        self.store(Word::Call, sequence << 8 | u64::from(collective as u8 + 1));
    }

    /// The collective of this number is over.
    #[inline]
    pub(crate) fn leave(&self, sequence: u64) {
        self.store(Word::Since, now());
        self.store(Word::Call, sequence << 8);
    }
}

impl Drop for StatusPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), PAGE) };
    }
}

/// The memory of this name that a process of this machine has open, if its user is that of this one; each once, however
/// many descriptors refer to it (a process that looks into itself may meet a descriptor this function has just opened).
pub fn named_memory_of(pid: u32, name: &str) -> Vec<File> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    let paths = descriptors.into_iter().flatten().flatten();
    let ours = format!("/memfd:{name} (deleted)");
    let mut seen = BTreeSet::new();
    paths
        .map(|entry| entry.path())
        .filter(|path| fs::read_link(path).is_ok_and(|target| target.as_os_str() == ours.as_str()))
        .filter_map(|path| File::open(path).ok())
        .filter(|file| {
            file.metadata()
                .is_ok_and(|memory| seen.insert((memory.dev(), memory.ino())))
        })
        .collect()
}

/// The processes that the threads of a process have started.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.filter_map(|entry| fs::read_to_string(entry.path().join("children")).ok());
    let numbers = |list: String| -> Vec<u32> {
        let words = list.split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}

/// Memory that others find by its name in `/proc`.
#[cfg(not(cobre_portable))]
fn named_memory() -> io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create(
        NAME,
        rustix::fs::MemfdFlags::CLOEXEC,
    )?)
}

/// The portable build has no `/proc`, and so no page that others would find.
#[cfg(cobre_portable)]
fn named_memory() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The time by a clock that all processes of this machine share, to a few milliseconds: a read costs less than one
/// of the exact clock.
fn now() -> u64 {
    #[cfg(not(cobre_portable))]
    const CLOCK: ClockId = ClockId::MonotonicCoarse;
    #[cfg(cobre_portable)]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    let (seconds, nanoseconds) = (time.tv_sec as u64, time.tv_nsec as u64);
    seconds
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds)
}

/// The status of a rank, read from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusOfRank {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub rank: usize,
    /// The number of ranks.
    pub size: usize,
    /// The backend.
    pub backend: String,
    /// The number of the collective it is in, or was in last; 0 before the first.
    pub sequence: u64,
    /// The collective it is in; `None` if it computes.
    pub collective: Option<Collective>,
    /// The time since it entered or left that collective.
    pub since: Duration,
}

impl StatusOfRank {
    /// The statuses of a process of this machine, one per communicator; none if it is no rank or may not be looked into.
    pub fn of_process(pid: u32) -> Vec<Self> {
        let pages = named_memory_of(pid, NAME).into_iter();
        pages
            .filter_map(|mut page| {
                let mut bytes = [0; WORDS * 8];
                page.read_exact(&mut bytes).ok()?;
                Self::read(pid, &bytes, now())
            })
            .collect()
    }

    /// The statuses of a process or, if it is no rank, of those that descend from it: a rank may run below a shell.
    pub fn at_or_below(pid: u32) -> Vec<Self> {
        let mut level = vec![pid];
        for _ in 0..DEPTH {
            let found: Vec<Self> = level.iter().copied().flat_map(Self::of_process).collect();
            if !found.is_empty() {
                return found;
            }
            level = level.into_iter().flat_map(children).collect();
        }
        Vec::new()
    }

    /// The status as a line of words, which [`from_words`](Self::from_words) reads on another machine.
    pub fn to_words(&self) -> String {
        let collective = self.collective.map_or(0, |collective| collective as u8 + 1);
        format!(
            "{} {} {} {} {collective} {} {}",
            self.pid,
            self.rank,
            self.size,
            self.sequence,
            self.since.as_millis(),
            self.backend
        )
    }

    /// Reads what [`to_words`](Self::to_words) writes; `None` if it is anything else.
    pub fn from_words(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [pid, rank, size, sequence, collective, since, backend] = words[..] else {
            return None;
        };
        let (rank, size) = (rank.parse().ok()?, size.parse().ok()?);
        let collective = collective.parse::<u8>().ok()?.checked_sub(1);
        let letters = backend.bytes().all(|letter| letter.is_ascii_lowercase());
        (rank < size && letters && backend.len() <= 8).then_some(())?;
        Some(Self {
            pid: pid.parse().ok()?,
            rank,
            size,
            backend: backend.to_owned(),
            sequence: sequence.parse().ok()?,
            collective: collective.and_then(Collective::of_number),
            since: Duration::from_millis(since.parse().ok()?),
        })
    }

    /// Reads the words of a page, which may be anything.
    fn read(pid: u32, bytes: &[u8; WORDS * 8], now: u64) -> Option<Self> {
        let word = |word: Word| {
            let start = word as usize * 8;
            let mut value = [0; 8];
            value.copy_from_slice(&bytes[start..start + 8]);
            value
        };
        let number = |name: Word| u64::from_le_bytes(word(name));
        let (rank, size) = (number(Word::Rank), number(Word::Size));
        if number(Word::Magic) != MAGIC || rank >= size {
            return None;
        }
        let letters = word(Word::Backend);
        let letters = letters
            .iter()
            .take_while(|letter| letter.is_ascii_lowercase());
        let call = number(Word::Call);
        let collective = (call as u8).checked_sub(1);
        Some(Self {
            pid,
            rank: usize::try_from(rank).ok()?,
            size: usize::try_from(size).ok()?,
            backend: letters.map(|letter| char::from(*letter)).collect(),
            sequence: call >> 8,
            collective: collective.and_then(Collective::of_number),
            since: Duration::from_nanos(now.saturating_sub(number(Word::Since))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(cobre_portable))]
    fn own(rank: usize) -> StatusOfRank {
        let mut all = StatusOfRank::of_process(std::process::id());
        all.retain(|status| status.rank == rank);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[cfg(not(cobre_portable))]
    #[test]
    fn others_see_the_collective_that_a_rank_is_in() {
        let page = StatusPage::new(41, 64, "shm").unwrap();
        let status = own(41);
        assert_eq!((status.size, status.backend.as_str()), (64, "shm"));
        assert_eq!((status.sequence, status.collective), (0, None));
        page.enter(7, Collective::Gatherv);
        let status = own(41);
        assert_eq!(
            (status.sequence, status.collective),
            (7, Some(Collective::Gatherv))
        );
        page.leave(7);
        let status = own(41);
        assert_eq!((status.sequence, status.collective), (7, None));
        assert!(status.since < Duration::from_secs(60));
        drop(page);
        let left = StatusOfRank::of_process(std::process::id());
        assert!(left.iter().all(|status| status.rank != 41));
    }

    #[cfg(not(cobre_portable))]
    #[test]
    fn a_page_with_two_descriptors_is_one_status() {
        let page = StatusPage::new(42, 64, "shm").unwrap();
        let opened = named_memory_of(std::process::id(), NAME);
        assert_eq!(own(42).rank, 42);
        drop((page, opened));
    }

    #[test]
    fn a_status_survives_its_words() {
        let status = StatusOfRank {
            pid: 4711,
            rank: 3,
            size: 4,
            backend: "tcp".to_owned(),
            sequence: 17,
            collective: Some(Collective::Allreduce),
            since: Duration::from_millis(2500),
        };
        let words = status.to_words();
        assert_eq!(StatusOfRank::from_words(&words), Some(status));
        let computing = StatusOfRank::from_words("1 0 2 17 0 5 shm").unwrap();
        assert_eq!((computing.sequence, computing.collective), (17, None));
        for wrong in [
            "",
            "1 2 3",
            "1 4 4 0 0 0 tcp",
            "1 0 4 0 0 0 T\x1b",
            "x 0 4 0 0 0 tcp",
        ] {
            assert_eq!(StatusOfRank::from_words(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_that_are_no_page_are_none() {
        let mut bytes = [0xff; WORDS * 8];
        assert_eq!(StatusOfRank::read(1, &bytes, 0), None);
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        assert_eq!(StatusOfRank::read(1, &bytes, 0), None);
    }
}
