//! Contracts on real processes: which backends, with how many ranks, what one job says, and what it
//! must not leave behind.

mod cells;
mod job;
mod leftovers;
mod table;

pub use cells::{TestCell, Verdict, run_cells};
pub use job::{ContractJob, JobReport};
pub use leftovers::Surroundings;
pub use table::{BACKENDS, BackendRow, Excuse, RANKS, RankCounts};
