//! A job in a simulation: every rank starts, runs the program of the plan, fails or finishes, and leaves.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::network::address_of;
use super::plan::{Act, JobPlan, PlannedCall};
use super::system::{self, PlantedFault};
use super::world::{FaultRecord, PlannedPanic, Process, SimulatedWorld, WorldEnd, current};
use crate::backends::tcp::TcpBackend;
use crate::communicator::{Communicator, ReduceOp};
use crate::env::{DEFAULT_STALL, TcpConfig, TcpProtection, TcpSharedMemory};
use crate::error::{Cause, CommError};
use crate::error_kind::ErrorKind;
use crate::region::{SharedMemoryProvider, SharedRegion};

/// Calls that a rank makes after one has failed.
const AFTERWARDS: usize = 2;
/// The port of rank 0.
const PORT: u16 = 29_500;
/// The reason that a rank gives up with.
pub(super) const REASON: &str = "a plan says so";

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallResult {
    Right,
    Wrong(String),
    Failed(Box<Cause>),
    Refused(String),
}

/// The calls of a rank, and how they ended.
#[derive(Debug, Clone, Default)]
pub(super) struct RankRecord {
    /// The time at which it was there with all others, or why it was not.
    pub(super) started: Option<Result<Duration, String>>,
    /// The topology that it takes for small messages, from then on.
    pub(super) topology: Option<String>,
    /// Each call: when it began, when it ended, and how.
    pub(super) calls: Vec<(Duration, Duration, CallResult)>,
    /// Each collective of these calls, which may make several: when it began and ended.
    pub(super) waits: Vec<(Duration, Duration)>,
    /// The call that it is in: its number and since when.
    pub(super) pending: Option<(usize, Duration)>,
    pub(super) acted: Option<Duration>,
    pub(super) left: Option<Duration>,
}

/// The outcome of a job.
#[derive(Debug)]
pub(super) struct JobOutcome {
    pub(super) end: WorldEnd,
    pub(super) ranks: Vec<RankRecord>,
    pub(super) processes: Vec<Process>,
    pub(super) happened: Vec<FaultRecord>,
    pub(super) reports: Vec<(Duration, usize, String)>,
    pub(super) panics: Vec<(usize, String)>,
    /// Sockets that are open at the end, by rank.
    pub(super) open: Vec<usize>,
    pub(super) steps: u64,
    pub(super) now: Duration,
}

/// Runs the job of a plan to its end.
pub(super) fn run(plan: &JobPlan, secret: &Path, mutant: Option<PlantedFault>) -> JobOutcome {
    let world = SimulatedWorld::new(plan, mutant);
    let plan = Arc::new(plan.clone());
    let records: Vec<Arc<Mutex<RankRecord>>> = (0..plan.size).map(|_| Arc::default()).collect();
    for (rank, record) in records.iter().enumerate() {
        let (plan, record, config) = (plan.clone(), record.clone(), config(&plan, rank, secret));
        let number = rank;
        let rank = Rank {
            plan,
            number,
            record,
        };
        world.spawn(number, move || rank.live(&config));
    }
    let state = world.run();
    let read = |record: &Arc<Mutex<RankRecord>>| {
        let record = record.lock().unwrap_or_else(PoisonError::into_inner);
        record.clone()
    };
    JobOutcome {
        end: state.end.clone().unwrap_or(WorldEnd::Finished),
        ranks: records.iter().map(read).collect(),
        processes: state.processes.clone(),
        happened: state.happened.clone(),
        reports: state.reports.clone(),
        panics: state.panics.clone(),
        open: state.open_at_end.clone(),
        steps: state.steps,
        now: state.now,
    }
}

