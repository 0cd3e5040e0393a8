//! Communicators with one fault each: a contract that lets them pass proves nothing.

mod arithmetic;
mod communicator;
mod fault;
mod outcome;
mod region;
mod spoil;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

pub use fault::Fault;
pub use region::MutantRegion;

/// A communicator that lets another one work, and is right but for one fault, if any.
#[derive(Debug)]
pub struct Mutant<C> {
    inner: C,
    fault: Option<Fault>,
    /// Calls of the kind that the fault spoils now and then.
    calls: AtomicUsize,
    /// Bytes of the result before.
    previous: Mutex<Vec<u8>>,
    /// True once a call has failed.
    failed: AtomicBool,
    /// Where threads wait that should be turned away.
    queue: Mutex<()>,
}

impl<C> Mutant<C> {
    /// `inner` with this fault, or with none.
    pub fn new(inner: C, fault: Option<Fault>) -> Self {
        Self {
            inner,
            fault,
            calls: AtomicUsize::new(0),
            previous: Mutex::default(),
            failed: AtomicBool::new(false),
            queue: Mutex::new(()),
        }
    }
}
