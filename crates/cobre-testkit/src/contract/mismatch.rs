//! Ranks that make different calls all get an error that shows both sides, and nothing goes on from
//! there. One rank, which the seed picks, is the odd one out. Each case ends its communicator, so
//! each is a contract of its own.

use cobre_comm::{Cause, CommError, ReduceOp, SharedRegion};

use super::World;
use super::finished::{cause_of, every_later_call_fails};
use super::region::{led, parted};
use crate::budget::Budget;
use crate::check::{failed, same_bits, succeeded, told};

/// A barrier among reductions.
pub fn collective<C: World>(comm: &C, budget: &Budget) {
    disagree(
        comm,
        budget,
        ["allreduce(sum) of 1 f64", "barrier"],
        |odd| {
            if odd {
                comm.barrier()
            } else {
                comm.allreduce(&[1.0], &mut [0.0], ReduceOp::Sum)
            }
        },
    );
}

/// A gather among broadcasts, both large.
pub fn large_collective<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    disagree(
        comm,
        budget,
        ["broadcast of 200000 u64", "allgatherv"],
        |odd| {
            if odd {
                let counts = vec![200_000; size];
                let displs: Vec<usize> = (0..size).map(|sender| sender * 200_000).collect();
                let mut recv = vec![0u64; size * 200_000];
                comm.allgatherv(&vec![1; 200_000], &mut recv, &counts, &displs)
            } else {
                comm.broadcast(&mut vec![1u64; 200_000], 0)
            }
        },
    );
}

/// One element more to reduce.
pub fn reduce_length<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["of 4 f64", "of 5 f64"], |odd| {
        let length = 4 + usize::from(odd);
        comm.allreduce(&vec![1.0; length], &mut vec![0.0; length], ReduceOp::Sum)
    });
}

/// One element less to broadcast; the rank with less is the root when the seed makes it so.
pub fn broadcast_length<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["of 4 u8", "of 3 u8"], |odd| {
        comm.broadcast(&mut vec![1u8; 4 - usize::from(odd)], 0)
    });
}

/// The same number of elements in all, shared out differently.
pub fn counts<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    disagree(comm, budget, ["allgatherv", "allgatherv"], |odd| {
        let mut counts = vec![2; size];
        (counts[0], counts[size - 1]) = if odd { (1, 3) } else { (3, 1) };
        let displs: Vec<usize> = (0..size)
            .map(|sender| counts[..sender].iter().sum())
            .collect();
        comm.allgatherv(
            &vec![1u32; counts[rank]],
            &mut vec![0; 2 * size],
            &counts,
            &displs,
        )
    });
}

/// Gathers at two roots.
pub fn gather_root<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["to root 0", "to root 1"], |odd| {
        rooted(comm, &vec![1; comm.size()], usize::from(odd))
    });
}

/// The same number of elements at one root, shared out differently; large enough to go past the check's own message.
pub fn gather_counts<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    disagree(comm, budget, ["gatherv", "gatherv"], |odd| {
        let mut counts = vec![20_000; size];
        (counts[0], counts[size - 1]) = if odd {
            (10_000, 30_000)
        } else {
            (30_000, 10_000)
        };
        rooted(comm, &counts, size - 1)
    });
}

/// A gather at a root among gathers everywhere.
pub fn gathers<C: World>(comm: &C, budget: &Budget) {
    let counts = vec![9000; comm.size()];
    disagree(comm, budget, ["allgatherv", "to root 0"], |odd| {
        if odd {
            return rooted(comm, &counts, 0);
        }
        let displs: Vec<usize> = (0..counts.len()).map(|sender| sender * 9000).collect();
        let mut recv = vec![0; 9000 * counts.len()];
        comm.allgatherv(&vec![1u32; 9000], &mut recv, &counts, &displs)
    });
}

/// A gather of packed blocks at `root`, with room on every rank.
fn rooted<C: World>(comm: &C, counts: &[usize], root: usize) -> Result<(), CommError> {
    let displs: Vec<usize> = (0..counts.len())
        .map(|sender| counts[..sender].iter().sum())
        .collect();
    let mut recv = vec![0; counts.iter().sum()];
    comm.gatherv(
        &vec![1u32; counts[comm.rank()]],
        &mut recv,
        counts,
        &displs,
        root,
    )
}

/// Elements of the same size and another type.
pub fn element_type<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["of 2 f64", "of 2 u64"], |odd| {
        if odd {
            comm.broadcast(&mut [1u64; 2], 0)
        } else {
            comm.broadcast(&mut [1f64; 2], 0)
        }
    });
}

/// A minimum among maxima.
pub fn operator<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["allreduce(max)", "allreduce(min)"], |odd| {
        let op = if odd { ReduceOp::Min } else { ReduceOp::Max };
        comm.allreduce(&[1i32], &mut [0], op)
    });
}

/// Two roots.
pub fn root<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["from root 0", "from root 1"], |odd| {
        comm.broadcast(&mut [1u32; 3], usize::from(odd))
    });
}

