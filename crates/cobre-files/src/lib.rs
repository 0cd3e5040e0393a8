//! The files that Cobre reads and writes.
//!
//! Input, whoever wrote it: regular files of bounded size ([`open`], [`read`]), and Parquet tables that may be
//! damaged ([`Table`]). Every input of cases, policies, checkpoints and results is opened here.
//!
//! Output below the user's directories: written whole or not at all ([`WholeFile`]), and removed or replaced only
//! where Cobre can prove that it wrote the file ([`Register`]).
//!
//! A file is there complete or not at all, and is replaced because the register has it:
//!
//! ```
//! use cobre_files::{Register, read_text};
//!
//! let directory = tempfile::tempdir()?;
//! let mut register = Register::open(directory.path())?;
//! for text in ["first", "second"] {
//!     let mut file = register.create("notes.txt")?;
//!     file.write(text.as_bytes())?;
//!     file.finish()?;
//! }
//! assert_eq!(read_text(&directory.path().join("notes.txt"))?, "second");
//!
//! std::fs::write(directory.path().join("thesis.txt"), "mine")?;
//! assert!(register.check("thesis.txt").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod below;
mod content;
mod directory;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod lock;
mod proof;
mod register;
mod register_file;
mod regular;
mod table;
mod whole;

pub use directory::{make_directories, make_directory};
pub use error::FileError;
pub use lock::Lock;
pub use proof::replaceable;
pub use register::Register;
pub use regular::{MOST_TEXT_BYTES, open, read, read_text};
pub use table::{Cells, ColumnKind, Most, Table, TableColumn, TableError, Values};
pub use whole::WholeFile;
