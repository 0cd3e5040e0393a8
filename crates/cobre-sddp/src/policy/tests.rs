//! A model check of the publication of cut tables. Two ranks of one machine update and publish their tables; the first
//! leads and writes the shared memory, both read it. Every order of their steps is tried. After each step a table must have
//! the cuts in use, whatever is published of it and whichever collective fails.
//!
//! Two faults of the memory show that the check finds what it is there for: a fence that waits for nobody, and data that
//! arrive after the fence that publishes them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

use cobre_comm::{
    CommData, CommError, Communicator, ErrorKind, LocalBackend, ReduceOp, Reducible,
    SharedMemoryProvider, SharedRegion,
};

use super::cut_tables::CutTables;
use super::cuts::{Cuts, RecordLayout, record_width};
use crate::problem::StateColumns;
use crate::ranks::Ranks;

const RANKS: usize = 2;
const LEADER: usize = 0;
/// So many that few cuts fill a segment.
const STATES: usize = 200;
/// Cuts of the first segment, and of both.
const CUTS: [usize; 2] = [48, 100];
/// Orders of steps that are too many to be meant.
const MOST_ORDERS: usize = 100_000;

/// A fault of the memory or of a collective.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ModelFault {
    /// A fence returns before the other rank is there.
    FenceAlone,
    /// The leader's data arrive after the fence.
    LateData,
    /// The collective of this number fails on both ranks.
    Failure(usize),
}

/// Which rank goes next wherever both can: the choices so far, and those of this order.
#[derive(Debug, Default)]
struct StepOrder {
    choices: Vec<bool>,
    at: usize,
}

impl StepOrder {
    fn next(&mut self) -> bool {
        if self.at == self.choices.len() {
            self.choices.push(false);
        }
        self.at += 1;
        self.choices[self.at - 1]
    }

    /// The order after this one; false if there is none.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while self.choices.last() == Some(&true) {
            self.choices.pop();
        }
        self.choices.last_mut().map(|last| *last = true).is_some()
    }
}

#[derive(Debug, Default)]
struct ModelState {
    order: StepOrder,
    /// The rank whose step it is.
    turn: usize,
    /// In a collective, or gone.
    waits: [bool; RANKS],
    is_gone: [bool; RANKS],
    /// The collectives so far.
    collectives: usize,
    /// By region, its bytes, and the regions that each rank has created.
    memory: Vec<Vec<u8>>,
    created: [usize; RANKS],
}

impl ModelState {
    /// Passes the turn to a rank that can go on.
    fn pass_turn(&mut self) {
        let can = |rank: usize| !self.waits[rank] && !self.is_gone[rank];
        self.turn = match (can(0), can(1)) {
            (true, true) => usize::from(self.order.next()),
            (true, false) => 0,
            _ => 1,
        };
    }
}

#[derive(Debug, Default)]
struct ModelMemory {
    state: Mutex<ModelState>,
    changed: Condvar,
    fault: Option<ModelFault>,
}

/// A rank of the world.
struct ModelRank {
    world: Arc<ModelMemory>,
    rank: usize,
}

fn failure() -> CommError {
    let refused = LocalBackend.allgatherv(&[1.0], &mut [], &[1], &[0]);
    refused.expect_err("nothing fits into nothing")
}

impl ModelMemory {
    fn lock(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock().expect("no rank panics with it")
    }

    /// Lets the other rank go on if the order says so; returns when it is this one's turn.
    fn step(&self, rank: usize) {
        let mut state = self.lock();
        state.pass_turn();
        self.changed.notify_all();
        drop(self.wait_for_turn(state, rank));
    }

