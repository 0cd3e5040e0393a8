//! The tables of simulated paths.

use std::fmt::Debug;

use parquet::errors::ParquetError;

use super::row_group::RowGroup;
use super::table::{Cell, Column, Kind, Rows, Table};
use crate::lp::NodeSolution;
use crate::problem::{ColumnId, Parts, Problem, RowId, State};

/// A stage of a simulated path, with all that was decided there.
#[derive(Debug, Clone, Copy)]
pub struct Visited<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The number of the path, from 1.
    pub scenario: usize,
    /// The number of the stage, from 1.
    pub stage: usize,
    /// The node visited.
    pub node: usize,
    /// The opening that happened there.
    pub opening: usize,
    /// The discount factor of the stage.
    pub discount: f64,
    /// The state before.
    pub incoming: &'a [f64],
    /// The solution, with the dual values of rows.
    pub answer: &'a NodeSolution,
    /// The part of the solution's cost that nobody pays.
    pub(crate) fictitious: f64,
    /// The values of the opening.
    pub(crate) parts: Parts<'a>,
}

impl Visited<'_> {
    /// The value of a column.
    pub fn value(&self, column: ColumnId) -> f64 {
        self.answer.columns[column.0]
    }

    /// The derivative of the cost of this stage and of all that follow by the bounds of a row.
    pub fn dual(&self, row: RowId) -> f64 {
        self.answer.duals[row.0]
    }

    /// The most a column could be.
    pub fn upper(&self, column: ColumnId) -> f64 {
        let places = &self.problem.nodes[self.node].places.columns;
        let template = self.problem.template(self.node);
        let own = template.columns[column.0].upper;
        let changed = places.binary_search(&column.0);
        changed.map_or(own, |at| self.parts.column_upper[at])
    }

    /// The least a row had to be.
    pub fn least(&self, row: RowId) -> f64 {
        let places = &self.problem.nodes[self.node].places.rows;
        let own = self.problem.template(self.node).rows[row.0].lower;
        let changed = places.binary_search(&row.0);
        changed.map_or(own, |at| self.parts.row_lower[at])
    }

    /// The cost of the stage, without what nobody pays.
    pub fn cost(&self) -> f64 {
        self.answer.cost - self.fictitious
    }

    /// The cost per unit of a column, if no opening changes it.
    pub fn price(&self, column: ColumnId) -> f64 {
        self.problem.template(self.node).columns[column.0].cost
    }
}

/// Tables of simulated paths in the words of those who know what columns and rows mean. All ranks have
/// the same.
pub trait Tables: Debug + Send + Sync {
    /// The tables that there are.
    fn tables(&self, problem: &Problem) -> Vec<Table>;

    /// Adds the rows of one stage of a path; `rows` are those of [`tables`](Self::tables), in order.
    fn fill(&self, visited: &Visited<'_>, rows: &mut [Rows]);
}

/// The tables of simulated paths: those that every problem has, and others.
pub(crate) struct PathTables<'t> {
    pub(crate) tables: Vec<Table>,
    others: &'t dyn Tables,
    csv: bool,
}

/// The places of the tables that every problem has.
const PATHS: usize = 0;
const STAGES: usize = 1;
const STATES: usize = 2;
const OWN: usize = 3;

/// The columns that say which stage of which path a row is about.
pub fn stage_columns() -> [Column; 2] {
    [
        Column::new(
            "scenario",
            Kind::Integer,
            "number of the simulated path, from 1",
        ),
        Column::new("stage", Kind::Integer, "number of the stage, from 1"),
    ]
}

impl<'t> PathTables<'t> {
    pub(crate) fn new(problem: &Problem, others: &'t dyn Tables, csv: bool) -> Self {
        let mut tables = own_tables(problem);
        tables.extend(others.tables(problem));
        Self {
            tables,
            others,
            csv,
        }
    }

    /// Room for rows of all tables.
    pub(crate) fn rows(&self) -> Vec<Rows> {
        self.tables.iter().map(Rows::new).collect()
    }

    /// Adds a stage.
    pub(crate) fn stage(&self, visited: &Visited<'_>, rows: &mut [Rows]) {
        let (problem, answer) = (visited.problem, visited.answer);
        let cost = visited.cost();
        let sign = problem.sense.sign();
        rows[STAGES].push(&[
            visited.scenario.into(),
            visited.stage.into(),
            problem.nodes[visited.node].name.as_str().into(),
            (visited.opening + 1).into(),
            visited.discount.into(),
            (sign * cost).into(),
            (sign * answer.future).into(),
        ]);
        let mut states: Vec<Cell<'_>> = vec![visited.scenario.into(), visited.stage.into()];
        states.extend(answer.outgoing.iter().map(|value| Cell::Number(*value)));
        rows[STATES].push(&states);
        self.others.fill(visited, &mut rows[OWN..]);
    }

    /// Ends a path of this cost.
    pub(crate) fn path(problem: &Problem, scenario: usize, cost: f64, rows: &mut [Rows]) {
        rows[PATHS].push(&[scenario.into(), (problem.sense.sign() * cost).into()]);
    }

    /// The rows in the form that files have them.
    pub(crate) fn row_groups(&self, rows: &[Rows]) -> Result<Vec<RowGroup>, ParquetError> {
        let pairs = self.tables.iter().zip(rows);
        let row_groups = pairs.map(|(table, rows)| RowGroup::new(table, rows, self.csv));
        row_groups.collect()
    }
}

fn own_tables(problem: &Problem) -> Vec<Table> {
    let [scenario, stage] = stage_columns();
    let paths = vec![
        scenario.clone(),
        Column::new(
            "value",
            Kind::Number,
            "value of the path: the sum of discount × stage_value over its stages",
        ),
    ];
    let stages = vec![
        scenario.clone(),
        stage.clone(),
        Column::new("node", Kind::Text, "node of the policy graph"),
        Column::new("opening", Kind::Integer, "opening that happened, from 1"),
        Column::new(
            "discount",
            Kind::Number,
            "what one unit of value of this stage counts in the value of the path",
        ),
        Column::new("stage_value", Kind::Number, "value of the stage"),
        Column::new(
            "future_value",
            Kind::Number,
            "value of all that follows, as the policy sees it, in money of this stage",
        ),
    ];
    let mut left = vec![scenario, stage];
    let name = |state: &State| match state.name.as_str() {
        // Columns of the table have these names already.
        "scenario" | "stage" => format!("state:{}", state.name),
        name => name.to_owned(),
    };
    left.extend(problem.states.iter().map(|state| {
        let meaning = format!("state {} that the stage leaves", state.name);
        Column::new(name(state), Kind::Number, meaning)
    }));
    vec![
        Table::new("simulation/paths", paths),
        Table::new("simulation/stages", stages),
        Table::new("simulation/states", left),
    ]
}
