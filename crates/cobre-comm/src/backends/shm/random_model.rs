//! The event count, the arrival slots and a ring with more ranks than a model checker can take through every interleaving:
//! ranks are threads of which one runs at a time, and a seed decides after each step which one is next. Memory is
//! sequentially consistent here; how weak it may be is for `model.rs`. A lost wake-up shows as a deadlock, a slot that is
//! overwritten too early as a wrong message. A rank may die after any of its steps.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event_count::{self, EventCount, Machine, WaitError};
use super::model::{Mistake, PATIENCE, brought, mistake};
use super::ring_flow::{FlowWords, GRAIN, RingFlow};

/// Slots of the ring; each message takes one.
const SLOTS: usize = 2;

/// A rank as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RankState {
    Ready,
    /// In the kernel, until this word is woken.
    Asleep(usize),
    Ended,
}

struct Schedule {
    random: u64,
    ranks: Vec<RankState>,
    next: usize,
    /// True if nobody can go on, or a rank has panicked.
    is_over: bool,
}

/// Lets one rank run at a time.
struct Scheduler {
    schedule: Mutex<Schedule>,
    turns: Vec<Condvar>,
}

/// The rank that a thread is, and the steps that it has left to live.
struct Own {
    scheduler: Arc<Scheduler>,
    rank: usize,
    life: u32,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

impl Scheduler {
    fn new(ranks: usize, seed: u64) -> Self {
        let schedule = Schedule {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            ranks: vec![RankState::Ready; ranks],
            next: 0,
            is_over: false,
        };
        Self {
            schedule: Mutex::new(schedule),
            turns: (0..ranks).map(|_| Condvar::new()).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts this rank into a state, lets another one run, and returns when it is this one's turn again.
    fn pass(&self, rank: usize, state: RankState) {
        let mut schedule = self.lock();
        schedule.ranks[rank] = state;
        schedule.choose(rank);
        self.hand_over(&schedule);
        if state != RankState::Ended {
            drop(self.wait_for_turn(schedule, rank));
        }
    }

    fn hand_over(&self, schedule: &Schedule) {
        if schedule.is_over {
            self.turns.iter().for_each(Condvar::notify_all);
        } else {
            self.turns[schedule.next].notify_all();
        }
    }

    fn wait_for_turn<'s>(
        &'s self,
        mut schedule: MutexGuard<'s, Schedule>,
        rank: usize,
    ) -> MutexGuard<'s, Schedule> {
        while schedule.next != rank && !schedule.is_over {
            let waited = self.turns[rank].wait(schedule);
            schedule = waited.unwrap_or_else(PoisonError::into_inner);
        }
        assert!(!schedule.is_over, "deadlock: {:?}", schedule.ranks);
        schedule
    }
}

impl Schedule {
    fn below(&mut self, most: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % most
    }

