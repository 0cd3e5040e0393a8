//! Stochastic dual dynamic programming on any multistage stochastic linear program, with the same
//! bits for any backend, rank count and thread count.

pub mod problem;
pub mod risk;
