//! The contracts of every communication backend, and a program that real ranks run to prove them.
//!
//! - [`contract`] holds the promises, each a function over any communicator that panics with what
//!   differs.
//! - [`program`] makes random programs and checks them against a serial [`oracle`].
//! - [`mutant`] spoils a communicator in one respect, to show that a contract would notice.
//!
//! The binary `rank` runs one contract as one rank; the tests of this crate start it as real
//! processes on every backend.

mod book;
pub mod budget;
pub mod check;
pub mod contract;
pub mod counters;
pub mod element;
pub mod hosts;
pub mod layout;
pub mod mutant;
pub mod number;
pub mod options;
pub mod oracle;
pub mod process;
pub mod program;
pub mod random;

#[cfg(test)]
mod reference;
