//! Rank 0's side of the watch: asks all others for signs of life, turns what goes wrong into one verdict, and reports
//! stalls.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{Flow, WatchLink, decode_flows};
use super::message::{Message, MessageKind};
use super::sys::CloseOnFork;
use super::system::{self, EventQueue, Instant, PlantedFault, PollSource, UnixStream, complain};
use super::verdict::{JobVerdict, WatchRequest};
use super::watch::{BEAT, LEAVE_TIMEOUT, Limits, listen, verdict_of};
use crate::backends::{host, wire};
use crate::error::{CallPosition, Cause, Loss};

/// The time after which a heartbeat without an answer is sent again, and the number of times: one that was lost on
/// the way shows in the numbers of those after it, and a stopped process is not flooded.
const BEAT_AGAIN: Duration = Duration::from_secs(5);
const MOST_OPEN_BEATS: u32 = 16;
/// Ranks that wait for longer say what has crossed their data connections.
const QUIET: Duration = Duration::from_secs(2);
/// Answers without a change after which bytes that were sent, and are awaited, count as lost: 10 s.
const UNMOVED: u32 = 40;
/// The time for which both sides must have said so at once: what a rank said before it left or was stopped is old.
const UNMOVED_TOGETHER: Duration = Duration::from_secs(8);
/// The time for which a broken data connection may be the first sign of something else.
const SUSPENSE: Duration = Duration::from_secs(1);

/// Rank 0's record of a worker.
struct Worker {
    /// `None` once it has ended.
    connection: Option<WatchLink>,
    /// It has left, after this step.
    left: Option<u64>,
    /// The time since which the last heartbeat is open, the number of open ones, and the time of the last answer.
    asked: Option<Instant>,
    unanswered: u32,
    answered: Instant,
    step: u64,
    waited: Duration,
    /// The bytes that have crossed its data connections, by rank, and the number of answers since the first that
    /// said so, with the times of the first and the last of these; empty unless it was asked.
    flows: Vec<Flow>,
    unmoved: u32,
    still: [Instant; 2],
}

impl Worker {
    fn note_flows(&mut self, flows: Vec<Flow>) {
        let now = Instant::now();
        if self.flows == flows {
            self.unmoved += 1;
            self.still[1] = now;
        } else {
            (self.flows, self.unmoved, self.still) = (flows, 0, [now; 2]);
        }
    }

    /// Its connection with a rank, if nothing has crossed any of its own for long.
    fn still_flow(&self, peer: usize) -> Option<&Flow> {
        self.flows.get(peer).filter(|_| self.unmoved >= UNMOVED)
    }

    /// The time for which both have said that nothing crosses their connections.
    fn still_together(&self, other: &Self) -> Duration {
        let [begin, end] = self.still;
        let [other_begin, other_end] = other.still;
        let end = end.min(other_end);
        end.saturating_duration_since(begin.max(other_begin))
    }
}

/// Rank 0's side.
pub(super) struct Coordinator {
    job_verdict: Arc<JobVerdict>,
    wake_receiver: CloseOnFork<UnixStream>,
    /// By rank; of rank 0 itself there is only whether it has left.
    workers: Vec<Worker>,
    /// The news of the connections, by rank, and of the waker, as rank 0's; `None` with few connections.
    events: Option<EventQueue>,
    /// Ranks whose connections have news.
    told: Vec<usize>,
    limits: Limits,
    next_beat: Instant,
    /// Broken data connections: to which rank, by whose report, and until when that may explain
    /// itself.
    suspects: Vec<(usize, usize, Instant)>,
    /// A step whose deadline has passed by its place in the sequence, 0 in the start; that deadline, and when to say so: by
    /// then the others' steps are known.
    late: Option<(u64, Duration, Instant)>,
    /// The step whose stall has been reported; 0 is the start.
    reported: Option<u64>,
    /// The time since which this rank has left, and true if it has reported that others have not.
    leaving: Option<Instant>,
    told_leaving: bool,
}

impl Coordinator {
    pub(super) fn new(
        job_verdict: Arc<JobVerdict>,
        wake_receiver: CloseOnFork<UnixStream>,
        connections: Vec<Option<WatchLink>>,
        limits: Limits,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let events = event_queue(&wake_receiver, &connections)?;
        let workers = connections.into_iter().map(|connection| Worker {
            connection,
            left: None,
            asked: None,
            unanswered: 0,
            answered: now,
            step: 0,
            waited: Duration::ZERO,
            flows: Vec::new(),
            unmoved: 0,
            still: [now; 2],
        });
        let workers: Vec<Worker> = workers.collect();
        Ok(Self {
            job_verdict,
            wake_receiver,
            // What came with the last message of the start has been read already.
            told: (1..workers.len()).collect(),
            workers,
            events,
            limits,
            next_beat: now,
            suspects: Vec::new(),
            late: None,
            reported: None,
            leaving: None,
            told_leaving: false,
        })
    }

