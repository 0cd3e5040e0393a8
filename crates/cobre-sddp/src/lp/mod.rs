//! Linear programs of nodes, and HiGHS.
//!
//! [`NodeView`] and [`Visit`] are the input of a solve, [`NodeSolution`] is its output;
//! [`HighsNode`] solves a node with HiGHS.

mod columnwise;
mod directions;
mod duals;
mod explain;
mod failure;
mod highs;
mod highs_basis;
mod highs_node;
mod highs_options;
mod statistics;

pub(crate) use directions::least_costs;
pub(crate) use explain::in_place;
pub use failure::{LpFailure, LpFailureKind};
pub(crate) use highs_basis::HighsBasis;
pub(crate) use highs_node::HighsNode;
pub use statistics::LpStatistics;

use std::ops::Range;
use std::path::Path;

use crate::policy::Cuts;
use crate::problem::Problem;

/// The input of a solver at a node: its linear program, its openings, and the cuts on its cost to
/// go.
#[derive(Debug, Clone)]
pub struct NodeView<'a> {
    /// The problem of the node.
    pub problem: &'a Problem,
    /// The values of all openings of the problem.
    pub values: &'a [f64],
    /// The node.
    pub node: usize,
    /// The cuts below its cost to go.
    pub cuts: Cuts<'a>,
    /// The directory that linear programs are written to if they cannot be solved.
    pub failures: &'a Path,
    /// Values in the place of those of any opening.
    pub given: Option<&'a [f64]>,
}

impl<'a> NodeView<'a> {
    /// The values of an opening, or those given in its place.
    pub fn opening(&self, opening: usize) -> &'a [f64] {
        let own = || self.problem.opening(self.values, self.node, opening);
        self.given.unwrap_or_else(own)
    }
}

/// The solution of a node for one opening.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeSolution {
    /// The dual objective: never above the optimum, whatever the primal tolerance.
    pub bound: f64,
    /// The gradient of `bound` by the incoming state.
    pub gradient: Vec<f64>,
    /// The cost of this node, without the cost to go.
    pub cost: f64,
    /// The cost to go, from the cuts.
    pub future: f64,
    /// The outgoing state.
    pub outgoing: Vec<f64>,
    /// The decisions, column by column.
    pub columns: Vec<f64>,
    /// By row, the derivative of the cost and the cost to go by its bounds.
    pub duals: Vec<f64>,
}

/// The parts of a [`NodeSolution`] that a visit asks for; the others are undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The bound and its gradient.
    Cut,
    /// Also the cost, the cost to go and the outgoing state.
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
    /// The parts of each solution that are asked for.
    pub detail: Detail,
}
