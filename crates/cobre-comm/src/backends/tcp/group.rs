//! One rank's view of its peers: exchanges of frames, and how it waits for them.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connection::DataLink;
use super::frame::{FrameHeader, FrameKind};
use super::link::{Incoming, Outgoing, TransferError, TransferProgress};
use super::readiness::Readiness;
use super::system::{self, Instant, PlantedFault, PollSource};
use super::verdict::{GRACE, JobVerdict, WatchRequest};
use super::watch::WatchThread;
use crate::backends::spin::Spin;
use crate::call_signature::CallSignature;
use crate::error::{Call, Cause, Loss};
use crate::report;
use crate::transport::TransportFault;

/// Longest sleep: by then a verdict is seen that no connection told of.
const SLICE: Duration = Duration::from_millis(50);
/// Pauses of the processor between two looks at a socket, which cost a system call each.
const PAUSES: u32 = 5;

#[derive(Debug)]
pub(super) struct Group {
    pub(super) rank: usize,
    pub(super) size: usize,
    /// All ranks.
    pub(super) everyone: Vec<usize>,
    /// True if any two ranks are connected, and true if small messages go directly too.
    pub(super) direct: bool,
    pub(super) always_direct: bool,
    pub(super) spin: Spin,
    /// The news of the data connections, where there are many.
    pub(super) readiness: Option<Readiness>,
    /// Bound on each collective, if the user set one.
    pub(super) timeout: Option<Duration>,
    pub(super) watch: WatchThread,
    /// Exchanges so far: the same number on all ranks. Atomic only to be shared between threads
    /// of this process, of which one at a time is in a collective.
    pub(super) round: AtomicU64,
    /// The peers' operands of a reduction.
    pub(super) scratch: Mutex<Vec<u64>>,
}

/// A collective that is under way; it ends when this is dropped.
pub(super) struct CallScope<'a>(RunningCall<'a>);

impl<'a> Deref for CallScope<'a> {
    type Target = RunningCall<'a>;

    fn deref(&self) -> &RunningCall<'a> {
        &self.0
    }
}

impl Drop for CallScope<'_> {
    fn drop(&mut self) {
        self.group.job_verdict().exit();
    }
}

/// A collective as the ranks see it that exchange frames in it: all ranks of the job, or some. They are numbered
/// from 0 in rank order.
#[derive(Clone, Copy)]
pub(super) struct RunningCall<'a> {
    pub(super) group: &'a Group,
    pub(super) signature: &'a CallSignature,
    until: Option<Instant>,
    /// The numbers of these ranks in the job; the first is rank 0.
    ranks: &'a [usize],
    /// This rank's place among them.
    place: usize,
}

impl Group {
    pub(super) fn job_verdict(&self) -> &JobVerdict {
        &self.watch.job_verdict
    }

    /// Begins a collective, unless the job has failed.
    pub(super) fn begin<'a>(
        &'a self,
        signature: &'a CallSignature,
    ) -> Result<CallScope<'a>, TransportFault> {
        self.check()?;
        let entered = self.job_verdict().enter(signature.step());
        Ok(self.call(signature, entered))
    }

    /// Begins a collective of the ranks of a host, which has a number in a sequence of theirs.
    pub(super) fn begin_within_host<'a>(
        &'a self,
        signature: &'a CallSignature,
    ) -> Result<CallScope<'a>, TransportFault> {
        self.check()?;
        let entered = self.job_verdict().enter_again();
        Ok(self.call(signature, entered))
    }

    fn check(&self) -> Result<(), TransportFault> {
        self.watch.fork_guard.check()?;
        if self.job_verdict().is_stopped() {
            return Err(self.failed());
        }
        Ok(())
    }

    fn call<'a>(&'a self, signature: &'a CallSignature, entered: Instant) -> CallScope<'a> {
        CallScope(RunningCall {
            group: self,
            signature,
            until: self.timeout.map(|timeout| entered + timeout),
            ranks: &self.everyone,
            place: self.rank,
        })
    }

    /// The verdict as a fault, which is there or must come soon.
    #[cold]
    pub(super) fn failed(&self) -> TransportFault {
        let record = self.job_verdict().await_verdict().clone();
        if let Cause::RankLost { rank, .. } = &record {
            // The launcher may collect this rank first, and it is not the cause.
            report::root_cause(*rank, &record.to_string());
        }
        TransportFault::Failed(record)
    }

    /// Room for `words` words; the guard is the only user, as one collective runs at a time.
    pub(super) fn scratch(&self, words: usize) -> MutexGuard<'_, Vec<u64>> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if scratch.len() < words {
            scratch.resize(words, 0);
        }
        scratch
    }

    fn link(&self, peer: usize) -> &DataLink {
        let link = self.job_verdict().links[peer].as_ref();
        link.expect("collectives talk to connected ranks only")
    }
}