    pub(super) fn run(mut self) {
        loop {
            self.wait();
            for rank in std::mem::take(&mut self.told) {
                self.receive(rank);
            }
            for request in self.job_verdict.take_requests() {
                self.obey(request);
            }
            self.beat();
            self.judge();
            self.report_stall();
            self.report_leaving();
            self.dismiss();
            if self.is_over() {
                return;
            }
        }
    }

    /// Lets everyone go when all have left: what is still on its way, nobody needs. A rank may wait for an
    /// acknowledgement that does not come.
    fn dismiss(&mut self) {
        if self.workers.iter().all(|worker| worker.left.is_some()) {
            for worker in &mut self.workers {
                worker.connection = None;
            }
        }
    }

    /// True if this rank has left and so have all others, or they know why the job has failed.
    fn is_over(&self) -> bool {
        let all_gone = || self.workers.iter().all(|w| w.connection.is_none());
        let told = |since: Instant| {
            since.elapsed() >= LEAVE_TIMEOUT && self.job_verdict.is_stopped_for(LEAVE_TIMEOUT)
        };
        self.leaving.is_some_and(|since| all_gone() || told(since))
    }

    fn wait(&mut self) {
        let pending = self.suspects.iter().map(|(_, _, due)| *due);
        let late = self.late.map(|(_, _, due)| due);
        let due = pending.chain(late).fold(self.next_beat, Instant::min);
        let links = self.workers.iter().filter_map(|w| w.connection.as_ref());
        let limit = due.saturating_duration_since(Instant::now());
        let limit = self
            .job_verdict
            .until_host_alarm()
            .unwrap_or(limit)
            .min(limit);
        match &self.events {
            None => {
                listen(&self.wake_receiver, links, limit);
                self.told = (1..self.workers.len()).collect();
            }
            Some(events) => {
                events.wait(limit, |event| self.told.push(event.number));
                self.told.retain(|&rank| rank > 0);
                system::silence(&self.wake_receiver);
                links.for_each(WatchLink::flush);
            }
        }
        self.job_verdict.alarm_host();
    }

