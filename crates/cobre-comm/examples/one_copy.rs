//! Every rank reads a large table that one rank wrote, and the ranks add up what memory they use
//! between them: with shared memory, one table; without, one table each.
//!
//! `cobre launch -n 4 -- target/release/examples/one_copy 1024`

use std::error::Error;
use std::process::ExitCode;

use cobre_comm::{
    BackendKind, Communicator, ReduceOp, SharedMemoryProvider, SharedRegion, create_communicator,
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("one_copy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mebibytes: usize = match std::env::args().nth(1) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("{text} is no number of MiB"))?,
        None => 64,
    };
    let comm = create_communicator(BackendKind::from_env()?)?;
    let count = mebibytes << 17;

    let mut table = comm.create_shared_region::<u64>(count)?;
    if comm.is_leader() {
        for (i, entry) in table.as_mut_slice().iter_mut().enumerate() {
            *entry = i as u64;
        }
    }
    table.fence()?;
    let sum = table
        .as_slice()
        .iter()
        .copied()
        .fold(0u64, u64::wrapping_add);
    comm.barrier()?; // everyone has read all of it: nothing is mapped but unseen

    let mut total = [0];
    comm.allreduce(&[used_kibibytes()?], &mut total, ReduceOp::Sum)?;
    comm.barrier()?;
    if comm.rank() == 0 {
        println!(
            "{} ranks on {} read a table of {mebibytes} MiB (sum {sum}) and use {} MiB together",
            comm.size(),
            comm.name(),
            total[0] >> 10
        );
    }
    Ok(())
}

/// This process's share of the memory it maps: what several processes map counts for each by its
/// part.
fn used_kibibytes() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let figure = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(figure
        .ok_or("no Pss line in smaps_rollup")?
        .trim()
        .parse()?)
}
