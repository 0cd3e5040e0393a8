//! A worker's side of the watch: answers rank 0, reports to it, takes its verdict, and minds its silence.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{WatchLink, encode_flows};
use super::message::{Message, MessageKind};
use super::sys::CloseOnFork;
use super::system::{self, Instant, PlantedFault, UnixStream, complain};
use super::verdict::{JobVerdict, WatchRequest};
use super::watch::{BEAT, LEAVE_TIMEOUT, Limits, SILENCE, listen, verdict_of};
use crate::backends::{host, wire};
use crate::error::{CallPosition, Cause, Loss};

/// The interval at which a leaving rank looks whether what it sent has arrived.
const DRAIN: Duration = Duration::from_millis(1);
/// A rank 0 that is silent for longer may be lost. Reports wait then: a message that is not acknowledged begins the
/// kernel's time anew, and its probes are under way.
const DOUBTFUL: Duration = Duration::from_secs(1);
/// The time after which a rank 0 that is still connected is only stopped: the probes have failed by then.
const PROBED: Duration = Duration::from_secs(4);

/// A worker's side.
pub(super) struct Follower {
    job_verdict: Arc<JobVerdict>,
    wake_receiver: CloseOnFork<UnixStream>,
    /// To rank 0; `None` once it has ended.
    connection: Option<WatchLink>,
    limits: Limits,
    /// The time of rank 0's last message.
    heard: Instant,
    /// The time since which rank 0 owes a verdict.
    asked: Option<Instant>,
    /// Reports that wait until rank 0 is known to be there.
    unsent: Vec<Message>,
    /// The step in which the silence of rank 0 has been reported; 0 is the start.
    reported: Option<u64>,
    leaving: LeavePhase,
}

/// The phase of a worker's departure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeavePhase {
    No,
    /// It has said so; what it sent may still be on its way.
    Said,
    /// Everything has arrived; rank 0 answers by closing, soon.
    Until(Instant),
}

impl Follower {
    pub(super) fn new(
        job_verdict: Arc<JobVerdict>,
        wake_receiver: CloseOnFork<UnixStream>,
        connection: Option<WatchLink>,
        limits: Limits,
    ) -> Self {
        Self {
            job_verdict,
            wake_receiver,
            connection,
            limits,
            heard: Instant::now(),
            asked: None,
            unsent: Vec::new(),
            reported: None,
            leaving: LeavePhase::No,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let limit = match self.leaving {
                LeavePhase::No => BEAT,
                LeavePhase::Said => DRAIN,
                LeavePhase::Until(until) => until.saturating_duration_since(Instant::now()),
            };
            let limit = self
                .job_verdict
                .until_host_alarm()
                .unwrap_or(limit)
                .min(limit);
            listen(&self.wake_receiver, self.connection.iter(), limit);
            self.job_verdict.alarm_host();
            self.receive();
            for request in self.job_verdict.take_requests() {
                self.obey(request);
            }
            self.report();
            self.mind_silence();
            if self.is_gone() {
                return;
            }
        }
    }