    fn receive(&mut self, rank: usize) {
        let Some(link) = &mut self.workers[rank].connection else {
            return;
        };
        let filled = link.inbox.fill(&link.socket);
        let (mut ended, mut forged) = (filled.is_err(), false);
        let mut messages = Vec::new();
        loop {
            match link.inbox.next(&link.channel) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => {
                    (ended, forged) = (true, link.channel.tag_len() > 0);
                    break;
                }
            }
        }
        for message in messages {
            self.take(rank, &message);
        }
        if forged {
            let cause = self.job_verdict.forged(rank);
            self.decide(&cause);
        }
        if !ended {
            return;
        }
        // Closing is the answer that a rank waits for which has left.
        self.workers[rank].connection = None;
        if system::has(PlantedFault::DeafCoordinator) {
            return;
        }
        // Its host may be lost with what it sent before it left.
        if self.workers[rank].left.is_none() || filled.is_err_and(|error| is_silence(&error)) {
            let cause = self.lost(rank, Loss::Vanished);
            self.decide(&cause);
        }
    }

    fn take(&mut self, rank: usize, message: &Message) {
        let [first, second] = message.figures;
        let worker = &mut self.workers[rank];
        match message.kind {
            MessageKind::Pong => {
                (worker.asked, worker.unanswered) = (None, 0);
                worker.answered = Instant::now();
                (worker.step, worker.waited) = (first, Duration::from_millis(second));
                let flows = decode_flows(&message.body, self.job_verdict.peer_infos.len());
                worker.note_flows(flows);
            }
            MessageKind::Leave => worker.left = Some(first),
            MessageKind::Report => self.decide(&verdict_of(message)),
            MessageKind::LinkLost => {
                let peer = (first as usize).min(self.workers.len() - 1);
                self.suspect(peer, rank);
            }
            MessageKind::Late => {
                let sequence = CallPosition::of_word(first).map_or(0, |step| step.sequence);
                self.note_late(sequence, Duration::from_millis(second));
            }
            _ => {}
        }
    }

    fn obey(&mut self, request: WatchRequest) {
        match request {
            WatchRequest::Report(cause) => self.decide(&cause),
            WatchRequest::LinkLost(peer) => {
                self.suspect(peer, 0);
            }
            WatchRequest::Late(step, limit) => self.note_late(step.sequence, limit),
            WatchRequest::Leave => {
                self.leaving = Some(Instant::now());
                self.workers[0].left = Some(self.job_verdict.step().map_or(0, CallPosition::word));
                self.job_verdict.end_sending();
            }
        }
    }

    fn suspect(&mut self, peer: usize, reporter: usize) {
        let mut known = self.suspects.iter();
        if !known.any(|&(other, by, _)| (other, by) == (peer, reporter)) {
            let due = Instant::now() + SUSPENSE;
            self.suspects.push((peer, reporter, due));
        }
    }

    fn note_late(&mut self, sequence: u64, limit: Duration) {
        if self.late.is_none() {
            self.late = Some((sequence, limit, Instant::now() + BEAT + BEAT / 2));
            self.next_beat = Instant::now();
        }
    }

    /// Asks everyone who has answered the last time, or is silent for so long that the question may
    /// be lost.
    fn beat(&mut self) {
        let now = Instant::now();
        if now < self.next_beat {
            return;
        }
        self.next_beat = now + BEAT;
        let waiting = self.workers.iter().map(|worker| worker.waited);
        let quiet = waiting
            .chain([self.job_verdict.waited()])
            .any(|it| it >= QUIET);
        let own = if quiet {
            self.job_verdict.flows()
        } else {
            Vec::new()
        };
        self.workers[0].note_flows(own);
        let ping = Message::new(MessageKind::Ping, [u64::from(quiet), 0]);
        for worker in &mut self.workers {
            let asks = worker.asked.is_none_or(|since| {
                now >= since + BEAT_AGAIN && worker.unanswered < MOST_OPEN_BEATS
            });
            if let Some(link) = worker.connection.as_ref().filter(|_| asks) {
                link.send(&ping);
                worker.asked = Some(now);
                worker.unanswered += 1;
            }
        }
    }

    /// Bytes that one rank has sent or wants to send, another waits for, and neither sees move: from whom, to whom and
    /// how many were sent. Where acknowledgements are lost, all that was sent may have come, and the kernel takes no
    /// more.
    fn lost_bytes(&self) -> Option<(usize, usize, u64)> {
        if system::has(PlantedFault::LostBytesIgnored) {
            return None;
        }
        let ranks = || 0..self.workers.len();
        let pairs = ranks().flat_map(|from| ranks().map(move |to| (from, to)));
        pairs.into_iter().find_map(|(from, to)| {
            let [sender, receiver] = [from, to].map(|rank| &self.workers[rank]);
            let (here, there) = (sender.still_flow(to)?, receiver.still_flow(from)?);
            let missing = here.sent.checked_sub(there.received)?;
            let is_lost = there.awaited && (missing > 0 || here.held);
            let is_long = sender.still_together(receiver) >= UNMOVED_TOGETHER;
            (is_lost && is_long).then_some((from, to, missing))
        })
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
        if self.job_verdict.verdict().is_none()
            && let Some((from, to, missing)) = self.lost_bytes()
        {
            self.decide(&Cause::Io {
                action: format!("moving data from rank {from} to rank {to}"),
                message: if missing > 0 {
                    format!(
                        "{missing} bytes that were sent do not arrive, though both ranks are alive"
                    )
                } else {
                    "what arrives is not acknowledged, though both ranks are alive".to_owned()
                },
            });
        }
        if system::has(PlantedFault::SilenceIsDeath) {
            let is_silent = |worker: &Worker| {
                let since = worker.asked.filter(|_| worker.connection.is_some());
                since.is_some_and(|since| now >= since + QUIET)
            };
            if let Some(rank) = self.workers.iter().position(is_silent) {
                self.decide(&self.lost(rank, Loss::Vanished));
            }
        }
        if let Some((sequence, waited, due)) = self.late
            && now >= due
        {
            self.late = None;
            let missing = (0..self.workers.len())
                .filter(|&rank| !self.has_reached(rank, sequence))
                .collect();
            self.decide(&Cause::Deadline { waited, missing });
        }
    }

    /// The last step of a rank, by its own word or by the frames that came from it.
    fn step_of(&self, rank: usize) -> Option<CallPosition> {
        if rank == 0 {
            return self.job_verdict.step();
        }
        let worker = &self.workers[rank];
        let told = CallPosition::of_word(worker.left.unwrap_or(worker.step));
        let seen = self.job_verdict.seen(rank);
        [told, seen]
            .into_iter()
            .flatten()
            .max_by_key(|step| step.sequence)
    }

    /// True if a rank has come to the step of this number. The start has none: whoever answers is there.
    fn has_reached(&self, rank: usize, sequence: u64) -> bool {
        match sequence {
            0 => !self.is_silent(rank),
            _ => self.step_of(rank).map_or(0, |step| step.sequence) >= sequence,
        }
    }

    /// True if a rank that has not left does not answer.
    fn is_silent(&self, rank: usize) -> bool {
        let worker = &self.workers[rank];
        rank > 0 && worker.left.is_none() && worker.answered.elapsed() > 4 * BEAT
    }

    fn lost(&self, rank: usize, how: Loss) -> Cause {
        self.job_verdict.lost(rank, how, self.step_of(rank))
    }

    /// Tells everyone, this rank last: who sees the verdict here may end the process.
    fn decide(&mut self, cause: &Cause) {
        if self.job_verdict.verdict().is_some() {
            return;
        }
        let body = wire::encode(cause);
        let verdict = Message::with_body(MessageKind::Verdict, [0; 2], body);
        let links = self.workers.iter().filter_map(|w| w.connection.as_ref());
        for link in links.skip(usize::from(system::has(PlantedFault::VerdictNotForAll))) {
            link.send(&verdict);
        }
        // As the others read it.
        self.job_verdict.set_verdict(verdict_of(&verdict));
    }

    /// Says once for each step who waits in it and for whom, if that takes long.
    fn report_stall(&mut self) {
        let waited = |rank: usize| match rank {
            0 => self.job_verdict.waited(),
            _ => self.workers[rank].waited,
        };
        let longest = (0..self.workers.len()).max_by_key(|&rank| waited(rank));
        let Some(longest) = longest.filter(|&rank| waited(rank) >= self.limits.stall) else {
            return;
        };
        let step = self.step_of(longest);
        let word = step.map_or(0, CallPosition::word);
        if self.reported == Some(word) || self.job_verdict.verdict().is_some() {
            return;
        }
        self.reported = Some(word);
        let sequence = step.map_or(0, |step| step.sequence);
        let mut arrived = Vec::new();
        let mut missing = Vec::new();
        for rank in 0..self.workers.len() {
            if self.has_reached(rank, sequence) {
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
        let what = CallPosition::describe_stalled(step);
        complain(format!(
            "cobre: {what} has taken {seconds} s; arrived: {arrived}; {missing}\n"
        ));
    }

    /// Says once whom this rank waits for since it has left.
    fn report_leaving(&mut self) {
        let waited = self.leaving.map(|since| since.elapsed());
        let Some(waited) = waited.filter(|waited| *waited >= self.limits.stall) else {
            return;
        };
        if self.told_leaving || self.job_verdict.verdict().is_some() {
            return;
        }
        self.told_leaving = true;
        let there = (1..self.workers.len()).filter(|&rank| self.workers[rank].connection.is_some());
        let there: Vec<String> = there.map(|rank| self.describe(rank)).collect();
        complain(format!(
            "cobre: rank 0 has finished and waits for the others to leave, for {} s so far: {}\n",
            waited.as_secs(),
            there.join("; ")
        ));
    }

    fn describe(&self, rank: usize) -> String {
        let peer_info = &self.job_verdict.peer_infos[rank];
        let who = host::process(rank, peer_info.pid, &peer_info.host);
        let last = CallPosition::describe_last(self.step_of(rank));
        let answered = self.workers[rank].answered.elapsed();
        let seen = if self.workers[rank].left.is_some() {
            "it has left".to_owned()
        } else if rank == 0 {
            "this is it".to_owned()
        } else if self.is_silent(rank) {
            format!("silent for {:.1} s, stopped?", answered.as_secs_f64())
        } else {
            "it answers".to_owned()
        };
        format!("{who}: {last}, {seen}")
    }
}

/// The queue that tells which connections have news, where there are many.
fn event_queue(
    wake_receiver: &UnixStream,
    connections: &[Option<WatchLink>],
) -> io::Result<Option<EventQueue>> {
    if connections.iter().flatten().count() < system::many_sockets() {
        return Ok(None);
    }
    let queue = EventQueue::new()?;
    queue.add(PollSource::Wake(wake_receiver), 0)?;
    for (rank, link) in connections.iter().enumerate() {
        if let Some(link) = link {
            queue.add(PollSource::Read(&link.socket), rank)?;
        }
    }
    Ok(Some(queue))
}

/// True if nothing came from the other host, rather than its end of the connection.
fn is_silence(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkUnreachable, TimedOut};
    matches!(
        error.kind(),
        TimedOut | HostUnreachable | NetworkUnreachable
    )
}
