//! The workspace of a thread: everything of a solve that no later visit reads.

use super::basis::Basis;
use super::basis_cache::CacheWorkspace;
use super::cut_table::CutHeights;
use crate::lp::NodeSolution;

/// The workspace of a thread, which its solvers of all nodes use in turn: the working basis, the heights of cuts, and
/// the solution.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(super) basis: Basis,
    pub(super) heights: CutHeights,
    pub(super) cache: CacheWorkspace,
    pub(super) answer: NodeSolution,
    /// The values of the columns that presolve keeps.
    pub(super) values: Vec<f64>,
}
