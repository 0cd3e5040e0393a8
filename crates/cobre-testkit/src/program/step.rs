//! The steps of a program.

use cobre_comm::ReduceOp;

use crate::element::Element;
use crate::number::Number;

/// A sequence of steps for a number of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomProgram {
    /// Determines the program and the data that it moves.
    pub seed: u64,
    /// Ranks it is for.
    pub size: usize,
    /// In this order on every rank.
    pub steps: Vec<ProgramStep>,
}

/// One call of every rank. Regions are numbered in the order of their creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStep {
    /// An allgatherv; each rank has its own displacements.
    Gather {
        /// Of these.
        element: Element,
        /// Per rank.
        counts: Vec<usize>,
    },
    /// A gatherv; each rank has its own displacements.
    Rooted {
        /// Of these.
        element: Element,
        /// Per rank.
        counts: Vec<usize>,
        /// At this rank.
        root: usize,
    },
    /// An allreduce.
    Reduce {
        /// Of these.
        number: Number,
        /// Elements.
        length: usize,
        /// The operator.
        op: ReduceOp,
    },
    /// A broadcast.
    Broadcast {
        /// Of these.
        element: Element,
        /// Elements.
        length: usize,
        /// From this rank.
        root: usize,
    },
    /// A barrier.
    Barrier,
    /// Creates the next region.
    Create {
        /// Of these.
        element: Element,
        /// The number of elements, and the ranks that write them.
        extent: Extent,
    },
    /// Writes some elements of the own part of a region that is in a write epoch; no collective.
    Write {
        /// Which.
        region: usize,
        /// Elements from the part's start: this many sixteenths of it, rounded up.
        sixteenths: usize,
    },
    /// Fences a region, and reads all of it if a read epoch begins.
    Fence {
        /// Which.
        region: usize,
    },
    /// Drops a region; no collective.
    Drop {
        /// Which.
        region: usize,
    },
}

impl ProgramStep {
    /// True if all ranks meet in it.
    pub fn is_collective(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Drop { .. })
    }
}

/// The elements of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// A leader region of so many.
    Led(usize),
    /// A partitioned region.
    Parts(Vec<usize>),
}
