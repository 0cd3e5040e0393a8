//! The launcher's loop: waits for supervisor, ranks and signals, and lets the [`ShutdownPolicy`] decide.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cobre_comm::report::LauncherMessage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::abandoned;
use crate::error::LaunchError;
use crate::link::SupervisorLink;
use crate::message::TAIL_LINES;
use crate::mpi_ranks::MpiRanks;
use crate::outcome::{FailureCause, Outcome, RankOutcome, Status};
use crate::output::{Console, Feed, Output, Stream, TAIL_BYTES, last_lines, read_end};
use crate::plan::log_path;
use crate::protocol::{Event, Order};
use crate::reports::{Reports, Statements};
use crate::shutdown_policy::{EndReason, ShutdownPolicy};

use crate::signals::SignalCatcher;

/// The time that a reader that takes nothing may hold up the end of a job that was cut short.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A running job.
pub(crate) struct JobWatch<'a> {
    pub(crate) link: SupervisorLink,
    pub(crate) catch: Option<SignalCatcher>,
    /// Set once this process has got a signal.
    pub(crate) signalled: &'a AtomicBool,
    /// The pipe of the caller's signals; `None` also after its end.
    pub(crate) caller_signals: Option<Arc<OwnedFd>>,
    pub(crate) reports: Reports,
    /// The address of the report pipe.
    pub(crate) address: String,
    pub(crate) output: &'a Output,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) console: Console,
    /// Shows the progress of ranks; without a message it makes room for lines.
    pub(crate) progress: Option<fn(Option<&str>)>,
    pub(crate) policy: ShutdownPolicy,
    pub(crate) supervisor_state: SupervisorState,
    /// The ranks that an MPI launcher started, by their own messages.
    pub(crate) mpi_ranks: MpiRanks,
    pub(crate) statements: Statements,
    /// The host of each rank, where there are several.
    pub(crate) hosts: Vec<String>,
}

/// The supervisor's reports so far.
pub(crate) struct SupervisorState {
    /// One per rank; 0 until it has started.
    pids: Vec<i32>,
    not_started: Option<(usize, i32)>,
    /// The job is over; whether something survives it.
    done: Option<bool>,
}

impl SupervisorState {
    pub(crate) fn nothing(size: usize) -> Self {
        Self {
            pids: vec![0; size],
            not_started: None,
            done: None,
        }
    }
}

/// The result of a job that was watched to its end.
pub(crate) enum Ending {
    Outcome(Outcome),
    NotStarted { rank: usize, errno: i32 },
}

/// A descriptor that can wake the launcher up.
enum WakeSource {
    Supervisor,
    Reports,
    Signals,
    CallerSignals,
    Feed(usize),
    Console,
    /// Processes of ranks that an MPI launcher started.
    MpiRanks,
}

