//! Solving the linear program of a node.
//!
//! [`NodeView`] and [`Visit`] say what is to be solved, [`NodeSolution`] what was found; [`HighsNode`] solves a
//! node with HiGHS.

mod columnwise;
mod duals;
mod explain;
mod failure;
mod highs;
mod highs_basis;
mod highs_node;
mod statistics;

pub(crate) use explain::in_place;
pub use failure::{LpFailure, LpFailureKind};
pub(crate) use highs_basis::HighsBasis;
pub(crate) use highs_node::HighsNode;
pub use statistics::LpStatistics;

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
pub struct NodeSolution {
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

/// The parts of a [`NodeSolution`] that a visit asks for; the others are undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The bound and its gradient.
    Cut,
    /// Also the cost, the cost to go and the state left.
    State,
    /// Also the decisions and the dual values of rows.
    Full,
}

/// A visit of a node: the trial point, and the openings to be solved there.
#[derive(Debug, Clone)]
pub struct Visit<'a> {
    /// The incoming state.
    pub incoming: &'a [f64],
    /// The openings.
    pub openings: Range<usize>,
    /// The parts of each answer that are asked for.
    pub want: Detail,
}
