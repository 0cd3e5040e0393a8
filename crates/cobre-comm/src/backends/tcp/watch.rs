//! Who is alive. Each process has a thread and a connection to rank 0 for nothing else. Rank 0
//! turns whatever goes wrong anywhere into one verdict and sends it to all; a rank that loses rank
//! 0 names rank 0.
//!
//! Only these connections have `TCP_USER_TIMEOUT` and keepalive: on a data connection they would
//! end a healthy rank that computes while a large block waits for it. Rank 0 asks, and asks again
//! only when the last question was answered: so a stopped process, whose kernel acknowledges
//! without end, never fills a buffer and so never looks dead.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::fate::{Fate, Order};
use super::message::{Inbox, Kind, Message};
use crate::backends::origin::Origin;
use crate::backends::wire;
use crate::error::{Cause, Loss, Step};

/// How often rank 0 asks each rank for a sign of life.
const BEAT: Duration = Duration::from_millis(250);
/// How long bytes may stay unacknowledged before the other host counts as gone.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a broken data connection may be the first sign of something else.
const SUSPENSE: Duration = Duration::from_secs(1);
/// How long who leaves waits for the others to take note.
const FAREWELL: Duration = Duration::from_millis(500);

/// Sets on a watching connection what finds out that the other host is gone.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    sockopt::set_tcp_user_timeout(stream, SILENCE.as_millis() as u32)?;
    Ok(())
}

/// This process's watch over the job. Dropping it is an orderly leave.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) fate: Arc<Fate>,
    thread: Option<JoinHandle<()>>,
    /// The process that watches; one forked from it has the sockets, but no thread.
    pub(super) origin: Origin,
}

impl Watch {
    /// Begins to watch. `streams` are the watching connections by rank: to all workers on rank 0, to
    /// rank 0 on a worker.
    pub(super) fn begin(
        fate: Fate,
        ear: UnixStream,
        streams: Vec<Option<(TcpStream, Inbox)>>,
        stall: Duration,
        timeout: Option<Duration>,
    ) -> io::Result<Self> {
        for (stream, _) in streams.iter().flatten() {
            prepare(stream)?;
            stream.set_nonblocking(true)?;
        }
        let fate = Arc::new(fate);
        let shared = fate.clone();
        let builder = std::thread::Builder::new()
            .name("cobre-watch".to_owned())
            .stack_size(256 * 1024);
        let thread = if fate.rank == 0 {
            let coordinator = Coordinator::new(shared, ear, streams, stall, timeout);
            builder.spawn(move || coordinator.run())
        } else {
            let stream = streams.into_iter().flatten().next();
            let follower = Follower {
                fate: shared,
                ear,
                connection: stream,
                left: None,
                suspects: Vec::new(),
                leaving: None,
            };
            builder.spawn(move || follower.run())
        }?;
        Ok(Self {
            fate,
            thread: Some(thread),
            origin: Origin::here(),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take().filter(|_| self.origin.is_here()) else {
            return;
        };
        // Unwinding is no orderly end: the others must not take it for one.
        if std::thread::panicking() && !self.fate.is_stopped() {
            let how = Loss::Panic("see its standard error".to_owned());
            let cause = self.fate.lost(self.fate.rank, how, self.fate.step());
            self.fate.order(Order::Report(cause));
            self.fate.await_verdict();
        }
        self.fate.order(Order::Leave);
        let _ = thread.join();
    }
}

/// Waits until a stream has something to say, or the bell rings, or `limit` has passed.
fn listen<'a>(ear: &UnixStream, streams: impl Iterator<Item = &'a TcpStream>, limit: Duration) {
    let ear_source = PollFd::from_borrowed_fd(ear.as_fd(), PollFlags::IN);
    let others = streams.map(|stream| PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN));
    let mut sources: Vec<PollFd<'_>> = [ear_source].into_iter().chain(others).collect();
    let limit = Timespec::try_from(limit).ok();
    // An interrupted wait is one that has news.
    let _ = poll(&mut sources, limit.as_ref());
    let mut rung = [0; 64];
    while matches!((&mut &*ear).read(&mut rung), Ok(length) if length > 0) {}
}

/// Writes to standard error from a thread of its own: who watches must neither end nor wait, even if
/// nobody reads.
fn tell(text: String) {
    let _ = std::thread::Builder::new()
        .name("cobre-report".to_owned())
        .stack_size(64 * 1024)
        .spawn(move || io::stderr().write_all(text.as_bytes()));
}

