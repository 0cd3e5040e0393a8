//! Arguments that one rank refuses: that rank gets the argument's error, the others a mismatch, and
//! the communicator is finished. In a world of one there is nobody to tell, and life goes on.

use cobre_comm::{BufferProblem, Collective, CommError};

use super::World;
use super::finished::{cause_of, every_later_call_fails, nothing_is_finished};
use super::mismatch::shows_both_sides;
use crate::budget::Budget;
use crate::check::failed;

/// A gather with room for one element too few.
pub fn short_recv<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let expected = gather_problem(BufferProblem::BlockOutside {
        rank: size - 1,
        displacement: size - 1,
        count: 1,
        len: size - 1,
    });
    gather(comm, budget, &expected, |arguments| arguments.room -= 1);
}

/// A block whose end is past the last address.
pub fn block_past_all_addresses<C: World>(comm: &C, budget: &Budget) {
    let expected = gather_problem(BufferProblem::BlockOutside {
        rank: 0,
        displacement: usize::MAX,
        count: 1,
        len: comm.size(),
    });
    gather(comm, budget, &expected, |arguments| {
        arguments.displs[0] = usize::MAX;
    });
}

/// Two blocks on one element.
pub fn overlapping_blocks<C: World>(comm: &C, budget: &Budget) {
    let expected = gather_problem(BufferProblem::BlocksOverlap {
        first: 0,
        second: comm.size() - 1,
    });
    gather(comm, budget, &expected, |arguments| {
        arguments.displs[0] = arguments.displs[arguments.displs.len() - 1];
    });
}

/// More to send than the counts say.
pub fn send_length<C: World>(comm: &C, budget: &Budget) {
    let expected = gather_problem(BufferProblem::Length {
        argument: "send",
        expected: 1,
        actual: 2,
    });
    gather(comm, budget, &expected, |arguments| arguments.send.push(9));
}

/// One count too many.
pub fn counts_length<C: World>(comm: &C, budget: &Budget) {
    let expected = gather_problem(BufferProblem::Length {
        argument: "counts",
        expected: comm.size(),
        actual: comm.size() + 1,
    });
    gather(comm, budget, &expected, |arguments| {
        arguments.counts.push(0);
    });
}

/// One displacement too few.
pub fn displs_length<C: World>(comm: &C, budget: &Budget) {
    let expected = gather_problem(BufferProblem::Length {
        argument: "displs",
        expected: comm.size(),
        actual: comm.size() - 1,
    });
    gather(comm, budget, &expected, |arguments| {
        arguments.displs.pop();
    });
}

/// A result that does not fit what is sent.
pub fn reduce_lengths<C: World>(comm: &C, budget: &Budget) {
    let expected = CommError::InvalidBufferSize {
        operation: Collective::Allreduce,
        problem: BufferProblem::Length {
            argument: "recv",
            expected: 3,
            actual: 4,
        },
    };
    refuse(comm, budget, &expected, |odd| {
        let mut recv = vec![0.0; 3 + usize::from(odd)];
        comm.allreduce(&[1.0; 3], &mut recv, cobre_comm::ReduceOp::Sum)
    });
}

/// The first rank that does not exist.
pub fn root<C: World>(comm: &C, budget: &Budget) {
    no_such_root(comm, budget, comm.size());
}

/// The largest number as a rank.
pub fn largest_root<C: World>(comm: &C, budget: &Budget) {
    no_such_root(comm, budget, usize::MAX);
}

fn no_such_root<C: World>(comm: &C, budget: &Budget, root: usize) {
    let expected = CommError::InvalidRoot {
        operation: Collective::Broadcast,
        root,
        size: comm.size(),
    };
    refuse(comm, budget, &expected, |odd| {
        comm.broadcast(&mut [1u8; 3], if odd { root } else { 0 })
    });
}

/// A gather at a rank that does not exist.
pub fn gather_root<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let expected = CommError::InvalidRoot {
        operation: Collective::Gatherv,
        root: size,
        size,
    };
    let counts = vec![1; size];
    refuse(comm, budget, &expected, |odd| {
        let root = if odd { size } else { 0 };
        let displs: Vec<usize> = (0..size).collect();
        comm.gatherv(&[1u8], &mut vec![0; size], &counts, &displs, root)
    });
}

/// A root with room for one element too few; the others have none at all, as they may.
pub fn gather_short_recv<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let expected = CommError::InvalidBufferSize {
        operation: Collective::Gatherv,
        problem: BufferProblem::BlockOutside {
            rank: size - 1,
            displacement: size - 1,
            count: 1,
            len: size - 1,
        },
    };
    let root = budget.odd_rank(size);
    refuse(comm, budget, &expected, |odd| {
        let (length, displs) = if odd {
            (size - 1, (0..size).collect())
        } else {
            (0, Vec::new())
        };
        comm.gatherv(&[1u8], &mut vec![0; length], &vec![1; size], &displs, root)
    });
}

