//! The ranks of a job that an MPI launcher started: who they are, by their own messages, and who of them
//! ended first without taking leave. That launcher tells neither. Of a job without an MPI launcher there is nothing
//! to know here: its supervisor has started the ranks.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use cobre_comm::report::{LauncherMessage, RankDescriptors, RootCause};
use cobre_comm::{ErrorKind, MAX_RANKS};

use crate::message::{ended, list};
use crate::mpiexec;
use crate::outcome::Status;
use crate::sys::exit_status;

#[derive(Default)]
pub(crate) struct MpiRanks {
    /// The launcher of an MPI library that started the ranks, and is all that the supervisor started.
    launcher: Option<&'static str>,
    ranks: BTreeMap<usize, MpiRank>,
    /// Tells of processes in the order in which they end, however late it is asked.
    ends: Option<OwnedFd>,
    /// Ends so far.
    count: u32,
}

struct MpiRank {
    pid: u32,
    host: String,
    /// `None` for processes of other hosts.
    process: Option<OwnedFd>,
    /// A pipe that ends with the process, earlier than the process is known to have ended.
    pipe: Option<OwnedFd>,
    /// The rank's socket to its process manager, held until the process is known to have ended: the manager, which
    /// kills all ranks when this socket ends, then does so after the rank that caused it is known.
    process_manager: Option<OwnedFd>,
    left: bool,
    /// Its place among those that ended.
    ended: Option<u32>,
}

/// A reason in the name of the process that stands for all ranks of an MPI launcher: it is the only
/// one that this launcher has started.
fn for_all(reason: String) -> RootCause {
    let (rank, from) = (0, 0);
    RootCause {
        rank,
        from,
        kind: ErrorKind::Rank,
        reason,
    }
}

impl MpiRanks {
    /// Those that `launcher` will start, if one does.
    pub(crate) fn new(launcher: Option<&'static str>) -> Self {
        Self {
            launcher,
            ..Self::default()
        }
    }

