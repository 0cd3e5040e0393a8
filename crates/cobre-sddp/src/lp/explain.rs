//! Explanations of infeasible and unbounded linear programs, in the modeller's names.

use super::columnwise::columnwise;
use super::highs::{Highs, HighsRefusal, HighsSolution, ModelStatus};
use super::{LpFailureKind, NodeView};
use crate::problem::Template;

/// The most names in one explanation.
const MAX_NAMES: usize = 5;
/// Thresholds of a violation and of an unlimited value in an explanation.
const VIOLATION: f64 = 1e-7;
const UNLIMITED: f64 = 1e9;

/// Finds the kind of a failure, and the rows or columns that cause it.
pub(super) fn explain(
    view: &NodeView<'_>,
    incoming: &[f64],
    opening: usize,
    status: ModelStatus,
) -> (LpFailureKind, String) {
    if let ModelStatus::Other(number) = status {
        return (
            LpFailureKind::NotSolved(format!("HiGHS model status {number}")),
            String::new(),
        );
    }
    let lp = in_place(view, incoming, opening);
    // The cost to go has no upper bound, so cuts are no part of the explanation.
    match shortfalls(&lp) {
        Ok(rows) if !rows.is_empty() => (LpFailureKind::Infeasible, infeasible(&lp, &rows)),
        Ok(_) if status != ModelStatus::Infeasible => (LpFailureKind::Unbounded, unbounded(&lp)),
        _ => (LpFailureKind::Infeasible, String::new()),
    }
}

/// The template at a state and an opening.
pub(crate) fn in_place(view: &NodeView<'_>, incoming: &[f64], opening: usize) -> Template {
    let mut lp = view.problem.template(view.node).clone();
    let places = &view.problem.nodes[view.node].places;
    let parts = places.split(view.opening(opening));
    for (place, &row) in places.rows.iter().enumerate() {
        (lp.rows[row].lower, lp.rows[row].upper) = (parts.row_lower[place], parts.row_upper[place]);
    }
    for (place, &column) in places.columns.iter().enumerate() {
        let bounds = (parts.column_lower[place], parts.column_upper[place]);
        (lp.columns[column].lower, lp.columns[column].upper) = bounds;
    }
    for (place, &column) in places.costs.iter().enumerate() {
        lp.columns[column].cost = parts.costs[place];
    }
    for (place, &(column, row)) in places.coefficients.iter().enumerate() {
        let terms = &mut lp.rows[row].terms;
        match terms.binary_search_by_key(&column, |(column, _)| *column) {
            Ok(at) => terms[at].1 = parts.coefficients[place],
            Err(at) => terms.insert(at, (column, parts.coefficients[place])),
        }
    }
    for (state, &value) in view.problem.template(view.node).states.iter().zip(incoming) {
        (
            lp.columns[state.incoming].lower,
            lp.columns[state.incoming].upper,
        ) = (value, value);
    }
    lp
}

/// The rows whose violation makes all others feasible, with the least total violation: positive if
/// a row is short, negative if it is over.
fn shortfalls(lp: &Template) -> Result<Vec<(usize, f64)>, HighsRefusal> {
    let mut relaxed = lp.clone();
    for column in &mut relaxed.columns {
        column.cost = 0.0;
    }
    let own = relaxed.columns.len();
    let mut meant = Vec::new();
    for number in 0..relaxed.rows.len() {
        let (lower, upper) = (relaxed.rows[number].lower, relaxed.rows[number].upper);
        for (needed, sign) in [(lower.is_finite(), 1.0), (upper.is_finite(), -1.0)] {
            if needed {
                let slack = relaxed.column("", 1.0, 0.0, f64::INFINITY);
                relaxed.rows[number].terms.push((slack.0, sign));
                meant.push((number, sign));
            }
        }
    }
    let mut highs = Highs::new()?;
    highs.pass(&columnwise(&relaxed))?;
    if highs.run() != ModelStatus::Optimal {
        return Err(HighsRefusal("explain"));
    }
    let mut solution = HighsSolution::default();
    highs.solution(&mut solution);
    let slacks = meant.into_iter().zip(&solution.columns[own..]);
    let mut found: Vec<(usize, f64)> = slacks
        .filter(|(_, value)| **value > VIOLATION)
        .map(|((row, sign), value)| (row, sign * value))
        .collect();
    found.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    Ok(found)
}

fn infeasible(lp: &Template, rows: &[(usize, f64)]) -> String {
    let told = rows.iter().take(MAX_NAMES).map(|&(row, gap)| {
        let row = &lp.rows[row];
        if gap > 0.0 {
            format!(
                "{} needs at least {} and gets {} less",
                row.name, row.lower, gap
            )
        } else {
            format!(
                "{} allows at most {} and gets {} more",
                row.name, row.upper, -gap
            )
        }
    });
    let told: Vec<String> = told.collect();
    let more = rows.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!(
        "the least relaxation that makes it feasible: {}{more}",
        told.join(", ")
    )
}

/// Names the columns that reach a huge bound put on all columns.
fn unbounded(lp: &Template) -> String {
    let mut boxed = lp.clone();
    for column in &mut boxed.columns {
        column.lower = column.lower.max(-UNLIMITED);
        column.upper = column.upper.min(UNLIMITED);
    }
    let solve = || -> Result<Vec<f64>, HighsRefusal> {
        let mut highs = Highs::new()?;
        highs.pass(&columnwise(&boxed))?;
        if highs.run() != ModelStatus::Optimal {
            return Err(HighsRefusal("explain"));
        }
        let mut solution = HighsSolution::default();
        highs.solution(&mut solution);
        Ok(solution.columns)
    };
    let Ok(values) = solve() else {
        return String::new();
    };
    let runaway = values
        .iter()
        .zip(&lp.columns)
        .filter(|(value, _)| value.abs() >= UNLIMITED);
    let names: Vec<&str> = runaway
        .map(|(_, column)| column.name.as_str())
        .take(MAX_NAMES)
        .collect();
    format!("give one of these columns a bound: {}", names.join(", "))
}
