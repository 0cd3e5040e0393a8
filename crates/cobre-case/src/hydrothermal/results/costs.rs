//! Costs of a stage, by kind.

use cobre_results::Rows;
use cobre_results::layout::{CostKind, costs};

use super::PathStage;

/// The costs of a stage, by kind.
#[derive(Debug, Default)]
pub(super) struct Costs([f64; CostKind::ALL.len()]);

impl Costs {
    pub(super) fn add(&mut self, kind: CostKind, cost: f64) {
        self.0[kind as usize] += cost;
    }
}

pub(super) fn fill(path_stage: &mut PathStage<'_>, rows: &mut Rows) {
    let visited = path_stage.visited;
    let row = costs::Row {
        scenario: visited.scenario,
        stage: visited.stage,
        start_date: visited.start_date,
        discount: visited.discount,
        kinds: path_stage.costs.0,
        stage_cost: visited.cost(),
        future_cost: visited.answer.future,
    };
    rows.push(&row.cells());
}
