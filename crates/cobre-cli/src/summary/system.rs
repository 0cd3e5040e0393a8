//! Figures of a hydrothermal system: storage, deficit, marginal costs.

use std::collections::BTreeMap;

use cobre_results::layout::{self, HOURS, SCENARIO, STAGE, START_DATE, hydros};
use cobre_results::statistics::mean;
use cobre_results::{Results, ResultsError, Table};

use super::{some, spread};
use crate::terminal_table::{TerminalTable, fact, number, title};

/// A deficit below this, MW, is one of the solver's tolerance.
const NO_DEFICIT_MW: f64 = 1e-6;

/// The number and the name of a bus; names may occur twice.
type Bus = (i64, String);
/// Sums over rows by a key.
type Sums<K> = BTreeMap<K, f64>;
/// By scenario and stage: cost × hours, and hours.
type Weighted = BTreeMap<(i64, i64), (f64, f64)>;

/// Water in all reservoirs after some stages.
pub(super) fn storage(results: &Results) -> Result<(), ResultsError> {
    let Some(table) = results.table(hydros::TABLE)? else {
        return Ok(());
    };
    // By stage and scenario.
    let mut stored: Sums<(i64, i64)> = BTreeMap::new();
    let mut dates: BTreeMap<i64, String> = BTreeMap::new();
    for group in 0..table.groups() {
        let at = RowKeys::read(&table, group)?;
        let storage = table.numbers(group, hydros::STORAGE_HM3)?;
        let days = table.texts(group, START_DATE)?;
        dates.extend(at.stages.iter().copied().zip(days));
        for (row, storage) in storage.iter().enumerate() {
            *stored
                .entry((at.stages[row], at.scenarios[row]))
                .or_default() += storage;
        }
    }
    let mut by_stage: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for ((stage, _), storage) in stored {
        by_stage.entry(stage).or_default().push(storage);
    }
    title("water in all reservoirs after the stage, hm³", false);
    let mut table = TerminalTable::new(["stage", "from", "mean", "p5", "p95"]);
    let stages: Vec<(i64, Vec<f64>)> = by_stage.into_iter().collect();
    for place in some(stages.len()) {
        let (stage, values) = &stages[place];
        let [mean, low, high] = spread(values, number);
        let day = dates.get(stage).cloned().unwrap_or_default();
        table.row([stage.to_string(), day, mean, low, high]);
    }
    table.print();
    Ok(())
}

/// The probability of a deficit, and its size.
pub(super) fn deficit(results: &Results) -> Result<(), ResultsError> {
    let table = results.needed(layout::buses::TABLE)?;
    // By bus, and by scenario: MWh.
    let mut unserved: BTreeMap<Bus, Sums<i64>> = BTreeMap::new();
    for group in 0..table.groups() {
        let at = RowKeys::read(&table, group)?;
        let (hours, buses) = (table.numbers(group, HOURS)?, buses(&table, group)?);
        let deficits = table.numbers(group, layout::buses::DEFICIT_MW)?;
        for (row, deficit) in deficits.iter().enumerate() {
            let real = if *deficit > NO_DEFICIT_MW {
                *deficit
            } else {
                0.0
            };
            let of_bus = unserved.entry(buses[row].clone()).or_default();
            *of_bus.entry(at.scenarios[row]).or_default() += real * hours[row];
        }
    }
    let mut all: Sums<i64> = BTreeMap::new();
    for of_bus in unserved.values() {
        for (scenario, energy) in of_bus {
            *all.entry(*scenario).or_default() += energy;
        }
    }
    title("deficit", false);
    if all.values().all(|energy| *energy == 0.0) {
        fact("none", &format!("in {} scenarios", all.len()));
        return Ok(());
    }
    let mut table = TerminalTable::new(["bus", "scenarios", "mean MWh", "p95 MWh", "most MWh"]);
    let rows = unserved
        .iter()
        .map(|((_, name), of_bus)| (name.as_str(), of_bus));
    for (name, of_bus) in rows.chain([("all", &all)]) {
        let energies: Vec<f64> = of_bus.values().copied().collect();
        let short = energies.iter().filter(|energy| **energy > 0.0).count();
        let [mean, _, high] = spread(&energies, number);
        let most = energies.iter().copied().fold(0.0, f64::max);
        table.row([
            name.to_owned(),
            format!("{:.2} %", 100.0 * short as f64 / energies.len() as f64),
            mean,
            high,
            number(most),
        ]);
    }
    table.print();
    Ok(())
}

/// The marginal cost at each bus: over scenarios and stages, weighted by the hours of blocks.
pub(super) fn marginal_costs(results: &Results) -> Result<(), ResultsError> {
    let table = results.needed(layout::buses::TABLE)?;
    let mut found: BTreeMap<Bus, Weighted> = BTreeMap::new();
    for group in 0..table.groups() {
        let at = RowKeys::read(&table, group)?;
        let (hours, buses) = (table.numbers(group, HOURS)?, buses(&table, group)?);
        let costs = table.numbers(group, layout::buses::MARGINAL_COST_PER_MWH)?;
        for (row, cost) in costs.iter().enumerate() {
            let of_bus = found.entry(buses[row].clone()).or_default();
            let place = of_bus.entry((at.scenarios[row], at.stages[row]));
            let sums = place.or_default();
            sums.0 += cost * hours[row];
            sums.1 += hours[row];
        }
    }
    title("marginal cost of a stage, $/MWh", false);
    let mut table = TerminalTable::new(["bus", "mean", "p5", "p95", "most"]);
    for ((_, name), of_bus) in &found {
        let means: Vec<f64> = of_bus.values().map(|(sum, hours)| sum / hours).collect();
        let [_, low, high] = spread(&means, number);
        let weight = mean(of_bus.values().map(|(_, hours)| *hours));
        let whole = mean(of_bus.values().map(|(sum, _)| *sum)) / weight;
        let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        table.row([name.clone(), number(whole), low, high, number(most)]);
    }
    table.print();
    Ok(())
}

/// Which bus each row of a group is about.
fn buses(table: &Table, group: usize) -> Result<Vec<Bus>, ResultsError> {
    let ids = table.integers(group, layout::buses::BUS_ID)?;
    Ok(ids
        .into_iter()
        .zip(table.texts(group, layout::buses::BUS)?)
        .collect())
}

/// Which scenario and stage the rows of a group are about.
struct RowKeys {
    scenarios: Vec<i64>,
    stages: Vec<i64>,
}

impl RowKeys {
    fn read(table: &Table, group: usize) -> Result<Self, ResultsError> {
        Ok(Self {
            scenarios: table.integers(group, SCENARIO)?,
            stages: table.integers(group, STAGE)?,
        })
    }
}
