//! A rank gives up: everybody's pending and later collectives fail, naming that rank and its
//! reason. Each case ends its communicator, so each is a contract of its own.

use std::thread;
use std::time::Duration;

use cobre_comm::{Cause, CommError, ErrorKind, ReduceOp, SharedRegion};

use super::World;
use super::finished::{cause_of, every_later_call_fails};
use super::region::parted;
use crate::budget::Budget;
use crate::check::{failed, succeeded, told};
use crate::random::mix;

const KIND: ErrorKind = ErrorKind::Io;
const REASON: &str = "the disk is full — nothing can be written";

/// While the others wait in a barrier.
pub fn barrier<C: World>(comm: &C, budget: &Budget) {
    pending(comm, budget, |_| comm.barrier());
}

/// While the others wait in a reduction.
pub fn allreduce<C: World>(comm: &C, budget: &Budget) {
    pending(comm, budget, |_| {
        comm.allreduce(&[1.0], &mut [0.0], ReduceOp::Sum)
    });
}

/// While the others wait in a reduction of a mebibyte.
pub fn long_allreduce<C: World>(comm: &C, budget: &Budget) {
    pending(comm, budget, |_| {
        comm.allreduce(&vec![1.0; 131_073], &mut vec![0.0; 131_073], ReduceOp::Sum)
    });
}

/// While the others wait for its elements.
pub fn broadcast<C: World>(comm: &C, budget: &Budget) {
    pending(comm, budget, |odd| comm.broadcast(&mut [1u8; 100], odd));
}

/// While the others wait for its block.
pub fn allgatherv<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    pending(comm, budget, |_| {
        let displs: Vec<usize> = (0..size).map(|sender| sender * 9000).collect();
        let mut recv = vec![0; size * 9000];
        comm.allgatherv(&vec![1u64; 9000], &mut recv, &vec![9000; size], &displs)
    });
}

/// While the others wait for it at a root: the first, which may be itself.
pub fn gatherv<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    pending(comm, budget, |_| {
        let displs: Vec<usize> = (0..size).map(|sender| sender * 9000).collect();
        let mut recv = vec![0; size * 9000];
        comm.gatherv(&vec![1u64; 9000], &mut recv, &vec![9000; size], &displs, 0)
    });
}

/// While the others wait at a fence.
pub fn fence<C: World>(comm: &C, budget: &Budget) {
    let mut region = parted::<u64, C>(comm, &vec![4; comm.size()]);
    pending(comm, budget, |_| region.fence());
}

/// While the others wait for a region.
pub fn create_region<C: World>(comm: &C, budget: &Budget) {
    pending(comm, budget, |_| {
        comm.create_shared_region::<u8>(64).map(drop)
    });
}

/// While the others wait for the nodes' communicators.
pub fn split_local<C: World>(comm: &C, budget: &Budget) {
    pending(comm, budget, |_| comm.split_local().map(drop));
}

/// While nobody waits: the others learn it from their next call, and so does the rank itself. With
/// one rank, it is that rank alone.
pub fn later_calls<C: World>(comm: &C, budget: &Budget) {
    let (rank, odd) = (comm.rank(), budget.odd_rank(comm.size()));
    let counters = budget.counters(comm, "aborted");
    succeeded(
        rank,
        format_args!("barrier before the abort"),
        comm.barrier(),
    );
    if rank == odd {
        comm.abort(KIND, REASON);
        counters.post(1);
    } else {
        counters.wait_for(odd, 1);
    }
    let later = every_later_call_fails(comm);
    tells_who_and_why(rank, odd, &later);
    same_record(comm, budget, &later);
}

/// The odd rank aborts when all others are in `call`, or about to enter it.
fn pending<C: World>(comm: &C, budget: &Budget, call: impl FnOnce(usize) -> Result<(), CommError>) {
    let (rank, odd) = (comm.rank(), budget.odd_rank(comm.size()));
    let counters = budget.counters(comm, "pending");
    succeeded(
        rank,
        format_args!("barrier before the abort"),
        comm.barrier(),
    );
    let mut pending = None;
    if rank == odd {
        counters.wait_for_others(1);
        thread::sleep(Duration::from_millis(20));
        comm.abort(KIND, REASON);
    } else {
        counters.post(1);
        let what = format_args!("a call pending when rank {odd} gives up");
        let cause = cause_of(rank, failed(rank, what, call(odd)));
        tells_who_and_why(rank, odd, &cause);
        pending = Some(cause);
    }
    let later = every_later_call_fails(comm);
    tells_who_and_why(rank, odd, &later);
    if let Some(cause) = pending {
        assert_eq!(cause, later, "rank {rank}: the causes then and later");
    }
    same_record(comm, budget, &later);
}

fn tells_who_and_why(rank: usize, odd: usize, cause: &Cause) {
    let told_so = matches!(cause, Cause::Aborted { rank, kind, reason, .. }
        if *rank == odd && *kind == KIND && reason == REASON);
    assert!(
        told_so,
        "rank {rank}: expected that rank {odd} aborted with {REASON:?}, found: {}",
        told(cause)
    );
}

/// Every rank tells the same story, host and process included.
fn same_record<C: World>(comm: &C, budget: &Budget, cause: &Cause) {
    let counters = budget.counters(comm, "record");
    let text = told(cause);
    let record = text
        .bytes()
        .fold(1, |hash, byte| mix(hash ^ u64::from(byte)))
        | 1;
    counters.post(record);
    counters.wait_for_others(1);
    for other in 0..comm.size() {
        assert_eq!(
            counters.look(other),
            record,
            "rank {}: rank {other} has another record than this: {text}",
            comm.rank()
        );
    }
}
