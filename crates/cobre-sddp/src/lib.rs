//! Stochastic dual dynamic programming on any multistage stochastic linear program, with the same
//! bits for any backend, rank count and thread count.

mod agreement;
mod engine;
mod error;
pub mod events;
pub mod lp;
pub mod noise;
pub mod output;
pub mod path;
pub mod policy;
pub mod problem;
pub mod ranks;
pub mod risk;
pub mod run;
pub mod simulation;
mod team;
pub mod training;

pub use error::SddpError;
