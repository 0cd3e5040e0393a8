//! The simulated scenarios: how many, what each costs, and those that are shown one by one.

use std::collections::BTreeMap;
use std::rc::Rc;

use cobre_results::layout::{SCENARIO, STAGE, START_DATE, paths, stages};
use cobre_results::{Results, ResultsError, Table};
use serde::Serialize;

use crate::chart::Positions;
use crate::dates;
use crate::grid::Grid;

/// Most plants, buses or states of one kind that are shown one by one.
pub(crate) const MAX_SHOWN: usize = 32;

/// A simulation that a run has left.
pub(crate) struct SimulationData {
    results: Rc<Results>,
    /// The total of each scenario, in scenario order.
    pub(crate) totals: Vec<f64>,
    /// The stages, in order.
    pub(crate) stages: Vec<StageLabel>,
    /// Those that are shown one by one.
    pub(crate) single: Vec<Single>,
}

/// A stage of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StageLabel {
    /// Its number in the case.
    pub(crate) number: i64,
    /// Its first day, as YYYY-MM-DD; empty if there is none.
    pub(crate) date: String,
}

impl StageLabel {
    /// Its number and its first day.
    pub(crate) fn told(&self) -> String {
        if self.date.is_empty() {
            self.number.to_string()
        } else {
            format!("{} ({})", self.number, self.date)
        }
    }
}

/// A scenario that is shown by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Single {
    /// Its place, from 0.
    #[serde(skip)]
    pub(crate) scenario: usize,
    pub(crate) name: String,
    /// True if charts show it at first.
    pub(crate) shown: bool,
}

/// Something that has values of its own: a plant, a bus, a state.
#[derive(Debug)]
pub(crate) struct Entity {
    /// Its number in the case, or its place among the columns of a table.
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) grid: Grid,
}

/// A quantity of all entities of a table.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// The sum over all entities.
    pub(crate) total: Grid,
    /// The entities with the largest values, at most [`MAX_SHOWN`], in the order of the table.
    pub(crate) entities: Vec<Entity>,
    /// Number of entities.
    pub(crate) count: usize,
}

/// The aggregation of the values of a stage's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// There are none: one row per stage.
    None,
    /// Their mean, weighted by hours.
    Mean,
    /// Their sum times hours.
    Energy,
}

/// A column of a table in which entities have rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    pub(crate) table: &'static str,
    /// The column with the name of an entity.
    pub(crate) entity: &'static str,
    pub(crate) column: &'static str,
    /// A column to take off it, if any.
    pub(crate) less: Option<&'static str>,
    pub(crate) blocks: Blocks,
}

impl Quantity {
    /// The values of a row group.
    pub(crate) fn values(&self, table: &Table, group: usize) -> Result<Vec<f64>, ResultsError> {
        let mut values = table.numbers(group, self.column)?;
        if let Some(less) = self.less {
            let off = table.numbers(group, less)?;
            for (value, off) in values.iter_mut().zip(off) {
                *value -= off;
            }
        }
        Ok(values)
    }
}

impl SimulationData {
    /// Reads what all sections need; none if the run did not simulate.
    pub(crate) fn open(
        results: &Rc<Results>,
        chosen: &[String],
    ) -> Result<Option<Self>, ResultsError> {
        let Some(table) = results.table(paths::TABLE)? else {
            return Ok(None);
        };
        let names = names(&table)?;
        let totals = table.all_numbers(paths::VALUE)?;
        let numbers = table.all_integers(SCENARIO)?;
        let counted = numbers
            .iter()
            .zip(1..)
            .all(|(found, number)| *found == number);
        if totals.is_empty() || !counted || totals.iter().any(|value| value.is_nan()) {
            return Err(table.damaged("scenarios should be numbered from 1, each with a value"));
        }
        let table = results.needed(stages::TABLE)?;
        let mut dates: BTreeMap<i64, String> = BTreeMap::new();
        for group in 0..table.groups() {
            let numbers = table.integers(group, STAGE)?.into_iter();
            for (number, date) in numbers.zip(table.texts(group, START_DATE)?) {
                dates.entry(number).or_insert(date);
            }
        }
        if dates.is_empty() {
            return Err(table.damaged("there should be a row for each stage of a scenario"));
        }
        let labels = dates.into_iter();
        let labels = labels.map(|(number, date)| StageLabel { number, date });
        let mut single = single(&totals, &names);
        for asked in chosen {
            let scenario = find(&names, asked).ok_or_else(|| {
                let what = format!("there is no scenario {asked}: give its label or its number");
                ResultsError::incomplete(&results.path, what)
            })?;
            choose(&mut single, scenario, &names[scenario]);
        }
        Ok(Some(Self {
            results: Rc::clone(results),
            totals,
            stages: labels.collect(),
            single,
        }))
    }

    /// Number of scenarios.
    pub(crate) fn scenarios(&self) -> usize {
        self.totals.len()
    }

    /// A grid for this simulation, without values.
    pub(crate) fn grid(&self) -> Grid {
        Grid::new(self.stages.len(), self.scenarios())
    }

