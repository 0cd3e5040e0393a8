//! Every rank contributes a number; every rank gets the mean, the same bits everywhere.
//!
//! `cobre launch -n 4 -- target/release/examples/mean`

use std::error::Error;
use std::process::ExitCode;

use cobre_comm::{BackendKind, Communicator, ReduceOp, create_communicator};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mean: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let comm = create_communicator(BackendKind::from_env()?)?;
    let mine = 1.0 / (1 + comm.rank()) as f64;
    let mut sum = [0.0];
    comm.allreduce(&[mine], &mut sum, ReduceOp::Sum)?;
    let mean = sum[0] / comm.size() as f64;
    println!(
        "rank {} of {} on {}: mean {mean} (bits {:016x})",
        comm.rank(),
        comm.size(),
        comm.name(),
        mean.to_bits()
    );
    Ok(())
}
