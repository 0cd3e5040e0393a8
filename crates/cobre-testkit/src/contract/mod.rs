//! The promises of a communicator, as functions that every rank runs and that panic when a promise
//! is broken. Each is right for any number of ranks from the one that the table asks for.

pub mod abort;
pub mod allgatherv;
pub mod allreduce;
pub mod barrier;
mod border;
pub mod broadcast;
mod finished;
pub mod gatherv;
pub mod identity;
pub mod mismatch;
pub mod refused;
pub mod region;
pub mod sequence;
pub mod split;
mod table;
pub mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use cobre_comm::{Communicator, SharedMemoryProvider};

use crate::random::Random;

pub use table::{CONTRACTS, Contract, function};

/// A communicator with regions: what the training loop asks for.
pub trait World: Communicator + SharedMemoryProvider {}

impl<C: Communicator + SharedMemoryProvider> World for C {}

/// Lets other ranks run ahead now and then: mostly not, often by a turn of the scheduler, and
/// sometimes by a fraction of a millisecond.
pub(crate) fn dawdle(random: &mut Random) {
    match random.below(64) {
        0 => thread::sleep(Duration::from_micros(50 + random.bits() % 250)),
        1..8 => thread::yield_now(),
        _ => {}
    }
}

/// Requires that `action` panics, and gives the text.
#[track_caller]
fn panics<T>(rank: usize, what: &str, action: impl FnOnce() -> T) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(action)) else {
        panic!("rank {rank}: {what}: expected a panic, found none");
    };
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload
            .downcast::<&str>()
            .map(|text| (*text).to_owned())
            .unwrap_or_default(),
    }
}
