//! One linear program, solved once: what answers are checked against.

use thiserror::Error;

use super::highs::{Columnwise, Highs, Refused, Solution, Status, number};
use crate::problem::Template;

/// A linear program without an optimum.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the linear program has no optimum: {0}")]
pub struct StandaloneError(String);

/// The smallest cost of a linear program, with all its columns free to choose within their bounds.
///
/// # Errors
/// When there is none, or the solver does not find it.
pub fn optimum(lp: &Template) -> Result<f64, StandaloneError> {
    let columns = columnwise(lp);
    let refused = |Refused(what): Refused| StandaloneError(format!("the solver refused to {what}"));
    let mut highs = Highs::new().map_err(refused)?;
    highs.pass(&columns).map_err(refused)?;
    match highs.run() {
        Status::Optimal => {
            let mut solution = Solution::default();
            highs.solution(&mut solution);
            let terms = solution.columns.iter().zip(&columns.costs);
            Ok(terms.map(|(value, cost)| value * cost).sum::<f64>() + lp.constant)
        }
        other => Err(StandaloneError(format!("{other:?}"))),
    }
}

/// The template by columns.
pub(super) fn columnwise(lp: &Template) -> Columnwise {
    let mut counts = vec![0; lp.columns.len()];
    let terms = || {
        lp.rows
            .iter()
            .flat_map(|row| &row.terms)
            .filter(|term| term.1 != 0.0)
    };
    for &(column, _) in terms() {
        counts[column] += 1;
    }
    let mut total = 0;
    let start: Vec<i32> = counts
        .iter()
        .map(|count| {
            total += count;
            total - count
        })
        .collect();
    let mut next = start.clone();
    let (mut index, mut value) = (vec![0; total as usize], vec![0.0; total as usize]);
    for (place, row) in lp.rows.iter().enumerate() {
        for &(column, coefficient) in row.terms.iter().filter(|term| term.1 != 0.0) {
            let at = next[column] as usize;
            (index[at], value[at]) = (number(place), coefficient);
            next[column] += 1;
        }
    }
    Columnwise {
        costs: lp.columns.iter().map(|column| column.cost).collect(),
        lower: lp.columns.iter().map(|column| column.lower).collect(),
        upper: lp.columns.iter().map(|column| column.upper).collect(),
        row_lower: lp.rows.iter().map(|row| row.lower).collect(),
        row_upper: lp.rows.iter().map(|row| row.upper).collect(),
        start,
        index,
        value,
    }
}
