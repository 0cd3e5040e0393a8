//! A ring under the model checker: a writer, its readers, two slots and a few messages, in every interleaving with a
//! bounded number of preemptions. A slot that is overwritten before it was read, or read before it was written, shows
//! as a race, a lost wake-up as a deadlock. A rank may vanish after any of its steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;

use super::event_count::{self, WaitError};
use super::model::{LIFE, Mistake, ModelMachine, ModelSegment, PATIENCE, is_dead};
use super::ring_flow::{FlowWords, GRAIN, RingFlow};

/// Slots of the ring; each message takes one.
const SLOTS: usize = 2;
const WRITER: usize = 0;

/// A fault in the use of the ring, beside those of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misuse {
    None,
    /// The writer takes the ring for larger than it is.
    NoRoomCheck,
    /// A message is published before it is written.
    EarlyProduce,
    /// A slot is given back before it is read.
    EarlyConsume,
}

struct ModelRing<const MISTAKE: u8> {
    segment: &'static ModelSegment<MISTAKE>,
    produced: AtomicU64,
    consumed: Vec<AtomicU64>,
    slots: [UnsafeCell<u64>; SLOTS],
}

impl<const MISTAKE: u8> FlowWords for ModelRing<MISTAKE> {
    type Machine = ModelMachine<MISTAKE>;

    fn produced(&self, rank: usize) -> &AtomicU64 {
        assert_eq!(rank, WRITER);
        &self.produced
    }

    fn consumed(&self, reader: usize, writer: usize) -> &AtomicU64 {
        assert_eq!(writer, WRITER);
        &self.consumed[reader]
    }
}

impl<const MISTAKE: u8> ModelRing<MISTAKE> {
    /// Never freed, as the segment.
    fn leak(ranks: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            segment: ModelSegment::leak(ranks),
            produced: AtomicU64::new(0),
            consumed: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
            slots: [UnsafeCell::new(0), UnsafeCell::new(0)],
        }))
    }

    #[expect(
        unsafe_code,
        reason = "loom's cells hand out pointers; the model proves them exclusive"
    )]
    fn write(&self, offset: usize, message: u64) {
        let slot = &self.slots[offset / GRAIN % SLOTS];
        // SAFETY: loom fails the test if anyone else accesses the cell meanwhile.
        slot.with_mut(|slot| unsafe { *slot = message });
    }

    #[expect(
        unsafe_code,
        reason = "loom's cells hand out pointers; the model proves that nobody writes"
    )]
    fn read(&self, offset: usize) -> u64 {
        let slot = &self.slots[offset / GRAIN % SLOTS];
        // SAFETY: loom fails the test if anyone writes the cell meanwhile.
        slot.with(|slot| unsafe { *slot })
    }

    /// False if the job was stopped, or this rank is dead.
    fn await_until(&self, ready: impl FnMut() -> bool) -> bool {
        let waited = event_count::wait(self.segment, &PATIENCE, || (None, ()), ready);
        waited != Err(WaitError::Stopped) && !is_dead()
    }
}

type Events<const MISTAKE: u8> = ModelSegment<MISTAKE>;

/// The writer's side: the number of messages that it has sent.
fn write_all<const MISTAKE: u8>(ring: &ModelRing<MISTAKE>, messages: u64, misuse: Misuse) -> u64 {
    let factor = if misuse == Misuse::NoRoomCheck { 2 } else { 1 };
    let ranks = ring.consumed.len();
    let flow = RingFlow::new(WRITER, ranks, factor * SLOTS * GRAIN);
    for message in 1..=messages {
        let room = || flow.room::<Events<MISTAKE>>(ring, GRAIN);
        if !ring.await_until(|| room().is_some()) {
            return message - 1;
        }
        let place = flow.place(WRITER, GRAIN);
        if misuse == Misuse::EarlyProduce {
            flow.produce(ring.segment, ring, place.end);
        }
        ring.write(place.offset, message);
        if misuse != Misuse::EarlyProduce {
            flow.produce(ring.segment, ring, place.end);
        }
        if is_dead() {
            return message - 1;
        }
    }
    messages
}

