//! The layout of openings: the values of an opening are one row of numbers.

use serde::Serialize;

use super::draft::Change;
use super::template::Template;

/// The places in a template that some opening of a node changes. An opening has a value for each
/// of them, so that putting one opening in place leaves nothing of another.
///
/// The values of an opening are: lower bounds of [`rows`](Self::rows), their upper bounds, lower
/// bounds of [`columns`](Self::columns), their upper bounds, [`costs`](Self::costs),
/// [`coefficients`](Self::coefficients), and the constant of the objective.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Places {
    /// Rows whose bounds change, in ascending order.
    pub rows: Vec<usize>,
    /// Columns whose bounds change, in ascending order.
    pub columns: Vec<usize>,
    /// Columns whose cost changes, in ascending order.
    pub costs: Vec<usize>,
    /// Entries (column, row) of the matrix that change, in ascending order.
    pub coefficients: Vec<(usize, usize)>,
}

/// The values of one opening, by what they replace.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'v> {
    /// Lower bounds of rows.
    pub row_lower: &'v [f64],
    /// Upper bounds of rows.
    pub row_upper: &'v [f64],
    /// Lower bounds of columns.
    pub column_lower: &'v [f64],
    /// Upper bounds of columns.
    pub column_upper: &'v [f64],
    /// Costs of columns.
    pub costs: &'v [f64],
    /// Entries of the matrix.
    pub coefficients: &'v [f64],
    /// The constant of the objective.
    pub constant: f64,
}

impl Places {
    /// The places that any of these changes touches.
    pub(crate) fn of<'c>(changes: impl Iterator<Item = &'c Change>) -> Self {
        let mut places = Self::default();
        for change in changes {
            match *change {
                Change::RowBounds { row, .. } => places.rows.push(row.0),
                Change::ColumnBounds { column, .. } => places.columns.push(column.0),
                Change::Cost { column, .. } => places.costs.push(column.0),
                Change::Coefficient { row, column, .. } => {
                    places.coefficients.push((column.0, row.0));
                }
                Change::Constant(_) => {}
            }
        }
        for list in [&mut places.rows, &mut places.columns, &mut places.costs] {
            list.sort_unstable();
            list.dedup();
        }
        places.coefficients.sort_unstable();
        places.coefficients.dedup();
        places
    }

    /// Numbers per opening.
    pub fn width(&self) -> usize {
        2 * (self.rows.len() + self.columns.len()) + self.costs.len() + self.coefficients.len() + 1
    }

    /// Splits the values of an opening.
    pub fn split<'v>(&self, values: &'v [f64]) -> Parts<'v> {
        let (row_lower, rest) = values.split_at(self.rows.len());
        let (row_upper, rest) = rest.split_at(self.rows.len());
        let (column_lower, rest) = rest.split_at(self.columns.len());
        let (column_upper, rest) = rest.split_at(self.columns.len());
        let (costs, rest) = rest.split_at(self.costs.len());
        let (coefficients, constant) = rest.split_at(self.coefficients.len());
        Parts {
            row_lower,
            row_upper,
            column_lower,
            column_upper,
            costs,
            coefficients,
            constant: constant[0],
        }
    }

    /// Appends the values of the opening that makes `changes` in `template`, whose objective is a
    /// cost already; `sign` makes the changes' a cost.
    pub(crate) fn values(
        &self,
        template: &Template,
        changes: &[Change],
        sign: f64,
        into: &mut Vec<f64>,
    ) {
        let start = into.len();
        self.template_values(template, into);
        self.change(&mut into[start..], changes, sign);
    }

    /// Appends the values that the template has in these places.
    fn template_values(&self, template: &Template, into: &mut Vec<f64>) {
        let rows = || self.rows.iter().map(|&row| &template.rows[row]);
        let columns = || self.columns.iter().map(|&column| &template.columns[column]);
        into.extend(rows().map(|row| row.lower));
        into.extend(rows().map(|row| row.upper));
        into.extend(columns().map(|column| column.lower));
        into.extend(columns().map(|column| column.upper));
        let costs = self.costs.iter();
        into.extend(costs.map(|&column| template.columns[column].cost));
        into.extend(self.coefficients.iter().map(|&(column, row)| {
            let terms = &template.rows[row].terms;
            let found = terms.binary_search_by_key(&column, |(column, _)| *column);
            found.map_or(0.0, |place| terms[place].1)
        }));
        into.push(template.constant);
    }

    /// Puts changes in their places among the values of an opening.
    fn change(&self, values: &mut [f64], changes: &[Change], sign: f64) {
        let (rows, columns, costs) = (self.rows.len(), self.columns.len(), self.costs.len());
        let place = |list: &[usize], index: usize| list.binary_search(&index).unwrap_or_default();
        for change in changes {
            match *change {
                Change::RowBounds { row, lower, upper } => {
                    let at = place(&self.rows, row.0);
                    (values[at], values[rows + at]) = (lower, upper);
                }
                Change::ColumnBounds {
                    column,
                    lower,
                    upper,
                } => {
                    let at = 2 * rows + place(&self.columns, column.0);
                    (values[at], values[columns + at]) = (lower, upper);
                }
                Change::Cost { column, value } => {
                    values[2 * (rows + columns) + place(&self.costs, column.0)] = sign * value;
                }
                Change::Coefficient { row, column, value } => {
                    let key = (column.0, row.0);
                    let at = self.coefficients.binary_search(&key).unwrap_or_default();
                    values[2 * (rows + columns) + costs + at] = value;
                }
                Change::Constant(value) => {
                    if let Some(last) = values.last_mut() {
                        *last = sign * value;
                    }
                }
            }
        }
    }
}