    fn wait_for_turn<'w>(
        &self,
        mut state: MutexGuard<'w, ModelState>,
        rank: usize,
    ) -> MutexGuard<'w, ModelState> {
        while state.turn != rank {
            state = self.changed.wait(state).expect("no rank panics with it");
        }
        state
    }

    /// Meets the other rank.
    fn meet(&self, rank: usize) -> Result<(), CommError> {
        let mut state = self.lock();
        let number = state.collectives;
        if state.is_gone[1 - rank] {
            return Err(failure());
        }
        if state.waits[1 - rank] {
            state.collectives += 1;
            state.waits = [false; RANKS];
        } else {
            state.waits[rank] = true;
        }
        state.pass_turn();
        self.changed.notify_all();
        let state = self.wait_for_turn(state, rank);
        if state.collectives == number || self.fault == Some(ModelFault::Failure(number)) {
            return Err(failure());
        }
        Ok(())
    }

    fn leave(&self, rank: usize) {
        let mut state = self.lock();
        state.is_gone[rank] = true;
        // A rank that waits for this one gets an error.
        state.waits = [false; RANKS];
        state.pass_turn();
        self.changed.notify_all();
    }
}

/// A region of the world, as a rank has it.
struct ModelRegion<T> {
    world: Arc<ModelMemory>,
    rank: usize,
    number: usize,
    /// True in a read epoch, false in a write epoch; none after a fence that failed.
    is_readable: Option<bool>,
    /// The leader's elements before a fence.
    written: Vec<T>,
    /// The elements as this rank has found them.
    found: OnceLock<Vec<T>>,
}

impl<T: CommData> ModelRegion<T> {
    /// Makes the leader's elements visible.
    fn write_back(&self) {
        if self.rank == LEADER {
            let bytes = bytemuck::cast_slice(&self.written).to_vec();
            self.world.lock().memory[self.number] = bytes;
        }
    }
}

impl<T: CommData> SharedRegion<T> for ModelRegion<T> {
    fn as_slice(&self) -> &[T] {
        assert_eq!(self.is_readable, Some(true), "read in a read epoch");
        self.found.get_or_init(|| {
            self.world.step(self.rank);
            bytemuck::pod_collect_to_vec(&self.world.lock().memory[self.number])
        })
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        assert_eq!(self.is_readable, Some(false), "written in a write epoch");
        &mut self.written
    }

    fn fence(&mut self) -> Result<(), CommError> {
        let fault = self.world.fault;
        if fault != Some(ModelFault::LateData) {
            self.world.step(self.rank);
            self.write_back();
        }
        if fault != Some(ModelFault::FenceAlone) {
            self.is_readable = None;
            self.world.meet(self.rank)?;
        }
        self.is_readable = Some(true);
        if fault == Some(ModelFault::LateData) {
            self.world.step(self.rank);
            self.write_back();
        }
        Ok(())
    }
}

impl SharedMemoryProvider for ModelRank {
    type Region<T: CommData> = ModelRegion<T>;
    type Local = LocalBackend;

    fn create_shared_region<T: CommData>(
        &self,
        count: usize,
    ) -> Result<Self::Region<T>, CommError> {
        let mut state = self.world.lock();
        let number = state.created[self.rank];
        state.created[self.rank] += 1;
        if state.memory.len() == number {
            state.memory.push(vec![0; count * size_of::<T>()]);
        }
        drop(state);
        self.world.meet(self.rank)?;
        Ok(ModelRegion {
            world: Arc::clone(&self.world),
            rank: self.rank,
            number,
            is_readable: Some(false),
            written: vec![T::zeroed(); count],
            found: OnceLock::new(),
        })
    }

    fn create_partitioned_region<T: CommData>(
        &self,
        _: &[usize],
    ) -> Result<Self::Region<T>, CommError> {
        Err(failure())
    }

    fn split_local(&self) -> Result<Self::Local, CommError> {
        Err(failure())
    }

    fn is_leader(&self) -> bool {
        self.rank == LEADER
    }
}

/// Tables need no other collectives than those of regions.
impl Communicator for ModelRank {
    fn allgatherv<T: CommData>(
        &self,
        _: &[T],
        _: &mut [T],
        _: &[usize],
        _: &[usize],
    ) -> Result<(), CommError> {
        Err(failure())
    }

    fn gatherv<T: CommData>(
        &self,
        _: &[T],
        _: &mut [T],
        _: &[usize],
        _: &[usize],
        _: usize,
    ) -> Result<(), CommError> {
        Err(failure())
    }

    fn allreduce<T: Reducible>(&self, _: &[T], _: &mut [T], _: ReduceOp) -> Result<(), CommError> {
        Err(failure())
    }

