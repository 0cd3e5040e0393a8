//! Faults that tests put into the simplex method on purpose, one at a time and in one thread.

use std::cell::Cell;

/// A fault in the simplex method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The ratio test takes a reduced cost at an upper bound for one at a lower bound.
    WrongSign,
    /// Columns that the ratio test passes stay at their bounds.
    MissedFlips,
    /// Violated cuts are not added.
    OverlookedCuts,
}

thread_local! {
    static PRESENT: Cell<Option<Fault>> = const { Cell::new(None) };
}

impl Fault {
    /// Runs `body` with a fault in this thread, or with none.
    pub(crate) fn during<T>(fault: Option<Self>, body: impl FnOnce() -> T) -> T {
        let before = PRESENT.replace(fault);
        let result = body();
        PRESENT.set(before);
        result
    }

    /// True if this thread has the fault.
    pub(super) fn is_on(self) -> bool {
        PRESENT.get() == Some(self)
    }
}