    pub(crate) fn launcher(&self) -> Option<&'static str> {
        self.launcher
    }

    /// Takes what concerns these ranks from a message; returns the root cause of a failure that it names.
    pub(crate) fn take(&mut self, message: LauncherMessage) -> Option<RootCause> {
        match message {
            LauncherMessage::RootCause(cause) if self.launcher.is_some() => {
                Some(for_all(format!("rank {}: {}", cause.rank, cause.reason)))
            }
            LauncherMessage::RootCause(cause) => Some(cause),
            LauncherMessage::Joined {
                rank,
                pid,
                host,
                descriptors,
            } if self.launcher.is_some() => {
                self.joined(rank, pid, host, descriptors);
                None
            }
            LauncherMessage::Left { rank } => {
                self.left(rank);
                None
            }
            LauncherMessage::Joined { .. }
            | LauncherMessage::Progress { .. }
            | LauncherMessage::Statement { .. } => None,
        }
    }

    /// The root cause of a failure that nobody has reported: a rank that is gone cannot, and MPI launchers may call
    /// that a success. `told` is how the launcher ended.
    pub(crate) fn lost(&self, told: Option<Status>) -> Option<(RootCause, Option<Status>)> {
        let launcher = self.launcher?;
        let (lost, status) = self.first_lost()?;
        // Kernels before 6.15 do not tell.
        let guessed = || mpiexec::killed(launcher, told?).map(Status::Killed);
        let status = status.or_else(guessed);
        let how = status.map_or_else(|| "ended".to_owned(), ended);
        let reason = format!("{lost} {how} without leaving the job");
        Some((for_all(reason), status))
    }

    fn joined(
        &mut self,
        rank: usize,
        pid: u32,
        host: String,
        descriptors: Option<RankDescriptors>,
    ) {
        let here = host == cobre_comm::host_name();
        let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let process = known.filter(|_| here);
        let process = process.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let is_gone = match &process {
            Some(Ok(process)) => has_ended(process.as_fd()),
            Some(Err(error)) => *error == Errno::SRCH,
            None => false,
        };
        if is_gone {
            self.forget_order();
        }
        let ended = is_gone.then_some(0);
        let process = process.and_then(Result::ok);
        let descriptors = descriptors.filter(|_| here && !is_gone);
        let pipe = descriptors.and_then(|it| opened(pid, it.pipe, OFlags::RDONLY));
        let process_manager = process.as_ref().and_then(|process| {
            let descriptor = descriptors?.process_manager?;
            pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).ok()
        });
        if self.ends.is_none() {
            self.ends = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
        }
        if let (Some(ends), None) = (&self.ends, ended) {
            let data = epoll::EventData::new_u64(rank as u64);
            // A process that is not looked at has no place among those that ended. Of the pipe its end alone counts.
            for (watched, events) in [
                (&pipe, epoll::EventFlags::HUP),
                (&process, epoll::EventFlags::IN),
            ] {
                let _ = watched
                    .as_ref()
                    .map(|watched| epoll::add(ends, watched, data, events));
            }
        }
        if let Some(pipe) = descriptors.and_then(|it| opened(pid, it.pipe, OFlags::WRONLY)) {
            // A rank that hears nothing goes on after a while.
            let _ = rustix::io::write(pipe, &[1]);
        }
        let mpi_rank = MpiRank {
            pid,
            host,
            process,
            pipe,
            process_manager,
            left: false,
            ended,
        };
        self.ranks.insert(rank, mpi_rank);
    }

    /// A rank is gone whose end was not seen: those that have ended by now may have done so before it or after it.
    fn forget_order(&mut self) {
        self.note_ends();
        for ended in self
            .ranks
            .values_mut()
            .filter_map(|rank| rank.ended.as_mut())
        {
            *ended = 0;
        }
    }

    fn left(&mut self, rank: usize) {
        if let Some(mpi_rank) = self.ranks.get_mut(&rank) {
            mpi_rank.left = true;
        }
    }

    /// The descriptor to poll; it is readable when a process has ended.
    pub(crate) fn ends(&self) -> Option<BorrowedFd<'_>> {
        self.ends.as_ref().map(AsFd::as_fd)
    }

    /// Notes the processes that have ended.
    pub(crate) fn note_ends(&mut self) {
        let mut ended = Vec::with_capacity(2 * MAX_RANKS);
        if let Some(ends) = &self.ends {
            let room = rustix::buffer::spare_capacity(&mut ended);
            let _ = epoll::wait(ends, room, Some(&Timespec::default()));
        }
        for event in ended {
            let data = event.data;
            self.ended(data.u64() as usize);
        }
    }

    fn ended(&mut self, rank: usize) {
        if let Some(mpi_rank) = self.ranks.get_mut(&rank) {
            if let Some(ends) = &self.ends {
                for watched in mpi_rank.pipe.iter().chain(&mpi_rank.process) {
                    let _ = epoll::delete(ends, watched);
                }
            }
            mpi_rank.process_manager = None;
            self.count += 1;
            mpi_rank.ended.get_or_insert(self.count);
        }
    }

    /// The rank that ended first without taking leave: `rank 2 (pid 41 on node-7)`, or the few that it may be;
    /// and how, where that is known.
    fn first_lost(&self) -> Option<(String, Option<Status>)> {
        let lost = || self.ranks.iter().filter(|(_, mpi_rank)| !mpi_rank.left);
        let first = lost().filter_map(|(_, mpi_rank)| mpi_rank.ended).min();
        let first: Vec<(&usize, &MpiRank)> = lost().filter(|(_, m)| m.ended == first).collect();
        match &first[..] {
            [] => None,
            [(rank, mpi_rank)] => {
                let (pid, host) = (mpi_rank.pid, &mpi_rank.host);
                let status = mpi_rank
                    .process
                    .as_ref()
                    .and_then(|it| exit_status(it.as_fd()));
                let who = format!("rank {rank} (pid {pid} on {host})");
                Some((who, status.map(Status::from_wait)))
            }
            some => {
                let ranks: Vec<usize> = some.iter().map(|(rank, _)| **rank).collect();
                Some((format!("one of ranks {}", list(&ranks)), None))
            }
        }
    }
}