/// A sign of life as it travels.
fn pong(fate: &Fate) -> Message {
    let step = fate.step().map_or(0, Step::word);
    Message::new(Kind::Pong, [step, fate.waited().as_millis() as u64])
}

/// A worker's side.
struct Follower {
    fate: Arc<Fate>,
    ear: UnixStream,
    /// To rank 0; `None` once it has ended.
    connection: Option<(TcpStream, Inbox)>,
    /// Rank 0 has left, after this step.
    left: Option<u64>,
    /// Ranks to which the data connection is broken.
    suspects: Vec<usize>,
    leaving: Option<Instant>,
}

impl Follower {
    fn run(mut self) {
        loop {
            let limit = self.leaving.map_or(SUSPENSE, |until| {
                until.saturating_duration_since(Instant::now())
            });
            let streams = self.connection.iter().map(|(stream, _)| stream);
            listen(&self.ear, streams, limit);
            self.hear();
            for order in self.fate.take_orders() {
                self.obey(order);
            }
            let over = |until| Instant::now() >= until || self.connection.is_none();
            if self.leaving.is_some_and(over) {
                return;
            }
        }
    }

    fn hear(&mut self) {
        let Some((stream, inbox)) = &mut self.connection else {
            return;
        };
        let filled = inbox.fill(stream);
        loop {
            match inbox.next() {
                Ok(Some(message)) => match message.kind {
                    Kind::Ping => drop(pong(&self.fate).send(stream)),
                    Kind::Verdict => self.fate.settle(verdict_of(&message)),
                    Kind::Leave => self.left = Some(message.figures[0]),
                    _ => {}
                },
                Ok(None) => break,
                Err(_) => {
                    self.end();
                    return;
                }
            }
        }
        if filled.is_err() || self.left.is_some() {
            self.end();
        }
    }

    /// The connection to rank 0 has ended.
    fn end(&mut self) {
        self.connection = None;
        if self.left.is_none() {
            self.fate.settle(self.fate.lost(0, Loss::Vanished, None));
        } else {
            self.suspects.iter().for_each(|&peer| self.blame(peer));
        }
    }

    /// Decides who is at fault when the connection to `peer` broke after rank 0 has left: rank 0, if
    /// it left before the collective in which that happened.
    fn blame(&self, peer: usize) {
        let last = self.left.and_then(Step::of_word);
        let sequence = |step: Option<Step>| step.map_or(0, |step| step.sequence);
        let cause = if peer == 0 || sequence(last) < sequence(self.fate.step()) {
            self.fate.lost(0, Loss::Left, last)
        } else {
            self.fate.lost(peer, Loss::Vanished, self.fate.seen(peer))
        };
        self.fate.settle(cause);
    }

    fn obey(&mut self, order: Order) {
        let message = match &order {
            Order::Report(cause) => Message::with_body(Kind::Report, [0; 2], wire::encode(cause)),
            Order::LinkLost(peer) => {
                self.suspects.push(*peer);
                Message::new(Kind::LinkLost, [*peer as u64, 0])
            }
            Order::Late(step) => Message::new(Kind::Late, [step.word(), 0]),
            Order::Leave => {
                self.leaving = Some(Instant::now() + FAREWELL);
                Message::new(Kind::Leave, [self.fate.step().map_or(0, Step::word), 0])
            }
        };
        if let Some((stream, _)) = &self.connection {
            let _ = message.send(stream);
            if self.leaving.is_some() {
                let _ = stream.shutdown(Shutdown::Write);
            }
            return;
        }
        // Rank 0 has left: nobody else decides.
        match order {
            Order::LinkLost(peer) => self.blame(peer),
            Order::Report(cause) => self.fate.settle(cause),
            Order::Late(_) | Order::Leave => {}
        }
    }
}

fn verdict_of(message: &Message) -> Cause {
    wire::decode(&message.body).unwrap_or_else(|| Cause::Io {
        action: "reading why the job failed".to_owned(),
        message: "rank 0 sent what is no record".to_owned(),
    })
}

/// What rank 0 knows of a worker.
struct Worker {
    /// `None` once it has ended.
    connection: Option<(TcpStream, Inbox)>,
    /// It has left, after this step.
    left: Option<u64>,
    /// Whether the last question is still open, and when it was last answered.
    asked: bool,
    answered: Instant,
    step: u64,
    waited: Duration,
}

