//! The sizes of the numbers of a linear program, beside which small ones are judged.

use super::draft::Change;
use super::limits::CoefficientScale;
use super::template::Template;

/// The sizes of the numbers of a linear program.
#[derive(Debug, Clone)]
pub(crate) struct NumberSizes {
    /// By column, the largest value that any bounds allow, either way; may be infinite.
    pub(crate) reach: Vec<f64>,
    /// The largest cost, either way.
    cost: f64,
    /// By row, the largest coefficient, either way.
    rows: Vec<f64>,
}

impl NumberSizes {
    pub(crate) fn of(template: &Template) -> Self {
        let largest = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(0.0, |most: f64, value| most.max(value.abs()))
        };
        let columns = template.columns.iter();
        let rows = template.rows.iter();
        Self {
            reach: columns
                .clone()
                .map(|column| reach(column.lower, column.upper))
                .collect(),
            cost: largest(&mut columns.map(|column| column.cost)),
            rows: rows
                .map(|row| largest(&mut row.terms.iter().map(|term| term.1)))
                .collect(),
        }
    }

    /// Takes other bounds of a column into account.
    pub(crate) fn extend(&mut self, column: usize, lower: f64, upper: f64) {
        if let Some(most) = self.reach.get_mut(column) {
            *most = most.max(reach(lower, upper));
        }
    }

    /// The numbers beside the cost of a column.
    pub(crate) fn beside_cost(&self, column: usize) -> CoefficientScale {
        self.beside(self.cost, column)
    }

    /// The numbers beside the coefficient of a column in a row.
    pub(crate) fn beside_coefficient(&self, row: usize, column: usize) -> CoefficientScale {
        self.beside(self.rows.get(row).copied().unwrap_or(0.0), column)
    }

    fn beside(&self, largest: f64, column: usize) -> CoefficientScale {
        let reach = self.reach.get(column).copied();
        CoefficientScale {
            largest,
            reach: reach.unwrap_or(f64::INFINITY),
        }
    }

    /// Sets to zero what rounding left in a template.
    pub(crate) fn drop_rests(&self, template: &mut Template) {
        for (number, column) in template.columns.iter_mut().enumerate() {
            if self.beside_cost(number).is_rest(column.cost) {
                column.cost = 0.0;
            }
        }
        for (number, row) in template.rows.iter_mut().enumerate() {
            for (column, value) in &mut row.terms {
                if self.beside_coefficient(number, *column).is_rest(*value) {
                    *value = 0.0;
                }
            }
        }
    }

    /// Sets to zero what rounding left in a change.
    pub(crate) fn drop_rest(&self, change: &mut Change) {
        let (beside, value) = match change {
            Change::Coefficient { row, column, value } => {
                (self.beside_coefficient(row.0, column.0), value)
            }
            Change::Cost { column, value } => (self.beside_cost(column.0), value),
            _ => return,
        };
        if beside.is_rest(*value) {
            *value = 0.0;
        }
    }
}

fn reach(lower: f64, upper: f64) -> f64 {
    lower.abs().max(upper.abs())
}
