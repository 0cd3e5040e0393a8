//! The world of a simulation: its threads, of which one runs at a time, its clock and its faults.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::network::SimulatedNetwork;
use super::plan::{JobFault, JobPlan, Trigger};
use super::random::SeededRandom;
use crate::backends::shm::SimulatedSegment;
use crate::backends::tcp::os::PlantedFault;

/// A job that takes longer has no end.
const LIMIT: Duration = Duration::from_secs(400);
/// One call of the system in so many lets another thread run, though the caller could go on.
const PREEMPTION: usize = 4;
const STACK: usize = 512 * 1024;

/// The payload that ends the threads of a world that is over.
struct WorldOver;
/// The payload of a panic that belongs to the plan.
pub(super) struct PlannedPanic;

/// The condition that a thread waits for.
#[derive(Debug, Clone)]
pub(in crate::backends) enum Wait {
    /// None: it goes on when it is picked.
    Nothing,
    /// None but its time.
    Time,
    Sources(Vec<Interest>),
    /// An event of one of these sources after so many.
    Events(Vec<(Interest, u64)>),
    /// A wake of one of these futexes after so many.
    Futexes(Vec<(usize, u64)>),
    /// News of this number after so many.
    News(usize, u64),
    /// The end of a thread.
    Thread(usize),
}

#[derive(Debug, Clone, Copy)]
pub(in crate::backends) enum Interest {
    Read(usize),
    Write(usize),
    Accept(usize),
    Wake(usize),
}

struct Thread {
    rank: usize,
    wait: Wait,
    until: Option<Duration>,
    is_done: bool,
    turn: Arc<Condvar>,
}

/// The state of a rank's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    Runs,
    Stopped(Duration),
    Dead,
}

/// The end of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorldEnd {
    /// All threads of the ranks that live have ended.
    Finished,
    /// Some never do: rank and condition.
    Hung(Vec<(usize, String)>),
}

/// A fault that has happened: when, which, and between which ranks a connection broke.
pub(super) type FaultRecord = (Duration, JobFault, Option<(usize, usize)>);

pub(in crate::backends) struct WorldState {
    pub(in crate::backends) now: Duration,
    pub(super) steps: u64,
    pub(in crate::backends) random: SeededRandom,
    pub(super) network: SimulatedNetwork,
    threads: Vec<Thread>,
    running: Option<usize>,
    pub(super) processes: Vec<Process>,
    pending: Vec<(Trigger, JobFault)>,
    pub(super) happened: Vec<FaultRecord>,
    /// Numbers of news so far, of unread wakes, and of all wakes.
    pub(super) news: Vec<u64>,
    pub(super) wakes: Vec<u64>,
    pub(super) all_wakes: Vec<u64>,
    /// The host of each rank, and the segments of hosts: of which one, under which name.
    hosts: Vec<usize>,
    segments: Vec<(usize, String, Arc<SimulatedSegment>)>,
    /// A rank that cannot map memory.
    pub(in crate::backends) unmapped: Option<usize>,
    /// Futexes by their addresses, and how often each was woken.
    futexes: HashMap<usize, usize>,
    futex_wakes: Vec<u64>,
    /// Lines that ranks have written: when, who, what.
    pub(super) reports: Vec<(Duration, usize, String)>,
    pub(super) panics: Vec<(usize, String)>,
    pub(super) end: Option<WorldEnd>,
    /// Sockets that were open at the end, by rank.
    pub(super) open_at_end: Vec<usize>,
    mutant: Option<PlantedFault>,
    handles: Vec<JoinHandle<()>>,
}

pub(in crate::backends) struct SimulatedWorld {
    /// True if ranks learn from queues of events which sockets have news, and do not try them all.
    pub(super) has_event_queues: bool,
    state: Mutex<WorldState>,
    over: Condvar,
}

thread_local! {
    static CURRENT: RefCell<Option<(Arc<SimulatedWorld>, usize)>> = const { RefCell::new(None) };
}

/// The world that the calling thread belongs to, and its number there; `None` outside of simulations.
pub(in crate::backends) fn current() -> Option<(Arc<SimulatedWorld>, usize)> {
    CURRENT.with_borrow(Clone::clone)
}