/// Rank 0's side.
struct Coordinator {
    fate: Arc<Fate>,
    ear: UnixStream,
    workers: Vec<Worker>,
    stall: Duration,
    timeout: Option<Duration>,
    next_beat: Instant,
    /// Broken data connections: to which rank, by whose word, and until when that may explain
    /// itself.
    suspects: Vec<(usize, usize, Instant)>,
    /// A step whose deadline has passed, and when to say so: by then the others' steps are known.
    late: Option<(Step, Instant)>,
    /// The step whose stall has been reported.
    reported: u64,
    leaving: Option<Instant>,
}

impl Coordinator {
    fn new(
        fate: Arc<Fate>,
        ear: UnixStream,
        streams: Vec<Option<(TcpStream, Inbox)>>,
        stall: Duration,
        timeout: Option<Duration>,
    ) -> Self {
        let now = Instant::now();
        let workers = streams.into_iter().map(|connection| Worker {
            connection,
            left: None,
            asked: false,
            answered: now,
            step: 0,
            waited: Duration::ZERO,
        });
        Self {
            fate,
            ear,
            workers: workers.collect(),
            stall,
            timeout,
            next_beat: now,
            suspects: Vec::new(),
            late: None,
            reported: 0,
            leaving: None,
        }
    }

    fn run(mut self) {
        loop {
            self.wait();
            for rank in 1..self.workers.len() {
                self.hear(rank);
            }
            for order in self.fate.take_orders() {
                self.obey(order);
            }
            self.beat();
            self.judge();
            self.report_stall();
            let all_gone = self
                .workers
                .iter()
                .all(|worker| worker.connection.is_none());
            let over = |until| Instant::now() >= until || all_gone;
            if self.leaving.is_some_and(over) {
                return;
            }
        }
    }

    fn wait(&self) {
        let pending = self.suspects.iter().map(|(_, _, due)| *due);
        let late = self.late.map(|(_, due)| due);
        let due = pending
            .chain(late)
            .chain(self.leaving)
            .fold(self.next_beat, Instant::min);
        let connections = self.workers.iter().filter_map(|w| w.connection.as_ref());
        let streams = connections.map(|(stream, _)| stream);
        listen(
            &self.ear,
            streams,
            due.saturating_duration_since(Instant::now()),
        );
    }

