//! The least cost of a linear program for unit changes of single columns.

use super::columnwise::columnwise;
use super::highs::{Highs, HighsRefusal, HighsSolution, ModelStatus, number};
use crate::problem::Template;

/// The least cost of `lp` with each of these columns at `value` in turn and the others of them at zero; infinite where
/// there is no solution.
pub(crate) fn least_costs(lp: &Template, columns: &[usize], value: f64) -> Vec<f64> {
    let infinite = || vec![f64::INFINITY; columns.len()];
    solve(lp, columns, value).unwrap_or_else(|_| infinite())
}

fn solve(lp: &Template, columns: &[usize], value: f64) -> Result<Vec<f64>, HighsRefusal> {
    let costs: Vec<f64> = lp.columns.iter().map(|column| column.cost).collect();
    let mut lp = columnwise(lp);
    for &column in columns {
        (lp.lower[column], lp.upper[column]) = (0.0, 0.0);
    }
    let mut highs = Highs::new()?;
    highs.set_text(c"parallel", c"off")?;
    highs.set_integer(c"threads", 1)?;
    highs.set_text(c"solver", c"simplex")?;
    highs.pass(&lp)?;
    let mut solution = HighsSolution::default();
    let mut found = Vec::with_capacity(columns.len());
    for &column in columns {
        let set = [number(column)];
        highs.set_column_bounds(&set, &[value], &[value])?;
        let cost = if highs.run() == ModelStatus::Optimal {
            highs.solution(&mut solution);
            solution
                .columns
                .iter()
                .zip(&costs)
                .map(|(own, cost)| own * cost)
                .sum()
        } else {
            f64::INFINITY
        };
        found.push(cost);
        highs.set_column_bounds(&set, &[0.0], &[0.0])?;
    }
    Ok(found)
}
