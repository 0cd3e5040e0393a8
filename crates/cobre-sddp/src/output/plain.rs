//! Tables of problems of which nobody knows what they mean: decisions and dual values by name.

use std::collections::{HashMap, HashSet};

use cobre_results::layout::{self, SCENARIO, STAGE, START_DATE, stage_columns};
use cobre_results::{Cell, Column, Kind, Rows, TableSchema};

use super::record::{Tables, Visited};
use crate::problem::{Problem, Template};

/// Decisions and dual values of rows, each in a column with its name.
#[derive(Debug, Default)]
pub struct PlainTables {
    controls: ByName,
    duals: ByName,
}

/// Things that linear programs have, by name.
#[derive(Debug, Default)]
struct ByName {
    names: Vec<String>,
    /// By template: for each name where the thing is, if it is there.
    places: Vec<Vec<Option<usize>>>,
}

impl ByName {
    /// The things that `list` finds in each template, by name and place.
    fn new(problem: &Problem, list: fn(&Template) -> Vec<(&str, usize)>) -> Self {
        let mut all = Self::default();
        let mut columns: HashMap<String, usize> = HashMap::new();
        for template in &problem.templates {
            let mut places = vec![None; all.names.len()];
            let mut taken: HashSet<&str> = [SCENARIO, STAGE, START_DATE].into();
            for (name, place) in list(template) {
                let name = if taken.insert(name) {
                    name.to_owned()
                } else {
                    format!("{name}#{place}")
                };
                let column = *columns.entry(name.clone()).or_insert_with(|| {
                    all.names.push(name);
                    places.push(None);
                    all.names.len() - 1
                });
                places[column] = Some(place);
            }
            all.places.push(places);
        }
        let count = all.names.len();
        for places in &mut all.places {
            places.resize(count, None);
        }
        all
    }

    fn table(&self, name: &'static str, what: &str) -> Option<TableSchema> {
        let mut columns = stage_columns().to_vec();
        columns.extend(self.names.iter().enumerate().map(|(number, name)| {
            let everywhere = self.places.iter().all(|places| places[number].is_some());
            let kind = if everywhere {
                Kind::Number
            } else {
                Kind::Maybe
            };
            let missing = if everywhere {
                ""
            } else {
                "; missing where the node has none"
            };
            Column::new(name.clone(), kind, format!("{what} {name}{missing}"))
        }));
        (!self.names.is_empty()).then(|| TableSchema::new(name, columns))
    }

    fn fill(&self, visited: &Visited<'_>, values: &[f64], sign: f64, rows: &mut Rows) {
        let template = visited.problem.nodes[visited.node].template;
        let mut row: Vec<Cell<'_>> = vec![
            visited.scenario.into(),
            visited.stage.into(),
            visited.start_date.into(),
        ];
        let places = self.places[template].iter().enumerate();
        row.extend(places.map(|(number, place)| {
            // Nothing is plain zero, not one with a sign.
            let value = place.map(|place| 0.0 + sign * values[place]);
            match value {
                Some(value) if self.places.iter().all(|places| places[number].is_some()) => {
                    Cell::Number(value)
                }
                value => Cell::Maybe(value),
            }
        }));
        rows.push(&row);
    }
}

impl PlainTables {
    /// The tables of this problem.
    pub fn new(problem: &Problem) -> Self {
        Self {
            controls: ByName::new(problem, controls),
            duals: ByName::new(problem, rows),
        }
    }
}

/// The columns that stand for no state.
fn controls(template: &Template) -> Vec<(&str, usize)> {
    let is_state = |column: usize| {
        let mut states = template.states.iter();
        states.any(|state| state.incoming == column || state.outgoing == column)
    };
    let columns = template.columns.iter().enumerate();
    let columns = columns.filter(|(place, _)| !is_state(*place));
    columns
        .map(|(place, column)| (column.name.as_str(), place))
        .collect()
}

fn rows(template: &Template) -> Vec<(&str, usize)> {
    let rows = template.rows.iter().enumerate();
    rows.map(|(place, row)| (row.name.as_str(), place))
        .collect()
}

impl Tables for PlainTables {
    fn tables(&self, _: &Problem) -> Vec<TableSchema> {
        let (controls, duals) = (layout::controls::TABLE, layout::duals::TABLE);
        let controls = self.controls.table(controls, layout::controls::MEANING);
        let duals = self.duals.table(duals, layout::duals::MEANING);
        controls.into_iter().chain(duals).collect()
    }

    fn fill(&self, visited: &Visited<'_>, rows: &mut [Rows]) {
        let sign = visited.problem.sense.sign();
        let answer = visited.answer;
        let controls = (&self.controls, &answer.columns, 1.0);
        let duals = (&self.duals, &answer.duals, sign);
        let both = [controls, duals].into_iter();
        let there = both.filter(|(by_name, _, _)| !by_name.names.is_empty());
        for ((by_name, values, sign), rows) in there.zip(rows) {
            by_name.fill(visited, values, sign, rows);
        }
    }
}
