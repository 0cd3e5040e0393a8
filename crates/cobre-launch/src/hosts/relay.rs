//! The relay: a thread of the launcher that stands for the supervisor of a job on several hosts. It starts a remote shell
//! per host below a supervisor of this machine, so that none outlives the launcher, and passes orders to the agents and
//! events, output and reports back to where the launcher looks for them.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::connection::{HostConnection, Route};
use super::frame::{FromHost, ToHost};
use super::job::RemoteJob;
use super::start::START;
use super::status_board::StatusBoard;
use super::stream::ByteQueue;
use super::{BEAT, HOST_SILENCE, NO_AGENT, VERSION};
use crate::error::LaunchError;
use crate::link::SupervisorLink;
use crate::outcome::Status;
use crate::output::Stream;
use crate::program::Executable;
use crate::protocol::{Decoder, Event, Exit, Order, RECORD, encode};

/// The time that a remote shell may take to end after its last answer.
const CLOSING: Duration = Duration::from_secs(2);
/// The silence of a host after ranks were told to end that means that it is gone: often it is why they were told.
const ENDING_SILENCE: Duration = Duration::from_secs(5);
/// The interval at which the relay looks for hosts that are gone although nothing told it to.
const LOOK: Duration = Duration::from_millis(500);
/// The time for which a reader of output that takes nothing holds up the end of a job.
const READER: Duration = Duration::from_secs(2);

/// The steps until ranks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartPhase {
    Greeting,
    Listening,
    /// All hosts try the way to the first.
    Reaching,
    Running,
}

pub(super) struct Relay {
    /// The end at which a supervisor would be.
    launcher: OwnedFd,
    orders: Decoder,
    /// The remote shells.
    shells: SupervisorLink,
    connections: Vec<HostConnection>,
    job: RemoteJob,
    /// Standard output and error of each rank.
    streams: Vec<ByteQueue>,
    reports: ByteQueue,
    board: StatusBoard,
    phase: StartPhase,
    started: Instant,
    beat: Instant,
    /// Ranks were told to end; the last time that output moved on.
    ending: Option<Instant>,
}

/// A descriptor that can wake the relay up.
enum RelaySource {
    Launcher,
    Shells,
    Answers(usize),
    Errors(usize),
    Requests(usize),
    Output,
}

impl Relay {
    pub(super) fn new(
        launcher: OwnedFd,
        shells: SupervisorLink,
        connections: Vec<HostConnection>,
        job: RemoteJob,
        streams: Vec<ByteQueue>,
        reports: ByteQueue,
    ) -> Self {
        let now = Instant::now();
        let names = connections.iter().map(|host| host.name.clone());
        Self {
            board: StatusBoard::new(names.collect()),
            launcher,
            orders: Decoder::default(),
            shells,
            connections,
            job,
            streams,
            reports,
            phase: StartPhase::Greeting,
            started: now,
            beat: now,
            ending: None,
        }
    }

    /// Runs until no host has a rank, or one is lost, or the launcher closes its end.
    pub(super) fn run(mut self) -> Result<(), LaunchError> {
        loop {
            for source in self.wait() {
                match source {
                    RelaySource::Launcher => {
                        if !self.take_orders() {
                            return Ok(());
                        }
                    }
                    RelaySource::Shells => self.take_shells()?,
                    RelaySource::Answers(host) => self.take_answers(host)?,
                    RelaySource::Errors(host) => self.connections[host].take_errors(),
                    RelaySource::Requests(host) => {
                        self.connections[host].requests.write();
                    }
                    // Written to in any case.
                    RelaySource::Output => {}
                }
            }
            self.write();
            self.look()?;
            let written = self.streams.iter().all(ByteQueue::is_empty) && self.reports.is_empty();
            let over = self.connections.iter().all(|host| host.done.is_some());
            if over && written {
                let survivors = self.connections.iter().any(|host| host.done == Some(true));
                self.tell(Event::Done { survivors });
                return Ok(());
            }
        }
    }

