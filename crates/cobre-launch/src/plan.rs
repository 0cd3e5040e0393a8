//! Everything a job needs, made ready before the supervisor is forked: after the fork it must not wait
//! for a lock that another thread of the launcher held.

use std::ffi::{OsStr, OsString};
use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use cobre_comm::secret_memory::above_stdio;
use cobre_comm::{env, report};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Rlimit;

use crate::error::LaunchError;
use crate::output::{Feed, Output, Stream};
use crate::reports::Reports;
use crate::settings::Settings;

/// The data with which the supervisor starts the ranks.
pub(crate) struct Plan {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// The environment all ranks share.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Descriptors that every rank gets, under the same numbers.
    pub(crate) inherited: Vec<Arc<OwnedFd>>,
    /// The limit of open files that ranks get.
    pub(crate) open_files: Rlimit,
    pub(crate) ranks: Vec<RankPlan>,
}

/// The settings in which one rank differs from the others.
pub(crate) struct RankPlan {
    /// Arguments behind those of all ranks.
    pub(crate) args: Vec<OsString>,
    pub(crate) settings: Settings,
    /// `None` stands for `/dev/null`.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// The processors it may run on; all if there is none.
    pub(crate) processors: Vec<usize>,
}

impl Plan {
    /// The numbers of all descriptors in it.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let of_ranks = self.ranks.iter().flat_map(|rank| {
            let always = [rank.stdout.as_raw_fd(), rank.stderr.as_raw_fd()];
            always
                .into_iter()
                .chain(rank.stdin.as_ref().map(AsRawFd::as_raw_fd))
        });
        self.inherited
            .iter()
            .map(AsRawFd::as_raw_fd)
            .chain(of_ranks)
            .collect()
    }
}

/// The pipe over which ranks report: both ends, and its address.
pub(crate) fn report_pipe() -> Result<(Reports, OwnedFd, String), LaunchError> {
    let action = "make the report pipe";
    let (reader, writer) = pipe().map_err(LaunchError::system(action))?;
    let stat = rustix::fs::fstat(&writer).map_err(LaunchError::system(action))?;
    let address = report::address(writer.as_raw_fd(), stat.st_dev, stat.st_ino);
    Ok((Reports::new(reader), writer, address))
}

/// The environment of this process without what an outer job set, and with `extra`.
pub(crate) fn environment(extra: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let stale = |name: &OsStr| env::JOB.iter().any(|known| *known == name);
    let own = std::env::vars_os().filter(|(name, _)| !stale(name));
    own.chain(extra.iter().cloned()).collect()
}

/// A rank's ends of its output streams, and the launcher's ends if it reads them.
pub(crate) fn streams(
    rank: usize,
    output: &Output,
) -> Result<(OwnedFd, OwnedFd, Vec<Feed>), LaunchError> {
    if let Output::Logs(directory) = output {
        let path = log_path(directory, rank);
        let (stdout, stderr) = log(&path).map_err(|source| LaunchError::Log { path, source })?;
        return Ok((stdout, stderr, Vec::new()));
    }
    let (out, stdout) = output_pipe()?;
    let (err, stderr) = output_pipe()?;
    let feeds = vec![
        Feed::new(out, rank, Stream::Out, output),
        Feed::new(err, rank, Stream::Err, output),
    ];
    Ok((stdout, stderr, feeds))
}

/// The log file of `rank`.
pub(crate) fn log_path(directory: &Path, rank: usize) -> PathBuf {
    directory.join(Output::log_name(rank))
}

/// A fresh file, twice: appending keeps both streams from overwriting each other. It is locked as long as the rank has it
/// open: another job that writes there would empty it.
fn log(path: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let told = "the rank of another job writes there; give this job another directory";
            return Err(io::Error::other(told));
        }
        // Where the file system has no locks, jobs are not kept apart.
        Ok(()) | Err(TryLockError::Error(_)) => {}
    }
    file.set_len(0)?;
    let file: OwnedFd = file.into();
    let again = file.try_clone()?;
    Ok((above_stdio(file)?, above_stdio(again)?))
}

/// The launcher's standard input for rank 0, if it has one and it is no terminal.
pub(crate) fn own_stdin() -> Option<OwnedFd> {
    let stdin = io::stdin();
    if io::IsTerminal::is_terminal(&stdin) {
        return None;
    }
    rustix::io::fcntl_dupfd_cloexec(stdin.as_fd(), 3).ok()
}

/// A pipe for the output of a rank; its reading end does not block.
pub(crate) fn output_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe().map_err(LaunchError::system("make the output pipes of the ranks"))
}

/// A pipe for the input of a process; both ends block.
pub(crate) fn input_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let both = || -> io::Result<_> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((above_stdio(reader)?, above_stdio(writer)?))
    };
    both().map_err(LaunchError::system("make the input pipe of a process"))
}

/// A pipe whose reading end does not block.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let (reader, writer) = (above_stdio(reader)?, above_stdio(writer)?);
    rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    Ok((reader, writer))
}
