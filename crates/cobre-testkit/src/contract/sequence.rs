//! One collective after the other: no stale data, and no slot overwritten before all have read it.

use cobre_comm::{Communicator, ReduceOp};

use super::dawdle;
use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::element::samples;
use crate::random::mix;

/// The contribution of `rank` to call number `call`.
fn word(call: usize, rank: usize) -> u64 {
    mix((call as u64) << 16 | rank as u64)
}

fn sum(call: usize, size: usize) -> u64 {
    (0..size).fold(0, |sum, rank| sum.wrapping_add(word(call, rank)))
}

/// 10,000 reductions of one element with nothing in between.
pub fn back_to_back<C: Communicator>(comm: &C, budget: &Budget) {
    for call in 0..budget.share(10_000) {
        reduce_one(comm, call);
    }
}

/// Small collectives of all kinds, with ranks that are slow at random moments.
pub fn mixed<C: Communicator>(comm: &C, budget: &Budget) {
    let mut random = budget.random("mixed");
    let mut delays = budget.random_on(comm.rank(), "delays");
    for call in 0..budget.share(8000) {
        dawdle(&mut delays);
        match random.below(5) {
            0 => reduce_one(comm, call),
            1 => broadcast_few(comm, call, random.below(comm.size()), 1 + random.below(9)),
            2 => gather_few(comm, call, random.below(5)),
            3 => rooted_few(comm, call, random.below(comm.size()), 1 + random.below(9)),
            _ => succeeded(comm.rank(), format_args!("barrier"), comm.barrier()),
        }
    }
}

/// Broadcasts and gathers whose root moves on with every call, with reductions in between: a root may run ahead
/// of the ranks it sends to, and must not run over what they have not read yet.
pub fn rotating_roots<C: Communicator>(comm: &C, budget: &Budget) {
    let mut delays = budget.random_on(comm.rank(), "delays");
    for call in 0..budget.share(5000) {
        broadcast_few(comm, call, call % comm.size(), 1 + call % 17);
        rooted_few(comm, call, (call + 1) % comm.size(), 1 + call % 3);
        if call % 3 == 0 {
            dawdle(&mut delays);
            reduce_one(comm, call);
        }
    }
    // One root, again and again.
    for call in 0..budget.share(2000) {
        broadcast_few(comm, call, comm.size() - 1, 3);
        rooted_few(comm, call, comm.size() - 1, 3);
        dawdle(&mut delays);
    }
}

/// Large and small messages by turns: what is large for a slot, a ring or a cache never shows in
/// the small one after it.
pub fn large_and_small<C: Communicator>(comm: &C, budget: &Budget) {
    let mut delays = budget.random_on(comm.rank(), "delays");
    for call in 0..budget.share(200).max(8) {
        let length = [100, 3000, 9000, 40_000][call % 4];
        broadcast_few(comm, call, call % comm.size(), length);
        reduce_one(comm, call);
        gather_few(comm, call, length / comm.size());
        rooted_few(comm, call, call % comm.size(), length / comm.size());
        dawdle(&mut delays);
        reduce_one(comm, call + 1);
    }
}

fn reduce_one<C: Communicator>(comm: &C, call: usize) {
    let rank = comm.rank();
    let mut found = [0];
    let outcome = comm.allreduce(&[word(call, rank)], &mut found, ReduceOp::Sum);
    succeeded(rank, format_args!("allreduce in call {call}"), outcome);
    let expected = [sum(call, comm.size())];
    same_bits(
        rank,
        format_args!("allreduce in call {call}"),
        &found,
        &expected,
    );
}

fn broadcast_few<C: Communicator>(comm: &C, call: usize, root: usize, length: usize) {
    let rank = comm.rank();
    let sent = |sender| samples::<u64>(&[word(call, sender)], length);
    let mut buf = sent(rank);
    let outcome = comm.broadcast(&mut buf, root);
    succeeded(rank, format_args!("broadcast in call {call}"), outcome);
    let what = format_args!("broadcast from {root} in call {call}");
    same_bits(rank, what, &buf, &sent(root));
}

fn rooted_few<C: Communicator>(comm: &C, call: usize, root: usize, length: usize) {
    let (rank, size) = (comm.rank(), comm.size());
    let sent = |sender: usize| samples::<u64>(&[word(call, sender)], length);
    let displs: Vec<usize> = (0..size).map(|sender| sender * length).collect();
    let expected: Vec<u64> = if rank == root {
        (0..size).flat_map(sent).collect()
    } else {
        Vec::new()
    };
    let mut recv = vec![0; expected.len()];
    let outcome = comm.gatherv(&sent(rank), &mut recv, &vec![length; size], &displs, root);
    succeeded(rank, format_args!("gatherv in call {call}"), outcome);
    let what = format_args!("gatherv at {root} in call {call}");
    same_bits(rank, what, &recv, &expected);
}

fn gather_few<C: Communicator>(comm: &C, call: usize, most: usize) {
    let (rank, size) = (comm.rank(), comm.size());
    let counts: Vec<usize> = (0..size)
        .map(|sender| (call + sender * (call % 3)) % (most + 1))
        .collect();
    let sent = |sender: usize| samples::<u64>(&[word(call, sender)], counts[sender]);
    let displs: Vec<usize> = (0..size)
        .map(|sender| counts[..sender].iter().sum())
        .collect();
    let expected: Vec<u64> = (0..size).flat_map(sent).collect();
    let mut recv = vec![0; expected.len()];
    let outcome = comm.allgatherv(&sent(rank), &mut recv, &counts, &displs);
    succeeded(rank, format_args!("allgatherv in call {call}"), outcome);
    same_bits(
        rank,
        format_args!("allgatherv in call {call}"),
        &recv,
        &expected,
    );
}