    /// Chooses who runs next: mostly the same rank, so that it gets far ahead of others now and then.
    fn choose(&mut self, current: usize) {
        let is_ready = |rank: &usize| self.ranks[*rank] == RankState::Ready;
        let ready: Vec<usize> = (0..self.ranks.len()).filter(is_ready).collect();
        if ready.is_empty() {
            self.is_over |= self.ranks.iter().any(|state| *state != RankState::Ended);
        } else if !ready.contains(&current) || self.below(3) == 0 {
            self.next = ready[self.below(ready.len())];
        }
    }
}

/// Takes one step, after which others may run; false if the rank is dead.
fn step() -> bool {
    let (scheduler, rank, lives) = OWN.with_borrow_mut(|own| {
        let own = own.as_mut().expect("a rank of a schedule");
        let lives = own.life > 0;
        own.life = own.life.saturating_sub(1);
        (own.scheduler.clone(), own.rank, lives)
    });
    if lives {
        scheduler.pass(rank, RankState::Ready);
    }
    lives
}

fn is_dead() -> bool {
    OWN.with_borrow(|own| own.as_ref().is_some_and(|own| own.life == 0))
}

/// Lets the thread of a dead rank be the one that watches it.
fn revive() {
    OWN.with_borrow_mut(|own| own.as_mut().expect("a rank of a schedule").life = u32::MAX);
}

struct ScheduledMachine<const MISTAKE: u8>;

thread_local! {
    /// True if this rank's looks find nothing, to leave out the second one.
    static BLIND: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl<const MISTAKE: u8> Machine for ScheduledMachine<MISTAKE> {
    type W64 = AtomicU64;
    type W32 = AtomicU32;

    fn load64(word: &AtomicU64, _: Ordering) -> u64 {
        // The dead see all they wait for, so that their threads end.
        if !step() {
            return u64::MAX;
        }
        let value = word.load(Ordering::SeqCst);
        if BLIND.get() { 0 } else { value }
    }

    fn swap64(word: &AtomicU64, value: u64, _: Ordering) {
        if step() {
            word.swap(value, Ordering::SeqCst);
        }
    }

    fn load32(word: &AtomicU32, _: Ordering) -> u32 {
        if !step() {
            return 0;
        }
        let value = word.load(Ordering::SeqCst);
        if BLIND.get() { 0 } else { value }
    }

    fn add32(word: &AtomicU32, value: u32, _: Ordering) {
        if step() {
            word.fetch_add(value, Ordering::SeqCst);
        }
    }

    fn fence(_: Ordering) {
        BLIND.set(mistake(MISTAKE) == Mistake::NoSecondLook);
    }

    fn sleep(&self, word: &AtomicU32, seen: u32, _: Duration) {
        BLIND.set(false);
        if !step() {
            return;
        }
        let late = mistake(MISTAKE) == Mistake::LateSample;
        // The kernel compares and sleeps in one step, as nobody else runs in between.
        if late || word.load(Ordering::SeqCst) == seen {
            let (scheduler, rank) = OWN.with_borrow(|own| {
                let own = own.as_ref().expect("a rank of a schedule");
                (own.scheduler.clone(), own.rank)
            });
            scheduler.pass(rank, RankState::Asleep(std::ptr::from_ref(word).addr()));
        }
    }

    fn wake_all(word: &AtomicU32) {
        if !step() || mistake(MISTAKE) == Mistake::NoWake {
            return;
        }
        let scheduler = OWN.with_borrow(|own| own.as_ref().map(|own| own.scheduler.clone()));
        let scheduler = scheduler.expect("a rank of a schedule");
        let asleep = RankState::Asleep(std::ptr::from_ref(word).addr());
        for state in &mut scheduler.lock().ranks {
            if *state == asleep {
                *state = RankState::Ready;
            }
        }
    }

    fn spin() {
        step();
    }

    fn yield_now() {
        step();
    }
}

/// The event count, each rank's two slots, and a ring of rank 0.
struct Shared<const MISTAKE: u8> {
    machine: ScheduledMachine<MISTAKE>,
    events: AtomicU32,
    sleepers: AtomicU32,
    stopped: AtomicU32,
    /// The epoch in which a rank arrived, and what it brought.
    slots: Vec<[(AtomicU64, AtomicU64); 2]>,
    produced: AtomicU64,
    consumed: Vec<AtomicU64>,
    messages: [AtomicU64; SLOTS],
}

impl<const MISTAKE: u8> Shared<MISTAKE> {
    fn new(ranks: usize) -> Self {
        Self {
            machine: ScheduledMachine,
            events: AtomicU32::default(),
            sleepers: AtomicU32::default(),
            stopped: AtomicU32::default(),
            slots: (0..ranks).map(|_| Default::default()).collect(),
            produced: AtomicU64::default(),
            consumed: (0..ranks).map(|_| AtomicU64::default()).collect(),
            messages: Default::default(),
        }
    }

    /// False if the job was stopped, or this rank is dead.
    fn await_until(&self, ready: impl FnMut() -> bool) -> bool {
        let waited = event_count::wait(self, &PATIENCE, || (None, ()), ready);
        waited != Err(WaitError::Stopped) && !is_dead()
    }
}

impl<const MISTAKE: u8> EventCount for Shared<MISTAKE> {
    type Machine = ScheduledMachine<MISTAKE>;

    fn machine(&self) -> &ScheduledMachine<MISTAKE> {
        &self.machine
    }

    fn events(&self) -> &AtomicU32 {
        &self.events
    }

    fn sleepers(&self) -> &AtomicU32 {
        &self.sleepers
    }

    fn stopped(&self) -> &AtomicU32 {
        &self.stopped
    }
}

impl<const MISTAKE: u8> FlowWords for Shared<MISTAKE> {
    type Machine = ScheduledMachine<MISTAKE>;

    fn produced(&self, rank: usize) -> &AtomicU64 {
        assert_eq!(rank, 0);
        &self.produced
    }

    fn consumed(&self, reader: usize, writer: usize) -> &AtomicU64 {
        assert_eq!(writer, 0);
        &self.consumed[reader]
    }
}

/// A rank's side of a program: the number of its rounds that it completed.
type Side<const MISTAKE: u8> = fn(&Shared<MISTAKE>, usize, u64) -> u64;

/// A row of collectives whose payload travels in the slots.
fn collectives<const MISTAKE: u8>(shared: &Shared<MISTAKE>, me: usize, epochs: u64) -> u64 {
    let ranks = shared.slots.len();
    for epoch in 1..=epochs {
        let (arrived, payload) = &shared.slots[me][(epoch & 1) as usize];
        if step() {
            payload.store(brought(me, epoch), Ordering::SeqCst);
        }
        event_count::publish(shared, arrived, epoch);
        for peer in (0..ranks).filter(|peer| *peer != me) {
            let (arrived, payload) = &shared.slots[peer][(epoch & 1) as usize];
            let there = || event_count::reached::<Shared<MISTAKE>>(arrived, epoch);
            if !shared.await_until(there) || !step() {
                return epoch - 1;
            }
            let found = payload.load(Ordering::SeqCst);
            assert_eq!(found, brought(peer, epoch), "a slot of rank {peer}");
        }
    }
    epochs
}

/// Messages of rank 0 through its ring, which all others read; the writer takes it for `factor` times as large.
fn ring<const MISTAKE: u8>(
    shared: &Shared<MISTAKE>,
    me: usize,
    messages: u64,
    factor: usize,
) -> u64 {
    let factor = if me == 0 { factor } else { 1 };
    let flow = RingFlow::new(me, shared.consumed.len(), factor * SLOTS * GRAIN);
    for message in 1..=messages {
        let is_due = || match me {
            0 => flow.room::<Shared<MISTAKE>>(shared, GRAIN).is_some(),
            _ => flow.ready::<Shared<MISTAKE>>(shared, 0, GRAIN).is_some(),
        };
        if !shared.await_until(is_due) {
            return message - 1;
        }
        let place = flow.place(0, GRAIN);
        let slot = &shared.messages[place.offset / GRAIN % SLOTS];
        if !step() {
            return message - 1;
        }
        if me == 0 {
            slot.store(message, Ordering::SeqCst);
            flow.produce(shared, shared, place.end);
        } else {
            let found = slot.load(Ordering::SeqCst);
            assert_eq!(found, message, "a message for rank {me}");
            flow.consume(shared, shared, 0, place.end);
        }
        if is_dead() {
            return message - 1;
        }
    }
    messages
}

/// Runs a program on `ranks` ranks under a seed. The rank `victim`, if there is one, dies after so many steps, and whoever
/// watches it stops the job.
fn run<const MISTAKE: u8>(
    side: Side<MISTAKE>,
    ranks: usize,
    rounds: u64,
    seed: u64,
    victim: Option<(usize, u32)>,
) -> Result<(), String> {
    let (scheduler, shared) = (Arc::new(Scheduler::new(ranks, seed)), Shared::new(ranks));
    let take_part = |rank: usize| {
        let life = victim.filter(|(dies, _)| *dies == rank);
        let own = Own {
            scheduler: scheduler.clone(),
            rank,
            life: life.map_or(u32::MAX, |(_, life)| life),
        };
        OWN.set(Some(own));
        drop(scheduler.wait_for_turn(scheduler.lock(), rank));
        let completed = side(&shared, rank, rounds);
        let died = is_dead();
        if died {
            revive();
            shared.stopped.store(1, Ordering::SeqCst);
            event_count::notify_all(&shared);
        }
        scheduler.pass(rank, RankState::Ended);
        assert!(
            completed == rounds || victim.is_some(),
            "rank {rank}: {completed} of {rounds}"
        );
    };
    let guarded = |rank| {
        let ended = catch_unwind(AssertUnwindSafe(|| take_part(rank)));
        if ended.is_err() {
            let mut schedule = scheduler.lock();
            schedule.is_over = true;
            scheduler.hand_over(&schedule);
        }
        ended.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| scope.spawn(move || guarded(rank)))
            .collect();
        let ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("it is guarded"))
            .collect();
        // Those that a panic of another one has ended speak of a deadlock too.
        let told = ends.into_iter().filter_map(Result::err);
        let told: Vec<String> = told.collect();
        let first = told.iter().find(|text| !text.starts_with("deadlock"));
        first
            .or(told.first())
            .map_or(Ok(()), |text| Err(text.clone()))
    })
}

mod tests;
