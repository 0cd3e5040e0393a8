//! The gate and the two arrival slots under a model checker: every interleaving of a few ranks
//! and epochs, with memory as weak as the language allows. A lost wake-up shows as a deadlock, a
//! slot overwritten too early as a race. A rank may die after any of its steps: from then on nothing
//! it does has an effect, and what it had begun stays as it is.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::sync::{Condvar, Mutex};

use super::event_count::{self, EventCount, Machine, WaitPolicy};
use crate::backends::spin::Spin;

/// A fault built into a machine, to prove that the model would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// Publishing does not order what was written before.
    WeakStore,
    /// Reading a number does not order what is read after.
    WeakLoad,
    /// The full fences are missing.
    NoFence,
    /// Nobody is woken.
    NoWake,
    /// The event word is sampled when the rank goes to sleep, not before its last look.
    LateSample,
    /// A rank does not look again after it has become a sleeper.
    NoSecondLook,
}

loom::thread_local! {
    /// Steps that this rank has left to live.
    pub(super) static LIFE: Cell<u32> = Cell::new(u32::MAX);
    /// True if this rank's looks find nothing, to leave out the second one.
    static BLIND: Cell<bool> = Cell::new(false);
}

/// Takes one step; false if the rank is dead.
fn step() -> bool {
    LIFE.with(|life| {
        let left = life.get();
        life.set(left.saturating_sub(1));
        left > 0
    })
}

/// True if the step that was taken last was the rank's end.
pub(super) fn is_dead() -> bool {
    LIFE.with(|life| life.get() == 0)
}

fn is_blind() -> bool {
    BLIND.with(Cell::get)
}

fn set_blind(blind: bool) {
    BLIND.with(|cell| cell.set(blind));
}

/// A futex word: the kernel compares and sleeps in one step, as the mutex makes it here.
pub(super) struct ModelWord {
    value: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl ModelWord {
    fn new() -> Self {
        Self {
            value: AtomicU32::new(0),
            queue: Mutex::new(()),
            woken: Condvar::new(),
        }
    }
}

pub(super) struct ModelMachine<const MISTAKE: u8>;

pub(super) const fn mistake(number: u8) -> Mistake {
    match number {
        1 => Mistake::WeakStore,
        2 => Mistake::WeakLoad,
        3 => Mistake::NoFence,
        4 => Mistake::NoWake,
        5 => Mistake::LateSample,
        6 => Mistake::NoSecondLook,
        _ => Mistake::None,
    }
}

impl<const MISTAKE: u8> Machine for ModelMachine<MISTAKE> {
    type W64 = AtomicU64;
    type W32 = ModelWord;

    fn load64(word: &AtomicU64, order: Ordering) -> u64 {
        // The dead see all they wait for, so that their threads end.
        if !step() {
            return u64::MAX;
        }
        let weak = mistake(MISTAKE) == Mistake::WeakLoad;
        let value = word.load(if weak { Ordering::Relaxed } else { order });
        if is_blind() { 0 } else { value }
    }

    fn swap64(word: &AtomicU64, value: u64, order: Ordering) {
        if !step() {
            return;
        }
        match mistake(MISTAKE) {
            Mistake::WeakStore => word.store(value, Ordering::Relaxed),
            Mistake::NoFence => word.store(value, Ordering::Release),
            _ => {
                // Loom takes exchanges for acquire and release only. With the load of the sleepers
                // that follows, both sequentially consistent, it has the strength of a fence here.
                word.swap(value, order);
                loom::sync::atomic::fence(order);
            }
        }
    }

    fn load32(word: &ModelWord, order: Ordering) -> u32 {
        if !step() {
            return 0;
        }
        let value = word.value.load(order);
        if is_blind() { 0 } else { value }
    }

    fn add32(word: &ModelWord, value: u32, order: Ordering) {
        if step() {
            word.value.fetch_add(value, order);
        }
    }

    fn fence(order: Ordering) {
        if mistake(MISTAKE) != Mistake::NoFence {
            loom::sync::atomic::fence(order);
        }
        set_blind(mistake(MISTAKE) == Mistake::NoSecondLook);
    }