impl SimulatedWorld {
    pub(super) fn new(plan: &JobPlan, mutant: Option<PlantedFault>) -> Arc<Self> {
        let mut random = SeededRandom::new(!plan.seed);
        let network_random = SeededRandom::new(random.bits());
        let state = WorldState {
            now: Duration::from_secs(1),
            steps: 0,
            network: SimulatedNetwork::new(plan.size, plan.properties.clone(), network_random),
            random,
            threads: Vec::new(),
            running: None,
            processes: vec![Process::Runs; plan.size],
            pending: plan.faults.clone(),
            happened: Vec::new(),
            news: Vec::new(),
            wakes: Vec::new(),
            all_wakes: Vec::new(),
            hosts: plan.hosts.clone(),
            segments: Vec::new(),
            unmapped: plan.unmapped,
            futexes: HashMap::new(),
            futex_wakes: Vec::new(),
            reports: Vec::new(),
            panics: Vec::new(),
            end: None,
            open_at_end: Vec::new(),
            mutant,
            handles: Vec::new(),
        };
        Arc::new(Self {
            has_event_queues: plan.has_event_queues,
            state: Mutex::new(state),
            over: Condvar::new(),
        })
    }

    pub(in crate::backends) fn state(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, mutant: PlantedFault) -> bool {
        self.state().mutant == Some(mutant)
    }

    /// Adds a thread of a rank; it runs when it is picked.
    pub(super) fn spawn(
        self: &Arc<Self>,
        rank: usize,
        work: impl FnOnce() + Send + 'static,
    ) -> usize {
        let mut state = self.state();
        let number = state.threads.len();
        state.threads.push(Thread {
            rank,
            wait: Wait::Nothing,
            until: None,
            is_done: false,
            turn: Arc::new(Condvar::new()),
        });
        let world = self.clone();
        let begin = move || {
            CURRENT.set(Some((world.clone(), number)));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                Self::await_turn(world.state(), number);
                work();
            }));
            CURRENT.set(None);
            world.finish(number, rank, outcome.err());
        };
        let builder = std::thread::Builder::new().stack_size(STACK);
        let handle = builder.spawn(begin).expect("a thread of the simulation");
        state.handles.push(handle);
        number
    }

    fn finish(&self, number: usize, rank: usize, panic: Option<Box<dyn Any + Send>>) {
        let mut state = self.state();
        state.threads[number].is_done = true;
        if let Some(panic) = panic
            && !panic.is::<WorldOver>()
            && !panic.is::<PlannedPanic>()
        {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            state.panics.push((rank, text.unwrap_or_default()));
        }
        if state.end.is_none() {
            self.schedule(&mut state);
        }
    }

    /// Runs all threads to their end.
    pub(super) fn run(&self) -> MutexGuard<'_, WorldState> {
        let mut state = self.state();
        self.schedule(&mut state);
        while state.end.is_none() {
            state = self
                .over
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        loop {
            let handles = std::mem::take(&mut state.handles);
            if handles.is_empty() {
                return state;
            }
            drop(state);
            for handle in handles {
                handle.join().expect("it catches panics");
            }
            state = self.state();
        }
    }

    /// A call of the system: anything may happen before it.
    pub(in crate::backends) fn tick(&self, me: usize) {
        let mut state = self.state();
        if state.end.is_none() {
            state.steps += 1;
            let step = state.random.micros(1, 20);
            state.now += step;
            state.happen();
            let rank = state.threads[me].rank;
            let goes_on = state.processes[rank] == Process::Runs;
            if goes_on && !state.random.once_in(PREEMPTION) {
                return;
            }
        }
        drop(state);
        self.block(me, Wait::Nothing, None);
    }

    /// Lets others run until the condition holds, or the time has come.
    pub(in crate::backends) fn block(&self, me: usize, wait: Wait, until: Option<Duration>) {
        let mut state = self.state();
        if state.end.is_none() {
            (state.threads[me].wait, state.threads[me].until) = (wait, until);
            self.schedule(&mut state);
        }
        Self::await_turn(state, me);
    }

    fn await_turn(mut state: MutexGuard<'_, WorldState>, me: usize) {
        while state.running != Some(me) && state.end.is_none() {
            let turn = state.threads[me].turn.clone();
            state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_over = state.end.is_some();
        drop(state);
        if is_over && !std::thread::panicking() {
            resume_unwind(Box::new(WorldOver));
        }
    }

    /// Picks the thread that runs next; time passes until there is one.
    fn schedule(&self, state: &mut WorldState) {
        loop {
            state.happen();
            let ready: Vec<usize> = (0..state.threads.len())
                .filter(|&thread| state.is_ready(thread))
                .collect();
            if !ready.is_empty() {
                let picked = state.random.pick(&ready);
                state.running = Some(picked);
                state.threads[picked].turn.notify_all();
                return;
            }
            let is_left =
                |thread: &Thread| !thread.is_done && state.processes[thread.rank] != Process::Dead;
            let left = state.threads.iter().filter(|thread| is_left(thread));
            let left: Vec<_> = left
                .map(|thread| (thread.rank, format!("{:?}", thread.wait)))
                .collect();
            let next = state.next().filter(|next| *next < LIMIT);
            match next {
                Some(next) if !left.is_empty() => state.now = next,
                _ => {
                    let hung = !left.is_empty();
                    state.end = Some(if hung {
                        WorldEnd::Hung(left)
                    } else {
                        WorldEnd::Finished
                    });
                    state.running = None;
                    let ranks = 0..state.processes.len();
                    state.open_at_end = ranks.map(|rank| state.network.open_of(rank)).collect();
                    let threads = state.threads.iter();
                    threads.for_each(|thread| thread.turn.notify_all());
                    self.over.notify_all();
                    return;
                }
            }
        }
    }

    pub(in crate::backends) fn rank_of(&self, thread: usize) -> usize {
        self.state().threads[thread].rank
    }
}

