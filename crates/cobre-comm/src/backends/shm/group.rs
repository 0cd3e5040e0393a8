//! Ranks that share a segment: one rank's view of it, and the steps collectives are made of.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::copy;
use super::event_count::{self, EventCount, WaitError, WaitPolicy};
use super::layout::{IN_LINE, SegmentLayout, header, slot};
use super::liveness::Liveness;
use super::machine::Sleep;
use super::rank_status::RankStatus;
use super::record;
use super::rings::{RingSlice, Rings};
use super::segment::{Mapping, SharedBytes};
use super::system::{self, Instant};
use crate::call_signature::CallSignature;
use crate::data::Reducible;
use crate::error::{Call, Cause, Loss};
use crate::report;
use crate::transport::TransportFault;

/// The time that a process may take to die after it has published the signal.
const DYING: Duration = Duration::from_secs(5);

/// State that all groups of one job share: they sleep, wake and fail together.
#[derive(Debug)]
pub(super) struct JobState {
    pub(super) header: Arc<Mapping>,
    pub(super) wait_policy: WaitPolicy,
    pub(super) sleep: Sleep,
    /// Time is counted from here.
    pub(super) begun: Instant,
    /// Bound on each collective, if the user set one.
    pub(super) timeout: Option<Duration>,
    /// True if rank 0 offers memory by name at once.
    pub(super) named_regions: bool,
    /// True if a larger job, of which this one is a part, says why it failed.
    pub(super) is_part: bool,
    /// Leaves in good order when the last handle goes.
    pub(super) liveness: Liveness,
}

/// A header's event count for a process without a job: to notify, not to wait.
pub(super) struct SegmentHeader<'a>(pub(super) &'a Mapping);

impl EventCount for SegmentHeader<'_> {
    type Machine = Sleep;

    fn machine(&self) -> &Sleep {
        &Sleep::Futex
    }

    fn events(&self) -> &AtomicU32 {
        self.0.word32(header::EVENTS)
    }

    fn sleepers(&self) -> &AtomicU32 {
        self.0.word32(header::SLEEPERS)
    }

    fn stopped(&self) -> &AtomicU32 {
        self.0.word32(header::STOPPED)
    }
}

impl Drop for JobState {
    fn drop(&mut self) {
        // Unwinding is no orderly end: the others must not take it for one.
        if std::thread::panicking() && self.liveness.is_here() {
            let status = self.liveness.status();
            let text = status.panic();
            let text = text.unwrap_or_else(|| "see its standard error".to_owned());
            self.stop(&status.lost(Loss::Panic(text)));
        }
    }
}

impl EventCount for JobState {
    type Machine = Sleep;

    #[inline]
    fn machine(&self) -> &Sleep {
        &self.sleep
    }

    #[inline]
    fn events(&self) -> &AtomicU32 {
        self.header.word32(header::EVENTS)
    }

    #[inline]
    fn sleepers(&self) -> &AtomicU32 {
        self.header.word32(header::SLEEPERS)
    }

    #[inline]
    fn stopped(&self) -> &AtomicU32 {
        self.header.word32(header::STOPPED)
    }
}

impl JobState {
    /// Fails the whole job; false if it has failed already, and then that cause stands.
    pub(super) fn stop(&self, cause: &Cause) -> bool {
        let first = record::post(&self.header, cause);
        event_count::notify_all(self);
        first
    }

    /// The record as a fault.
    #[cold]
    fn failed(&self) -> TransportFault {
        let record = record::read(&self.header).expect("a stopped job has a record");
        if let Cause::RankLost { rank, how, .. } = &record {
            let number = self.liveness.status().number();
            if *rank == number && matches!(how, Loss::Signal(_)) {
                // Another thread of this process is in the middle of dying of it.
                system::sleep(DYING);
            }
            if !self.is_part {
                // The launcher may collect this rank first, and it is not the cause.
                report::root_cause(*rank, &record.to_string());
            }
        }
        TransportFault::Failed(record)
    }
}

/// One rank's side of a group. The numbers are atomic only to be shared between threads of this
/// process, of which one at a time is in a collective.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) layout: SegmentLayout,
    pub(super) data: Arc<Mapping>,
    pub(super) job: Arc<JobState>,
    /// Arrivals so far, and the digest of the last one.
    epoch: AtomicU64,
    digest: AtomicU64,
    /// The start of the collective under way, in nanoseconds; kept only if there is a timeout.
    entered: AtomicU64,
    pub(super) rings: Rings,
}

impl Group {
    pub(super) fn new(
        rank: usize,
        layout: SegmentLayout,
        data: Arc<Mapping>,
        job: Arc<JobState>,
    ) -> Self {
        Self {
            rank,
            size: layout.ranks,
            layout,
            rings: Rings::new(rank, layout, Arc::clone(&data)),
            data,
            job,
            epoch: AtomicU64::new(0),
            digest: AtomicU64::new(0),
            entered: AtomicU64::new(0),
        }
    }

