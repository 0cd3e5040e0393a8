//! Column-wise linear programs, as HiGHS takes them.

use super::highs::{ColumnwiseLp, number};
use crate::problem::Template;

/// Converts a template.
pub(super) fn columnwise(lp: &Template) -> ColumnwiseLp {
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
    ColumnwiseLp {
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
