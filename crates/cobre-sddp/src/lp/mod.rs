//! Solving the linear program of a node.
//!
//! [`NodeView`] and [`Visit`] say what is to be solved, [`Answer`] what was found; [`HighsNode`] solves a
//! node with HiGHS.

mod basis;
mod columnwise;
mod counts;
mod duals;
mod explain;
mod failure;
mod highs;
mod node;

pub(crate) use basis::Basis;
pub use counts::Counts;
pub(crate) use explain::in_place;
pub use failure::{Failure, FailureKind};
pub(crate) use node::HighsNode;

use std::ops::Range;
use std::path::Path;

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

/// A visit of a node: the trial point, and the openings to be solved there.
#[derive(Debug, Clone)]
pub struct Visit<'a> {
    /// The incoming state.
    pub incoming: &'a [f64],
    /// The openings.
    pub openings: Range<usize>,
    /// The parts of each answer that are asked for.
    pub want: Want,
}