    fn receive(&mut self) {
        let Some(link) = &mut self.connection else {
            return;
        };
        let mut ended = link.inbox.fill(&link.socket).is_err();
        let mut forged = false;
        loop {
            match link.inbox.next(&link.channel) {
                Ok(Some(message)) => {
                    self.heard = Instant::now();
                    match message.kind {
                        MessageKind::Ping => link.send(&pong(&self.job_verdict, &message)),
                        MessageKind::Verdict => self.job_verdict.set_verdict(verdict_of(&message)),
                        _ => {}
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    (ended, forged) = (true, link.channel.tag_len() > 0);
                    break;
                }
            }
        }
        if forged {
            // Nothing that comes after it can be believed, not even a verdict: the others are told,
            // and this rank fails with the words that they get.
            let cause = wire::encode(&self.job_verdict.forged(0));
            let report = Message::with_body(MessageKind::Report, [0; 2], cause);
            self.say(&report);
            self.job_verdict.set_verdict(verdict_of(&report));
        }
        if ended {
            self.connection = None;
            let is_needed = self.leaving == LeavePhase::No || self.leaving == LeavePhase::Said;
            if is_needed && !system::has(PlantedFault::DeafFollower) {
                self.job_verdict
                    .set_verdict(self.job_verdict.lost(0, Loss::Vanished, None));
            }
        }
    }

    fn obey(&mut self, request: WatchRequest) {
        let message = match request {
            WatchRequest::Report(cause) => {
                Message::with_body(MessageKind::Report, [0; 2], wire::encode(&cause))
            }
            WatchRequest::LinkLost(peer) => Message::new(MessageKind::LinkLost, [peer as u64, 0]),
            WatchRequest::Late(step, limit) => {
                Message::new(MessageKind::Late, [step.word(), limit.as_millis() as u64])
            }
            WatchRequest::Leave => {
                self.leaving = LeavePhase::Said;
                self.job_verdict.end_sending();
                Message::new(
                    MessageKind::Leave,
                    [self.job_verdict.step().map_or(0, CallPosition::word), 0],
                )
            }
        };
        if message.kind == MessageKind::Leave {
            self.send_reports();
            self.say(&message);
        } else {
            self.asked.get_or_insert_with(Instant::now);
            self.unsent.push(message);
        }
    }

    /// Sends the reports, unless rank 0 may be lost.
    fn report(&mut self) {
        let silent = self.heard.elapsed();
        if silent < DOUBTFUL || silent >= PROBED {
            self.send_reports();
        }
    }

    fn send_reports(&mut self) {
        for message in std::mem::take(&mut self.unsent) {
            self.say(&message);
        }
    }

    fn say(&self, message: &Message) {
        if let Some(link) = &self.connection {
            link.send(message);
        }
    }

    /// A rank 0 that says nothing is stopped, or its process has no time: the kernel would tell of
    /// anything else. That is reported; and it ends the job if the user has set a deadline, with words
    /// that are the same on all ranks, also on rank 0 when it goes on.
    fn mind_silence(&mut self) {
        if self.job_verdict.is_stopped() || self.connection.is_none() {
            return;
        }
        let silent = self.heard.elapsed();
        if let (Some(timeout), Some(asked)) = (self.limits.timeout, self.asked)
            && silent.min(asked.elapsed()) >= timeout.max(SILENCE)
        {
            let cause = Cause::Deadline {
                waited: timeout,
                missing: vec![0],
            };
            let report = Message::with_body(MessageKind::Report, [0; 2], wire::encode(&cause));
            self.say(&report);
            // As the others read it.
            self.job_verdict.set_verdict(verdict_of(&report));
            return;
        }
        let (waited, step) = (self.job_verdict.waited(), self.job_verdict.step());
        let word = step.map_or(0, CallPosition::word);
        if silent.min(waited) >= self.limits.stall && self.reported != Some(word) {
            self.reported = Some(word);
            let (rank, peer_info) = (self.job_verdict.rank, &self.job_verdict.peer_infos[0]);
            let who = host::process(0, peer_info.pid, &peer_info.host);
            let (waited, silent) = (waited.as_secs(), silent.as_secs());
            let what = CallPosition::describe_stalled(step);
            complain(format!(
                "cobre: {what} has taken {waited} s on rank {rank}; {who}, which would know why, is \
                 silent for {silent} s, stopped?\n"
            ));
        }
    }

    /// True if this rank has left and nobody waits for anything from it.
    fn is_gone(&mut self) -> bool {
        if self.leaving == LeavePhase::Said {
            let mut links = self.job_verdict.links.iter().flatten();
            let is_told = self.connection.as_ref().is_none_or(WatchLink::is_flushed);
            let mut has_arrived = || links.all(|link| system::has_arrived(&link.socket));
            if self.job_verdict.is_stopped() || is_told && has_arrived() {
                self.leaving = LeavePhase::Until(Instant::now() + LEAVE_TIMEOUT);
                if let Some(link) = &self.connection {
                    let _ = link.socket.shutdown(Shutdown::Write);
                }
            }
        }
        match self.leaving {
            LeavePhase::Until(until) => Instant::now() >= until || self.connection.is_none(),
            _ => false,
        }
    }
}

/// A sign of life as it travels, with what has crossed this rank's data connections if rank 0 asks.
fn pong(job_verdict: &JobVerdict, ping: &Message) -> Message {
    let step = job_verdict.step().map_or(0, CallPosition::word);
    let flows = if ping.figures[0] == 1 {
        encode_flows(&job_verdict.flows())
    } else {
        Vec::new()
    };
    let figures = [step, job_verdict.waited().as_millis() as u64];
    Message::with_body(MessageKind::Pong, figures, flows)
}
