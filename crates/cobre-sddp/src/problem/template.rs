//! The linear program of a node, as the modeller wrote it.

use serde::Serialize;

use super::error::ProblemError;
use super::limits::{check_bounds, check_coefficient, check_number, check_small, sum_of};
use super::sizes::NumberSizes;

/// A column of a [`Template`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub(crate) usize);

/// A row of a [`Template`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub(crate) usize);

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LpColumn {
    /// The modeller's name.
    pub name: String,
    /// Its coefficient in the objective.
    pub cost: f64,
    /// The smallest value allowed.
    pub lower: f64,
    /// The largest value allowed.
    pub upper: f64,
}

/// A constraint: lower ≤ Σ coefficient × column ≤ upper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LpRow {
    /// The modeller's name.
    pub name: String,
    /// The least the sum may be.
    pub lower: f64,
    /// The most the sum may be.
    pub upper: f64,
    /// The terms of the sum, by ascending column, none twice.
    pub terms: Vec<(usize, f64)>,
}

/// The two columns that stand for a state variable in a linear program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StateColumns {
    /// The value the node before left.
    pub incoming: usize,
    /// The value this node leaves.
    pub outgoing: usize,
}

/// A linear program with an incoming and an outgoing column for each state variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Template {
    /// The decisions.
    pub columns: Vec<LpColumn>,
    /// The constraints.
    pub rows: Vec<LpRow>,
    /// A constant of the objective.
    pub constant: f64,
    /// By state variable, in the order of the problem; complete once the problem is built.
    pub states: Vec<StateColumns>,
    /// State variables by name, as the modeller gave them.
    #[serde(skip)]
    pub(crate) named_states: Vec<(String, StateColumns)>,
    /// Columns whose cost nobody pays, with the rows that they lift.
    #[serde(skip)]
    pub(crate) fictitious: Vec<(usize, usize)>,
}

impl Template {
    /// A linear program without anything in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a decision between `lower` and `upper`, which may be infinite.
    pub fn column(
        &mut self,
        name: impl Into<String>,
        cost: f64,
        lower: f64,
        upper: f64,
    ) -> ColumnId {
        self.columns.push(LpColumn {
            name: name.into(),
            cost,
            lower,
            upper,
        });
        ColumnId(self.columns.len() - 1)
    }

    /// Adds a constraint; terms of one column are added up, and cancel if only rounding is left of them.
    pub fn row(
        &mut self,
        name: impl Into<String>,
        lower: f64,
        upper: f64,
        terms: &[(ColumnId, f64)],
    ) -> RowId {
        let mut sums: Vec<(usize, f64)> = Vec::with_capacity(terms.len());
        let mut sorted = terms.to_vec();
        sorted.sort_by_key(|(column, _)| *column);
        for terms in sorted.chunk_by(|left, right| left.0 == right.0) {
            let sum = sum_of(terms.iter().map(|(_, value)| *value));
            sums.push((terms[0].0.0, sum));
        }
        self.rows.push(LpRow {
            name: name.into(),
            lower,
            upper,
            terms: sums,
        });
        RowId(self.rows.len() - 1)
    }

    /// Says which columns stand for the state variable `name`.
    pub fn state(&mut self, name: impl Into<String>, incoming: ColumnId, outgoing: ColumnId) {
        let columns = StateColumns {
            incoming: incoming.0,
            outgoing: outgoing.0,
        };
        self.named_states.push((name.into(), columns));
    }

    /// Says that nobody pays the cost of `column`, which no other row has: it lifts what the lower bound of `row` and
    /// its terms of incoming states lack to zero, and no more. See [`Draft::fictitious`](super::Draft::fictitious).
    pub fn fictitious(&mut self, column: ColumnId, row: RowId) {
        self.fictitious.push((column.0, row.0));
    }

    /// Adds to the constant of the objective.
    pub fn add_constant(&mut self, value: f64) {
        self.constant += value;
    }

    /// Adds to the cost of a column.
    pub fn add_cost(&mut self, column: ColumnId, cost: f64) {
        self.columns[column.0].cost += cost;
    }

    /// Lets a column take only values that these bounds allow as well.
    pub fn tighten(&mut self, column: ColumnId, lower: f64, upper: f64) {
        let column = &mut self.columns[column.0];
        (column.lower, column.upper) = (column.lower.max(lower), column.upper.min(upper));
    }

    /// Checks the template; errors name `place`. Small numbers are judged by the `sizes` of all.
    pub(crate) fn check(&self, place: &str, sizes: &NumberSizes, errors: &mut Vec<ProblemError>) {
        let mut wrong = |problem: String| {
            errors.push(ProblemError::Program {
                place: place.to_owned(),
                problem,
            });
        };
        for (number, column) in self.columns.iter().enumerate() {
            let what = format!("the cost of column {}", column.name);
            check_number(&what, column.cost)
                .or_else(|| check_small(|| what.clone(), column.cost, sizes.beside_cost(number)))
                .into_iter()
                .for_each(&mut wrong);
            check_bounds(
                &format!("column {}", column.name),
                column.lower,
                column.upper,
                &mut wrong,
            );
        }
        for (row_number, row) in self.rows.iter().enumerate() {
            check_bounds(
                &format!("row {}", row.name),
                row.lower,
                row.upper,
                &mut wrong,
            );
            for &(number, value) in &row.terms {
                match self.columns.get(number) {
                    None => wrong(format!(
                        "row {} has a term of a column that does not exist",
                        row.name
                    )),
                    Some(column) => {
                        let what = || {
                            format!(
                                "the coefficient of column {} in row {}",
                                column.name, row.name
                            )
                        };
                        let beside = sizes.beside_coefficient(row_number, number);
                        check_coefficient(what, value, beside)
                            .into_iter()
                            .for_each(&mut wrong);
                    }
                }
            }
        }
        let what = "the constant of the objective";
        check_number(what, self.constant)
            .into_iter()
            .for_each(wrong);
    }
}