/// More to send to a root than the counts say; the rank is another than the root, if there is one.
pub fn gather_send_length<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let expected = CommError::InvalidBufferSize {
        operation: Collective::Gatherv,
        problem: BufferProblem::Length {
            argument: "send",
            expected: 1,
            actual: 2,
        },
    };
    let root = (budget.odd_rank(size) + 1) % size;
    refuse(comm, budget, &expected, |odd| {
        let displs: Vec<usize> = (0..size).collect();
        let send = vec![1u64; 1 + usize::from(odd)];
        comm.gatherv(&send, &mut vec![0; size], &vec![1; size], &displs, root)
    });
}

/// A leader region that no address space holds.
pub fn region_length<C: World>(comm: &C, budget: &Budget) {
    let expected = CommError::InvalidBufferSize {
        operation: Collective::CreateSharedRegion,
        problem: BufferProblem::TooLarge,
    };
    refuse(comm, budget, &expected, |odd| {
        let count = if odd { usize::MAX / 4 } else { 8 };
        comm.create_shared_region::<f64>(count).map(drop)
    });
}

/// Parts that add up to more than any address space holds.
pub fn parts_length<C: World>(comm: &C, budget: &Budget) {
    let expected = CommError::InvalidBufferSize {
        operation: Collective::CreatePartitionedRegion,
        problem: BufferProblem::TooLarge,
    };
    refuse(comm, budget, &expected, |odd| {
        let count = if odd { usize::MAX - 1 } else { 1 };
        comm.create_partitioned_region::<f64>(&vec![count; comm.size()])
            .map(drop)
    });
}

/// One part too many.
pub fn parts_count<C: World>(comm: &C, budget: &Budget) {
    let size = comm.size();
    let expected = CommError::InvalidBufferSize {
        operation: Collective::CreatePartitionedRegion,
        problem: BufferProblem::Length {
            argument: "counts",
            expected: size,
            actual: size + 1,
        },
    };
    refuse(comm, budget, &expected, |odd| {
        let counts = vec![1; size + usize::from(odd)];
        comm.create_partitioned_region::<f64>(&counts).map(drop)
    });
}

/// One element from each rank into as much room, to be spoiled.
struct Arguments {
    send: Vec<u64>,
    room: usize,
    counts: Vec<usize>,
    displs: Vec<usize>,
}

fn gather_problem(problem: BufferProblem) -> CommError {
    CommError::InvalidBufferSize {
        operation: Collective::Allgatherv,
        problem,
    }
}

/// A gather of one element per rank whose arguments the odd rank spoils.
fn gather<C: World>(
    comm: &C,
    budget: &Budget,
    expected: &CommError,
    spoil: impl FnOnce(&mut Arguments),
) {
    let size = comm.size();
    refuse(comm, budget, expected, |odd| {
        let mut arguments = Arguments {
            send: vec![1],
            room: size,
            counts: vec![1; size],
            displs: (0..size).collect(),
        };
        if odd {
            spoil(&mut arguments);
        }
        let Arguments {
            send,
            room,
            counts,
            displs,
        } = arguments;
        comm.allgatherv(&send, &mut vec![0; room], &counts, &displs)
    });
}

/// Makes a call whose arguments are bad on the odd rank alone.
fn refuse<C: World>(
    comm: &C,
    budget: &Budget,
    expected: &CommError,
    call: impl FnOnce(bool) -> Result<(), CommError>,
) {
    let (rank, size) = (comm.rank(), comm.size());
    let odd = budget.odd_rank(size);
    // On a busy machine the news of the failure can overtake the last message of this barrier.
    let early = comm.barrier().err();
    let outcome = call(rank == odd);
    let error = failed(
        rank,
        format_args!("a call that rank {odd} gets wrong"),
        outcome,
    );
    if rank == odd {
        assert_eq!(
            error, *expected,
            "rank {rank}: the error of its own arguments"
        );
        assert_eq!(early, None, "rank {rank}: the barrier before the refusal");
    }
    if size == 1 {
        return nothing_is_finished(comm);
    }
    let later = every_later_call_fails(comm);
    shows_both_sides(rank, odd, &later, ["", "arguments refused"]);
    if rank != odd {
        for error in early.into_iter().chain([error]) {
            let cause = cause_of(rank, error);
            assert_eq!(cause, later, "rank {rank}: the causes then and later");
        }
    }
}
