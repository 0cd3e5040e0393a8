//! Errors of problems.

use std::fmt;

use thiserror::Error;

/// An error of a problem.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// The graph has a cycle that no path leaves: what follows would be worth infinitely much.
    #[error(
        "the policy graph has a cycle that no path leaves, {}: let the probabilities of an edge of it, or of all edges from \
         one of its nodes, be below 1, which discounts what follows",
        path.join(" → ")
    )]
    Endless {
        /// The names of the nodes along the cycle; the first is also the last.
        path: Vec<String>,
    },
    /// An error of the graph.
    #[error("{place}: {problem}")]
    Graph {
        /// The node, or the root.
        place: String,
        /// The error.
        problem: String,
    },
    /// An error of a linear program.
    #[error("{place}: {problem}")]
    Program {
        /// The linear program, by the first node that uses it.
        place: String,
        /// The error.
        problem: String,
    },
    /// An error of an opening.
    #[error("{place}: {problem}")]
    Opening {
        /// The node and the opening.
        place: String,
        /// The error.
        problem: String,
    },
    /// An error of the problem as a whole.
    #[error("{0}")]
    Whole(String),
}

/// All errors of a problem, at least one.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct ProblemErrors(pub Vec<ProblemError>);

impl fmt::Display for ProblemErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}
