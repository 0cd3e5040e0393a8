//! A deterministic simulation of a job over tcp: all ranks in one process, on a network and a clock of its own.
//!
//! The code of the backend is the one that runs in production; only what `os.rs` names is another:
//! `system.rs` has the same names and hands threads of a simulation to `world.rs`, all others to the operating system.
//! Every rank and every watch thread is a thread of this process, and one of them runs at a time: at each call of the
//! system a generator, begun by the seed, picks the next. Time passes when all of them wait.
//!
//! `network.rs` is TCP as far as the backend can tell it: delays, windows, acknowledgements, ends and resets of
//! connections, probes. `plan.rs` draws a job and its faults from a seed, `job.rs` runs it, `oracle.rs` holds the
//! outcome against the contract.
//!
//! Ranks of one simulated host share memory: a real mapping, with the code of `shm/` on it and `shm/simulated.rs` behind the
//! names of `shm/os.rs`. Each number that a rank publishes there is a step at which others may run, futexes and the mark of
//! a dead rank are the world's.

mod job;
mod network;
mod oracle;
mod plan;
mod random;
pub(in crate::backends) mod system;
mod tests;
pub(in crate::backends) mod world;
