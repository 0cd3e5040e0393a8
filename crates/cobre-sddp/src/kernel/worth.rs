//! What the rows of the template are worth: their dual values, from those of the program's rows.

use super::basis::{Basis, NO_ROW, Scene};
use super::known::{Ground, Known};

/// A row of the program that comes from a row of the template.
#[derive(Debug)]
pub(super) struct Side {
    /// The row of the template.
    pub(super) of: usize,
    /// The row of the program.
    pub(super) row: usize,
    /// −1 if it has the other direction there.
    pub(super) sign: f64,
}

/// A row of the template that has made a column known. Its dual value makes the reduced cost of that
/// column zero.
#[derive(Debug)]
pub(super) struct Given {
    row: usize,
    coefficient: f64,
    /// The column's cost, and its entries in other rows of the template.
    cost: f64,
    others: Vec<(usize, f64)>,
    /// The states that the column hands on, by number among known states.
    handed_on: Vec<usize>,
}

impl Given {
    /// All of them, the last found first: a column stands in no row that was used before its own.
    pub(super) fn of(ground: &Ground<'_>, known: &Known) -> Vec<Self> {
        let states = ground.template.states.iter();
        let known_states = states.filter(|state| known.values[state.outgoing].is_some());
        let known_states: Vec<usize> = known_states.map(|state| state.outgoing).collect();
        let given = known.given.iter().rev();
        let given = given.map(|&(row, column)| {
            let mut given = Self {
                row,
                coefficient: 1.0,
                cost: ground.costs[column],
                others: Vec::new(),
                handed_on: Vec::new(),
            };
            for (number, other) in ground.rows.iter().enumerate() {
                let own = other.terms.iter().filter(|term| term.0 == column);
                for &(_, value) in own {
                    if number == row {
                        given.coefficient = value;
                    } else {
                        given.others.push((number, value));
                    }
                }
            }
            let states = known_states.iter().enumerate();
            let states = states.filter(|(_, outgoing)| **outgoing == column);
            given.handed_on.extend(states.map(|(number, _)| number));
            given
        });
        given.collect()
    }
}

/// The dual values of the template's rows. A row without any decision in it has none, which is zero.
pub(super) fn row_duals(scene: Scene<'_>, basis: &Basis, into: &mut Vec<f64>) {
    let program = scene.program;
    into.clear();
    into.resize(program.template_rows, 0.0);
    for side in &program.sides {
        let place = basis.row_places[side.row];
        if place != NO_ROW {
            into[side.of] += side.sign * basis.duals[place as usize];
        }
    }
    for given in &program.given {
        let mut rest = given.cost;
        for &(row, value) in &given.others {
            rest -= value * into[row];
        }
        for (&row, &dual) in basis.rows.iter().zip(&basis.duals) {
            if let Some(cut) = (row as usize).checked_sub(program.rows) {
                for &state in &given.handed_on {
                    rest += dual * scene.cuts.known_slope(program, cut, state);
                }
            }
        }
        into[given.row] = rest / given.coefficient;
    }
}
