//! An event count: the mechanism by which a rank publishes its progress, and by which others wait
//! for it without missing a change. Generic over its words and kernel calls, so that a model
//! checker can run it.
//!
//! A rank *publishes* by exchanging a number, which is a release and a full fence in one, and then,
//! if anyone sleeps, bumps the event word and wakes. A rank that *waits* spins, then yields, then
//! sleeps: it samples the event word, counts itself a sleeper, fences, looks once more, and sleeps only
//! while the event word still shows the sample. Of the exchange and the fence one comes first: either the
//! publisher sees the sleeper, or the sleeper sees what was published.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use super::system::Instant;
use crate::backends::spin::Spin;

/// Words and kernel calls: real ones, or a model checker's.
pub(super) trait Machine {
    type W64;
    type W32;
    fn load64(word: &Self::W64, order: Ordering) -> u64;
    fn swap64(word: &Self::W64, value: u64, order: Ordering);
    fn load32(word: &Self::W32, order: Ordering) -> u32;
    fn add32(word: &Self::W32, value: u32, order: Ordering);
    fn fence(order: Ordering);
    /// Sleeps for at most `slice` while `word` holds `seen`; may wake for no reason.
    fn sleep(&self, word: &Self::W32, seen: u32, slice: Duration);
    fn wake_all(word: &Self::W32);
    fn spin();
    fn yield_now();
}

/// The words of an event count.
pub(super) trait EventCount {
    type Machine: Machine;
    fn machine(&self) -> &Self::Machine;
    /// The futex word; changes only when a sleeper must look again.
    fn events(&self) -> &<Self::Machine as Machine>::W32;
    fn sleepers(&self) -> &<Self::Machine as Machine>::W32;
    /// Not zero once the job has failed.
    fn stopped(&self) -> &<Self::Machine as Machine>::W32;
}

type W64<B> = <<B as EventCount>::Machine as Machine>::W64;

/// The times of a wait: spinning, yielding, sleeping.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitPolicy {
    /// Looks before the first sleep.
    pub(super) spin: Spin,
    /// Longest sleep before looking again.
    pub(super) slice: Duration,
}

/// The reason for which a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitError {
    /// The job has failed; there is a record.
    Stopped,
    /// The deadline has passed.
    Late,
}

/// Stores `value` for others to see, and wakes those who sleep.
#[inline]
pub(super) fn publish<B: EventCount>(event_count: &B, word: &W64<B>, value: u64) {
    // Pairs with the acquire in `read`: what this rank wrote before is seen with the number. An
    // exchange and not a store, so that it also stands as the publisher's side of the fence in
    // `sleep_unless`; a store and a fence cost more.
    B::Machine::swap64(word, value, SeqCst);
    wake_sleepers(event_count);
}

/// Wakes every sleeper to look again.
#[inline]
pub(super) fn notify_all<B: EventCount>(event_count: &B) {
    // Pairs with the fence in `sleep_unless`.
    B::Machine::fence(SeqCst);
    wake_sleepers(event_count);
}

/// Wakes the sleepers, if there are any after what was published before.
#[inline]
fn wake_sleepers<B: EventCount>(event_count: &B) {
    if B::Machine::load32(event_count.sleepers(), SeqCst) > 0 {
        // Pairs with the acquire in `sleep_unless`: who samples this sees what was published.
        B::Machine::add32(event_count.events(), 1, Release);
        B::Machine::wake_all(event_count.events());
    }
}

/// A number published with `publish`, and everything written before it.
#[inline]
pub(super) fn read<B: EventCount>(word: &W64<B>) -> u64 {
    // Pairs with the release in `publish`.
    B::Machine::load64(word, Acquire)
}

/// True if a number published with `publish` has reached `value`.
#[inline]
pub(super) fn reached<B: EventCount>(word: &W64<B>, value: u64) -> bool {
    read::<B>(word) >= value
}

/// Waits until `ready`, which looks at published words only. `fall_asleep` is asked before the first
/// sleep only: for the deadline, and for what is to be kept while this rank may sleep.
#[inline]
pub(super) fn wait<B: EventCount, G>(
    event_count: &B,
    wait_policy: &WaitPolicy,
    fall_asleep: impl FnOnce() -> (Option<Instant>, G),
    mut ready: impl FnMut() -> bool,
) -> Result<(), WaitError> {
    // The first looks go without a pause: they are the whole wait when all ranks run at once.
    for _ in 0..wait_policy.spin.spins.min(64) {
        if ready() {
            return Ok(());
        }
    }
    wait_longer(event_count, wait_policy, fall_asleep, ready)
}

#[cold]
fn wait_longer<B: EventCount, G>(
    event_count: &B,
    wait_policy: &WaitPolicy,
    fall_asleep: impl FnOnce() -> (Option<Instant>, G),
    mut ready: impl FnMut() -> bool,
) -> Result<(), WaitError> {
    // Pairs with the release that sets it: the record is seen with the mark.
    let stopped = || B::Machine::load32(event_count.stopped(), Acquire) != 0;
    for turn in 0..wait_policy
        .spin
        .spins
        .saturating_add(wait_policy.spin.yields)
    {
        if ready() {
            return Ok(());
        }
        if stopped() {
            return Err(WaitError::Stopped);
        }
        if turn < wait_policy.spin.spins {
            B::Machine::spin();
        } else {
            B::Machine::yield_now();
        }
    }
    let (until, _kept) = fall_asleep();
    loop {
        if ready() {
            return Ok(());
        }
        if stopped() {
            return Err(WaitError::Stopped);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(WaitError::Late);
        }
        let slice = left.map_or(wait_policy.slice, |left| left.min(wait_policy.slice));
        sleep_unless(event_count, slice, || ready() || stopped());
    }
}

/// Sleeps until the event word changes, unless `awake` holds after this rank has become a sleeper.
fn sleep_unless<B: EventCount>(event_count: &B, slice: Duration, awake: impl FnOnce() -> bool) {
    let (events, sleepers) = (event_count.events(), event_count.sleepers());
    // Sampled before the last look: a notification after that look changes the event word.
    let seen = B::Machine::load32(events, Acquire);
    B::Machine::add32(sleepers, 1, Relaxed);
    // Pairs with the exchange in `publish` and the fence in `notify_all`.
    B::Machine::fence(SeqCst);
    if !awake() {
        event_count.machine().sleep(events, seen, slice);
    }
    B::Machine::add32(sleepers, 1u32.wrapping_neg(), Relaxed);
}
