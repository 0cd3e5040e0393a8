//! Costs of scenarios, in all and by kind.

use std::collections::BTreeMap;

use cobre_results::layout::{CostKind, SCENARIO, costs, paths};
use cobre_results::statistics::mean;
use cobre_results::{Results, ResultsError};

use super::spread;
use crate::terminal_table::{TerminalTable, magnitude, number, title};

/// The discounted cost of each kind, by scenario.
type Kinds = Vec<(String, Vec<f64>)>;

/// The costs of a simulation by kind; kinds that cost nothing anywhere are left out. None without costs.
pub(crate) fn by_kind(results: &Results) -> Result<Option<Kinds>, ResultsError> {
    let Some(table) = results.table(costs::TABLE)? else {
        return Ok(None);
    };
    let kinds = table.columns().iter();
    let kinds = kinds.filter(|name| costs::is_kind(name));
    let mut found: Vec<(String, BTreeMap<i64, f64>)> =
        kinds.map(|kind| (kind.clone(), BTreeMap::new())).collect();
    for group in 0..table.groups() {
        let scenarios = table.integers(group, SCENARIO)?;
        let discounts = table.numbers(group, costs::DISCOUNT)?;
        for (kind, sums) in &mut found {
            let costs = table.numbers(group, kind)?;
            for ((cost, discount), scenario) in costs.iter().zip(&discounts).zip(&scenarios) {
                *sums.entry(*scenario).or_default() += discount * cost;
            }
        }
    }
    let found = found.into_iter();
    let found = found.map(|(kind, sums)| (kind, sums.into_values().collect::<Vec<f64>>()));
    let found = found.filter(|(_, costs)| costs.iter().any(|cost| *cost != 0.0));
    Ok(Some(found.collect()))
}

/// The costs of a hydrothermal case.
pub(super) fn show(results: &Results) -> Result<(), ResultsError> {
    let totals = totals(results)?;
    let kinds = by_kind(results)?.unwrap_or_default();
    let whole = mean(totals.iter().copied());
    let (unit, word) = magnitude(whole);
    let count = totals.len();
    title(
        &format!("costs of {count} scenarios, {word}$ (discounted)"),
        false,
    );
    let told = |value: f64| format!("{:.3}", value / unit);
    let mut table = TerminalTable::new(["kind", "mean", "p5", "p95", "share"]);
    for (kind, costs) in &kinds {
        let [mean_text, low, high] = spread(costs, told);
        let share = 100.0 * mean(costs.iter().copied()) / whole;
        table.row([
            CostKind::words(kind),
            mean_text,
            low,
            high,
            format!("{share:.2} %"),
        ]);
    }
    let [mean_text, low, high] = spread(&totals, told);
    table.row([
        "all".to_owned(),
        mean_text,
        low,
        high,
        "100.00 %".to_owned(),
    ]);
    table.print();
    Ok(())
}

/// The values of any other problem.
pub(super) fn values(results: &Results) -> Result<(), ResultsError> {
    let totals = totals(results)?;
    title(&format!("value of {} scenarios", totals.len()), false);
    let mut table = TerminalTable::new(["", "mean", "p5", "p95"]);
    let [mean, low, high] = spread(&totals, number);
    table.row(["value".to_owned(), mean, low, high]);
    table.print();
    Ok(())
}

fn totals(results: &Results) -> Result<Vec<f64>, ResultsError> {
    results.needed(paths::TABLE)?.all_numbers(paths::VALUE)
}
