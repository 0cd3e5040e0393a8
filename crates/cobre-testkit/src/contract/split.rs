//! The communicator of a node: who is in it, who leads, and that it lives beside its parent.

use std::thread;

use cobre_comm::{Communicator, ReduceOp};

use super::World;
use super::region::leader::leaders_rank;
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};

/// Every rank is in one node's communicator, with a number of its own, all its members agree, and
/// exactly one of them leads.
pub fn nodes_partition_the_ranks<C: World>(comm: &C, budget: &Budget) {
    let (rank, size) = (comm.rank(), comm.size());
    let local = succeeded(rank, format_args!("split_local"), comm.split_local());
    super::identity::ranks_are_numbered(&local, budget);
    assert!(
        local.size() <= size,
        "rank {rank}: a node of {} ranks in a job of {size}",
        local.size()
    );
    let leader = leaders_rank(&local, rank, comm.is_leader());
    let mut nodes = vec![0; 2 * size];
    let displs: Vec<usize> = (0..size).map(|sender| 2 * sender).collect();
    let mine = [leader, local.size()];
    let outcome = comm.allgatherv(&mine, &mut nodes, &vec![2; size], &displs);
    succeeded(rank, format_args!("gathering the nodes"), outcome);
    let members = nodes.chunks(2).filter(|node| node[0] == leader).count();
    assert_eq!(
        members,
        local.size(),
        "rank {rank}: ranks that name leader {leader}, against the size of its node"
    );
    assert_eq!(
        comm.is_leader(),
        leader == rank,
        "rank {rank}: is_leader(), where its node's leader is {leader}"
    );
}

/// Calls on the node's communicator do not count in the parent's sequence: nodes that make
/// different numbers of them still meet in the parent.
pub fn own_sequence<C: World>(comm: &C, budget: &Budget) {
    let rank = comm.rank();
    let local = succeeded(rank, format_args!("split_local"), comm.split_local());
    let leader = leaders_rank(&local, rank, comm.is_leader());
    for round in 0..budget.share(500).max(5) {
        for _ in 0..leader % 3 + round % 2 {
            sum_of_ones(&local, rank);
        }
        sum_of_ones(comm, rank);
    }
    let again = succeeded(rank, format_args!("second split_local"), comm.split_local());
    sum_of_ones(&again, rank);
    drop(local);
    sum_of_ones(&again, rank);
    drop(again);
    sum_of_ones(comm, rank);
}

/// One thread in the parent and one in the node's communicator: neither is in the other's way.
pub fn beside_the_parent<C: World>(comm: &C, budget: &Budget) {
    let rank = comm.rank();
    let local = succeeded(rank, format_args!("split_local"), comm.split_local());
    let calls = budget.share(1000);
    thread::scope(|scope| {
        scope.spawn(|| (0..calls).for_each(|_| sum_of_ones(&local, rank)));
        (0..calls).for_each(|_| sum_of_ones(comm, rank));
    });
}

fn sum_of_ones<C: Communicator>(comm: &C, rank: usize) {
    let mut sum = [0usize];
    let outcome = comm.allreduce(&[1], &mut sum, ReduceOp::Sum);
    succeeded(
        rank,
        format_args!("counting {} ranks", comm.size()),
        outcome,
    );
    same_bits(rank, format_args!("number of ranks"), &sum, &[comm.size()]);
}
