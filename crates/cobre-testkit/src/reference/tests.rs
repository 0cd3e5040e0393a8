//! The kit against the reference: contracts that hold do not cry wolf, at any size and on nodes of
//! any width, and every mutant is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::world;
use crate::budget::Budget;
use crate::contract::{CONTRACTS, Contract, function};
use crate::mutant::{Fault, Mutant};
use crate::program::{RandomProgram, run};

/// Runs `contract` as `size` ranks on nodes of `width`.
fn run_contract(contract: &Contract, fault: Option<Fault>, [size, width]: [usize; 2], seed: u64) {
    let scratch = tempfile::tempdir().unwrap();
    let budget = Budget {
        calls: Budget::FOR_MUTANTS,
        seed,
        scratch: Some(scratch.path().to_owned()),
    };
    let function = function(contract.name).unwrap();
    world(size, width, |rank| {
        function(&Mutant::new(rank, fault), &budget);
    });
}

/// Runs every contract that `wanted` picks with every odd rank.
fn all_hold(size: usize, width: usize, wanted: fn(&str) -> bool) {
    for contract in CONTRACTS {
        if size < contract.min_size || !wanted(contract.name) {
            continue;
        }
        let seeds = if contract.odd_one_out { size as u64 } else { 1 };
        for seed in 0..seeds {
            println!("{} with {size} ranks, seed {seed}", contract.name);
            run_contract(contract, None, [size, width], seed);
        }
    }
}

#[test]
fn all_hold_for_one_rank() {
    all_hold(1, 1, |_| true);
}

#[test]
fn all_hold_for_two_ranks_of_one_node() {
    all_hold(2, 2, |_| true);
}

#[test]
fn all_hold_for_three_ranks_without_shared_memory() {
    all_hold(3, 1, |_| true);
}

#[test]
fn all_hold_for_five_ranks_on_three_nodes() {
    all_hold(5, 2, |_| true);
}

#[test]
fn collectives_hold_for_eight_ranks() {
    all_hold(8, 4, |name| name.starts_with("all"));
}

#[test]
fn a_program_has_one_digest_on_all_ranks_and_on_nodes_of_any_width() {
    let program = RandomProgram::generate(3, 4, 300);
    let work = |rank| run(&Mutant::new(rank, None), &program);
    let digests: Vec<_> = [1, 2, 4]
        .into_iter()
        .flat_map(|width| world(4, width, work))
        .collect();
    assert!(
        digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

#[test]
fn every_mutant_is_caught_by_every_contract_that_should() {
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        for name in fault.caught_by() {
            let (size, contract) = (fault.min_size(), Contract::find(name).unwrap());
            let job = || run_contract(contract, Some(*fault), [size, size], 0);
            if catch_unwind(AssertUnwindSafe(job)).is_ok() {
                missed.push((fault.name(), name));
            }
        }
    }
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