    fn hear(&mut self, rank: usize) {
        let Some((stream, inbox)) = &mut self.workers[rank].connection else {
            return;
        };
        let mut ended = inbox.fill(stream).is_err();
        let mut messages = Vec::new();
        loop {
            match inbox.next() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => {
                    ended = true;
                    break;
                }
            }
        }
        for message in messages {
            self.take(rank, &message);
        }
        if self.workers[rank].left.is_some() {
            // Closing is the answer that it waits for.
            self.workers[rank].connection = None;
        } else if ended {
            self.workers[rank].connection = None;
            let cause = self.lost(rank, Loss::Vanished);
            self.decide(&cause);
        }
    }

    fn take(&mut self, rank: usize, message: &Message) {
        let [first, second] = message.figures;
        let worker = &mut self.workers[rank];
        match message.kind {
            Kind::Pong => {
                (worker.asked, worker.answered) = (false, Instant::now());
                (worker.step, worker.waited) = (first, Duration::from_millis(second));
            }
            Kind::Leave => worker.left = Some(first),
            Kind::Report => self.decide(&verdict_of(message)),
            Kind::LinkLost => {
                let peer = (first as usize).min(self.workers.len() - 1);
                self.suspects.push((peer, rank, Instant::now() + SUSPENSE));
            }
            Kind::Late => self.note_late(Step::of_word(first)),
            _ => {}
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Report(cause) => self.decide(&cause),
            Order::LinkLost(peer) => {
                self.suspects.push((peer, 0, Instant::now() + SUSPENSE));
            }
            Order::Late(step) => self.note_late(Some(step)),
            Order::Leave => {
                self.leaving = Some(Instant::now() + FAREWELL);
                let farewell = Message::new(Kind::Leave, [self.own_step(), 0]);
                for (stream, _) in self.workers.iter().filter_map(|w| w.connection.as_ref()) {
                    let _ = farewell.send(stream);
                    let _ = stream.shutdown(Shutdown::Write);
                }
            }
        }
    }

    fn own_step(&self) -> u64 {
        self.fate.step().map_or(0, Step::word)
    }

    fn note_late(&mut self, step: Option<Step>) {
        if let (Some(step), None) = (step, self.late) {
            self.late = Some((step, Instant::now() + BEAT + BEAT / 2));
            self.next_beat = Instant::now();
        }
    }

    /// Asks everyone who has answered the last time.
    fn beat(&mut self) {
        if Instant::now() < self.next_beat || self.leaving.is_some() {
            return;
        }
        self.next_beat = Instant::now() + BEAT;
        for worker in &mut self.workers {
            if let Some((stream, _)) = &worker.connection
                && !worker.asked
            {
                // A connection that cannot be written to will say so when it is read.
                worker.asked = Message::new(Kind::Ping, [0; 2]).send(stream).is_ok();
            }
        }
    }

    /// Decides on what has waited long enough, or has explained itself.
    fn judge(&mut self) {
        let now = Instant::now();
        for (peer, reporter, due) in std::mem::take(&mut self.suspects) {
            if self.workers[peer].left.is_some() {
                let cause = self.lost(peer, Loss::Left);
                self.decide(&cause);
            } else if now < due {
                self.suspects.push((peer, reporter, due));
            } else {
                self.decide(&Cause::Io {
                    action: format!("moving data between ranks {reporter} and {peer}"),
                    message: "their connection broke, though both are alive".to_owned(),
                });
            }
        }
        if let Some((step, due)) = self.late
            && now >= due
        {
            self.late = None;
            let missing = (0..self.workers.len())
                .filter(|&rank| self.sequence_of(rank) < step.sequence)
                .collect();
            self.decide(&Cause::Deadline {
                waited: self.timeout.unwrap_or_default(),
                missing,
            });
        }
    }

    /// The last step of a rank, by its own word or by the frames that came from it.
    fn step_of(&self, rank: usize) -> Option<Step> {
        if rank == 0 {
            return self.fate.step();
        }
        let worker = &self.workers[rank];
        let told = Step::of_word(worker.left.unwrap_or(worker.step));
        let seen = self.fate.seen(rank);
        [told, seen]
            .into_iter()
            .flatten()
            .max_by_key(|step| step.sequence)
    }

    fn sequence_of(&self, rank: usize) -> u64 {
        self.step_of(rank).map_or(0, |step| step.sequence)
    }

    fn lost(&self, rank: usize, how: Loss) -> Cause {
        self.fate.lost(rank, how, self.step_of(rank))
    }

    /// Tells everyone, this rank last: who sees the verdict here may end the process.
    fn decide(&mut self, cause: &Cause) {
        if self.fate.verdict().is_some() {
            return;
        }
        let body = wire::encode(cause);
        let verdict = Message::with_body(Kind::Verdict, [0; 2], body);
        for (stream, _) in self.workers.iter().filter_map(|w| w.connection.as_ref()) {
            let _ = verdict.send(stream);
        }
        // As the others read it.
        self.fate.settle(verdict_of(&verdict));
    }

    /// Says once for each step who waits in it and for whom, if that takes long.
    fn report_stall(&mut self) {
        let waited = |rank: usize| match rank {
            0 => self.fate.waited(),
            _ => self.workers[rank].waited,
        };
        let longest = (0..self.workers.len()).max_by_key(|&rank| waited(rank));
        let Some(longest) = longest.filter(|&rank| waited(rank) >= self.stall) else {
            return;
        };
        let Some(step) = self.step_of(longest) else {
            return;
        };
        if step.word() == self.reported || self.fate.verdict().is_some() {
            return;
        }
        self.reported = step.word();
        let mut arrived = Vec::new();
        let mut missing = Vec::new();
        for rank in 0..self.workers.len() {
            if self.sequence_of(rank) >= step.sequence {
                arrived.push(rank.to_string());
            } else {
                missing.push(self.describe(rank));
            }
        }
        let missing = if missing.is_empty() {
            "all arrived, and data do not move".to_owned()
        } else {
            format!("not there: {}", missing.join("; "))
        };
        let (seconds, arrived) = (waited(longest).as_secs(), arrived.join(", "));
        tell(format!(
            "cobre: {step} has taken {seconds} s; arrived: {arrived}; {missing}\n"
        ));
    }

    fn describe(&self, rank: usize) -> String {
        let card = &self.fate.cards[rank];
        let (pid, host) = (card.pid, &card.host);
        let last = match self.step_of(rank) {
            Some(step) => format!("its last collective was {step}"),
            None => "it began no collective yet".to_owned(),
        };
        let answered = self.workers[rank].answered.elapsed();
        let seen = if rank == 0 {
            "this is it".to_owned()
        } else if answered > 4 * BEAT {
            format!("silent for {:.1} s, stopped?", answered.as_secs_f64())
        } else {
            "it answers".to_owned()
        };
        format!("rank {rank} (pid {pid} on {host}): {last}, {seen}")
    }
}
