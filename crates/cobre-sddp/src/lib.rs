//! Stochastic dual dynamic programming on any multistage stochastic linear program, with the same
//! bits for any backend, rank count and thread count.

mod agreement;
pub mod checkpoint;
mod error;
pub mod events;
mod fingerprint;
mod kernel;
pub mod lp;
pub mod noise;
pub mod output;
mod packing;
mod path;
pub mod policy;
pub mod problem;
mod rank_work;
mod ranks;
pub mod risk;
pub mod run;
pub mod simulation;
mod solver;
mod team;
pub mod training;

pub use error::SddpError;
