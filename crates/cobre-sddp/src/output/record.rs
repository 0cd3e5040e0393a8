//! The tables of simulated paths.

use std::fmt::Debug;
use std::io;

use cobre_results::layout::{paths, stages, states};
use cobre_results::{Cell, RowGroup, Rows, TableSchema};

use crate::lp::NodeSolution;
use crate::problem::{ColumnId, Parts, Problem, RowId};

/// A stage of a simulated path, with all that was decided there.
#[derive(Debug, Clone, Copy)]
pub struct Visited<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The number of the path, from 1.
    pub scenario: usize,
    /// The number of the stage, as the modeller gives it, else from 1.
    pub stage: i64,
    /// The first day of the stage; empty if there is none.
    pub start_date: &'a str,
    /// The node visited.
    pub node: usize,
    /// The opening that happened there; none if the path has values of its own.
    pub opening: Option<usize>,
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
    fn tables(&self, problem: &Problem) -> Vec<TableSchema>;

    /// The first day of a visit to `node` after a stage that began on the day `before`, which is empty at the first
    /// stage of a path: that of the node's stage, unless it comes again.
    fn start_date(&self, problem: &Problem, node: usize, before: &str) -> String {
        let _ = before;
        problem.nodes[node].start_date.clone()
    }

    /// Adds the rows of one stage of a path; `rows` are those of [`tables`](Self::tables), in order.
    fn fill(&self, visited: &Visited<'_>, rows: &mut [Rows]);
}

/// The tables of simulated paths: those that every problem has, and others.
pub(crate) struct PathTables<'t> {
    pub(crate) tables: Vec<TableSchema>,
    others: &'t dyn Tables,
    csv: bool,
}

/// The places of the tables that every problem has.
const PATHS: usize = 0;
const STAGES: usize = 1;
const STATES: usize = 2;
const OWN: usize = 3;

impl<'t> PathTables<'t> {
    pub(crate) fn new(problem: &Problem, others: &'t dyn Tables, csv: bool) -> Self {
        let names = problem.states.iter().map(|state| state.name.as_str());
        let mut tables = vec![paths::schema(), stages::schema(), states::schema(names)];
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

    /// As [`Tables::start_date`].
    pub(crate) fn start_date(&self, problem: &Problem, node: usize, before: &str) -> String {
        self.others.start_date(problem, node, before)
    }

    /// Adds a stage.
    pub(crate) fn stage(&self, visited: &Visited<'_>, rows: &mut [Rows]) {
        let (problem, answer) = (visited.problem, visited.answer);
        let cost = visited.cost();
        let sign = problem.sense.sign();
        let row = stages::Row {
            scenario: visited.scenario,
            stage: visited.stage,
            start_date: visited.start_date,
            node: &problem.nodes[visited.node].name,
            opening: visited.opening.map_or(0, |opening| opening + 1),
            discount: visited.discount,
            stage_value: sign * cost,
            future_value: sign * answer.future,
        };
        rows[STAGES].push(&row.cells());
        let mut states: Vec<Cell<'_>> = vec![
            visited.scenario.into(),
            visited.stage.into(),
            visited.start_date.into(),
        ];
        states.extend(answer.outgoing.iter().map(|value| Cell::Number(*value)));
        rows[STATES].push(&states);
        self.others.fill(visited, &mut rows[OWN..]);
    }

    /// Ends a path of this cost.
    pub(crate) fn path(
        problem: &Problem,
        (scenario, label): (usize, &str),
        cost: f64,
        rows: &mut [Rows],
    ) {
        let row = paths::Row {
            scenario,
            value: problem.sense.sign() * cost,
            label,
        };
        rows[PATHS].push(&row.cells());
    }

    /// The rows in the form that files have them.
    pub(crate) fn row_groups(&self, rows: &[Rows]) -> io::Result<Vec<RowGroup>> {
        let pairs = self.tables.iter().zip(rows);
        let row_groups = pairs.map(|(table, rows)| RowGroup::new(table, rows, self.csv));
        row_groups.collect()
    }
}
