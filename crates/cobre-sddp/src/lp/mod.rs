//! Solving the linear program of a node.
//!
//! [`Kernel`] is the one interface between the method and a solver: solve this node at this trial
//! point for these openings. Whatever a solve remembers is in the [`Kernel::Memory`] of the work
//! unit that asked, never in the kernel, so answers do not depend on which worker solves what.

mod basis;
mod counts;
mod duals;
mod explain;
mod failure;
mod highs;
mod node;
mod standalone;

pub use basis::Basis;
pub use counts::Counts;
pub(crate) use explain::in_place;
pub use failure::{Failure, FailureKind};
pub use node::HighsNode;
pub use standalone::{StandaloneError, optimum};

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::policy::Cuts;
use crate::problem::Problem;

/// What a kernel is told about a node: its linear program, its openings, and the cuts on its cost
/// to go.
#[derive(Debug, Clone)]
pub struct NodeView<'a> {
    /// The problem the node belongs to.
    pub problem: &'a Problem,
    /// The values of all openings of the problem.
    pub values: &'a [f64],
    /// The node.
    pub node: usize,
    /// The cuts below its cost to go.
    pub cuts: Cuts<'a>,
    /// Where the linear program is written if it cannot be solved.
    pub failures: &'a Path,
}

/// The answer for one opening.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The value of the dual solution: never above the optimum, whatever the primal tolerance.
    pub bound: f64,
    /// How `bound` changes with the incoming state.
    pub gradient: Vec<f64>,
    /// The cost of this node, without the cost to go.
    pub cost: f64,
    /// The cost to go, as the cuts see it.
    pub future: f64,
    /// The state this node leaves.
    pub outgoing: Vec<f64>,
    /// The decisions, column by column.
    pub columns: Vec<f64>,
    /// By row, how the cost and the cost to go together change with its bounds.
    pub duals: Vec<f64>,
}

/// How much of an [`Answer`] is asked for; the rest of it means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The bound and its gradient.
    Cut,
    /// Also the cost, the cost to go and the state left.
    State,
    /// Also the decisions and the dual values of rows.
    All,
}

/// A solver of one node.
pub trait Kernel: Sized + Send {
    /// What a work unit keeps from one solve to the next.
    type Memory: Default + Send + Serialize + DeserializeOwned;

    /// The name by which it is asked for.
    const NAME: &'static str;

    /// The least openings of a work unit, where a node has that many. Short blocks share work out
    /// better; long ones gain more from what a unit remembers.
    const OPENINGS_PER_BLOCK: usize;

    /// A solver of this node, without any cuts yet.
    ///
    /// # Errors
    /// When the solver refuses the linear program.
    fn load(view: &NodeView<'_>) -> Result<Self, Box<Failure>>;

    /// Solves the node at the state `incoming` for each of `openings` in turn, and hands each
    /// answer to `each`, with as much in it as `want` asks for.
    ///
    /// The answers are a function of the view, `incoming`, `openings` and `memory` alone.
    ///
    /// # Errors
    /// For the first opening that could not be solved.
    fn solve(
        &mut self,
        view: &NodeView<'_>,
        incoming: &[f64],
        openings: std::ops::Range<usize>,
        want: Want,
        memory: &mut Self::Memory,
        each: &mut dyn FnMut(usize, &Answer),
    ) -> Result<(), Box<Failure>>;

    /// What it has solved so far, and how.
    fn counts(&self) -> Counts;
}