    fn sleep(&self, word: &ModelWord, seen: u32, _: Duration) {
        set_blind(false);
        if !step() {
            return;
        }
        let late = mistake(MISTAKE) == Mistake::LateSample;
        let seen = if late {
            word.value.load(Ordering::Acquire)
        } else {
            seen
        };
        let mut queue = word.queue.lock().unwrap();
        while word.value.load(Ordering::Relaxed) == seen {
            queue = word.woken.wait(queue).unwrap();
        }
    }

    fn wake_all(word: &ModelWord) {
        if step() && mistake(MISTAKE) != Mistake::NoWake {
            drop(word.queue.lock().unwrap());
            word.woken.notify_all();
        }
    }

    fn spin() {
        loom::thread::yield_now();
    }

    fn yield_now() {
        loom::thread::yield_now();
    }
}

/// A rank's two slots: the epoch it arrived in, and what it brought.
struct Slot {
    epoch: AtomicU64,
    payload: UnsafeCell<u64>,
}

pub(super) struct ModelSegment<const MISTAKE: u8> {
    machine: ModelMachine<MISTAKE>,
    events: ModelWord,
    sleepers: ModelWord,
    stopped: ModelWord,
    slots: Vec<[Slot; 2]>,
}

impl<const MISTAKE: u8> ModelSegment<MISTAKE> {
    /// Never freed: loom cannot unwind through its own reference counts when it finds a fault.
    pub(super) fn leak(ranks: usize) -> &'static Self {
        let slot = || Slot {
            epoch: AtomicU64::new(0),
            payload: UnsafeCell::new(0),
        };
        Box::leak(Box::new(Self {
            machine: ModelMachine,
            events: ModelWord::new(),
            sleepers: ModelWord::new(),
            stopped: ModelWord::new(),
            slots: (0..ranks).map(|_| [slot(), slot()]).collect(),
        }))
    }

    /// Marks the job as failed; nobody is woken.
    pub(super) fn stop(&self) {
        self.stopped.value.store(1, Ordering::Release);
    }

    fn slot(&self, rank: usize, epoch: u64) -> &Slot {
        &self.slots[rank][(epoch & 1) as usize]
    }
}

impl<const MISTAKE: u8> EventCount for ModelSegment<MISTAKE> {
    type Machine = ModelMachine<MISTAKE>;

    fn machine(&self) -> &ModelMachine<MISTAKE> {
        &self.machine
    }

    fn events(&self) -> &ModelWord {
        &self.events
    }

    fn sleepers(&self) -> &ModelWord {
        &self.sleepers
    }

    fn stopped(&self) -> &ModelWord {
        &self.stopped
    }
}

/// Straight to sleep: spinning and yielding only look more often.
pub(super) const PATIENCE: WaitPolicy = WaitPolicy {
    spin: Spin {
        spins: 0,
        yields: 0,
    },
    slice: Duration::ZERO,
};

pub(super) fn brought(rank: usize, epoch: u64) -> u64 {
    epoch * 10 + rank as u64
}

/// One rank's side of a row of collectives whose payload travels in the slots: how many it
/// completed.
#[expect(
    unsafe_code,
    reason = "loom's cells hand out pointers; the model proves them exclusive"
)]
fn rank<const MISTAKE: u8>(segment: &ModelSegment<MISTAKE>, me: usize, epochs: u64) -> u64 {
    for epoch in 1..=epochs {
        if is_dead() {
            return epoch - 1;
        }
        let own = segment.slot(me, epoch);
        // SAFETY: loom fails the test if anyone else accesses the cell meanwhile.
        own.payload
            .with_mut(|payload| unsafe { *payload = brought(me, epoch) });
        event_count::publish(segment, &own.epoch, epoch);
        for peer in (0..segment.slots.len()).filter(|&peer| peer != me) {
            let slot = segment.slot(peer, epoch);
            let arrived = || event_count::reached::<ModelSegment<MISTAKE>>(&slot.epoch, epoch);
            let waited = event_count::wait(segment, &PATIENCE, || (None, ()), arrived);
            if waited == Err(event_count::WaitError::Stopped) || is_dead() {
                return epoch - 1;
            }
            // SAFETY: loom fails the test if anyone writes the cell meanwhile.
            let seen = slot.payload.with(|payload| unsafe { *payload });
            assert_eq!(seen, brought(peer, epoch));
        }
    }
    epochs
}