/// The pipe that process `pid` has open as `descriptor`, for reading or for writing.
fn opened(pid: u32, descriptor: i32, access: OFlags) -> Option<OwnedFd> {
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let path = format!("/proc/{pid}/fd/{descriptor}");
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn has_ended(process: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(process, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::process::Stdio;

    use rustix::fs::{CWD, FileType};
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    fn mpi_ranks(count: u32) -> MpiRanks {
        let mut mpi_ranks = MpiRanks::default();
        for rank in 0..count {
            mpi_ranks.joined(rank as usize, 40 + rank, "nowhere".to_owned(), None);
        }
        mpi_ranks
    }

    fn named(mpi_ranks: &MpiRanks) -> String {
        mpi_ranks.first_lost().unwrap().0
    }

    #[test]
    fn the_first_to_end_without_leave_is_named() {
        let mut mpi_ranks = mpi_ranks(3);
        mpi_ranks.left(0);
        for rank in [0, 2, 1] {
            mpi_ranks.ended(rank);
        }
        assert_eq!(named(&mpi_ranks), "rank 2 (pid 42 on nowhere)");
    }

    #[test]
    fn ranks_whose_order_nobody_knows_are_named_together() {
        let mut mpi_ranks = mpi_ranks(4);
        mpi_ranks.left(3);
        assert_eq!(named(&mpi_ranks), "one of ranks 0-2");
    }

    #[test]
    fn a_rank_that_is_gone_before_its_message_is_read_was_first_unless_others_have_ended_too() {
        for (is_reaped, is_late) in [(true, false), (false, false), (true, true), (false, true)] {
            let mut gone = std::process::Command::new("true").spawn().unwrap();
            if is_reaped {
                gone.wait().unwrap();
            } else {
                let pid = Pid::from_child(&gone);
                let until = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                waitid(WaitId::Pid(pid), until).unwrap();
            }
            let mut other = std::process::Command::new("sleep")
                .arg("60")
                .spawn()
                .unwrap();
            let mut mpi_ranks = MpiRanks::default();
            mpi_ranks.joined(0, other.id(), cobre_comm::host_name(), None);
            if !is_late {
                mpi_ranks.joined(1, gone.id(), cobre_comm::host_name(), None);
            }
            other.kill().unwrap();
            other.wait().unwrap();
            if is_late {
                mpi_ranks.joined(1, gone.id(), cobre_comm::host_name(), None);
            }
            mpi_ranks.note_ends();
            let first = named(&mpi_ranks);
            let expected = if is_late {
                "one of ranks 0"
            } else {
                "rank 1 (pid "
            };
            assert!(
                first.starts_with(expected),
                "{is_reaped} {is_late}: {first}"
            );
            gone.wait().unwrap();
        }
    }

    #[test]
    fn processes_are_known_in_the_order_of_their_ends() {
        let host = cobre_comm::host_name();
        let mut children: Vec<_> = (0..3)
            .map(|_| {
                std::process::Command::new("sleep")
                    .arg("60")
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut mpi_ranks = MpiRanks::default();
        for (rank, child) in children.iter().enumerate() {
            mpi_ranks.joined(rank, child.id(), host.clone(), None);
        }
        for rank in [1, 2, 0] {
            children[rank].kill().unwrap();
            children[rank].wait().unwrap();
        }
        mpi_ranks.note_ends();
        let order = [0, 1, 2].map(|rank| mpi_ranks.ranks[&rank].ended);
        assert_eq!(order, [Some(3), Some(1), Some(2)]);
        let (named, status) = mpi_ranks.first_lost().unwrap();
        assert!(named.starts_with("rank 1 (pid "), "{named}");
        assert!(status.is_none_or(|status| status == Status::Killed(9)));
    }

    /// A process whose files are closed and that is not yet known to have ended, as on a busy machine. It opens the pipe
    /// itself, as ranks do: a process that another test starts meanwhile would hold an end that this one has opened.
    #[test]
    fn the_end_of_its_pipe_is_the_end_of_a_rank() {
        let directory = tempfile::TempDir::new().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let script = "exec 3<>\"$0\"; echo opened; read _; exec 3<&-; echo closed; exec sleep 60";
        let mut sleep = std::process::Command::new("sleep");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script]).arg(&pipe);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut children = [sleep.arg("60").spawn().unwrap(), shell.spawn().unwrap()];
        let mut lines = BufReader::new(children[1].stdout.take().unwrap()).lines();
        let mut said = || lines.next().unwrap().unwrap();
        assert_eq!(said(), "opened");
        let mut mpi_ranks = MpiRanks::default();
        for (rank, child) in children.iter().enumerate() {
            let descriptors = (rank == 1).then_some(RankDescriptors {
                pipe: 3,
                process_manager: None,
            });
            mpi_ranks.joined(rank, child.id(), cobre_comm::host_name(), descriptors);
        }
        writeln!(children[1].stdin.take().unwrap()).unwrap();
        assert_eq!(said(), "closed");
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        mpi_ranks.note_ends();
        let first = named(&mpi_ranks);
        assert!(first.starts_with("rank 1 (pid "), "{first}");
    }

    #[test]
    fn a_process_manager_learns_of_an_end_after_the_launcher() {
        let (mut manager, socket) = UnixStream::pair().unwrap();
        let mut sleep = std::process::Command::new("sleep");
        let sleep = sleep.arg("60").stdin(OwnedFd::from(socket));
        let mut child = sleep.spawn().unwrap();
        // The command holds the socket as well.
        *sleep = std::process::Command::new("sleep");
        let mut mpi_ranks = MpiRanks::default();
        let descriptors = RankDescriptors {
            pipe: 257,
            process_manager: Some(0),
        };
        mpi_ranks.joined(0, child.id(), cobre_comm::host_name(), Some(descriptors));
        child.kill().unwrap();
        child.wait().unwrap();
        manager.set_nonblocking(true).unwrap();
        let early = manager.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));
        mpi_ranks.note_ends();
        assert!(named(&mpi_ranks).starts_with("rank 0 (pid "));
        manager.set_nonblocking(false).unwrap();
        assert_eq!(manager.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn where_all_took_leave_nobody_is_lost() {
        let mut mpi_ranks = mpi_ranks(2);
        mpi_ranks.left(0);
        mpi_ranks.left(1);
        assert_eq!(mpi_ranks.first_lost(), None);
        assert_eq!(MpiRanks::default().first_lost(), None);
    }
}
