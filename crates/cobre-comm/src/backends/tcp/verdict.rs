//! The state that the computing thread and the watch thread share: this rank's present call, and
//! the one verdict that ends the job.

use std::net::Shutdown;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::connection::{Connection, DataLink, Flow};
use super::message::FORGED;
use super::peer_table::PeerInfo;
use super::sys::CloseOnFork;
use super::system::{self, Instant, News, PlantedFault, UnixStream};
use crate::backends::shm::HostAlarm;
use crate::error::{CallPosition, Cause, Loss};

/// The time after the verdict for which data that others sent before it may still be on its way.
pub(super) const GRACE: Duration = Duration::from_millis(100);

/// A request of the computing thread to the watch thread.
#[derive(Debug)]
pub(super) enum WatchRequest {
    /// The job has failed, because of this.
    Report(Cause),
    /// The connection to this rank is broken, though this rank needs it.
    LinkLost(usize),
    /// The deadline of this step has passed, which is so long.
    Late(CallPosition, Duration),
    /// This rank has finished.
    Leave,
}

#[derive(Debug)]
pub(super) struct JobVerdict {
    pub(super) rank: usize,
    pub(super) peer_infos: Vec<PeerInfo>,
    /// The data connections, by rank; the verdict ends what this rank sends on them.
    pub(super) links: Vec<Option<DataLink>>,
    /// The cause of the job's failure, and the time since which it is known.
    verdict: OnceLock<(Cause, Instant)>,
    stopped: AtomicBool,
    verdict_set: News,
    /// Ends the waits of this host's ranks for each other, where they share memory.
    host_alarm: OnceLock<HostAlarm>,
    requests: Mutex<Vec<WatchRequest>>,
    waker: CloseOnFork<UnixStream>,
    /// Time is counted from here.
    begun: Instant,
    /// The last step this rank began, as a word; 0 before the first.
    step: AtomicU64,
    /// The start of that step, in nanoseconds; 0 outside of collectives.
    entered: AtomicU64,
    /// The last steps of the others, as the frames that came from them say.
    seen: Vec<AtomicU64>,
}

impl JobVerdict {
    /// With the receiving end of the waker, which is readable when there are requests.
    pub(super) fn new(
        rank: usize,
        peer_infos: Vec<PeerInfo>,
        links: Vec<Option<Connection>>,
    ) -> std::io::Result<(Self, UnixStream)> {
        let (waker, wake_receiver) = system::waker()?;
        let job_verdict = Self {
            rank,
            seen: peer_infos.iter().map(|_| AtomicU64::new(0)).collect(),
            peer_infos,
            links: links
                .into_iter()
                .map(|link| link.map(DataLink::new))
                .collect(),
            verdict: OnceLock::new(),
            stopped: AtomicBool::new(false),
            verdict_set: News::default(),
            host_alarm: OnceLock::new(),
            requests: Mutex::new(Vec::new()),
            waker: CloseOnFork::new(waker),
            begun: Instant::now(),
            step: AtomicU64::new(0),
            entered: AtomicU64::new(0),
        };
        Ok((job_verdict, wake_receiver))
    }

    /// Notes that this rank begins a collective, and when.
    pub(super) fn enter(&self, step: CallPosition) -> Instant {
        self.step.store(step.word(), Relaxed);
        self.enter_again()
    }

    /// Notes that this rank begins a collective of its host, which has no place in the job's sequence.
    pub(super) fn enter_again(&self) -> Instant {
        let now = Instant::now();
        let since = now.duration_since(self.begun).as_nanos() as u64;
        self.entered.store(since.max(1), Relaxed);
        now
    }

    pub(super) fn exit(&self) {
        self.entered.store(0, Relaxed);
    }

    /// The last step this rank began.
    pub(super) fn step(&self) -> Option<CallPosition> {
        CallPosition::of_word(self.step.load(Relaxed))
    }

    /// The time that this rank has spent in its present collective.
    pub(super) fn waited(&self) -> Duration {
        match self.entered.load(Relaxed) {
            0 => Duration::ZERO,
            since => self
                .begun
                .elapsed()
                .saturating_sub(Duration::from_nanos(since)),
        }
    }

    /// Notes what a frame from `peer` says.
    #[inline]
    pub(super) fn note(&self, peer: usize, step: CallPosition) {
        self.seen[peer].store(step.word(), Relaxed);
    }

