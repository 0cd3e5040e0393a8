//! One collective at a time: a second thread gets through before or after the first, or is told
//! that the communicator is busy; nothing is ever mixed up, and nothing is harmed.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cobre_comm::{Cause, CommError, Communicator, ReduceOp, SharedRegion};

use super::World;
use super::region::{fence, parted};
use crate::budget::Budget;
use crate::check::{same_bits, succeeded, told};
use crate::counters::RankCounters;
use crate::number::numbers;
use crate::oracle;

/// Time in which a busy communicator must say so; it has nobody to ask.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Two threads make the same call, each again and again until it got through: whichever comes
/// first, all ranks make the same calls, so every result is known.
pub fn never_mixed_up<C: Communicator>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    for round in 0..budget.share(1000).max(20) {
        let length = [1, 3, 100, 2000][round % 4];
        let sent: Vec<Vec<f64>> = (0..size as u64)
            .map(|sender| numbers(&[budget.seed, round as u64, sender], length))
            .collect();
        let expected = oracle::reduce(ReduceOp::Sum, &sent);
        let work = || {
            let mut recv = vec![0.0; length];
            let call = || comm.allreduce(&sent[rank], &mut recv, ReduceOp::Sum);
            until_not_busy(rank, call);
            let what = format_args!("allreduce by one of two threads in round {round}");
            same_bits(rank, what, &recv, &expected);
        };
        thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
    }
    succeeded(rank, format_args!("barrier afterwards"), comm.barrier());
}

fn until_not_busy(rank: usize, mut call: impl FnMut() -> Result<(), CommError>) {
    loop {
        match call() {
            Err(CommError::CollectiveFailed {
                cause: Cause::Busy, ..
            }) => thread::yield_now(),
            outcome => return succeeded(rank, format_args!("a call on two threads"), outcome),
        }
    }
}

/// While one thread waits for the other ranks, a second one is turned away, from every collective,
/// and the first gets through as if nothing had been. Each rank in turn.
pub fn second_is_turned_away<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let counters = budget.counters(comm, "threads");
    let mut region = parted::<usize, C>(comm, &vec![1; size]);
    for turn in 0..size {
        region.as_mut_slice().fill(turn);
        if rank == turn {
            try_two_at_once(comm, &mut region, &counters);
        } else {
            counters.wait_for(turn, 1);
            succeeded(rank, format_args!("barrier of rank {turn}"), comm.barrier());
        }
        let mut ranks = [0usize];
        let outcome = comm.allreduce(&[1], &mut ranks, ReduceOp::Sum);
        succeeded(rank, format_args!("allreduce after a busy call"), outcome);
        same_bits(rank, format_args!("number of ranks"), &ranks, &[size]);
        fence(rank, &mut region);
        let what = format_args!("region after a busy fence");
        same_bits(rank, what, region.as_slice(), &vec![turn; size]);
        fence(rank, &mut region);
    }
}

/// Two threads enter a barrier that the other ranks keep away from until this rank posts: one of
/// them stays inside, so the other must come back, busy.
fn try_two_at_once<C: World>(comm: &C, region: &mut C::Region<usize>, counters: &RankCounters) {
    let rank = comm.rank();
    thread::scope(|scope| {
        let (sender, outcomes) = mpsc::channel();
        for sender in [sender.clone(), sender] {
            scope.spawn(move || sender.send(comm.barrier()));
        }
        let turned_away = outcomes.recv_timeout(BUSY_TIMEOUT);
        if let Ok(Err(error)) = &turned_away {
            busy(rank, "barrier", Err(error.clone()));
            every_call_is_busy(comm, region);
        }
        // Whatever happened, let the others in first, so that nobody waits for ever.
        counters.post(1);
        let turned_away = turned_away.unwrap_or_else(|_| {
            panic!("rank {rank}: two threads in one barrier: expected that one comes back, busy")
        });
        busy(rank, "barrier", turned_away);
        let through = outcomes.recv().expect("the first thread reports");
        succeeded(rank, format_args!("barrier of the first thread"), through);
    });
}

fn every_call_is_busy<C: World>(comm: &C, region: &mut C::Region<usize>) {
    let (rank, size) = (comm.rank(), comm.size());
    let displs: Vec<usize> = (0..size).collect();
    let counts = vec![1; size];
    let gathered = comm.allgatherv(&[1u8], &mut vec![0; size], &counts, &displs);
    busy(rank, "allgatherv", gathered);
    let rooted = comm.gatherv(&[1u8], &mut vec![0; size], &counts, &displs, 0);
    busy(rank, "gatherv", rooted);
    let reduced = comm.allreduce(&[1.0], &mut [0.0], ReduceOp::Sum);
    busy(rank, "allreduce", reduced);
    busy(rank, "broadcast", comm.broadcast(&mut [1u16], 0));
    let created = comm.create_shared_region::<u8>(1).map(drop);
    busy(rank, "create_shared_region", created);
    busy(rank, "fence", region.fence());
    busy(rank, "split_local", comm.split_local().map(drop));
}

fn busy(rank: usize, name: &str, outcome: Result<(), CommError>) {
    match outcome {
        Err(CommError::CollectiveFailed {
            cause: Cause::Busy, ..
        }) => {}
        Ok(()) => panic!("rank {rank}: second {name}: expected busy, found success"),
        Err(error) => panic!(
            "rank {rank}: second {name}: expected busy: {}",
            told(&error)
        ),
    }
}
