//! A linear program that could not be solved.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LpFailureKind {
    /// Infeasible: no decision satisfies all rows.
    Infeasible,
    /// Unbounded: the cost has no lower limit.
    Unbounded,
    /// Not solved after every retry, with this status.
    NotSolved(String),
}

/// A linear program that could not be solved, with the data a modeller needs to find the cause.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct LpFailure {
    /// The kind.
    pub kind: LpFailureKind,
    /// The node, by name.
    pub node: String,
    /// The opening, from 1; `None` before any was set.
    pub opening: Option<usize>,
    /// The incoming state, by name.
    pub incoming: Vec<(String, f64)>,
    /// The cause, in the modeller's names.
    pub explanation: String,
    /// The file that the linear program was written to.
    pub file: Option<PathBuf>,
}

impl fmt::Display for LpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.node)?;
        if let Some(opening) = self.opening {
            write!(f, ", opening {opening}")?;
        }
        match &self.kind {
            LpFailureKind::Infeasible => write!(f, ": no decision satisfies all constraints")?,
            LpFailureKind::Unbounded => write!(f, ": the cost falls without limit")?,
            LpFailureKind::NotSolved(status) => write!(f, ": not solved ({status})")?,
        }
        if !self.explanation.is_empty() {
            write!(f, "; {}", self.explanation)?;
        }
        if !self.incoming.is_empty() {
            write!(f, "; incoming state")?;
            for (place, (name, value)) in self.incoming.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                write!(f, "{comma} {name} = {value}")?;
            }
        }
        if let Some(file) = &self.file {
            write!(f, "; the linear program is in {}", file.display())?;
        }
        Ok(())
    }
}
