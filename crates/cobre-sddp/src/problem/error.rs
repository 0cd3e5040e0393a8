//! What can be wrong with a problem.

use std::fmt;

use thiserror::Error;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// The graph has a cycle; only acyclic graphs can be solved.
    #[error("the policy graph is cyclic, which is not supported: {}", path.join(" → "))]
    Cyclic {
        /// The names of the nodes along the cycle; the first is also the last.
        path: Vec<String>,
    },
    /// Something about the graph.
    #[error("{place}: {problem}")]
    Graph {
        /// The node, or the root.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// Something about a linear program.
    #[error("{place}: {problem}")]
    Program {
        /// The linear program, by the first node that uses it.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// Something about an opening.
    #[error("{place}: {problem}")]
    Opening {
        /// The node and the opening.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// Something about the problem as a whole.
    #[error("{0}")]
    Whole(String),
}

/// Everything that is wrong with a problem, at least one thing.
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