/// Fences of different regions. The region is poisoned: it can be neither read nor written again.
pub fn fence<C: World>(comm: &C, budget: &Budget) {
    let rank = comm.rank();
    let mut one = led::<u8, C>(comm, 2);
    let mut other = led::<u8, C>(comm, 2);
    disagree(
        comm,
        budget,
        ["fence on region", "fence on region"],
        |odd| {
            if odd { other.fence() } else { one.fence() }
        },
    );
    let fenced = if budget.odd_rank(comm.size()) == rank {
        &mut other
    } else {
        &mut one
    };
    failed(
        rank,
        format_args!("second fence of a poisoned region"),
        fenced.fence(),
    );
    super::panics(rank, "reading a poisoned region", || {
        fenced.as_slice().len()
    });
    super::panics(rank, "writing a poisoned region", || {
        fenced.as_mut_slice().len()
    });
}

/// A barrier where the others fence.
pub fn fence_and_barrier<C: World>(comm: &C, budget: &Budget) {
    let mut region = parted::<u8, C>(comm, &vec![1; comm.size()]);
    disagree(comm, budget, ["fence on region", "barrier"], |odd| {
        if odd { comm.barrier() } else { region.fence() }
    });
}

/// Leader regions of different length.
pub fn region_length<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["of 8 f32", "of 9 f32"], |odd| {
        comm.create_shared_region::<f32>(8 + usize::from(odd))
            .map(drop)
    });
}

/// Partitioned regions of one length, shared out differently.
pub fn region_counts<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let kind = "create_partitioned_region";
    disagree(comm, budget, [kind, kind], |odd| {
        let mut counts = vec![2; size];
        (counts[0], counts[size - 1]) = if odd { (1, 3) } else { (3, 1) };
        comm.create_partitioned_region::<f32>(&counts).map(drop)
    });
}

/// Regions of different type.
pub fn region_type<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["of 8 f32", "of 8 i32"], |odd| {
        if odd {
            comm.create_shared_region::<i32>(8).map(drop)
        } else {
            comm.create_shared_region::<f32>(8).map(drop)
        }
    });
}

/// A split where the others meet.
pub fn split<C: World>(comm: &C, budget: &Budget) {
    disagree(comm, budget, ["barrier", "split_local"], |odd| {
        if odd {
            comm.split_local().map(drop)
        } else {
            comm.barrier()
        }
    });
}

/// A region in a read epoch can still be read: nobody can get past its fence to write it.
pub fn regions_stay_readable<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let mut region = parted::<usize, C>(comm, &vec![1; size]);
    region.as_mut_slice().fill(rank + 1);
    succeeded(rank, format_args!("fence"), region.fence());
    root(comm, budget);
    let expected: Vec<usize> = (1..=size).collect();
    let what = format_args!("region read after a failure elsewhere");
    same_bits(rank, what, region.as_slice(), &expected);
    failed(
        rank,
        format_args!("fence after the failure"),
        region.fence(),
    );
}

/// Makes a call that differs on the odd rank, and requires that every rank learns it, from then on
/// for ever. `sides` are parts of what the others and the odd rank are told to have called.
fn disagree<C: World>(
    comm: &C,
    budget: &Budget,
    sides: [&str; 2],
    call: impl FnOnce(bool) -> Result<(), CommError>,
) {
    let (rank, odd) = (comm.rank(), budget.odd_rank(comm.size()));
    succeeded(
        rank,
        format_args!("barrier before the mismatch"),
        comm.barrier(),
    );
    let outcome = call(rank == odd);
    let error = failed(
        rank,
        format_args!("a call that rank {odd} makes otherwise"),
        outcome,
    );
    let cause = cause_of(rank, error);
    shows_both_sides(rank, odd, &cause, sides);
    let later = every_later_call_fails(comm);
    assert_eq!(later, cause, "rank {rank}: the cause of later failures");
}

/// One side is the odd rank's call, the other that of another rank, and they differ.
pub(super) fn shows_both_sides(
    rank: usize,
    odd: usize,
    cause: &Cause,
    [usual, unusual]: [&str; 2],
) {
    let Some([left, right]) = sides_of(cause) else {
        panic!("rank {rank}: expected a mismatch, found: {}", told(cause));
    };
    let (odd_call, usual_call) = if left.0 == odd {
        (&left, &right)
    } else {
        (&right, &left)
    };
    assert!(
        odd_call.0 == odd && usual_call.0 != odd,
        "rank {rank}: expected rank {odd} against another, found: {cause}"
    );
    assert!(
        odd_call.1.contains(unusual) && usual_call.1.contains(usual),
        "rank {rank}: expected {unusual:?} on rank {odd} against {usual:?}, found: {cause}"
    );
    assert_ne!(left.1, right.1, "rank {rank}: two sides that read the same");
}

/// The two ranks and their calls, as the error tells them.
fn sides_of(cause: &Cause) -> Option<[(usize, String); 2]> {
    match cause {
        Cause::Mismatch { left, right } => {
            Some([left, right].map(|side| (side.rank, side.signature.to_string())))
        }
        #[cfg(test)]
        other => crate::reference::mismatch_sides(other),
        #[cfg(not(test))]
        _ => None,
    }
}
