//! Reads what a run has left in its directory: its facts, and its tables row group by row group, so that
//! memory does not grow with their length.

mod error;
mod results;
pub mod statistics;
mod table;

pub use error::ResultsError;
pub use results::Results;
pub use table::{Table, Values};
