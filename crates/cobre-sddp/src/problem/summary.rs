//! Sizes and numerical ranges of a problem.

use super::Problem;

/// The smallest and the largest magnitude among some numbers other than zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Magnitudes {
    /// The smallest; infinite if there are none.
    pub smallest: f64,
    /// The largest; 0 if there are none.
    pub largest: f64,
}

impl Magnitudes {
    fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let none = Self {
            smallest: f64::INFINITY,
            largest: 0.0,
        };
        let counted = numbers
            .map(f64::abs)
            .filter(|number| *number > 0.0 && number.is_finite());
        counted.fold(none, |range, number| Self {
            smallest: range.smallest.min(number),
            largest: range.largest.max(number),
        })
    }
}

/// Sizes and ranges of a problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Nodes of the graph.
    pub nodes: usize,
    /// The most nodes a path visits; with cycles, [`Graph::stages`](super::Graph::stages).
    pub stages: usize,
    /// State variables.
    pub states: usize,
    /// Openings of all nodes.
    pub openings: usize,
    /// Columns of the largest linear program.
    pub columns: usize,
    /// Rows of the largest linear program.
    pub rows: usize,
    /// Magnitudes in the matrices.
    pub matrix: Magnitudes,
    /// Magnitudes of costs.
    pub costs: Magnitudes,
    /// Magnitudes of bounds of rows and columns.
    pub bounds: Magnitudes,
}

impl Problem {
    /// Sizes and ranges of this problem.
    pub fn summary(&self) -> Summary {
        let columns = self.templates.iter().flat_map(|template| &template.columns);
        let rows = self.templates.iter().flat_map(|template| &template.rows);
        let largest = |size: fn(&super::Template) -> usize| self.templates.iter().map(size).max();
        let bounds = columns
            .clone()
            .flat_map(|column| [column.lower, column.upper]);
        Summary {
            nodes: self.nodes.len(),
            stages: self.graph.stages(),
            states: self.states.len(),
            openings: self.nodes.iter().map(|node| node.probabilities.len()).sum(),
            columns: largest(|template| template.columns.len()).unwrap_or(0),
            rows: largest(|template| template.rows.len()).unwrap_or(0),
            matrix: Magnitudes::of(
                rows.clone()
                    .flat_map(|row| row.terms.iter().map(|term| term.1)),
            ),
            costs: Magnitudes::of(columns.map(|column| column.cost)),
            bounds: Magnitudes::of(bounds.chain(rows.flat_map(|row| [row.lower, row.upper]))),
        }
    }
}