/// A reader's side: the number of messages that it has taken, each the right one.
fn read_all<const MISTAKE: u8>(
    ring: &ModelRing<MISTAKE>,
    me: usize,
    messages: u64,
    misuse: Misuse,
) -> u64 {
    let flow = RingFlow::new(me, ring.consumed.len(), SLOTS * GRAIN);
    for message in 1..=messages {
        let ready = || flow.ready::<Events<MISTAKE>>(ring, WRITER, GRAIN);
        if !ring.await_until(|| ready().is_some()) {
            return message - 1;
        }
        let place = flow.place(WRITER, GRAIN);
        if misuse == Misuse::EarlyConsume {
            flow.consume(ring.segment, ring, WRITER, place.end);
        }
        assert_eq!(ring.read(place.offset), message);
        if misuse != Misuse::EarlyConsume {
            flow.consume(ring.segment, ring, WRITER, place.end);
        }
        if is_dead() {
            return message - 1;
        }
    }
    messages
}

fn check<const MISTAKE: u8>(ranks: usize, messages: u64, preemptions: usize, misuse: Misuse) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let ring = ModelRing::<MISTAKE>::leak(ranks);
        let readers: Vec<_> = (1..ranks)
            .map(|me| loom::thread::spawn(move || read_all(ring, me, messages, misuse)))
            .collect();
        assert_eq!(write_all(ring, messages, misuse), messages);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), messages);
        }
    });
}

/// The writer, or else the reader, vanishes after `life` steps; whoever watches it stops the job, and the other
/// returns: false if it came to its end alive.
fn check_death(is_writer: bool, messages: u64, life: u32, preemptions: usize) -> bool {
    let died = Arc::new(AtomicBool::new(false));
    let seen = died.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let ring = ModelRing::<0>::leak(2);
        let write = move || write_all(ring, messages, Misuse::None);
        let read = move || read_all(ring, 1, messages, Misuse::None);
        let other = loom::thread::spawn(move || if is_writer { read() } else { write() });
        LIFE.with(|left| left.set(life));
        let own = if is_writer { write() } else { read() };
        // From here on this thread is the one that watches.
        let dead = is_dead();
        seen.fetch_or(dead, Ordering::Relaxed);
        LIFE.with(|left| left.set(u32::MAX));
        if dead {
            ring.segment.stop();
            event_count::notify_all(ring.segment);
        }
        let theirs = other.join().unwrap();
        assert!(dead || theirs == messages);
        // A reader has at most what was sent; a writer is at most a ring ahead.
        let ahead = if is_writer { 1 } else { 1 + SLOTS as u64 };
        assert!(theirs <= own + ahead);
    });
    died.load(Ordering::Relaxed)
}

#[test]
fn a_writer_and_a_reader_never_miss_a_message() {
    check::<0>(2, 4, 3, Misuse::None);
}

#[test]
fn two_readers_get_every_message_of_a_ring_that_is_used_again() {
    check::<0>(3, 3, 1, Misuse::None);
}

#[test]
fn whenever_a_writer_vanishes_its_reader_returns() {
    let lives = (0..).take_while(|&life| check_death(true, 3, life, 2));
    assert!(lives.count() > 5, "a writer takes more steps than that");
}

#[test]
fn whenever_a_reader_vanishes_its_writer_returns() {
    let lives = (0..).take_while(|&life| check_death(false, 3, life, 2));
    assert!(lives.count() > 5, "a reader takes more steps than that");
}

macro_rules! faults {
    ($($name:ident: $mistake:expr, $misuse:expr, $symptom:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $symptom)]
        fn $name() {
            check::<{ $mistake as u8 }>(2, 4, 3, $misuse);
        }
    )*};
}

faults! {
    a_ring_written_without_room_is_noticed: Mistake::None, Misuse::NoRoomCheck, "assertion";
    a_message_published_too_early_is_noticed: Mistake::None, Misuse::EarlyProduce, "";
    a_slot_given_back_too_early_is_noticed: Mistake::None, Misuse::EarlyConsume, "Causality violation";
    a_ring_with_weak_stores_is_noticed: Mistake::WeakStore, Misuse::None, "Causality violation";
    a_ring_with_weak_loads_is_noticed: Mistake::WeakLoad, Misuse::None, "Causality violation";
    a_ring_without_fences_is_noticed: Mistake::NoFence, Misuse::None, "deadlock";
    a_ring_that_wakes_nobody_is_noticed: Mistake::NoWake, Misuse::None, "deadlock";
}
