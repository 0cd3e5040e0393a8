//! Generic constraints, by block.

use cobre_sddp::{Cell, Column, Kind, Rows, Table};

use super::costs::Cost;
use super::{Scene, block_columns, thing_columns};

/// The table of generic constraints.
pub(super) fn table() -> Table {
    let mut columns = block_columns();
    columns.extend(thing_columns(
        "constraint_id",
        "constraint",
        "generic constraint",
    ));
    columns.extend([
        Column::new("value", Kind::Number, "left-hand side"),
        Column::new("lower", Kind::Maybe, "the least it should be"),
        Column::new("upper", Kind::Maybe, "the most it should be"),
        Column::number(
            "price_per_hour",
            "$/h",
            "what the bound would cost per hour if it were 1 higher, now and later, in money of this stage; 0 where it \
             does not bind",
        ),
        Column::new(
            "min_constraint_violation",
            Kind::Number,
            "what the left-hand side lacks to its least",
        ),
        Column::new(
            "max_constraint_violation",
            Kind::Number,
            "what the left-hand side is above its most",
        ),
        Column::number("cost", "$", "what violations add to the cost of the stage"),
    ]);
    Table::new("simulation/constraints", columns)
}

/// Adds a row for each block in which a constraint holds; one that holds for the stage as a whole is in all of them.
pub(super) fn fill(scene: &mut Scene<'_>, rows: &mut Rows) {
    let (visited, stage) = (scene.visited, scene.stage);
    for layout in &stage.layout.constraints {
        let constraint = &scene.results.constraints[layout.constraint];
        let terms = layout.terms.iter();
        let value: f64 = terms
            .map(|(column, factor)| factor * visited.value(*column))
            .sum();
        let price = 0.0 + visited.dual(layout.row) / layout.hours;
        let (mut amounts, mut cost) = ([0.0; 2], 0.0);
        for (amount, column) in amounts.iter_mut().zip([layout.below, layout.above]) {
            if let Some(column) = column {
                *amount = visited.value(column);
                cost += scene.cost(Cost::Constraint, column);
            }
        }
        let [lower, upper] = layout.bounds.map(|bound| {
            let bound = Some(bound + constraint.constant);
            Cell::Maybe(bound.filter(|bound| bound.is_finite()))
        });
        for (block, &hours) in stage.hours.iter().enumerate() {
            if layout.block.is_some_and(|own| own != block) {
                continue;
            }
            rows.push(&[
                visited.scenario.into(),
                visited.stage.into(),
                (block + 1).into(),
                hours.into(),
                constraint.id.into(),
                constraint.name.as_str().into(),
                (value + layout.known + constraint.constant).into(),
                lower,
                upper,
                price.into(),
                amounts[0].into(),
                amounts[1].into(),
                (cost * hours / layout.hours).into(),
            ]);
        }
    }
}
