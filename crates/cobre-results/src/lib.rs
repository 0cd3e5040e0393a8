//! The results of a run: the layout of their directory, its writer and its reader.
//!
//! - [`layout`] names every file, table and column, once: writers, `cobre report`, `cobre summary`, `cobre compare`
//!   and Python take the names from there.
//! - [`ResultsWriter`] writes a directory: files complete or not at all, and only files of earlier runs replaced.
//! - [`Results`] opens the directory of a finished run; a [`Table`] is read row group by row group, so that memory does
//!   not grow with its length.
//!
//! A run writes the bound of each iteration, and a reader gets it back:
//!
//! ```
//! use cobre_results::layout::{MANIFEST, convergence, in_policy};
//! use cobre_results::{Proofs, Results, ResultsWriter, Rows};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("out");
//! let proofs = Proofs { is_policy: |_| false, has_checkpoint: |_| false };
//! let writer = ResultsWriter::create(&path, false, &[], "localhost", &proofs)?;
//!
//! let mut rows = Rows::new(&convergence::schema());
//! for (number, bound) in [(1, 10.0), (2, 12.5)] {
//!     let row = convergence::Row {
//!         iteration: number,
//!         bound,
//!         estimate_mean: 14.0,
//!         estimate_half_width_95: None,
//!         estimate_paths: 1,
//!         gap: None,
//!         cuts: number,
//!         cuts_added: 1,
//!         lp_solves: 4 * number,
//!         upper_bound: None,
//!     };
//!     rows.push(&row.cells());
//! }
//! writer.write_table(convergence::schema(), &rows)?;
//! writer.write_json(&in_policy(MANIFEST), &serde_json::json!({"sense": "min"}))?;
//! writer.finish(&serde_json::json!({"cobre": "0.1.0"}))?;
//! drop(writer); // another run may write there now
//!
//! let results = Results::open(&path)?;
//! let table = results.needed(convergence::TABLE)?;
//! assert_eq!(table.all_numbers(convergence::BOUND)?, [10.0, 12.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod calendar;
mod csv;
mod dictionary;
mod earlier;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod layout;
mod results;
mod row_group;
mod rows;
mod schema;
pub mod statistics;
mod table;
mod table_file;
mod writer;

pub use csv::text as csv_text;
pub use earlier::is_cuts;
pub use error::ResultsError;
pub use results::Results;
pub use row_group::RowGroup;
pub use rows::{Cell, Rows};
pub use schema::{Column, Kind, TableSchema};
pub use table::{Table, Values};
pub use table_file::{MemoryTable, TableFile};
pub use writer::{Proofs, ResultsWriter, note, write_json};