fn config(plan: &JobPlan, rank: usize, secret: &Path) -> TcpConfig {
    TcpConfig {
        rank,
        size: plan.size,
        coordinator: Some(address_of(0).to_string()),
        port: PORT,
        bind: Some(address_of(0)),
        secret_file: Some(secret.to_owned()),
        runtime_directory: None,
        protection: TcpProtection::Auto,
        topology: plan.topology,
        shared_memory: if plan.shares_memory {
            TcpSharedMemory::Auto
        } else {
            TcpSharedMemory::Off
        },
        host: Some(format!("host-{}", plan.hosts[rank])),
        job: None,
        listener: None,
        secret_descriptor: None,
        timeout: plan.timeout,
        stall: DEFAULT_STALL,
    }
}

struct Rank {
    plan: Arc<JobPlan>,
    number: usize,
    record: Arc<Mutex<RankRecord>>,
}

fn now() -> Duration {
    current().map_or(Duration::ZERO, |(world, _)| world.state().now)
}

impl Rank {
    fn note(&self, change: impl FnOnce(&mut RankRecord)) {
        let mut record = self.record.lock();
        change(
            record
                .as_mut()
                .unwrap_or_else(|poisoned| poisoned.get_mut()),
        );
    }

    fn live(&self, config: &TcpConfig) {
        match TcpBackend::connect(config) {
            Err(error) => self.note(|record| record.started = Some(Err(error.to_string()))),
            Ok(comm) => {
                self.note(|record| {
                    record.started = Some(Ok(now()));
                    record.topology = Some(comm.topology());
                });
                self.compute(&comm);
                drop(comm);
                self.note(|record| record.left = Some(now()));
            }
        }
    }

    fn compute(&self, comm: &TcpBackend) {
        let mut failures = 0;
        for (number, call) in self.plan.calls.iter().enumerate() {
            for &(before, rank, time) in &self.plan.pauses {
                if (before, rank) == (number, self.number) && failures == 0 {
                    system::sleep(time);
                }
            }
            let mut call = *call;
            if let Some((before, rank, act)) = self.plan.act
                && (before, rank) == (number, self.number)
                && failures == 0
            {
                self.note(|record| record.acted = Some(now()));
                match act {
                    Act::OtherCall => call = other_than(call),
                    Act::Abort => comm.abort(ErrorKind::Program, REASON),
                    Act::Panic => resume_unwind(Box::new(PlannedPanic)),
                    Act::Leave => return,
                }
            }
            if !self.make(comm, number, call) {
                failures += 1;
            }
            if failures > AFTERWARDS {
                return;
            }
        }
        // A last call that finds out what it can.
        if failures > 0 {
            self.make(comm, self.plan.calls.len(), PlannedCall::Barrier);
        }
    }

    /// Makes a call; true if it succeeds.
    fn make(&self, comm: &TcpBackend, number: usize, call: PlannedCall) -> bool {
        let begin = now();
        self.note(|record| record.pending = Some((number, begin)));
        let mut times = CollectiveTimes(vec![begin]);
        let outcome = call_and_compare(comm, number, call, &mut times);
        times.note_end();
        let result = match outcome {
            Ok(None) => CallResult::Right,
            Ok(Some(difference)) => CallResult::Wrong(difference),
            Err(CommError::CollectiveFailed { cause, .. }) => CallResult::Failed(Box::new(cause)),
            Err(error) => CallResult::Refused(error.to_string()),
        };
        let is_right = result == CallResult::Right;
        self.note(|record| {
            record.pending = None;
            let waits = times.0.windows(2).map(|pair| (pair[0], pair[1]));
            record.waits.extend(waits);
            record.calls.push((begin, now(), result));
        });
        is_right
    }
}

/// The beginning of a call, and the ends of its collectives.
struct CollectiveTimes(Vec<Duration>);

impl CollectiveTimes {
    fn note_end(&mut self) {
        self.0.push(now());
    }
}

/// A call that does not fit `call`.
fn other_than(call: PlannedCall) -> PlannedCall {
    match call {
        PlannedCall::Barrier => PlannedCall::Allreduce(3),
        PlannedCall::Allreduce(length) => PlannedCall::Allreduce(length + 1),
        _ => PlannedCall::Barrier,
    }
}

/// The element of a rank's vector in a call: whole numbers, so that sums are exact.
fn value(number: usize, rank: usize, index: usize) -> f64 {
    ((number * 31 + rank * 7 + index) % 1000) as f64
}