    fn broadcast<T: CommData>(&self, _: &mut [T], _: usize) -> Result<(), CommError> {
        Err(failure())
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.world.meet(self.rank)
    }

    fn abort(&self, _: ErrorKind, _: &str) {}

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        RANKS
    }
}

/// The end of a rank.
#[derive(Debug, PartialEq)]
enum Publication {
    /// All steps were made, or the tables were right after a collective failed.
    Right { failed: bool },
    /// A table had other cuts than those in use.
    Wrong,
}

/// Updates the tables of a rank and publishes them, twice.
fn publish(comm: &ModelRank, records: &[f64]) -> Publication {
    let states = vec![
        StateColumns {
            incoming: 0,
            outgoing: 0,
        };
        STATES
    ];
    let layout = RecordLayout {
        passes: CUTS[1],
        width: record_width(STATES),
        levels: 1,
        given: 0,
    };
    let ranks = Ranks::new(comm);
    let mut tables = CutTables::<ModelRank>::new(1, STATES);
    for count in CUTS {
        let used: Vec<u32> = (0..count as u32).collect();
        let cuts = Cuts::new(&used, (layout, 1), (vec![(0, records)], &[0]), &states);
        let mut table = tables.take(0);
        table.update(&cuts);
        tables.put(0, table);
        // A draft, and its publication.
        for _ in 0..2 {
            let published = tables.publish(&ranks);
            if !has_cuts(&tables, &used) {
                return Publication::Wrong;
            }
            if published.is_err() {
                return Publication::Right { failed: true };
            }
        }
    }
    Publication::Right { failed: false }
}

/// True if a table has these cuts.
fn has_cuts(tables: &CutTables<ModelRank>, used: &[u32]) -> bool {
    let view = tables.view(0);
    used.iter().all(|&slot| {
        view.place(slot).is_some_and(|place| {
            let last = view.slope(place, STATES - 1);
            view.intercept(place) == f64::from(slot + 1) && last == -f64::from(slot + 1)
        })
    })
}

/// Tries every order of the ranks' steps; returns what the ranks came to in each.
fn outcomes(fault: Option<ModelFault>) -> Vec<[Publication; RANKS]> {
    let record = |slot: usize| {
        let mut record = vec![0.0; record_width(STATES)];
        (record[0], record[STATES]) = ((slot + 1) as f64, -((slot + 1) as f64));
        record
    };
    let records: Vec<f64> = (0..CUTS[1]).flat_map(record).collect();
    let (mut order, mut found) = (StepOrder::default(), Vec::new());
    loop {
        let world = Arc::new(ModelMemory {
            fault,
            ..ModelMemory::default()
        });
        world.lock().order = order;
        let run = |rank: usize| {
            let comm = ModelRank {
                world: Arc::clone(&world),
                rank,
            };
            drop(world.wait_for_turn(world.lock(), rank));
            let outcome = publish(&comm, &records);
            world.leave(rank);
            outcome
        };
        found.push(std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1));
            [run(0), other.join().expect("it does not panic")]
        }));
        assert!(found.len() < MOST_ORDERS, "too many orders");
        order = std::mem::take(&mut world.lock().order);
        if !order.advance() {
            return found;
        }
    }
}

#[test]
fn tables_are_right_in_every_order_of_two_ranks() {
    let found = outcomes(None);
    assert!(found.len() > 10, "{} orders", found.len());
    let right = [const { Publication::Right { failed: false } }; RANKS];
    assert!(found.iter().all(|outcome| *outcome == right));
}

#[test]
fn tables_stay_right_when_a_collective_fails() {
    // A draft and its fence, twice.
    for number in 0..4 {
        let found = outcomes(Some(ModelFault::Failure(number)));
        let right = [const { Publication::Right { failed: true } }; RANKS];
        assert!(found.iter().all(|outcome| *outcome == right), "{number}");
    }
}

#[test]
fn data_that_are_not_ordered_by_a_fence_are_found_out() {
    for fault in [ModelFault::FenceAlone, ModelFault::LateData] {
        let found = outcomes(Some(fault));
        let wrong = found
            .iter()
            .any(|ranks| ranks.contains(&Publication::Wrong));
        assert!(wrong, "{fault:?}");
    }
}