    /// The last step that a frame from `peer` belonged to.
    pub(super) fn seen(&self, peer: usize) -> Option<CallPosition> {
        CallPosition::of_word(self.seen[peer].load(Relaxed))
    }

    /// The bytes that have crossed the data connections, by rank.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let flow = |link: &Option<DataLink>| link.as_ref().map(|link| link.traffic.flow());
        let flows = self.links.iter().map(flow);
        flows.map(Option::unwrap_or_default).collect()
    }

    /// The record of a rank that is lost.
    pub(super) fn lost(&self, rank: usize, how: Loss, last: Option<CallPosition>) -> Cause {
        let peer_info = &self.peer_infos[rank];
        Cause::RankLost {
            rank,
            host: peer_info.host.clone(),
            pid: peer_info.pid,
            how,
            last,
        }
    }

    /// The record of a frame or a message from `peer` that fails authentication.
    pub(super) fn forged(&self, peer: usize) -> Cause {
        let described = |rank: usize| {
            let peer_info = &self.peer_infos[rank];
            format!("rank {rank} (pid {} on {})", peer_info.pid, peer_info.host)
        };
        Cause::Io {
            action: format!("reading on {}", described(self.rank)),
            message: format!(
                "a record from {} fails authentication: {FORGED}",
                described(peer)
            ),
        }
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        // Pairs with the release in `set_verdict`.
        self.stopped.load(Acquire)
    }

    pub(super) fn verdict(&self) -> Option<&Cause> {
        self.verdict.get().map(|(cause, _)| cause)
    }

    /// True if the verdict has been known for this long.
    pub(super) fn is_stopped_for(&self, grace: Duration) -> bool {
        let settled = self.verdict.get();
        settled.is_some_and(|(_, since)| since.elapsed() >= grace)
    }

    /// Ends the job on this rank. The first cause stays. What this rank has sent still arrives, and
    /// ends there: a rank that needs nothing else finishes the collective it is in.
    pub(super) fn set_verdict(&self, cause: Cause) {
        if self.verdict.set((cause, Instant::now())).is_ok() {
            // Pairs with the acquire in `is_stopped`.
            self.stopped.store(true, Release);
            self.end_sending();
            self.verdict_set.tell();
        }
    }

    /// Makes the waits of this host's ranks end after the verdict.
    pub(super) fn set_host_alarm(&self, alarm: HostAlarm) {
        let _ = self.host_alarm.set(alarm);
    }

    /// The time until the waits inside the host are to end; `None` if none are, or they have ended. As with data
    /// from other hosts, a rank that needs only what was under way before the verdict finishes its collective.
    pub(super) fn until_host_alarm(&self) -> Option<Duration> {
        let (_, since) = self.verdict.get()?;
        if system::has(PlantedFault::NoHostAlarm) {
            return None;
        }
        self.host_alarm.get().filter(|alarm| !alarm.is_stopped())?;
        Some(GRACE.saturating_sub(since.elapsed()))
    }

    /// Ends the waits inside the host if it is time; the watch thread asks after every wait of its own.
    pub(super) fn alarm_host(&self) {
        if self.until_host_alarm().is_some_and(|left| left.is_zero())
            && let (Some(alarm), Some(cause)) = (self.host_alarm.get(), self.verdict())
        {
            alarm.stop(cause);
        }
    }

    /// Tells the watching thread.
    pub(super) fn request(&self, request: WatchRequest) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
        system::wake(&self.waker);
    }

    /// The requests since the last time.
    pub(super) fn take_requests(&self) -> Vec<WatchRequest> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *requests)
    }

    /// This rank sends nothing more; what it has sent still arrives.
    pub(super) fn end_sending(&self) {
        for link in self.links.iter().flatten() {
            let _ = link.socket.shutdown(Shutdown::Write);
        }
    }

    /// Waits for the verdict. It comes, as something is broken and the watch goes on: from rank 0, or
    /// because rank 0 is lost. A rank 0 that is stopped keeps its ranks waiting: a verdict of their own
    /// would not be the same on all.
    pub(super) fn await_verdict(&self) -> &Cause {
        loop {
            if let Some(cause) = self.await_verdict_for(Duration::MAX) {
                return cause;
            }
        }
    }

    /// As [`await_verdict`](Self::await_verdict), at most for `limit`.
    pub(super) fn await_verdict_for(&self, limit: Duration) -> Option<&Cause> {
        let is_waiting = || self.verdict().is_none();
        self.verdict_set.wait_while(limit, is_waiting);
        self.verdict()
    }
}