impl WorldState {
    /// Everything happens that is due: faults, then what the network does.
    fn happen(&mut self) {
        let (now, steps) = (self.now, self.steps);
        let is_due = |trigger: &Trigger| match *trigger {
            Trigger::Step(step) => steps >= step,
            Trigger::Time(time) => now >= time,
        };
        while let Some(due) = self.pending.iter().position(|(at, _)| is_due(at)) {
            let (_, fault) = self.pending.swap_remove(due);
            let broken = self.suffer(fault);
            if !matches!(fault, JobFault::Mark(_)) {
                self.happened.push((now, fault, broken));
            }
        }
        for process in &mut self.processes {
            if matches!(*process, Process::Stopped(until) if until <= now) {
                *process = Process::Runs;
            }
        }
        self.network.advance(now);
    }

    fn suffer(&mut self, fault: JobFault) -> Option<(usize, usize)> {
        let now = self.now;
        match fault {
            JobFault::Kill(rank) => {
                self.processes[rank] = Process::Dead;
                self.network.end_process(rank, now);
                if !self.segments.is_empty() {
                    let mark = now + self.random.micros(0, 20_000);
                    self.pending
                        .push((Trigger::Time(mark), JobFault::Mark(rank)));
                }
            }
            JobFault::Mark(rank) => self.mark_dead(rank),
            JobFault::LoseHost(rank) => {
                for rank in self.neighbours(rank) {
                    self.processes[rank] = Process::Dead;
                    self.network.lose_host(rank);
                }
            }
            JobFault::Stop(rank, time) => {
                if self.processes[rank] == Process::Runs {
                    self.processes[rank] = Process::Stopped(now + time);
                }
            }
            JobFault::Block(from, to, both, time) => {
                self.block_ways(from, to, true);
                if both {
                    self.block_ways(to, from, true);
                }
                if let Some(time) = time {
                    let end = (Trigger::Time(now + time), JobFault::Unblock(from, to));
                    self.pending.push(end);
                }
            }
            JobFault::Unblock(from, to) => {
                self.block_ways(from, to, false);
                self.block_ways(to, from, false);
            }
            JobFault::Break(choice) => return self.network.break_connection(choice),
        }
        None
    }

    /// The ranks of a rank's host.
    fn neighbours(&self, rank: usize) -> Vec<usize> {
        let ranks = 0..self.hosts.len();
        ranks
            .filter(|&other| self.hosts[other] == self.hosts[rank])
            .collect()
    }

    /// Blocks the ways from all ranks of one host to all of another, or opens them.
    fn block_ways(&mut self, from: usize, to: usize, blocked: bool) {
        for one in self.neighbours(from) {
            for other in self.neighbours(to) {
                self.network.set_blocked(one, other, blocked);
            }
        }
    }

