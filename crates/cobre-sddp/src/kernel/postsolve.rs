//! Postsolve: the dual values of the rows of the template, from those of the reduced linear
//! program.

use super::basis::{Basis, NO_ROW, StageInput};
use super::instance::Instance;
use super::presolve::{LiftColumn, ParametricTemplate, Presolved};

/// The source of a row of the reduced linear program.
#[derive(Debug, Clone)]
pub(super) struct RowSource {
    /// The row of the template.
    pub(super) of: usize,
    /// The row of the reduced linear program.
    pub(super) row: usize,
    /// −1 if its direction is reversed.
    pub(super) sign: f64,
}

/// A row of the template by which presolve substituted a column. Its dual value makes the reduced
/// cost of that column zero.
#[derive(Debug, Clone)]
pub(super) struct Substitution {
    row: usize,
    coefficient: f64,
    /// The cost of the column, and its coefficients in other rows of the template.
    cost: f64,
    others: Vec<(usize, f64)>,
    /// The outgoing states that the column is, by number among fixed states.
    states: Vec<usize>,
    lift: Option<LiftColumn>,
}

impl Substitution {
    /// All substitutions, the last first: a column is in no row that was used before its own.
    pub(super) fn of(source: &ParametricTemplate<'_>, presolved: &Presolved) -> Vec<Self> {
        let states = source.template.states.iter();
        let fixed_states = states.filter(|state| presolved.values[state.outgoing].is_some());
        let fixed_states: Vec<usize> = fixed_states.map(|state| state.outgoing).collect();
        let determined = presolved.determined.iter().rev();
        let substitutions = determined.map(|determined| {
            let (row, column) = (determined.row, determined.column);
            let mut substitution = Self {
                row,
                coefficient: 1.0,
                cost: source.costs[column],
                others: Vec::new(),
                states: Vec::new(),
                lift: determined.lift,
            };
            for (number, other) in source.rows.iter().enumerate() {
                let own = other.terms.iter().filter(|term| term.0 == column);
                for &(_, value) in own {
                    if number == row {
                        substitution.coefficient = value;
                    } else {
                        substitution.others.push((number, value));
                    }
                }
            }
            let states = fixed_states.iter().enumerate();
            let states = states.filter(|(_, outgoing)| **outgoing == column);
            substitution.states.extend(states.map(|(number, _)| number));
            substitution
        });
        substitutions.collect()
    }
}

/// Computes the dual values of the rows of the template. A row without columns has dual value zero.
pub(super) fn row_duals(
    instance: &Instance,
    input: StageInput<'_>,
    basis: &Basis,
    into: &mut Vec<f64>,
) {
    let lp = input.lp;
    into.clear();
    into.resize(lp.template_rows, 0.0);
    for side in &lp.row_sources {
        let place = basis.row_places[side.row];
        if place != NO_ROW {
            into[side.of] += side.sign * basis.duals[place as usize];
        } else if let Some(column) = lp.hyperplanes.column_of_reference(side.row)
            && basis.sense[column] != 0.0
        {
            into[side.of] += side.sign * basis.reduced[column];
        }
    }
    for substitution in &lp.substitutions {
        if let Some(lift) = &substitution.lift
            && instance.derived(lift.derived + 1) > 0.0
        {
            into[substitution.row] = lift.cost / lift.coefficient;
            continue;
        }
        let mut rest = substitution.cost;
        for &(row, value) in &substitution.others {
            rest -= value * into[row];
        }
        for (&row, &dual) in basis.rows.iter().zip(&basis.duals) {
            if let Some(cut) = (row as usize).checked_sub(lp.rows) {
                for &state in &substitution.states {
                    rest += dual * input.cuts.fixed_slope(lp, cut, state);
                }
            }
        }
        into[substitution.row] = rest / substitution.coefficient;
    }
}