fn vector(number: usize, rank: usize, length: usize) -> Vec<f64> {
    (0..length).map(|at| value(number, rank, at)).collect()
}

fn differs(found: &[f64], right: impl Iterator<Item = f64>) -> Option<String> {
    let mut pairs = found.iter().zip(right).enumerate();
    let (at, (found, right)) = pairs.find(|(_, (found, right))| *found != right)?;
    Some(format!("element {at} is {found}, not {right}"))
}

/// Makes the call and compares what it gives with the serial result.
fn call_and_compare(
    comm: &TcpBackend,
    number: usize,
    call: PlannedCall,
    times: &mut CollectiveTimes,
) -> Result<Option<String>, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    // Blocks of different lengths.
    let block = |length: usize, rank: usize| if length == 0 { rank % 2 } else { length + rank };
    match call {
        PlannedCall::Barrier => comm.barrier().map(|()| None),
        PlannedCall::Allreduce(length) => {
            let mut sum = vec![0.0; length];
            comm.allreduce(&vector(number, rank, length), &mut sum, ReduceOp::Sum)?;
            let right = |at| (0..size).map(|rank| value(number, rank, at)).sum::<f64>();
            Ok(differs(&sum, (0..length).map(right)))
        }
        PlannedCall::Broadcast { root, length } => {
            let mut data = vector(number, rank, length);
            comm.broadcast(&mut data, root)?;
            Ok(differs(&data, vector(number, root, length).into_iter()))
        }
        PlannedCall::Allgatherv(length) | PlannedCall::Gatherv { length, .. } => {
            let counts: Vec<usize> = (0..size).map(|rank| block(length, rank)).collect();
            let displs: Vec<usize> = (0..size).map(|r| counts[..r].iter().sum()).collect();
            let send = vector(number, rank, counts[rank]);
            let mut all = vec![0.0; counts.iter().sum()];
            if let PlannedCall::Gatherv { root, .. } = call {
                comm.gatherv(&send, &mut all, &counts, &displs, root)?;
                if rank != root {
                    return Ok(None);
                }
            } else {
                comm.allgatherv(&send, &mut all, &counts, &displs)?;
            }
            let right = (0..size).flat_map(|rank| vector(number, rank, counts[rank]));
            Ok(differs(&all, right))
        }
        PlannedCall::Region(length) => {
            let counts: Vec<usize> = (0..size).map(|rank| block(length, rank)).collect();
            let region = comm.create_partitioned_region::<f64>(&counts)?;
            times.note_end();
            let own = vector(number, rank, counts[rank]);
            let right = (0..size).flat_map(|rank| vector(number, rank, counts[rank]));
            write_and_read(region, &own, right, times)
        }
        PlannedCall::LeaderRegion(length) => {
            let region = comm.create_shared_region::<f64>(length)?;
            times.note_end();
            let right = vector(number, 0, length);
            let own = if comm.is_leader() { &right[..] } else { &[] };
            write_and_read(region, own, right.iter().copied(), times)
        }
        PlannedCall::Split => split_and_sum(comm, times),
    }
}

fn split_and_sum(
    comm: &TcpBackend,
    times: &mut CollectiveTimes,
) -> Result<Option<String>, CommError> {
    let host = comm.split_local()?;
    times.note_end();
    let mut sum = [0.0];
    host.allreduce(&[1.0], &mut sum, ReduceOp::Sum)?;
    Ok(differs(&sum, std::iter::once(host.size() as f64)))
}

/// Writes this rank's part of a region, and compares the whole with what it should be.
fn write_and_read(
    mut region: impl SharedRegion<f64>,
    own: &[f64],
    right: impl Iterator<Item = f64>,
    times: &mut CollectiveTimes,
) -> Result<Option<String>, CommError> {
    region.as_mut_slice().copy_from_slice(own);
    region.fence()?;
    times.note_end();
    let difference = differs(region.as_slice(), right);
    region.fence()?;
    Ok(difference)
}
