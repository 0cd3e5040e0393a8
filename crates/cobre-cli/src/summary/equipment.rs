//! Figures of pumping, contracts, batteries and generic constraints.

use std::collections::BTreeMap;

use cobre_results::{Results, ResultsError};

use super::spread;
use crate::terminal_table::{TerminalTable, number, title};

/// Amounts up to this are the solver's tolerance.
const NOTHING: f64 = 1e-6;

/// A quantity of the things of a table, added up over a scenario by the hours of blocks.
struct SummedFlow {
    table: &'static str,
    thing: &'static str,
    column: &'static str,
    what: &'static str,
    /// Hours by unit of the sum.
    scale: f64,
}

const FLOWS: [SummedFlow; 5] = [
    SummedFlow {
        table: "pumping",
        thing: "station",
        column: "flow_m3s",
        what: "pumped, hm³",
        scale: 0.0036,
    },
    SummedFlow {
        table: "contracts",
        thing: "contract",
        column: "import_mw",
        what: "imported, MWh",
        scale: 1.0,
    },
    SummedFlow {
        table: "contracts",
        thing: "contract",
        column: "export_mw",
        what: "exported, MWh",
        scale: 1.0,
    },
    SummedFlow {
        table: "battery_blocks",
        thing: "battery",
        column: "charge_mw",
        what: "charged, MWh",
        scale: 1.0,
    },
    SummedFlow {
        table: "battery_blocks",
        thing: "battery",
        column: "discharge_mw",
        what: "discharged, MWh",
        scale: 1.0,
    },
];

/// Shows what a scenario moves in all its stages, and which generic constraints bind.
pub(super) fn show(results: &Results) -> Result<(), ResultsError> {
    let mut shown = TerminalTable::new(["in all stages of a scenario", "of", "mean", "p5", "p95"]);
    let mut any = false;
    for flow in FLOWS {
        for (name, of_scenarios) in sums(results, &flow)? {
            if of_scenarios.iter().any(|sum| *sum > NOTHING) {
                let [mean, low, high] = spread(&of_scenarios, number);
                shown.row([flow.what.to_owned(), name, mean, low, high]);
                any = true;
            }
        }
    }
    if any {
        title("pumping, contracts and batteries", false);
        shown.print();
    }
    constraints(results)
}

/// By thing, the sums of all scenarios.
fn sums(results: &Results, flow: &SummedFlow) -> Result<Vec<(String, Vec<f64>)>, ResultsError> {
    let Some(table) = results.table(&format!("simulation/{}", flow.table))? else {
        return Ok(Vec::new());
    };
    let mut found: BTreeMap<i64, (String, BTreeMap<i64, f64>)> = BTreeMap::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, &format!("{}_id", flow.thing))?;
        let names = table.texts(group, flow.thing)?;
        let scenarios = table.integers(group, "scenario")?;
        let hours = table.numbers(group, "hours")?;
        let values = table.numbers(group, flow.column)?;
        for (row, value) in values.iter().enumerate() {
            let (_, sums) = found
                .entry(ids[row])
                .or_insert_with(|| (names[row].clone(), BTreeMap::new()));
            *sums.entry(scenarios[row]).or_default() += value * hours[row] * flow.scale;
        }
    }
    let found = found.into_values();
    Ok(found
        .map(|(name, sums)| (name, sums.into_values().collect()))
        .collect())
}

/// How often generic constraints bind or are violated, and at what price.
fn constraints(results: &Results) -> Result<(), ResultsError> {
    let Some(table) = results.table(cobre_results::layout::constraints::TABLE)? else {
        return Ok(());
    };
    // By constraint: name, rows, rows that bind, rows that are violated, largest price.
    let mut found: BTreeMap<i64, (String, [usize; 3], f64)> = BTreeMap::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, "constraint_id")?;
        let names = table.texts(group, "constraint")?;
        let prices = table.numbers(group, "price_per_hour")?;
        let below = table.numbers(group, "min_constraint_violation")?;
        let above = table.numbers(group, "max_constraint_violation")?;
        for (row, price) in prices.iter().enumerate() {
            let (_, counts, most) = found
                .entry(ids[row])
                .or_insert_with(|| (names[row].clone(), [0; 3], 0.0));
            counts[0] += 1;
            counts[1] += usize::from(price.abs() > NOTHING);
            counts[2] += usize::from(below[row].max(above[row]) > NOTHING);
            *most = most.max(price.abs());
        }
    }
    title("generic constraints", false);
    let mut shown = TerminalTable::new(["constraint", "binds", "violated", "largest price, $/h"]);
    for (name, [rows, binding, violated], price) in found.into_values() {
        let share = |count: usize| format!("{:.2} %", 100.0 * count as f64 / rows as f64);
        shown.row([name, share(binding), share(violated), number(price)]);
    }
    shown.print();
    Ok(())
}
