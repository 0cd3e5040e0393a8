//! Water that does not turbine: evaporation, withdrawal, diversion; production against the exact function; limits
//! that were not kept.

use std::collections::BTreeMap;

use cobre_results::statistics::mean;
use cobre_results::{Results, ResultsError, Table};

use super::spread;
use crate::terminal_table::{TerminalTable, fact, number, title};

/// hm³ that 1 m³/s brings in an hour.
const HM3_PER_M3S_HOUR: f64 = 3600.0 / 1e6;
/// Values up to this are the solver's tolerance.
const TOLERANCE: f64 = 1e-6;

/// Columns of a table by name; none of those that it lacks.
fn column(table: &Table, group: usize, name: &str) -> Result<Option<Vec<f64>>, ResultsError> {
    let known = table.columns().iter().any(|column| column == name);
    known.then(|| table.numbers(group, name)).transpose()
}

/// Water of a scenario that evaporates, is withdrawn or diverted, hm³.
pub(super) fn uses(results: &Results) -> Result<(), ResultsError> {
    let (Some(hydros), Some(blocks)) = (
        results.table("simulation/hydros")?,
        results.table("simulation/hydro_blocks")?,
    ) else {
        return Ok(());
    };
    // Hours of a stage are those of the blocks of any plant.
    let mut hours: BTreeMap<(i64, i64, i64), f64> = BTreeMap::new();
    let mut diverted: BTreeMap<i64, f64> = BTreeMap::new();
    for group in 0..blocks.groups() {
        let scenarios = blocks.integers(group, "scenario")?;
        let stages = blocks.integers(group, "stage")?;
        let ids = blocks.integers(group, "hydro_id")?;
        let lengths = blocks.numbers(group, "hours")?;
        let flows = column(&blocks, group, "diverted_m3s")?;
        for (row, length) in lengths.iter().enumerate() {
            let (scenario, stage) = (scenarios[row], stages[row]);
            *hours.entry((scenario, stage, ids[row])).or_default() += length;
            let flow = flows.as_ref().map_or(0.0, |flows| flows[row]);
            *diverted.entry(scenario).or_default() += flow * length * HM3_PER_M3S_HOUR;
        }
    }
    let mut found = vec![("diverted", diverted)];
    for (name, key) in [
        ("evaporated", "evaporation_m3s"),
        ("withdrawn", "withdrawal_m3s"),
    ] {
        let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
        for group in 0..hydros.groups() {
            let Some(flows) = column(&hydros, group, key)? else {
                continue;
            };
            let scenarios = hydros.integers(group, "scenario")?;
            let stages = hydros.integers(group, "stage")?;
            let ids = hydros.integers(group, "hydro_id")?;
            for (row, flow) in flows.iter().enumerate() {
                let length = hours.get(&(scenarios[row], stages[row], ids[row]));
                let volume = flow * length.unwrap_or(&0.0) * HM3_PER_M3S_HOUR;
                *sums.entry(scenarios[row]).or_default() += volume;
            }
        }
        found.push((name, sums));
    }
    found.retain(|(_, sums)| sums.values().any(|sum| sum.abs() > TOLERANCE));
    if found.is_empty() {
        return Ok(());
    }
    title(
        "water of all plants that is not turbined or spilled, hm³",
        false,
    );
    let mut table = TerminalTable::new(["", "mean", "p5", "p95"]);
    for (name, sums) in found {
        let values: Vec<f64> = sums.into_values().collect();
        let [mean, low, high] = spread(&values, number);
        table.row([name.to_owned(), mean, low, high]);
    }
    table.print();
    Ok(())
}

/// Generation by hyperplanes against that of the exact production function.
pub(super) fn production(results: &Results) -> Result<(), ResultsError> {
    let Some(table) = results.table("simulation/production")? else {
        return Ok(());
    };
    let mut errors: BTreeMap<(i64, String), Vec<f64>> = BTreeMap::new();
    for group in 0..table.groups() {
        let ids = table.integers(group, "hydro_id")?;
        let names = table.texts(group, "hydro")?;
        let powers = table.numbers(group, "generation_mw")?;
        let exact = table.numbers(group, "exact_generation_mw")?;
        let plants = ids.into_iter().zip(names);
        for (plant, (power, exact)) in plants.zip(powers.into_iter().zip(exact)) {
            errors.entry(plant).or_default().push(power - exact);
        }
    }
    title(
        "generation by hyperplanes less that of the exact function, MW",
        false,
    );
    let mut table = TerminalTable::new(["plant", "mean", "least", "most"]);
    for ((_, name), errors) in &errors {
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        let most = errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = mean(errors.iter().copied());
        table.row([name.clone(), number(mean), number(least), number(most)]);
    }
    table.print();
    Ok(())
}

/// Limits of hydro plants that were not kept.
pub(super) fn violations(results: &Results) -> Result<(), ResultsError> {
    let mut kinds: Vec<(String, usize, f64)> = Vec::new();
    let mut scenarios = 0;
    for name in ["simulation/hydros", "simulation/hydro_blocks"] {
        let Some(table) = results.table(name)? else {
            continue;
        };
        let violations = table
            .columns()
            .iter()
            .filter(|column| column.contains("violation"));
        for key in violations {
            let mut largest: BTreeMap<i64, f64> = BTreeMap::new();
            for group in 0..table.groups() {
                let numbers = table.integers(group, "scenario")?;
                for (scenario, value) in numbers.into_iter().zip(table.numbers(group, key)?) {
                    let own = largest.entry(scenario).or_default();
                    *own = own.max(value);
                }
            }
            scenarios = scenarios.max(largest.len());
            let missed = largest.values().filter(|value| **value > TOLERANCE).count();
            let most = largest.values().copied().fold(0.0, f64::max);
            if missed > 0 {
                kinds.push((key.clone(), missed, most));
            }
        }
    }
    title("limits of hydro plants that were not kept", false);
    if kinds.is_empty() {
        fact("none", &format!("in {scenarios} scenarios"));
        return Ok(());
    }
    let mut table = TerminalTable::new(["limit", "scenarios", "most"]);
    for (key, missed, most) in kinds {
        let share = 100.0 * missed as f64 / scenarios.max(1) as f64;
        table.row([key, format!("{share:.2} %"), number(most)]);
    }
    table.print();
    Ok(())
}