    /// Begins a collective, unless the job has failed or this process is not the rank.
    #[inline]
    pub(super) fn begin(&self) -> Result<(), TransportFault> {
        self.job.liveness.check()?;
        if self.job.timeout.is_some() {
            let now = self.job.begun.elapsed().as_nanos() as u64;
            self.entered.store(now, Relaxed);
        }
        if self.job.stopped().load(Relaxed) == 0 {
            Ok(())
        } else {
            Err(self.job.failed())
        }
    }

    #[inline]
    fn status(&self, rank: usize) -> RankStatus<'_> {
        RankStatus::of(&self.job.header, rank)
    }

    /// The other ranks, beginning after this one so that not all ask the same one first.
    #[inline]
    pub(super) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank, self.size);
        (rank + 1..size).chain(0..rank)
    }

    /// Begins the next epoch: says which call this rank makes, with a payload of at most
    /// [`INLINE`](super::layout::INLINE) bytes.
    #[inline]
    pub(super) fn arrive(&self, signature: &CallSignature, payload: &[u8]) {
        self.job.liveness.status().begin(signature.step());
        let epoch = self.epoch.load(Relaxed) + 1;
        let digest = signature.digest();
        let slot = self.layout.slot(self.rank, epoch);
        copy::write(payload, self.payload_at(slot, payload.len()));
        self.data.store_words(slot + slot::STAMP, signature.words());
        self.data.word64(slot + slot::DIGEST).store(digest, Relaxed);
        self.epoch.store(epoch, Relaxed);
        self.digest.store(digest, Relaxed);
        event_count::publish(&*self.job, self.data.word64(slot + slot::EPOCH), epoch);
    }

    #[inline]
    fn payload_at(&self, slot: usize, len: usize) -> SharedBytes<'_> {
        let place = slot
            + if in_line(len) {
                slot::SMALL
            } else {
                slot::LARGE
            };
        self.data.bytes(place..place + len)
    }

    #[inline]
    fn slot_of(&self, peer: usize) -> usize {
        self.layout.slot(peer, self.epoch.load(Relaxed))
    }

    /// True if `peer` has arrived in this epoch.
    #[inline]
    pub(super) fn has_arrived(&self, peer: usize) -> bool {
        let word = self.data.word64(self.slot_of(peer) + slot::EPOCH);
        event_count::reached::<JobState>(word, self.epoch.load(Relaxed))
    }

    /// Waits for `peer` to arrive and checks that it makes the same call.
    #[inline]
    pub(super) fn meet(
        &self,
        peer: usize,
        signature: &CallSignature,
    ) -> Result<(), TransportFault> {
        self.wait(|| self.is_decided(peer))?;
        self.met(peer, signature).map(|_| ())
    }

    /// True if `peer` has arrived, or never will.
    #[inline]
    pub(super) fn is_decided(&self, peer: usize) -> bool {
        self.has_arrived(peer) || self.status(peer).has_left()
    }

    /// The fault of a peer that left while this rank needs it.
    #[cold]
    fn abandoned_by(&self, peer: usize) -> TransportFault {
        self.job.stop(&self.status(peer).lost(Loss::Left));
        self.job.failed()
    }

    /// As `meet`, without waiting: false if `peer` has not arrived and still may.
    #[inline]
    pub(super) fn met(
        &self,
        peer: usize,
        signature: &CallSignature,
    ) -> Result<bool, TransportFault> {
        // Sampled before the last look at the arrival: who leaves has arrived where it wanted to.
        let gone = !self.has_arrived(peer) && self.status(peer).has_left();
        if self.has_arrived(peer) {
            self.compare(peer, signature).map(|()| true)
        } else if gone {
            Err(self.abandoned_by(peer))
        } else {
            Ok(false)
        }
    }

    /// Meets everyone.
    #[inline]
    pub(super) fn meet_all(&self, signature: &CallSignature) -> Result<(), TransportFault> {
        self.peers().try_for_each(|peer| self.meet(peer, signature))
    }

    #[inline]
    fn compare(&self, peer: usize, signature: &CallSignature) -> Result<(), TransportFault> {
        let theirs = self.data.word64(self.slot_of(peer) + slot::DIGEST);
        if theirs.load(Relaxed) == self.digest.load(Relaxed) {
            Ok(())
        } else {
            Err(self.disagree(peer, signature))
        }
    }

    #[cold]
    fn disagree(&self, peer: usize, signature: &CallSignature) -> TransportFault {
        let place = self.slot_of(peer) + slot::STAMP;
        let words = self.data.load_words(place);
        let call = |rank, signature| {
            let rank = self.status(rank).number();
            Box::new(Call { rank, signature })
        };
        let mine = call(self.rank, *signature);
        let cause = match CallSignature::from_words(words) {
            Some(theirs) if peer < self.rank => Cause::Mismatch {
                left: call(peer, theirs),
                right: mine,
            },
            Some(theirs) => Cause::Mismatch {
                left: mine,
                right: call(peer, theirs),
            },
            None => Cause::Io {
                action: format!("reading what rank {} calls", self.status(peer).number()),
                message: "its slot holds no call: something else wrote to the segment".to_owned(),
            },
        };
        self.job.stop(&cause);
        self.job.failed()
    }

    /// Waits until `ready`, which looks at what peers publish.
    #[inline]
    pub(super) fn wait(&self, ready: impl FnMut() -> bool) -> Result<(), TransportFault> {
        let fall_asleep = || {
            let entered = Duration::from_nanos(self.entered.load(Relaxed));
            let until = |timeout| self.job.begun + entered + timeout;
            (self.job.timeout.map(until), self.job.liveness.sleep())
        };
        let waited = event_count::wait(&*self.job, &self.job.wait_policy, fall_asleep, ready);
        waited.map_err(|interrupt| self.interrupted(interrupt))
    }

    #[cold]
    fn interrupted(&self, interrupt: WaitError) -> TransportFault {
        if interrupt == WaitError::Late {
            let absent = self.peers().filter(|&peer| !self.has_arrived(peer));
            let mut missing: Vec<usize> = absent.map(|peer| self.status(peer).number()).collect();
            missing.sort_unstable();
            self.job.stop(&Cause::Deadline {
                waited: self.job.timeout.unwrap_or_default(),
                missing,
            });
        }
        self.job.failed()
    }

    /// The payload of `len` bytes that `peer` arrived with.
    #[inline]
    pub(super) fn payload(&self, peer: usize, len: usize) -> SharedBytes<'_> {
        self.payload_at(self.slot_of(peer), len)
    }

    /// The payload of `count` elements that `peer` arrived with, in place: it stays until this
    /// rank arrives again.
    #[inline]
    pub(super) fn slot_elements<T: Reducible>(&self, peer: usize, count: usize) -> &[T] {
        let in_line = in_line(count * size_of::<T>());
        let place = if in_line { slot::SMALL } else { slot::LARGE };
        self.data.published(self.slot_of(peer) + place, count)
    }

    /// Puts elements into the own stage, from element `start` on.
    pub(super) fn stage<T: Reducible>(&self, start: usize, elements: &[T]) {
        let place = self.layout.stage_of(self.rank) + start * size_of::<T>();
        self.put(place, elements);
    }

    /// Elements of `peer`'s stage, in place: they stay until this rank arrives again.
    pub(super) fn staged<T: Reducible>(&self, peer: usize, range: Range<usize>) -> &[T] {
        let place = self.layout.stage_of(peer) + range.start * size_of::<T>();
        self.data.published(place, range.len())
    }

    /// Puts elements into the own result area, from element `start` on.
    pub(super) fn deliver<T: Reducible>(&self, start: usize, elements: &[T]) {
        let place = self.layout.result_of(self.rank) + start * size_of::<T>();
        self.put(place, elements);
    }

    fn put<T: Reducible>(&self, place: usize, elements: &[T]) {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        copy::write(bytes, self.data.bytes(place..place + bytes.len()));
    }

    /// The first `len` bytes of `peer`'s result area.
    pub(super) fn result(&self, peer: usize, len: usize) -> SharedBytes<'_> {
        let place = self.layout.result_of(peer);
        self.data.bytes(place..place + len)
    }

    /// Room for `len` more bytes in the own ring, if every peer has taken what was there.
    pub(super) fn room(&self, len: usize) -> Option<RingSlice<'_>> {
        self.rings.room(&*self.job, len)
    }

    /// The next `len` bytes of `peer`'s ring, if they are there.
    pub(super) fn ready(&self, peer: usize, len: usize) -> Option<RingSlice<'_>> {
        self.rings.ready(&*self.job, peer, len)
    }

    /// The position of `writer`'s ring after its next `len` bytes.
    pub(super) fn end_after(&self, writer: usize, len: usize) -> u64 {
        self.rings.end_after(writer, len)
    }

    /// Publishes the own ring up to `end`.
    pub(super) fn produce(&self, end: u64) {
        self.rings.produce(&*self.job, end);
    }

    /// Gives `peer`'s ring back up to `end`.
    pub(super) fn consume(&self, peer: usize, end: u64) {
        self.rings.consume(&*self.job, peer, end);
    }
}

/// Payloads up to this size ride in the arrival line itself.
const fn in_line(len: usize) -> bool {
    len <= IN_LINE
}
