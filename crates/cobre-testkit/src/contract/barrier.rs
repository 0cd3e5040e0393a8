//! No rank leaves a barrier before the last one enters.
//!
//! Clocks of different processes prove nothing; a counter per rank does: each rank posts the number
//! of the barrier it is about to enter, and whoever leaves that barrier must find it posted by all.

use std::thread;
use std::time::Duration;

use cobre_comm::{Communicator, ReduceOp};

use crate::budget::Budget;
use crate::check::{same_bits, succeeded};
use crate::counters::RankCounters;

/// Thousands of barriers, with ranks that arrive in ever different order.
pub fn holds<C: Communicator>(comm: &C, budget: &Budget) {
    let counters = budget.counters(comm, "barrier");
    let mut random = budget.random_on(comm.rank(), "barrier");
    for number in 1..=budget.share(5000) as u64 {
        super::dawdle(&mut random);
        enter_and_leave(comm, &counters, number);
    }
}

/// Each rank in turn is late, and everybody waits for it.
pub fn waits_for_the_late<C: Communicator>(comm: &C, budget: &Budget) {
    let counters = budget.counters(comm, "late");
    for late in 0..comm.size() {
        if comm.rank() == late {
            thread::sleep(Duration::from_millis(20));
        }
        enter_and_leave(comm, &counters, late as u64 + 1);
    }
}

/// Barriers right after each other, and then a collective that would notice one too many.
pub fn in_a_row<C: Communicator>(comm: &C, budget: &Budget) {
    let rank = comm.rank();
    for number in 0..budget.share(10_000) {
        succeeded(rank, format_args!("barrier {number}"), comm.barrier());
    }
    let mut ranks = [0usize];
    let outcome = comm.allreduce(&[1], &mut ranks, ReduceOp::Sum);
    succeeded(rank, format_args!("allreduce after the barriers"), outcome);
    same_bits(
        rank,
        format_args!("number of ranks"),
        &ranks,
        &[comm.size()],
    );
}

fn enter_and_leave<C: Communicator>(comm: &C, counters: &RankCounters, number: u64) {
    let rank = comm.rank();
    counters.post(number);
    succeeded(rank, format_args!("barrier {number}"), comm.barrier());
    for other in 0..comm.size() {
        let posted = counters.look(other);
        // Whoever has left this barrier may wait before the next, and no further.
        assert!(
            posted == number || posted == number + 1,
            "rank {rank}: left barrier {number} while rank {other} was before barrier {posted}"
        );
    }
}
