//! Generic constraints, by block.

use cobre_results::Rows;
use cobre_results::layout::{CostKind, constraints};

use super::PathStage;

/// Adds a row for each block in which a constraint holds; one that holds for the stage as a whole is in all of them.
pub(super) fn fill(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let (visited, stage) = (path_stage.visited, path_stage.stage);
    for layout in &stage.layout.constraints {
        let constraint = &path_stage.results.constraints[layout.constraint];
        let terms = layout.terms.iter();
        let value: f64 = terms
            .map(|(column, factor)| factor * visited.value(*column))
            .sum();
        let price = 0.0 + visited.dual(layout.row) / layout.hours;
        let (mut amounts, mut cost) = ([0.0; 2], 0.0);
        for (amount, column) in amounts.iter_mut().zip([layout.below, layout.above]) {
            if let Some(column) = column {
                *amount = visited.value(column);
                cost += path_stage.cost(CostKind::Constraint, column);
            }
        }
        let [lower, upper] = layout.bounds.map(|bound| {
            let bound = Some(bound + layout.constant);
            bound.filter(|bound| bound.is_finite())
        });
        for (block, &hours) in stage.hours.iter().enumerate() {
            if layout.block.is_some_and(|own| own != block) {
                continue;
            }
            let row = constraints::Row {
                scenario: visited.scenario,
                stage: visited.stage,
                start_date: visited.start_date,
                block: stage.blocks[block],
                hours,
                constraint_id: constraint.id,
                constraint: &constraint.name,
                value: value + layout.known + layout.constant,
                lower,
                upper,
                price_per_hour: price,
                min_constraint_violation: amounts[0],
                max_constraint_violation: amounts[1],
                cost: cost * hours / layout.hours,
            };
            rows.push(&row.cells());
        }
    }
}
