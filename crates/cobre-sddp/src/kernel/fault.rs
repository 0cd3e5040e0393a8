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
    /// Every tenth update of sparse factors is lost.
    LostUpdate,
    /// Variables stay at their positions when sparse factors are computed.
    WrongPermutation,
    /// A basis that is stored names another reference of a hyperplane group than its own.
    WrongReference,
    /// Devex weights grow without a reset, and small infeasibilities beside them do not count.
    UnresetWeights,
}

thread_local! {
    static PRESENT: Cell<Option<Fault>> = const { Cell::new(None) };
    static ALWAYS_SPARSE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body` with sparse factors on nodes of every size.
pub(crate) fn with_sparse_factors<T>(body: impl FnOnce() -> T) -> T {
    let before = ALWAYS_SPARSE.replace(true);
    let result = body();
    ALWAYS_SPARSE.set(before);
    result
}

/// True if nodes of every size have sparse factors.
pub(super) fn is_always_sparse() -> bool {
    ALWAYS_SPARSE.get()
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
