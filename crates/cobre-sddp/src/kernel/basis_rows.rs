//! The rows of a basis: which row of the linear program or cut is where, and how one comes in and goes out.

use super::basis::{Basis, NO_ROW, StageInput};
use super::factorization::Factorization;
use super::reduced_lp::ReducedLp;

impl Basis {
    /// Updates the row of the basis of each row of the linear program.
    pub(super) fn find_rows(&mut self, lp: &ReducedLp) {
        self.row_places[lp.equalities..].fill(NO_ROW);
        for (place, &row) in self.rows.iter().enumerate() {
            if (row as usize) < lp.rows {
                self.row_places[row as usize] = place as u32;
            }
        }
        self.find_cuts(lp);
    }

    /// Updates the list of cuts among the rows.
    fn find_cuts(&mut self, lp: &ReducedLp) {
        self.cuts.clear();
        for (place, &row) in self.rows.iter().enumerate().skip(lp.equalities) {
            if row as usize >= lp.rows {
                self.cuts.push((place as u32, row - lp.rows as u32));
            }
        }
    }

    /// Updates the position of each plain column, unless nothing but rows has come in since; marks those that are basic.
    pub(super) fn find_positions(&mut self, lp: &ReducedLp) {
        let scratch = &mut self.scratch;
        if scratch.positions_at == Some(self.pivots) && !lp.is_dense {
            return;
        }
        scratch.positions.fill(NO_ROW);
        for (position, &variable) in self.head[..self.rows.len()].iter().enumerate() {
            if let Some(place) = scratch.positions.get_mut(variable as usize) {
                *place = position as u32;
            }
        }
        scratch.positions_at = Some(self.pivots);
        if !lp.is_dense {
            scratch.touched.clear();
            scratch.alpha.fill(0.0);
            for (mark, &position) in scratch.marks.iter_mut().zip(&scratch.positions) {
                *mark = u8::from(position != NO_ROW);
            }
        }
    }

    /// Updates the positions of plain columns for a pivot, if they are known.
    pub(super) fn move_position(&mut self, leaving: usize, entering: usize, position: usize) {
        let scratch = &mut self.scratch;
        if scratch.positions_at != Some(self.pivots) {
            return;
        }
        scratch.clear_alpha();
        if let Some(place) = scratch.positions.get_mut(leaving) {
            *place = NO_ROW;
            scratch.marks[leaving] = 0;
            scratch.alpha[leaving] = 0.0;
        }
        if let Some(place) = scratch.positions.get_mut(entering) {
            *place = position as u32;
            scratch.marks[entering] = 1;
        }
        scratch.positions_at = Some(self.pivots + 1);
    }

    /// Adds a row of the linear program or a cut, with its slack basic at `value`.
    pub(super) fn add_row(&mut self, input: StageInput<'_>, row: u32, value: f64) {
        let (lp, size) = (input.lp, self.size());
        let columns = lp.columns();
        self.find_positions(lp);
        let (positions, border) = (&self.scratch.positions, &mut self.scratch.entering);
        border.clear();
        // Columns of curves are in equalities only.
        row_terms(input, row, |column, value| {
            if positions[column] != NO_ROW {
                border.push((positions[column] as usize, value));
            }
        });
        self.factors
            .add_row(size, border, &mut self.scratch.pivot_column);
        self.basic_slack[size] = !lp.is_dense;
        self.rows.push(row);
        self.weights[size] = self.new_weight(lp, columns + size);
        if (row as usize) < lp.rows {
            self.row_places[row as usize] = size as u32;
        } else {
            self.cuts.push((size as u32, row - lp.rows as u32));
        }
        self.duals[size] = 0.0;
        self.put(lp, size, columns + size);
        self.values[size] = value;
    }

    /// Drops a row whose slack is basic at `position`.
    pub(super) fn drop_row(&mut self, lp: &ReducedLp, row: usize, position: usize) {
        let (last, columns) = (self.size() - 1, lp.columns());
        if let Factorization::Dense(inverse) = &mut self.factors {
            inverse.drop(position, row);
        }
        let gone = self.rows[row] as usize;
        if gone < lp.rows {
            self.row_places[gone] = NO_ROW;
        }
        self.head[position] = self.head[last];
        for list in [
            &mut self.lower,
            &mut self.upper,
            &mut self.cost,
            &mut self.values,
        ] {
            list[position] = list[last];
        }
        self.rows.swap_remove(row);
        self.duals[row] = self.duals[last];
        self.duals[last] = 0.0;
        if row != last {
            let moved = self.rows[row] as usize;
            if moved < lp.rows {
                self.row_places[moved] = row as u32;
            }
            let own = |variable: &&mut u32| **variable as usize == columns + last;
            if let Some(variable) = self.head[..last].iter_mut().find(own) {
                *variable = (columns + row) as u32;
            }
        }
        self.find_cuts(lp);
    }
}

/// Adds `factor` × the coefficients of a row of the linear program, or of a cut, to `into`.
#[inline]
pub(super) fn add_row(input: StageInput<'_>, row: u32, factor: f64, into: &mut [f64]) {
    if factor != 0.0 {
        row_terms(input, row, |column, value| into[column] += factor * value);
    }
}

/// Passes on the columns and coefficients of a row of the linear program, or of a cut.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "`term` is a few instructions, called for every coefficient"
)]
pub(super) fn row_terms(input: StageInput<'_>, row: u32, mut term: impl FnMut(usize, f64)) {
    let lp = input.lp;
    match (row as usize).checked_sub(lp.rows) {
        None => {
            for &(column, value) in lp.by_row.list(row as usize) {
                term(column as usize, value);
            }
        }
        Some(cut) => {
            if let Some(future) = lp.future {
                term(future, 1.0);
            }
            let slopes = input.cuts.slopes(lp, cut);
            for (slope, &(_, column)) in slopes.zip(&lp.free_states) {
                term(column, -slope);
            }
        }
    }
}
