//! The ranks fill a table together, each its own part, and then all read the whole of it: one copy
//! per node where the backend shares memory.
//!
//! `cobre launch -n 4 -- target/release/examples/shared_table`

use std::error::Error;
use std::process::ExitCode;

use cobre_comm::{
    BackendKind, Communicator, ErrorKind, SharedMemoryProvider, SharedRegion, create_communicator,
};

/// Rank `r` computes this many squares.
fn part(rank: usize) -> usize {
    1000 + 10 * rank
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shared_table: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let comm = create_communicator(BackendKind::from_env()?)?;
    let counts: Vec<usize> = (0..comm.size()).map(part).collect();
    let first: usize = counts[..comm.rank()].iter().sum();

    let mut table = comm.create_partitioned_region::<u64>(&counts)?;
    for (i, square) in table.as_mut_slice().iter_mut().enumerate() {
        *square = ((first + i) as u64).pow(2);
    }
    table.fence()?; // from here on everyone reads and no one writes

    let right = table
        .as_slice()
        .iter()
        .zip(0u64..)
        .all(|(&square, i)| square == i * i);
    if !right {
        comm.abort(ErrorKind::Program, "the table has a wrong entry");
        return Err("the table has a wrong entry".into());
    }
    println!(
        "rank {} of {} on {}: {} squares, all right",
        comm.rank(),
        comm.size(),
        comm.name(),
        table.as_slice().len()
    );
    Ok(())
}