fn check<const MISTAKE: u8>(ranks: usize, epochs: u64, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let segment = ModelSegment::<MISTAKE>::leak(ranks);
        let others: Vec<_> = (1..ranks)
            .map(|me| loom::thread::spawn(move || rank(segment, me, epochs)))
            .collect();
        assert_eq!(rank(segment, 0, epochs), epochs);
        for other in others {
            assert_eq!(other.join().unwrap(), epochs);
        }
    });
}

/// One of `ranks` ranks dies after `life` steps, whoever watches it stops the job, and all others
/// return: false if the rank came to its end alive.
fn check_death<const MISTAKE: u8>(
    ranks: usize,
    epochs: u64,
    life: u32,
    preemptions: usize,
) -> bool {
    use std::sync::atomic::AtomicBool;
    let died = std::sync::Arc::new(AtomicBool::new(false));
    let seen = died.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let segment = ModelSegment::<MISTAKE>::leak(ranks);
        let survivors: Vec<_> = (1..ranks)
            .map(|me| loom::thread::spawn(move || rank(segment, me, epochs)))
            .collect();
        LIFE.with(|left| left.set(life));
        let completed = rank(segment, 0, epochs);
        // From here on this thread is the one that watches.
        let dead = is_dead();
        seen.fetch_or(dead, Ordering::Relaxed);
        LIFE.with(|left| left.set(u32::MAX));
        if dead {
            segment.stopped.value.store(1, Ordering::Release);
            event_count::notify_all(segment);
        }
        for survivor in survivors {
            // Ranks are at most one collective apart; with everyone alive all complete all.
            let theirs = survivor.join().unwrap();
            assert!(dead || theirs == epochs);
            assert!(theirs <= completed + 1);
        }
    });
    died.load(Ordering::Relaxed)
}

#[test]
fn two_ranks_never_miss_a_word_nor_a_wake() {
    check::<0>(2, 3, 3);
}

#[test]
fn three_ranks_never_miss_a_word_nor_a_wake() {
    check::<0>(3, 2, 2);
}

/// The third epoch uses the slots of the first again.
#[test]
fn three_ranks_share_the_slots_in_turn() {
    check::<0>(3, 3, 1);
}

#[test]
fn whenever_a_rank_dies_its_peer_returns() {
    let lives = (0..).take_while(|&life| check_death::<0>(2, 2, life, 3));
    assert!(lives.count() > 10, "a rank takes more steps than that");
}

#[test]
fn whenever_a_rank_dies_both_peers_return() {
    let lives = (0..).take_while(|&life| check_death::<0>(3, 1, life, 1));
    assert!(lives.count() > 5, "a rank takes more steps than that");
}

/// A job that fails wakes everyone who waits for a rank that does not come.
#[test]
fn a_stopped_job_wakes_every_sleeper() {
    loom::model(|| {
        let segment = ModelSegment::<0>::leak(2);
        let waiter = loom::thread::spawn(move || {
            let slot = segment.slot(0, 1);
            let arrived = || event_count::reached::<ModelSegment<0>>(&slot.epoch, 1);
            event_count::wait(segment, &PATIENCE, || (None, ()), arrived)
        });
        segment.stopped.value.store(1, Ordering::Release);
        event_count::notify_all(segment);
        assert_eq!(waiter.join().unwrap(), Err(event_count::WaitError::Stopped));
    });
}

macro_rules! mistakes {
    ($($name:ident: $mistake:expr, $symptom:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $symptom)]
        fn $name() {
            check::<{ $mistake as u8 }>(2, 3, 3);
        }
    )*};
}

mistakes! {
    a_weak_store_is_noticed: Mistake::WeakStore, "Causality violation";
    a_weak_load_is_noticed: Mistake::WeakLoad, "Causality violation";
    missing_fences_are_noticed: Mistake::NoFence, "deadlock";
    a_dropped_wake_is_noticed: Mistake::NoWake, "deadlock";
    a_bell_sampled_too_late_is_noticed: Mistake::LateSample, "deadlock";
    a_missing_second_look_is_noticed: Mistake::NoSecondLook, "deadlock";
}

/// The same, when a death is what the sleeper must not miss.
#[test]
#[should_panic(expected = "deadlock")]
fn a_death_that_wakes_nobody_is_noticed() {
    check_death::<{ Mistake::NoWake as u8 }>(2, 1, 0, 3);
}
