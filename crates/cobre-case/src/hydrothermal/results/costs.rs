//! Costs of a stage, by kind.

use cobre_sddp::{Cell, Column, Kind, Rows, Table, stage_columns};

use super::Scene;

/// A kind of cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    Thermal,
    Source,
    Exchange,
    Deficit,
    Excess,
    Spillage,
    MinStorage,
    MinTurbined,
    MinGeneration,
    MinOutflow,
    MaxOutflow,
    InflowAdded,
    InflowTruncation,
    Turbined,
    Diversion,
    Evaporation,
    Withdrawal,
    Filling,
    Production,
    Commitment,
    Contract,
    BatteryWear,
    MinLevel,
    MinPumping,
    Constraint,
}

/// The column of each kind, in order, and what it means.
const KINDS: [(&str, &str); 25] = [
    ("thermal_cost", "generation of thermal plants"),
    (
        "source_cost",
        "energy taken from sources, which is credited the curtailment cost: not above zero",
    ),
    ("exchange_cost", "energy sent over lines"),
    ("deficit_cost", "load that is not served"),
    ("excess_cost", "energy that nobody takes"),
    ("spillage_cost", "water spilled"),
    ("min_storage_violation_cost", "storage below its minimum"),
    (
        "min_turbined_violation_cost",
        "turbined flow below its minimum",
    ),
    (
        "min_generation_violation_cost",
        "hydro generation below its minimum",
    ),
    ("min_outflow_violation_cost", "outflow below its minimum"),
    ("max_outflow_violation_cost", "outflow above its maximum"),
    (
        "inflow_added_cost",
        "water added to inflows below zero (method penalty)",
    ),
    (
        "inflow_truncation_cost",
        "inflows below zero lifted to zero (method truncation, inflows that depend on the past)",
    ),
    (
        "turbined_cost",
        "flow through turbines of plants with hyperplanes",
    ),
    ("diversion_cost", "water diverted"),
    (
        "evaporation_violation_cost",
        "evaporation that differs from that of the lake's area",
    ),
    (
        "withdrawal_violation_cost",
        "withdrawal that differs from what is asked for",
    ),
    (
        "filling_violation_cost",
        "storage below the target of a filling",
    ),
    (
        "production_violation_cost",
        "hyperplanes below zero, where generation is zero",
    ),
    (
        "commitment_cost",
        "generation of later stages that thermal plants are committed to in this one, discounted to it",
    ),
    (
        "contract_cost",
        "energy of contracts; below zero where revenue is larger",
    ),
    (
        "battery_degradation_cost",
        "wear of batteries by discharging",
    ),
    (
        "min_level_violation_cost",
        "levels of batteries below their minimum",
    ),
    (
        "min_pumping_violation_cost",
        "pumped flow below its minimum",
    ),
    (
        "constraint_violation_cost",
        "violations of generic constraints",
    ),
];

/// The costs of a stage, by kind.
#[derive(Debug, Default)]
pub(super) struct Costs([f64; KINDS.len()]);

impl Costs {
    pub(super) fn add(&mut self, kind: Cost, cost: f64) {
        self.0[kind as usize] += cost;
    }
}

/// The table of costs.
pub(super) fn table() -> Table {
    let mut columns = stage_columns().to_vec();
    columns.push(Column::new(
        "discount",
        Kind::Number,
        "what one $ of this stage counts in the value of the path",
    ));
    columns.extend(KINDS.map(|(name, meaning)| Column::number(name, "$", meaning)));
    columns.extend([
        Column::number(
            "stage_cost",
            "$",
            "cost of the stage: all of the above together",
        ),
        Column::number(
            "future_cost",
            "$",
            "cost of all that follows, as the policy sees it, in money of this stage",
        ),
    ]);
    Table::new("simulation/costs", columns)
}

pub(super) fn fill(scene: &mut Scene<'_>, rows: &mut Rows) {
    let visited = scene.visited;
    let mut row: Vec<Cell<'_>> = vec![
        visited.scenario.into(),
        visited.stage.into(),
        visited.discount.into(),
    ];
    row.extend(scene.costs.0.map(Cell::Number));
    row.extend([visited.answer.cost.into(), visited.answer.future.into()] as [Cell<'_>; 2]);
    rows.push(&row);
}
