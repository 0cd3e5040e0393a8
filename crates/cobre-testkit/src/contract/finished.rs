//! After a failure the communicator is finished: every later collective fails, with the same cause.

use cobre_comm::{Cause, CommError};

use super::World;
use crate::check::{failed, told};

/// The cause of a collective that failed on `rank`.
#[track_caller]
pub(super) fn cause_of(rank: usize, error: CommError) -> Cause {
    match error {
        CommError::CollectiveFailed { cause, .. } => cause,
        other => panic!(
            "rank {rank}: expected a failed collective, found: {}",
            told(&other)
        ),
    }
}

/// Calls every collective, twice, in the same order on every rank: each fails. Gives the cause,
/// which is the same every time.
pub(super) fn every_later_call_fails<C: World>(comm: &C) -> Cause {
    let first = cause_of(
        comm.rank(),
        failed(
            comm.rank(),
            format_args!("barrier after the failure"),
            comm.barrier(),
        ),
    );
    for _ in 0..2 {
        for (name, outcome) in later_calls(comm) {
            let what = format_args!("{name} after the failure");
            let cause = cause_of(comm.rank(), failed(comm.rank(), what, outcome));
            assert_eq!(
                cause,
                first,
                "rank {}: the cause that {name} gives after the failure",
                comm.rank()
            );
        }
    }
    first
}

fn later_calls<C: World>(comm: &C) -> [(&'static str, Result<(), CommError>); 8] {
    use cobre_comm::ReduceOp::Sum;
    let size = comm.size();
    let displs: Vec<usize> = (0..size).collect();
    let counts = vec![1; size];
    let gathered = comm.allgatherv(&[1u8], &mut vec![0; size], &counts, &displs);
    let rooted = comm.gatherv(&[1u8], &mut vec![0; size], &counts, &displs, 0);
    [
        ("allgatherv", gathered),
        ("gatherv", rooted),
        ("allreduce", comm.allreduce(&[1.0], &mut [0.0], Sum)),
        ("broadcast", comm.broadcast(&mut [1u16], 0)),
        ("barrier", comm.barrier()),
        (
            "create_shared_region",
            comm.create_shared_region::<u8>(1).map(drop),
        ),
        (
            "create_partitioned_region",
            comm.create_partitioned_region::<u8>(&counts).map(drop),
        ),
        ("split_local", comm.split_local().map(drop)),
    ]
}

/// Every collective still works: an argument that was refused in a world of one harmed nobody.
pub(super) fn nothing_is_finished<C: World>(comm: &C) {
    for (name, outcome) in later_calls(comm) {
        if let Err(error) = outcome {
            panic!("{name} after a refused argument, alone: {}", told(&error));
        }
    }
}
