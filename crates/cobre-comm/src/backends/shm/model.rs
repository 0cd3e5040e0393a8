//! The gate and the two arrival slots under a model checker: every interleaving of a few ranks
//! and epochs, with memory as weak as the language allows. A lost wake-up shows as a deadlock, a
//! slot overwritten too early as a race.

use std::sync::atomic::Ordering;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::sync::{Condvar, Mutex};

use super::gate::{self, Board, Machine, Patience};

/// What a machine does wrong, to prove that the model would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Publishing does not order what was written before.
    WeakStore,
    /// Reading a number does not order what is read after.
    WeakLoad,
    /// The full fences are missing.
    NoFence,
    /// Nobody is woken.
    NoWake,
}

/// A futex word: the kernel compares and sleeps in one step, as the mutex makes it here.
struct Word {
    value: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Word {
    fn new() -> Self {
        Self {
            value: AtomicU32::new(0),
            queue: Mutex::new(()),
            woken: Condvar::new(),
        }
    }
}

struct Model<const FAULT: u8>;

const fn fault(number: u8) -> Fault {
    match number {
        1 => Fault::WeakStore,
        2 => Fault::WeakLoad,
        3 => Fault::NoFence,
        4 => Fault::NoWake,
        _ => Fault::None,
    }
}

impl<const FAULT: u8> Machine for Model<FAULT> {
    type W64 = AtomicU64;
    type W32 = Word;

    fn load64(word: &AtomicU64, order: Ordering) -> u64 {
        let weak = fault(FAULT) == Fault::WeakLoad;
        word.load(if weak { Ordering::Relaxed } else { order })
    }

    fn swap64(word: &AtomicU64, value: u64, order: Ordering) {
        match fault(FAULT) {
            Fault::WeakStore => word.store(value, Ordering::Relaxed),
            Fault::NoFence => word.store(value, Ordering::Release),
            _ => {
                // Loom takes exchanges for acquire and release only; the fence makes it a full one.
                word.swap(value, order);
                loom::sync::atomic::fence(order);
            }
        }
    }

    fn load32(word: &Word, order: Ordering) -> u32 {
        word.value.load(order)
    }

    fn add32(word: &Word, value: u32, order: Ordering) {
        word.value.fetch_add(value, order);
    }

    fn fence(order: Ordering) {
        if fault(FAULT) != Fault::NoFence {
            loom::sync::atomic::fence(order);
        }
    }

    fn sleep(&self, word: &Word, seen: u32, _: Duration) {
        let mut queue = word.queue.lock().unwrap();
        while word.value.load(Ordering::Relaxed) == seen {
            queue = word.woken.wait(queue).unwrap();
        }
    }

    fn wake_all(word: &Word) {
        if fault(FAULT) != Fault::NoWake {
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

struct Segment<const FAULT: u8> {
    machine: Model<FAULT>,
    bell: Word,
    sleepers: Word,
    stopped: Word,
    slots: Vec<[Slot; 2]>,
}

impl<const FAULT: u8> Segment<FAULT> {
    /// Never freed: loom cannot unwind through its own reference counts when it finds a fault.
    fn leak(ranks: usize) -> &'static Self {
        let slot = || Slot {
            epoch: AtomicU64::new(0),
            payload: UnsafeCell::new(0),
        };
        Box::leak(Box::new(Self {
            machine: Model,
            bell: Word::new(),
            sleepers: Word::new(),
            stopped: Word::new(),
            slots: (0..ranks).map(|_| [slot(), slot()]).collect(),
        }))
    }

    fn slot(&self, rank: usize, epoch: u64) -> &Slot {
        &self.slots[rank][(epoch & 1) as usize]
    }
}

impl<const FAULT: u8> Board for Segment<FAULT> {
    type Machine = Model<FAULT>;

    fn machine(&self) -> &Model<FAULT> {
        &self.machine
    }

    fn bell(&self) -> &Word {
        &self.bell
    }

    fn sleepers(&self) -> &Word {
        &self.sleepers
    }

    fn stopped(&self) -> &Word {
        &self.stopped
    }
}

/// Straight to sleep: spinning and yielding only look more often.
const PATIENCE: Patience = Patience {
    spins: 0,
    yields: 0,
    slice: Duration::ZERO,
};

fn brought(rank: usize, epoch: u64) -> u64 {
    epoch * 10 + rank as u64
}

/// One rank's side of a row of collectives whose payload travels in the slots.
#[expect(
    unsafe_code,
    reason = "loom's cells hand out pointers; the model proves them exclusive"
)]
fn rank<const FAULT: u8>(segment: &Segment<FAULT>, me: usize, epochs: u64) {
    for epoch in 1..=epochs {
        let own = segment.slot(me, epoch);
        // SAFETY: loom fails the test if anyone else accesses the cell meanwhile.
        own.payload
            .with_mut(|payload| unsafe { *payload = brought(me, epoch) });
        gate::publish(segment, &own.epoch, epoch);
        for peer in (0..segment.slots.len()).filter(|&peer| peer != me) {
            let slot = segment.slot(peer, epoch);
            let arrived = || gate::reached::<Segment<FAULT>>(&slot.epoch, epoch);
            gate::wait(segment, &PATIENCE, || None, arrived).expect("nobody stops this job");
            // SAFETY: loom fails the test if anyone writes the cell meanwhile.
            let seen = slot.payload.with(|payload| unsafe { *payload });
            assert_eq!(seen, brought(peer, epoch));
        }
    }
}

fn check<const FAULT: u8>(ranks: usize, epochs: u64, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let segment = Segment::<FAULT>::leak(ranks);
        let others: Vec<_> = (1..ranks)
            .map(|me| loom::thread::spawn(move || rank(segment, me, epochs)))
            .collect();
        rank(segment, 0, epochs);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn two_ranks_never_miss_a_word_nor_a_wake() {
    check::<0>(2, 3, 3);
}

#[test]
fn three_ranks_never_miss_a_word_nor_a_wake() {
    check::<0>(3, 2, 2);
}

/// A job that fails wakes everyone who waits for a rank that does not come.
#[test]
fn a_stopped_job_wakes_every_sleeper() {
    loom::model(|| {
        let segment = Segment::<0>::leak(2);
        let waiter = loom::thread::spawn(move || {
            let slot = segment.slot(0, 1);
            let arrived = || gate::reached::<Segment<0>>(&slot.epoch, 1);
            gate::wait(segment, &PATIENCE, || None, arrived)
        });
        segment.stopped.value.store(1, Ordering::Release);
        gate::ring(segment);
        assert_eq!(waiter.join().unwrap(), Err(gate::Interrupt::Stopped));
    });
}

macro_rules! faults {
    ($($name:ident: $fault:expr;)*) => {$(
        #[test]
        #[should_panic]
        #[expect(
            clippy::should_panic_without_expect,
            reason = "a fault shows as a race, a deadlock or a wrong value, as the model finds it"
        )]
        fn $name() {
            check::<{ $fault as u8 }>(2, 3, 3);
        }
    )*};
}

faults! {
    a_weak_store_is_noticed: Fault::WeakStore;
    a_weak_load_is_noticed: Fault::WeakLoad;
    missing_fences_are_noticed: Fault::NoFence;
    a_dropped_wake_is_noticed: Fault::NoWake;
}