impl JobWatch<'_> {
    pub(crate) fn run(mut self) -> Result<Ending, LaunchError> {
        let mut buffer = Vec::new();
        while self.supervisor_state.done.is_none() {
            for source in self.wait(self.policy.next())? {
                self.handle(&source, &mut buffer)?;
            }
            self.write();
            let due = self.policy.due(Instant::now());
            self.order(due);
            if self.policy.hopeless(Instant::now()) {
                return Err(self.unkillable());
            }
        }
        self.drain(&mut buffer);
        self.flush()?;
        Ok(match self.supervisor_state.not_started {
            Some((rank, errno)) => Ending::NotStarted { rank, errno },
            None => Ending::Outcome(self.outcome()),
        })
    }

    /// Waits until something happens or it is `until`, and says what happened.
    fn wait(&self, until: Option<Instant>) -> Result<Vec<WakeSource>, LaunchError> {
        let mut sources = Vec::new();
        let mut polled = Vec::new();
        let mut add = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::from_borrowed_fd(descriptor, events));
        };
        if let Some(catch) = &self.catch {
            add(WakeSource::Signals, catch.pipe(), PollFlags::IN);
        }
        if let Some(pipe) = &self.caller_signals {
            add(WakeSource::CallerSignals, pipe.as_fd(), PollFlags::IN);
        }
        if self.supervisor_state.done.is_none() {
            if let Some(pipe) = self.reports.pipe() {
                add(WakeSource::Reports, pipe, PollFlags::IN);
            }
            for (number, feed) in self.feeds.iter().enumerate() {
                if let Some(pipe) = feed.pipe().filter(|_| !self.console.is_full(feed.shown_on)) {
                    add(WakeSource::Feed(number), pipe, PollFlags::IN);
                }
            }
            if let Some(ends) = self.mpi_ranks.ends() {
                add(WakeSource::MpiRanks, ends, PollFlags::IN);
            }
            add(WakeSource::Supervisor, self.link.socket(), PollFlags::IN);
        }
        for target in self.console.targets() {
            add(WakeSource::Console, target, PollFlags::OUT);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(LaunchError::system("wait for the ranks")(error)),
        }
        let ready = sources.into_iter().zip(&polled);
        let ready = ready.filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    fn handle(&mut self, source: &WakeSource, buffer: &mut Vec<u8>) -> Result<(), LaunchError> {
        match source {
            WakeSource::Supervisor => match self.link.receive() {
                Some(events) => events.into_iter().for_each(|event| self.record(event)),
                None => return Err(self.supervisor_lost(buffer)),
            },
            WakeSource::Reports => self.take_reports(),
            WakeSource::Signals => self.take_signals(),
            WakeSource::CallerSignals => self.take_caller_signals(),
            WakeSource::Feed(number) => {
                self.feeds[*number].read(&mut self.console, buffer);
            }
            WakeSource::MpiRanks => self.mpi_ranks.note_ends(),
            // Written to in any case.
            WakeSource::Console => {}
        }
        Ok(())
    }

    fn record(&mut self, event: Event) {
        match event {
            Event::Started { rank, pid } => self.supervisor_state.pids[rank] = pid,
            Event::NotStarted { rank, errno } => {
                self.supervisor_state.not_started = Some((rank, errno));
            }
            Event::Exited(exit) => self.policy.exited(exit, Instant::now()),
            Event::Done { survivors } => self.supervisor_state.done = Some(survivors),
        }
    }

    fn take_reports(&mut self) {
        for message in self.reports.read() {
            if let LauncherMessage::Progress { text, .. } = &message {
                if let Some(show) = self.progress {
                    show(Some(text));
                }
            } else if let LauncherMessage::Statement { rank, last, text } = &message {
                self.statements.take(*rank, *last, text);
            } else if let Some(root_cause) = self.mpi_ranks.take(message) {
                self.policy.reported(root_cause);
            }
        }
    }

    fn take_signals(&mut self) {
        let signals = self
            .catch
            .as_mut()
            .map(SignalCatcher::read)
            .unwrap_or_default();
        if !signals.is_empty() {
            self.signalled.store(true, Ordering::Relaxed);
        }
        self.pass_on(&signals);
    }

    fn take_caller_signals(&mut self) {
        let Some(pipe) = &self.caller_signals else {
            return;
        };
        let mut numbers = [0; 64];
        match rustix::io::read(pipe, &mut numbers) {
            Ok(count @ 1..) => {
                let signals: Vec<i32> = numbers[..count].iter().copied().map(i32::from).collect();
                self.pass_on(&signals);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(0) | Err(_) => self.caller_signals = None,
        }
    }

    fn pass_on(&mut self, signals: &[i32]) {
        for &signal in signals {
            let order = self.policy.signalled(signal, Instant::now());
            self.order(order);
        }
    }

    fn order(&mut self, order: Option<Order>) {
        if let Some(order) = order {
            self.link.send(order);
        }
    }

    fn write(&mut self) {
        if let Some(show) = self.progress.filter(|_| self.console.waiting() > 0) {
            show(None);
        }
        if let Err(error) = self.console.write() {
            self.console.close();
            let order = self
                .policy
                .output_failed(error.raw_os_error(), Instant::now());
            self.order(order);
        }
    }

    /// The job is over: takes what is left in the pipes, without waiting for their ends.
    fn drain(&mut self, buffer: &mut Vec<u8>) {
        self.take_reports();
        self.mpi_ranks.note_ends();
        for feed in &mut self.feeds {
            feed.drain(&mut self.console, buffer);
        }
    }

    /// Writes what ranks wrote to its end. Whoever reads it may take his time, but not hold up a
    /// user who wanted the job to stop.
    fn flush(&mut self) -> Result<(), LaunchError> {
        let mut waiting = usize::MAX;
        let mut give_up_at = Instant::now();
        loop {
            self.write();
            if self.console.waiting() == 0 {
                return Ok(());
            }
            if self.console.waiting() < waiting {
                waiting = self.console.waiting();
                give_up_at = Instant::now() + FLUSH_TIMEOUT;
            }
            let hurry = self.policy.cut_short().then_some(give_up_at);
            if hurry.is_some_and(|until| Instant::now() >= until) {
                self.console.close();
                return Ok(());
            }
            if self
                .wait(hurry)?
                .iter()
                .any(|source| matches!(source, WakeSource::Signals | WakeSource::CallerSignals))
            {
                self.take_signals();
                self.take_caller_signals();
                self.console.close();
            }
        }
    }

    fn supervisor_lost(&mut self, buffer: &mut Vec<u8>) -> LaunchError {
        abandoned::end(&self.running_processes(), &self.address);
        self.drain(buffer);
        self.write();
        let failure = self.link.failure();
        // One that has come while the rest of the job was ended.
        self.take_signals();
        failure
    }

    fn unkillable(self) -> LaunchError {
        let (ranks, processes) = (self.policy.running(), self.running_processes());
        drop(self.link);
        abandoned::end(&processes, &self.address);
        LaunchError::Unkillable { ranks }
    }

    /// The processes of ranks on this machine that were started and not yet collected.
    fn running_processes(&self) -> Vec<i32> {
        if !self.link.is_local() {
            return Vec::new();
        }
        let running = self.policy.running().into_iter();
        let processes = running.map(|rank| self.supervisor_state.pids[rank]);
        processes.filter(|pid| *pid != 0).collect()
    }

    fn outcome(mut self) -> Outcome {
        let (cause, root) = self.cause();
        let keep = matches!(self.output, Output::Capture { .. });
        let mut captured = |rank: usize, stream: Stream| {
            let feed = self
                .feeds
                .iter_mut()
                .find(|feed| (feed.rank, feed.stream) == (rank, stream));
            feed.filter(|_| keep).map(Feed::take).unwrap_or_default()
        };
        let mut ends = self.policy.ends;
        ends.sort_unstable_by_key(|end| end.rank);
        let ranks = ends
            .iter()
            .zip(self.supervisor_state.pids)
            .map(|(end, pid)| RankOutcome {
                pid,
                host: self.hosts.get(end.rank).cloned(),
                status: end.status,
                ended: end.ended,
                stdout: captured(end.rank, Stream::Out),
                stderr: captured(end.rank, Stream::Err),
            });
        Outcome {
            ranks: ranks.collect(),
            cause,
            survivors: self.supervisor_state.done == Some(true),
            through: self.mpi_ranks.launcher(),
            root,
            statements: self.statements.complete(),
        }
    }

    /// The root cause of the failure, and the status of the rank of an MPI launcher that is the reason.
    fn cause(&self) -> (Option<FailureCause>, Option<Status>) {
        if let Some(stop) = &self.policy.stop {
            let cause = match stop.clone() {
                EndReason::Deadline { after, running } => FailureCause::Deadline { after, running },
                EndReason::Signal(signal) => FailureCause::Signal(signal),
                EndReason::Output(errno) => FailureCause::Output(errno),
            };
            return (Some(cause), None);
        }
        let by_rank = |rank, root_cause| {
            let tail = self.last_error_lines(rank);
            Some(FailureCause::Rank {
                rank,
                root_cause,
                tail,
            })
        };
        let root = self.policy.root();
        if let Some((rank, Some(root_cause))) = root {
            return (by_rank(rank, Some(root_cause.clone())), None);
        }
        let told = self.policy.ends.first().map(|end| end.status);
        match self.mpi_ranks.lost(told) {
            Some((cause, status)) => (by_rank(cause.rank, Some(cause)), status),
            None => (root.and_then(|(rank, _)| by_rank(rank, None)), None),
        }
    }

    /// The end of what a rank wrote to its standard error, or to its log file.
    fn last_error_lines(&self, rank: usize) -> Vec<String> {
        let bytes = if let Output::Logs(directory) = self.output {
            read_end(&log_path(directory, rank), TAIL_BYTES).unwrap_or_default()
        } else {
            let mut feeds = self.feeds.iter();
            let feed = feeds.find(|feed| feed.rank == rank && feed.stream == Stream::Err);
            feed.map(|feed| feed.end(TAIL_BYTES).to_vec())
                .unwrap_or_default()
        };
        last_lines(&bytes, TAIL_LINES)
    }
}
