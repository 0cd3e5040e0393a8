//! Files of the user's directories: written whole or not at all, and removed or replaced only where Cobre can
//! prove that it wrote them.
//!
//! The most important types are [`Register`], the list of the files that Cobre wrote below a directory, and
//! [`WholeFile`], a file that appears when it is complete.

mod below;
mod error;
mod lock;
mod proof;
mod register;
mod whole;

pub use error::FileError;
pub use lock::Lock;
pub use proof::replaceable;
pub use register::Register;
pub use whole::WholeFile;