    fn wait(&mut self) -> Vec<RelaySource> {
        for number in 0..self.connections.len() {
            if self.is_held_up(number) {
                // Nothing is heard of a host that nobody listens to.
                self.connections[number].heard = Instant::now();
            }
        }
        let mut sources = Vec::new();
        let mut polled = Vec::new();
        let mut add = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::from_borrowed_fd(descriptor, events));
        };
        add(RelaySource::Launcher, self.launcher.as_fd(), PollFlags::IN);
        add(RelaySource::Shells, self.shells.socket(), PollFlags::IN);
        for (number, host) in self.connections.iter().enumerate() {
            if let Some(answers) = host.answers.as_ref().filter(|_| !self.is_held_up(number)) {
                add(RelaySource::Answers(number), answers.as_fd(), PollFlags::IN);
            }
            if let Some(errors) = &host.errors {
                add(RelaySource::Errors(number), errors.as_fd(), PollFlags::IN);
            }
            if let Some(target) = host.requests.waits_for() {
                add(RelaySource::Requests(number), target, PollFlags::OUT);
            }
        }
        for queue in self.streams.iter().chain([&self.reports]) {
            if let Some(target) = queue.waits_for() {
                add(RelaySource::Output, target, PollFlags::OUT);
            }
        }
        let left = self.beat.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left.min(LOOK)).ok();
        // An interrupted wait is one without news.
        let _ = poll(&mut polled, left.as_ref());
        let ready = sources.into_iter().zip(&polled);
        let ready = ready.filter(|(_, polled)| !polled.revents().is_empty());
        ready.map(|(source, _)| source).collect()
    }

    /// True if the output of a rank of this host waits for a reader.
    fn is_held_up(&self, number: usize) -> bool {
        let HostConnection { first, ranks, .. } = self.connections[number];
        let own = &self.streams[2 * first..2 * (first + ranks)];
        own.iter().any(ByteQueue::is_full)
    }

    /// Passes the launcher's orders on; false if none will come any more.
    fn take_orders(&mut self) -> bool {
        let mut bytes = [0; 16 * RECORD];
        match rustix::net::recv(&self.launcher, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok((length, _)) => {
                for order in self.orders.feed(&bytes[..length]) {
                    self.pass_on(order);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return false,
        }
        true
    }

    fn pass_on(&mut self, order: Order) {
        self.ending.get_or_insert_with(Instant::now);
        if self.phase != StartPhase::Running {
            // There is no rank to tell: all hosts are let go.
            for host in &mut self.connections {
                host.done = Some(false);
            }
        }
        for host in &mut self.connections {
            let except = order
                .except
                .and_then(|rank| rank.checked_sub(host.first))
                .filter(|rank| *rank < host.ranks);
            let signal = order.signal;
            host.send(&ToHost::Signal(Order { signal, except }));
        }
    }

    /// Notes remote shells that have ended.
    fn take_shells(&mut self) -> Result<(), LaunchError> {
        let gone = || LaunchError::SupervisorLost {
            pid: rustix::process::getpid().as_raw_pid(),
        };
        for event in self.shells.receive().ok_or_else(gone)? {
            match event {
                Event::NotStarted { rank, errno } => {
                    let shell = Executable {
                        name: &self.job.shell,
                        environment: &self.job.shell_environment,
                    };
                    return Err(shell.not_started(rank, errno));
                }
                Event::Exited(Exit { rank, status, .. }) => {
                    self.connections[rank].shell = Some(Status::from_wait(status));
                }
                Event::Started { .. } | Event::Done { .. } => {}
            }
        }
        Ok(())
    }

    fn take_answers(&mut self, number: usize) -> Result<(), LaunchError> {
        let Ok(frames) = self.connections[number].receive() else {
            if self.connections[number].done.is_some() {
                // Whatever a remote shell says after the agent's last word.
                self.connections[number].answers = None;
                return Ok(());
            }
            return Err(self.lost(number, NO_AGENT.to_owned()));
        };
        frames
            .into_iter()
            .try_for_each(|frame| self.take(number, frame))
    }

    fn take(&mut self, number: usize, frame: FromHost) -> Result<(), LaunchError> {
        let HostConnection { first, ranks, .. } = self.connections[number];
        let rank_of = |rank: usize| (rank < ranks).then_some(first + rank);
        match frame {
            FromHost::Heartbeat | FromHost::Event(Event::NotStarted { .. }) => {}
            FromHost::Done => return self.tried(number, Route::Open),
            FromHost::Hello { version } if version == VERSION => {
                self.connections[number].greeted = true;
                self.greet();
            }
            FromHost::Hello { version } => {
                let reason = format!("its cobre is version {version}, this one {VERSION}");
                return Err(self.refused(number, reason));
            }
            FromHost::Failed { reason } if self.phase == StartPhase::Reaching => {
                return self.tried(number, Route::Closed(reason));
            }
            FromHost::Failed { reason } => return Err(self.refused(number, reason)),
            FromHost::Lost { reason } => return Err(self.lost(number, reason)),
            FromHost::Listening { address, port } => {
                return self.reach(&address, port);
            }
            FromHost::Output {
                rank,
                stream,
                bytes,
            } => {
                if let Some(rank) = rank_of(rank) {
                    self.streams[2 * rank + usize::from(stream == Stream::Err)].push(&bytes);
                }
            }
            FromHost::Report(bytes) => self.reports.push(&bytes),
            FromHost::Status { job, ranks } => self.board.show(number, &job, &ranks),
            FromHost::Event(Event::Started { rank, pid }) => {
                if let Some(rank) = rank_of(rank) {
                    self.tell(Event::Started { rank, pid });
                }
            }
            FromHost::Event(Event::Exited(exit)) => {
                // Ends on two hosts have no common moment.
                let hosts = self.connections.len() as u32;
                let batch = exit.batch.wrapping_mul(hosts).wrapping_add(number as u32);
                if let Some(rank) = rank_of(exit.rank) {
                    self.tell(Event::Exited(Exit {
                        rank,
                        batch,
                        ..exit
                    }));
                }
            }
            FromHost::Event(Event::Done { survivors }) => {
                self.connections[number].done = Some(survivors);
            }
        }
        Ok(())
    }

    /// Once all hosts have answered: finds a place where ranks meet, or starts them.
    fn greet(&mut self) {
        if self.phase != StartPhase::Greeting || !self.connections.iter().all(|host| host.greeted) {
            return;
        }
        if self.job.meets_by_address() {
            self.phase = StartPhase::Listening;
            let name = self.job.coordinator.clone();
            self.connections[0].send(&ToHost::Listen { name });
        } else {
            self.start();
        }
    }

    /// Sets the address at which ranks meet; all hosts but the first try the way to it.
    fn reach(&mut self, address: &str, port: u16) -> Result<(), LaunchError> {
        self.job.meet_at(address, port);
        self.phase = StartPhase::Reaching;
        for host in &mut self.connections[1..] {
            let address = address.to_owned();
            host.send(&ToHost::Reach { address, port });
        }
        self.tried(0, Route::Open)
    }

    /// Once all hosts have tried the way to the first: starts the ranks, or names the host that is cut off. If no other
    /// host reaches the first, it is that.
    fn tried(&mut self, number: usize, way: Route) -> Result<(), LaunchError> {
        self.connections[number].way = way;
        let untried = |host: &HostConnection| host.way == Route::Untried;
        if self.phase != StartPhase::Reaching || self.connections.iter().any(untried) {
            return Ok(());
        }
        let closed = |host: &HostConnection| matches!(host.way, Route::Closed(_));
        let Some(cut_off) = self.connections.iter().position(closed) else {
            self.start();
            return Ok(());
        };
        let others = &self.connections[1..];
        if others.len() > 1 && others.iter().all(closed) {
            let reason = "no other host reaches it at the address where the ranks would meet; if they reach it at another, \
                          give that with --coordinator";
            return Err(self.lost(0, reason.to_owned()));
        }
        let reason = match &self.connections[cut_off].way {
            Route::Closed(reason) => reason.clone(),
            Route::Untried | Route::Open => String::new(),
        };
        Err(self.lost(cut_off, reason))
    }

    fn start(&mut self) {
        self.phase = StartPhase::Running;
        for host in &mut self.connections {
            let job = self.job.of_host(host.first, host.ranks);
            host.send(&ToHost::Start(Box::new(job)));
        }
    }

    /// Writes what goes without waiting. Once ranks were told to end, a reader who takes nothing holds nothing up.
    fn write(&mut self) {
        self.reports.write();
        let written: usize = self.streams.iter_mut().map(ByteQueue::write).sum();
        if let Some(moved) = &mut self.ending {
            if written > 0 {
                *moved = Instant::now();
            } else if moved.elapsed() > READER {
                self.streams.iter_mut().for_each(ByteQueue::clear);
            }
        }
    }

    /// Sends heartbeats, and looks for hosts that are gone.
    fn look(&mut self) -> Result<(), LaunchError> {
        let now = Instant::now();
        if now >= self.beat {
            self.beat = now + BEAT;
            for host in &mut self.connections {
                host.send(&ToHost::Heartbeat);
            }
        }
        let limit = match self.ending {
            Some(_) => ENDING_SILENCE,
            None => HOST_SILENCE,
        };
        for number in 0..self.connections.len() {
            let host = &self.connections[number];
            if host.done.is_some() {
                continue;
            }
            let ended = host
                .closed
                .is_some_and(|at| host.shell.is_some() || now > at + CLOSING);
            let running = self.phase == StartPhase::Running;
            let silent = running && now > host.heard + limit;
            // The first host finds its address before ranks start; names may take long.
            let awaited = !host.greeted
                || (self.phase == StartPhase::Listening && number == 0)
                || (self.phase == StartPhase::Reaching && host.way == Route::Untried);
            let absent = awaited && now > self.started + START;
            let reason = if ended {
                host.end(&self.job.shell.to_string_lossy())
            } else if silent {
                format!("nothing was heard of it for {} s", limit.as_secs())
            } else if absent {
                format!("no agent was ready within {} s", START.as_secs())
            } else {
                continue;
            };
            return Err(self.lost(number, reason));
        }
        Ok(())
    }

    fn lost(&mut self, number: usize, reason: String) -> LaunchError {
        let host = &mut self.connections[number];
        LaunchError::HostLost {
            host: host.name.clone(),
            reason,
            tail: host.last_words(),
        }
    }

    fn refused(&self, number: usize, reason: String) -> LaunchError {
        let host = self.connections[number].name.clone();
        LaunchError::HostRefused { host, reason }
    }

    /// Tells the launcher; one that does not listen any more has closed its end.
    fn tell(&self, event: Event) {
        let bytes = encode(event);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::net::send(&self.launcher, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
