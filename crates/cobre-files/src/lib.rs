//! The files that Cobre is given, whoever wrote them: regular files of bounded size ([`open`], [`read`]), and
//! Parquet tables that may be damaged ([`Table`]). Every input of cases, policies, checkpoints and results is
//! opened here.

mod regular;
mod table;

pub use regular::{MOST_TEXT_BYTES, open, read, read_text};
pub use table::{Cells, ColumnKind, Most, Table, TableColumn, TableError, Values};