    /// Adds a segment to the host of a rank.
    pub(in crate::backends) fn add_segment(
        &mut self,
        rank: usize,
        name: &str,
        segment: SimulatedSegment,
    ) {
        let host = self.hosts[rank];
        self.segments
            .push((host, name.to_owned(), Arc::new(segment)));
    }

    /// The segment of this name on the host of a rank.
    pub(in crate::backends) fn segment(
        &self,
        rank: usize,
        name: &str,
    ) -> Option<Arc<SimulatedSegment>> {
        let mut segments = self.segments.iter();
        let host = self.hosts[rank];
        let found = segments.find(|(of, known, _)| (*of, known.as_str()) == (host, name));
        found.map(|(_, _, segment)| segment.clone())
    }

    /// Marks the words of a dead rank. The kernel wakes one who waits for it, which may be stopped or die too: in one
    /// case of two nobody is woken.
    fn mark_dead(&mut self, rank: usize) {
        let host = self.hosts[rank];
        let segments = self.segments.iter().filter(|(of, _, _)| *of == host);
        let marked = segments.filter_map(|(_, _, segment)| segment.mark_dead(rank));
        for address in marked.collect::<Vec<_>>() {
            if self.random.once_in(2) {
                self.wake_futex(address);
            }
        }
    }

    /// True if a process has died.
    pub(in crate::backends) fn has_death(&self) -> bool {
        self.processes.contains(&Process::Dead)
    }

    /// A futex, and how often it was woken.
    pub(in crate::backends) fn futex(&mut self, address: usize) -> (usize, u64) {
        let next = self.futex_wakes.len();
        let number = *self.futexes.entry(address).or_insert(next);
        if number == next {
            self.futex_wakes.push(0);
        }
        (number, self.futex_wakes[number])
    }

    /// Wakes all who wait on a futex.
    pub(in crate::backends) fn wake_futex(&mut self, address: usize) {
        let (number, _) = self.futex(address);
        self.futex_wakes[number] += 1;
    }

    fn is_ready(&self, number: usize) -> bool {
        let thread = &self.threads[number];
        if thread.is_done || self.processes[thread.rank] != Process::Runs {
            return false;
        }
        if thread.until.is_some_and(|until| until <= self.now) {
            return true;
        }
        match &thread.wait {
            Wait::Nothing => true,
            Wait::Time => false,
            Wait::Sources(sources) => sources.iter().any(|source| self.has_news(*source)),
            Wait::Events(sources) => {
                let mut sources = sources.iter();
                sources
                    .any(|(source, seen)| self.events(*source) != *seen && self.has_news(*source))
            }
            Wait::Futexes(futexes) => futexes
                .iter()
                .any(|(number, seen)| self.futex_wakes[*number] > *seen),
            Wait::News(number, seen) => self.news[*number] > *seen,
            Wait::Thread(other) => self.threads[*other].is_done,
        }
    }

    /// True if a source is ready.
    pub(super) fn has_news(&self, source: Interest) -> bool {
        match source {
            Interest::Read(socket) => self.network.is_readable(socket),
            Interest::Write(socket) => self.network.is_writable(socket),
            Interest::Accept(listener) => self.network.has_waiting(listener),
            Interest::Wake(waker) => self.wakes[waker] > 0,
        }
    }

    /// The number of changes of a source that a queue of events tells of.
    pub(super) fn events(&self, source: Interest) -> u64 {
        match source {
            Interest::Read(socket) => self.network.events(socket)[0],
            Interest::Write(socket) => self.network.events(socket)[1],
            Interest::Wake(waker) => self.all_wakes[waker],
            Interest::Accept(_) => 0,
        }
    }

    /// The time of the next thing that happens by itself.
    fn next(&self) -> Option<Duration> {
        let runs =
            |thread: &&Thread| !thread.is_done && self.processes[thread.rank] == Process::Runs;
        let threads = self.threads.iter().filter(runs);
        let threads = threads.filter_map(|thread| thread.until);
        let processes = self.processes.iter().filter_map(|process| match process {
            Process::Stopped(until) => Some(*until),
            _ => None,
        });
        let faults = self.pending.iter().filter_map(|(at, _)| match at {
            Trigger::Time(time) => Some(*time),
            Trigger::Step(_) => None,
        });
        let all = threads.chain(processes).chain(faults);
        all.chain(self.network.next(self.now)).min()
    }
}
