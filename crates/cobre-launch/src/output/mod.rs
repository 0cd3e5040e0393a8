//! The output of ranks: its destinations, and its way there.

mod console;
mod feed;
mod lines;
mod recent;

use std::path::PathBuf;

pub(crate) use console::Console;
pub(crate) use feed::{Feed, TAIL_BYTES};
pub(crate) use recent::{last_lines, read_end};

/// The destination of the ranks' output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Output {
    /// Standard output and error of the ranks go to those of the launcher, line by line, each line
    /// with its rank in front. A line longer than 64 KiB is passed on in pieces of that length.
    #[default]
    Forward,
    /// As `Forward`, with nothing in front of the lines of rank 0, which speaks for the job.
    Plain,
    /// As `Plain`, all of it to the launcher's standard error: for a launcher whose own standard output is read by a
    /// program. What MPI libraries write goes there too.
    Diagnostics,
    /// Kept for the caller: the last `limit` bytes of each stream of each rank.
    Capture {
        /// Bytes kept per stream.
        limit: usize,
    },
    /// Both streams of rank R go to the file `rank-R.log` in this directory, untouched.
    Logs(PathBuf),
}

impl Output {
    /// The name of the log file of a rank.
    pub fn log_name(rank: usize) -> String {
        format!("rank-{rank}.log")
    }
}

/// One of the two streams of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}
