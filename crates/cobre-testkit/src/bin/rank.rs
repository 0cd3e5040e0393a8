//! One rank of one contract: connects as its environment says and exits with 0 if the promise was
//! kept here, with the panic's text and code if not.

use std::process::ExitCode;

use cobre_comm::{BackendError, BackendKind, CommBackend, create_communicator};
use cobre_testkit::budget::Budget;
use cobre_testkit::check::told;
use cobre_testkit::contract::{CONTRACTS, Contract, World, function};
use cobre_testkit::hosts;
use cobre_testkit::mutant::{Fault, Mutant};
use cobre_testkit::options::{RankOptions, USAGE};

/// The arguments make no sense.
const BAD_USAGE: u8 = 2;
/// The ranks did not find each other.
const NOT_CONNECTED: u8 = 3;

fn main() -> ExitCode {
    match RankOptions::parse(std::env::args().skip(1)) {
        Ok(RankOptions::List) => {
            list();
            ExitCode::SUCCESS
        }
        Ok(RankOptions::Run {
            contract,
            budget,
            fault,
        }) => match connect() {
            Ok(comm) if fault.is_none() => run(&comm, &contract, &budget),
            Ok(comm) => run(&Mutant::new(comm, fault), &contract, &budget),
            Err(error) => {
                eprintln!("rank: {}", told(&error));
                ExitCode::from(NOT_CONNECTED)
            }
        },
        Err(problem) => refuse(&problem),
    }
}

fn connect() -> Result<CommBackend, BackendError> {
    create_communicator(BackendKind::from_environment(&hosts::environment())?)
}

fn run<C: World>(comm: &C, name: &str, budget: &Budget) -> ExitCode {
    let (Some(contract), Some(function)) = (Contract::find(name), function::<C>(name)) else {
        return refuse(&format!("no contract is called {name:?}"));
    };
    if comm.size() < contract.min_size {
        let (needed, size) = (contract.min_size, comm.size());
        return refuse(&format!("{name} needs {needed} ranks and has {size}"));
    }
    function(comm, budget);
    ExitCode::SUCCESS
}

fn refuse(problem: &str) -> ExitCode {
    eprintln!("rank: {problem}\n{USAGE}");
    ExitCode::from(BAD_USAGE)
}

fn list() {
    println!("contracts, and the ranks they need:");
    for contract in CONTRACTS {
        println!("  {} {}", contract.name, contract.min_size);
    }
    println!("mutants, the ranks they need, and the contracts that notice:");
    for fault in Fault::ALL {
        let caught_by = fault.caught_by().join(" ");
        println!("  {} {} {caught_by}", fault.name(), fault.min_size());
    }
}
