//! Communication between ranks without the communicator: one small file per rank with a number that
//! only grows. A barrier cannot vouch for itself, and after a failure nothing else is left to talk
//! through.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Time a rank waits for another's number before it calls the contract broken.
pub const TIMEOUT: Duration = Duration::from_secs(50);

/// The numbers of all ranks, each 0 until its rank posts one.
#[derive(Debug)]
pub struct RankCounters {
    rank: usize,
    mine: File,
    all: Vec<CounterFile>,
}

#[derive(Debug)]
struct CounterFile {
    path: PathBuf,
    /// Opened at the first look that finds it.
    file: OnceLock<File>,
}

impl RankCounters {
    /// The counters called `name` in `directory`, for `rank` of `size` ranks.
    pub fn new(directory: &Path, name: &str, rank: usize, size: usize) -> Self {
        let path = |rank: usize| directory.join(format!("{name}-{rank}"));
        let mine = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path(rank))
            .unwrap_or_else(|error| panic!("rank {rank}: {}: {error}", path(rank).display()));
        let counter = |rank| CounterFile {
            path: path(rank),
            file: OnceLock::new(),
        };
        let all = (0..size).map(counter).collect();
        Self { rank, mine, all }
    }

    /// Shows `number` to the other ranks in place of the one before.
    pub fn post(&self, number: u64) {
        self.mine
            .write_all_at(&number.to_le_bytes(), 0)
            .unwrap_or_else(|error| panic!("rank {}: writing its counter: {error}", self.rank));
    }

    /// The number that `rank` has posted last.
    pub fn look(&self, rank: usize) -> u64 {
        let counter = &self.all[rank];
        if counter.file.get().is_none() {
            match File::open(&counter.path) {
                Ok(file) => drop(counter.file.set(file)),
                Err(_) => return 0,
            }
        }
        let mut bytes = [0; 8];
        let file = counter.file.get().expect("set above");
        // An empty file is a rank that has not posted yet.
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => u64::from_le_bytes(bytes),
            Err(_) => 0,
        }
    }

    /// Returns when `rank` has posted `number` or more.
    ///
    /// # Panics
    /// If that takes longer than [`TIMEOUT`].
    pub fn wait_for(&self, rank: usize, number: u64) {
        let start = Instant::now();
        while self.look(rank) < number {
            assert!(
                start.elapsed() < TIMEOUT,
                "rank {}: rank {rank} did not get to step {number} within {TIMEOUT:?}",
                self.rank
            );
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// Returns when every other rank has posted `number` or more.
    ///
    /// # Panics
    /// As for [`wait_for`](Self::wait_for).
    pub fn wait_for_others(&self, number: u64) {
        for rank in (0..self.all.len()).filter(|&rank| rank != self.rank) {
            self.wait_for(rank, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_posted_is_seen_and_none_is_zero() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = [0, 1].map(|rank| RankCounters::new(directory.path(), "x", rank, 3));
        assert_eq!((b.look(0), b.look(2)), (0, 0));
        a.post(7);
        assert_eq!((b.look(0), a.look(0)), (7, 7));
        a.post(8);
        b.wait_for(0, 8);
    }
}
