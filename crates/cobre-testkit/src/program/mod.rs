//! Random programs: a seed gives every rank the same sequence of collectives, a serial oracle knows
//! every result, and a digest of all results lets backends be compared with each other.

mod digest;
mod generate;
mod run;
mod step;

pub use digest::Digest;
pub use run::run;
pub use step::{Extent, ProgramStep, RandomProgram};

use crate::budget::Budget;
use crate::contract::World;

/// First word of the line with the digest.
pub const DIGEST: &str = "digest";

/// Runs the program of the budget's seed, checks every result bit for bit, and prints the digest.
pub fn keeps_to_the_oracle<C: World>(comm: &C, budget: &Budget) {
    let program = RandomProgram::generate(budget.seed, comm.size(), budget.calls);
    println!("{DIGEST} {}", run(comm, &program));
}