impl<'a> RunningCall<'a> {
    /// The same collective between `ranks` alone, of which this rank is one.
    pub(super) fn among(&self, ranks: &'a [usize]) -> Self {
        let place = ranks.iter().position(|&rank| rank == self.group.rank);
        Self {
            ranks,
            place: place.expect("who exchanges is one of those who do"),
            ..*self
        }
    }

    /// This rank's number in the exchange.
    pub(super) fn rank(&self) -> usize {
        self.place
    }

    /// The number of ranks in the exchange.
    pub(super) fn size(&self) -> usize {
        self.ranks.len()
    }

    /// The other ranks, beginning after this one so that not all turn to the same one first.
    pub(super) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank(), self.size());
        (rank + 1..size).chain(0..rank)
    }

    fn link(&self, peer: usize) -> &DataLink {
        self.group.link(self.ranks[peer])
    }

    /// The next exchange's number.
    pub(super) fn next_round(&self) -> u64 {
        self.group.round.fetch_add(1, Relaxed) + 1
    }

    /// Takes `count` numbers for exchanges to come.
    pub(super) fn skip_rounds(&self, count: u64) {
        self.group.round.fetch_add(count, Relaxed);
    }

    /// A header of this collective; the length is filled in with the data.
    pub(super) fn header(&self, kind: FrameKind, round: u64) -> FrameHeader {
        FrameHeader {
            kind,
            round,
            signature: *self.signature,
            length: 0,
        }
    }

    /// Moves all frames side by side. While nothing moves, `idle` may do other work and says
    /// whether it did.
    pub(super) fn exchange(
        &self,
        (kind, round): (FrameKind, u64),
        outgoing: &mut [Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
        mut idle: impl FnMut() -> bool,
    ) -> Result<(), TransportFault> {
        let mut turn = 0;
        loop {
            let (mut moved, mut open) = (false, false);
            for frame in outgoing.iter_mut().filter(|frame| !frame.is_done()) {
                moved |= self.send(frame)?;
                open |= !frame.is_done();
            }
            for frame in incoming.iter_mut().filter(|frame| !frame.is_done()) {
                moved |= self.receive(frame, kind, round)?;
                open |= !frame.is_done();
            }
            if !open {
                return Ok(());
            }
            if moved {
                turn = 0;
            } else if idle() {
                turn = 0;
                self.look();
            } else {
                self.pause(turn, outgoing, incoming)?;
                turn += 1;
            }
        }
    }

    /// Sends what fits of a frame; true if something did.
    fn send(&self, frame: &mut Outgoing<'_>) -> Result<bool, TransportFault> {
        let (peer, readiness) = (self.ranks[frame.peer], &self.group.readiness);
        if readiness.as_ref().is_some_and(|it| !it.may_write(peer)) {
            return Ok(false);
        }
        let step = frame.advance(self.group.link(peer));
        let step = step.map_err(|error| self.broken(frame.peer, error))?;
        let has_moved = step != TransferProgress::Nothing;
        if let (Some(readiness), false) = (readiness, has_moved) {
            readiness.note_full(peer);
        }
        Ok(has_moved)
    }

    /// Receives what is there of a frame; true if something was.
    fn receive(
        &self,
        frame: &mut Incoming<'_>,
        kind: FrameKind,
        round: u64,
    ) -> Result<bool, TransportFault> {
        let (peer, readiness) = (self.ranks[frame.peer], &self.group.readiness);
        if readiness.as_ref().is_some_and(|it| !it.may_read(peer)) {
            return Ok(false);
        }
        let link = self.group.link(peer);
        let step = frame.advance(link);
        let step = step.map_err(|error| self.broken(frame.peer, error))?;
        if step == TransferProgress::Header {
            self.check(frame, kind, round)?;
        }
        let opened = frame.open(&link.channel);
        opened.map_err(|error| self.broken(frame.peer, error.into()))?;
        let has_moved = step != TransferProgress::Nothing;
        if let (Some(readiness), false) = (readiness, has_moved) {
            readiness.note_empty(peer);
        }
        Ok(has_moved)
    }

    /// Takes the news that the kernel has, where sockets are not all tried.
    fn look(&self) {
        if let Some(readiness) = &self.group.readiness {
            readiness.wait(Duration::ZERO);
        }
    }

    /// Succeeds if the peer makes the same call; nothing of what it sends has been used.
    fn check(
        &self,
        frame: &Incoming<'_>,
        kind: FrameKind,
        round: u64,
    ) -> Result<(), TransportFault> {
        let peer = self.ranks[frame.peer];
        if system::has(PlantedFault::UncheckedCall) {
            return Ok(());
        }
        if let Some(header) = frame.header() {
            self.group.job_verdict().note(peer, header.signature.step());
            if header.signature.digest() != self.signature.digest() {
                return Err(self.disagree(peer, header.signature));
            }
            let expected = FrameHeader {
                length: frame.expected as u64,
                ..self.header(kind, round)
            };
            if header == expected {
                return Ok(());
            }
        }
        Err(self.fail(Cause::Io {
            action: format!("reading from rank {peer}"),
            message: "the frame is not the one that this call expects; do all ranks run one build?"
                .to_owned(),
        }))
    }

    #[cold]
    fn disagree(&self, peer: usize, theirs: CallSignature) -> TransportFault {
        let call = |rank, signature| Box::new(Call { rank, signature });
        let mine = call(self.group.rank, *self.signature);
        let theirs = call(peer, theirs);
        let (left, right) = if peer < self.group.rank {
            (theirs, mine)
        } else {
            (mine, theirs)
        };
        self.fail(Cause::Mismatch { left, right })
    }

    #[cold]
    pub(super) fn fail(&self, cause: Cause) -> TransportFault {
        self.group
            .job_verdict()
            .request(WatchRequest::Report(cause));
        self.group.failed()
    }

    /// The deadline of this collective has passed.
    #[cold]
    pub(super) fn late(&self) -> TransportFault {
        let limit = self.group.timeout.unwrap_or_default();
        let request = WatchRequest::Late(self.signature.step(), limit);
        self.group.job_verdict().request(request);
        self.group.failed()
    }

    /// A connection that ends in the middle is the end of the job; why it ended is for the
    /// verdict to say.
    #[cold]
    fn broken(&self, peer: usize, why: TransferError) -> TransportFault {
        let peer = self.ranks[peer];
        if why == TransferError::Forged {
            return self.fail(self.group.job_verdict().forged(peer));
        }
        if system::has(PlantedFault::OwnVerdict) {
            let job_verdict = self.group.job_verdict();
            let cause = job_verdict.lost(peer, Loss::Vanished, job_verdict.step());
            job_verdict.set_verdict(cause);
        }
        if !self.group.job_verdict().is_stopped() {
            self.group
                .job_verdict()
                .request(WatchRequest::LinkLost(peer));
        }
        self.group.failed()
    }

    /// Waits a little, the longer the more often it was in vain.
    fn pause(
        &self,
        turn: u32,
        outgoing: &[Outgoing<'_>],
        incoming: &[Incoming<'_>],
    ) -> Result<(), TransportFault> {
        let Spin { spins, yields } = self.group.spin;
        if turn < spins {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            self.look();
            return Ok(());
        }
        if self.group.job_verdict().is_stopped() {
            if self.group.job_verdict().is_stopped_for(GRACE) {
                return Err(self.group.failed());
            }
            system::sleep(Duration::from_millis(1));
            self.look();
            return Ok(());
        }
        // On a busy machine every yield can take milliseconds.
        let is_late = || self.until.is_some_and(|until| Instant::now() >= until);
        if turn < spins.saturating_add(yields) && !is_late() {
            system::yield_now();
            self.look();
            return Ok(());
        }
        self.sleep(outgoing, incoming)
    }

    #[cold]
    fn sleep(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &[Incoming<'_>],
    ) -> Result<(), TransportFault> {
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(self.late());
        }
        let sending = outgoing
            .iter()
            .filter(|frame| !frame.is_done())
            .map(|frame| self.link(frame.peer))
            .inspect(|link| link.traffic.note_held())
            .map(|link| PollSource::Write(&link.socket));
        let receiving = incoming
            .iter()
            .filter(|frame| !frame.is_done())
            .map(|frame| self.link(frame.peer))
            .inspect(|link| link.traffic.note_awaited())
            .map(|link| PollSource::Read(&link.socket));
        let slice = left.map_or(SLICE, |left| left.min(SLICE));
        match &self.group.readiness {
            None => system::poll(sending.chain(receiving), slice),
            Some(readiness) => {
                sending.chain(receiving).for_each(drop);
                readiness.wait(slice);
            }
        }
        Ok(())
    }
}
