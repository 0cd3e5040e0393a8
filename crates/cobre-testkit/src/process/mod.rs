//! Contracts on real processes: which backends, with how many ranks, what one job says, and what it
//! must not leave behind.

mod cells;
mod job;
mod leftovers;
mod table;

pub use cells::{Cell, Verdict, run_cells};
pub use job::{Job, JobReport};
pub use leftovers::Surroundings;
pub use table::{BACKENDS, Excuse, RANKS, Ranks, Row};
