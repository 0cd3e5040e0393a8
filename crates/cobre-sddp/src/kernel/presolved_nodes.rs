//! The reduced linear programs that the threads of a rank share.

use std::sync::{Arc, OnceLock};

use super::SizeLimits;
use super::reduced_lp::ReducedLp;
use crate::lp::NodeView;

/// The reduced linear program of each node, made by the thread that meets the node first.
#[derive(Debug)]
pub(crate) struct PresolvedNodes {
    nodes: Vec<OnceLock<PresolvedNode>>,
}

#[derive(Debug)]
enum PresolvedNode {
    /// One for all threads.
    Shared(Arc<ReducedLp>),
    /// Solves change it: each thread makes its own.
    PerThread,
    /// It is not one for the kernel.
    None,
}

impl PresolvedNodes {
    /// No linear programs yet, of so many nodes.
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            nodes: (0..nodes).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The reduced linear program of a node; `None` if it is not one for the kernel. `limits` are always the same.
    pub(super) fn get(&self, view: &NodeView<'_>, limits: SizeLimits) -> Option<Arc<ReducedLp>> {
        let mut own = None;
        let presolve = || match ReducedLp::new(view, limits) {
            None => PresolvedNode::None,
            Some(lp) if lp.has_references() => {
                own = Some(Arc::new(lp));
                PresolvedNode::PerThread
            }
            Some(lp) => PresolvedNode::Shared(Arc::new(lp)),
        };
        match self.nodes[view.node].get_or_init(presolve) {
            PresolvedNode::None => None,
            PresolvedNode::Shared(lp) => Some(Arc::clone(lp)),
            PresolvedNode::PerThread => own.or_else(|| ReducedLp::new(view, limits).map(Arc::new)),
        }
    }
}
