//! The solver of a node: the simplex kernel, HiGHS, or both side by side.
//!
//! [`NodeSolver::solve`] is the one interface between the method and a solver: solve this node at this
//! trial point for these openings. The data that a warm start needs is in the [`WarmStart`] of the work
//! unit that asked, never in the solver, so solutions do not depend on which thread solves what.

mod check;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::check::Reference;
use crate::kernel::{BasisCache, KernelNode, PresolvedNodes, SizeLimits, Workspace};
use crate::lp::{HighsBasis, HighsNode, LpFailure, LpStatistics, NodeSolution, NodeView, Visit};

/// The choice of the solver of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Solver {
    /// The kernel on nodes where it is the faster one, HiGHS on the others.
    #[default]
    Auto,
    /// The kernel on every node that it can solve.
    Kernel,
    /// HiGHS.
    Highs,
    /// The kernel, with HiGHS beside it: a run ends at the first solution that differs.
    Check,
}

impl FromStr for Solver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Auto, Self::Kernel, Self::Highs, Self::Check];
        let found = all.into_iter().find(|solver| solver.name() == text);
        found.ok_or_else(|| format!("one of {} is expected", all.map(Self::name).join(", ")))
    }
}

impl Solver {
    /// The name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kernel => "kernel",
            Self::Highs => "highs",
            Self::Check => "check",
        }
    }

    /// The least openings of a work unit, where a node has that many. Short blocks share work out
    /// better; long ones gain more from the bases that a unit has cached.
    pub(crate) fn openings_per_block(self) -> usize {
        match self {
            Self::Highs => 5,
            Self::Auto | Self::Kernel | Self::Check => 25,
        }
    }

    /// The largest nodes that the kernel solves.
    fn kernel_limits(self) -> Option<SizeLimits> {
        match self {
            Self::Auto => Some(SizeLimits::FASTER_THAN_HIGHS),
            Self::Kernel | Self::Check => Some(SizeLimits::ANY),
            Self::Highs => None,
        }
    }
}

/// The most bases that a unit with visits of so many openings keeps.
pub(crate) fn most_bases(openings: usize) -> usize {
    BasisCache::most(openings)
}

/// The bases that a work unit keeps from one solve of a node to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WarmStart {
    kernel: BasisCache,
    highs: HighsBasis,
    /// Of HiGHS beside the kernel.
    reference: HighsBasis,
}

/// The solver of one node.
#[derive(Debug)]
pub(crate) struct NodeSolver {
    method: Method,
    /// HiGHS beside the kernel, in mode [`Solver::Check`].
    reference: Option<Reference>,
}

#[derive(Debug)]
enum Method {
    Kernel(Box<KernelNode>),
    Highs(Box<HighsNode>),
}

impl NodeSolver {
    /// A solver of this node, without any cuts yet. The warm starts of units take `basis_bytes` per basis that they
    /// keep at most.
    ///
    /// # Errors
    /// When HiGHS refuses the linear program.
    pub(crate) fn load(
        view: &NodeView<'_>,
        presolved: &PresolvedNodes,
        solver: Solver,
        basis_bytes: usize,
    ) -> Result<Self, Box<LpFailure>> {
        let limits = solver.kernel_limits();
        let kernel =
            limits.and_then(|limits| KernelNode::new(view, presolved, limits, basis_bytes));
        let method = match kernel {
            Some(kernel) => Method::Kernel(Box::new(kernel)),
            None => Method::Highs(Box::new(HighsNode::load(view)?)),
        };
        let reference = (solver == Solver::Check).then(|| Reference::load(view));
        Ok(Self {
            method,
            reference: reference.transpose()?,
        })
    }

    /// Solves the node at a trial point for each opening of the visit in turn, and hands each solution
    /// to `each`, with as much in it as the visit asks for.
    ///
    /// The solutions are a function of the view, the visit and the warm start alone; `work` is that of the thread.
    ///
    /// # Errors
    /// For the first opening that could not be solved.
    pub(crate) fn solve(
        &mut self,
        work: &mut Workspace,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        warm_start: &mut WarmStart,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        let Some(reference) = &mut self.reference else {
            return self.method.solve(work, view, visit, warm_start, each);
        };
        let mut found = Vec::new();
        let keep =
            &mut |opening: usize, answer: &NodeSolution| found.push((opening, answer.clone()));
        self.method.solve(work, view, visit, warm_start, keep)?;
        reference.compare(view, visit, &found, &mut warm_start.reference)?;
        for (opening, answer) in &found {
            each(*opening, answer);
        }
        Ok(())
    }

    /// The linear programs it has solved so far.
    pub(crate) fn statistics(&self) -> LpStatistics {
        let statistics = match &self.method {
            Method::Kernel(kernel) => kernel.statistics(),
            Method::Highs(highs) => highs.statistics(),
        };
        self.reference
            .as_ref()
            .map_or(statistics, |reference| reference.add_to(statistics))
    }
}

impl Method {
    fn solve(
        &mut self,
        work: &mut Workspace,
        view: &NodeView<'_>,
        visit: &Visit<'_>,
        warm_start: &mut WarmStart,
        each: &mut dyn FnMut(usize, &NodeSolution),
    ) -> Result<(), Box<LpFailure>> {
        match self {
            Self::Kernel(kernel) => kernel.solve(work, view, visit, &mut warm_start.kernel, each),
            Self::Highs(highs) => highs.solve(view, visit, &mut warm_start.highs, each),
        }
    }
}

#[cfg(test)]
mod tests;
