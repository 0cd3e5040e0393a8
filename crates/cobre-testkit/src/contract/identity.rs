//! Ranks are numbered 0 to size − 1, each number once, and all agree on the size.

use cobre_comm::Communicator;

use crate::budget::Budget;
use crate::check::{same_bits, succeeded};

/// The rank and size of each rank, seen from every rank, before and after other calls.
pub fn ranks_are_numbered<C: Communicator>(comm: &C, _: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    assert!(size >= 1, "rank {rank}: a communicator of no rank");
    assert!(rank < size, "rank {rank} of {size} ranks: out of range");
    for _ in 0..3 {
        let counts = vec![2; size];
        let displs: Vec<usize> = (0..size).map(|sender| 2 * sender).collect();
        let mut said = vec![usize::MAX; 2 * size];
        let mine = [comm.rank(), comm.size()];
        let outcome = comm.allgatherv(&mine, &mut said, &counts, &displs);
        succeeded(rank, format_args!("gathering ranks and sizes"), outcome);
        let expected: Vec<usize> = (0..size).flat_map(|sender| [sender, size]).collect();
        same_bits(
            rank,
            format_args!("rank and size of each rank"),
            &said,
            &expected,
        );
        succeeded(rank, format_args!("barrier"), comm.barrier());
    }
}