    /// The stages on an axis, and the word for them.
    pub(crate) fn axis(&self) -> (Positions, &'static str) {
        let stages = &self.stages;
        if stages.iter().any(|stage| stage.date.is_empty()) {
            let numbers = stages.iter().map(|stage| stage.number as f64).collect();
            return (Positions::Numbers(numbers), "stage");
        }
        let (labels, word) = dates::labels(stages.iter().map(|stage| stage.date.as_str()));
        let numbers = (0..stages.len()).map(|place| place as f64).collect();
        (Positions::Stages { numbers, labels }, word)
    }

    /// A table of the simulation; none if the case has nothing to write there.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Table>, ResultsError> {
        self.results.table(name)
    }

    /// A table every simulation has.
    pub(crate) fn required(&self, name: &str) -> Result<Table, ResultsError> {
        self.results.needed(name)
    }

    /// The places, from 0, of the stages and scenarios of the rows of a group.
    pub(crate) fn places(
        &self,
        table: &Table,
        group: usize,
    ) -> Result<Vec<(usize, usize)>, ResultsError> {
        let stages = table.integers(group, STAGE)?;
        let scenarios = table.integers(group, SCENARIO)?;
        let place = |(stage, scenario): (i64, i64)| {
            let known = |label: &StageLabel| label.number.cmp(&stage);
            let stage = self.stages.binary_search_by(known).ok();
            let scenario = usize::try_from(scenario - 1).ok();
            let scenario = scenario.filter(|at| *at < self.scenarios());
            stage.zip(scenario)
        };
        let places: Option<Vec<_>> = stages.into_iter().zip(scenarios).map(place).collect();
        places.ok_or_else(|| table.damaged("it has scenarios or stages that other tables have not"))
    }
}

/// The name of each scenario: its label, else its number. Runs of earlier versions have no labels.
fn names(table: &Table) -> Result<Vec<String>, ResultsError> {
    let known = table.columns().iter().any(|column| column == paths::LABEL);
    let mut found = Vec::new();
    for group in 0..table.groups() {
        let labels = if known {
            table.texts(group, paths::LABEL)?
        } else {
            vec![String::new(); table.rows(group)]
        };
        found.extend(labels);
    }
    for (number, name) in found.iter_mut().enumerate() {
        if name.is_empty() {
            *name = format!("scenario {}", number + 1);
        }
    }
    Ok(found)
}

/// The scenario of a label, else of a number.
fn find(names: &[String], asked: &str) -> Option<usize> {
    let by_name = names.iter().position(|name| name == asked);
    let number = || asked.parse::<usize>().ok()?.checked_sub(1);
    by_name.or_else(|| number().filter(|at| *at < names.len()))
}

/// Shows a scenario in all charts, first of all.
fn choose(singles: &mut Vec<Single>, scenario: usize, name: &str) {
    let there = singles
        .iter()
        .position(|single| single.scenario == scenario);
    let mut single = there.map_or_else(
        || Single {
            scenario,
            name: format!("{name}, chosen"),
            shown: true,
        },
        |place| singles.remove(place),
    );
    single.shown = true;
    singles.insert(0, single);
}

/// The scenarios to show one by one: the cheapest, the dearest and three between, by the order of their totals
/// (and of their numbers where totals are equal).
fn single(totals: &[f64], names: &[String]) -> Vec<Single> {
    const SHARES: [(f64, &str); 5] = [
        (0.0, "lowest total"),
        (0.25, "lower quartile"),
        (0.5, "median"),
        (0.75, "upper quartile"),
        (1.0, "highest total"),
    ];
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by(|left, right| totals[*left].total_cmp(&totals[*right]));
    let last = order.len().saturating_sub(1) as f64;
    let mut singles: Vec<Single> = Vec::new();
    for (share, name) in SHARES {
        let scenario = order[(share * last).round() as usize];
        if singles.iter().all(|single| single.scenario != scenario) {
            let name = format!("{}, {name}", names[scenario]);
            singles.push(Single {
                scenario,
                name,
                shown: false,
            });
        }
    }
    // The middle one and the last one say most with least.
    let count = singles.len();
    for at in [(count - 1) / 2, count - 1] {
        singles[at].shown = true;
    }
    singles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_scenarios_are_chosen_by_the_order_of_totals() {
        let totals = [5.0, 1.0, 4.0, 2.0, 3.0];
        let names = vec![String::new(); 5];
        let singles = single(&totals, &names);
        let scenarios: Vec<usize> = singles.iter().map(|of| of.scenario).collect();
        assert_eq!(scenarios, [1, 3, 4, 2, 0]);
    }

    #[test]
    fn a_scenario_is_shown_once() {
        let singles = single(&[2.0], &["scenario 1".to_owned()]);
        assert_eq!(singles.len(), 1);
        assert_eq!(singles[0].name, "scenario 1, lowest total");
    }

    #[test]
    fn a_chosen_scenario_is_shown_first() {
        let names: Vec<String> = (1950..1960).map(|year| year.to_string()).collect();
        let totals: Vec<f64> = (0..10).map(f64::from).collect();
        let mut singles = single(&totals, &names);
        assert_eq!(find(&names, "1953"), Some(3));
        assert_eq!(find(&names, "2"), Some(1));
        assert_eq!(find(&names, "11"), None);
        choose(&mut singles, 3, &names[3]);
        assert_eq!(
            (&*singles[0].name, singles[0].shown),
            ("1953, chosen", true)
        );
        choose(&mut singles, 9, &names[9]);
        assert_eq!(
            (&*singles[0].name, singles.len()),
            ("1959, highest total", 6)
        );
    }
}
