//! The factors of a basis on large stages, and the rows that leave with their basic slacks.

use std::sync::Arc;

use super::basis::{Basis, StageInput};
use super::factorization::Factorization;
#[cfg(test)]
use super::fault::Fault;
use super::inverse::Singular;
use super::reduced_lp::ReducedLp;

impl Basis {
    /// Computes the sparse factors, without rows whose slack is basic. Variables move to the
    /// positions that the factors give them: `column_of` has their positions before, by row.
    pub(super) fn factorize(&mut self, input: StageInput<'_>) -> Result<(), Singular> {
        let lp = input.lp;
        self.drop_basic_slacks(lp);
        self.find_rows(lp);
        let (size, columns) = (self.size(), lp.columns());
        let scratch = &mut self.scratch;
        scratch.column_matrix.clear();
        for &variable in &self.head[..size] {
            let (variable, matrix) = (variable as usize, &mut scratch.column_matrix);
            if variable < columns {
                let of_cuts = Self::column_of_cuts(input, &self.cuts, variable);
                let of_cuts = of_cuts.filter(|entry| entry.1 != 0.0);
                matrix.push_placed(lp.by_column.list(variable), &self.row_places, of_cuts);
            } else {
                matrix.push([((variable - columns) as u32, -1.0)].into_iter());
            }
        }
        let rows = &self.rows;
        let is_cut = |row: usize| rows[row] as usize >= lp.rows;
        let (matrix, column_of) = (&scratch.column_matrix, &mut scratch.column_of);
        let lu = scratch.factorizer.factorize(matrix, is_cut, column_of)?;
        let column_of = std::mem::take(&mut self.scratch.column_of);
        self.permute(&column_of);
        self.scratch.column_of = column_of;
        if let Factorization::Sparse(factors) = &mut self.factors {
            factors.set(Arc::new(lu));
        }
        self.stale = false;
        Ok(())
    }

    /// Moves variables to the positions of the rows where they are pivoted.
    pub(super) fn permute(&mut self, column_of: &[u32]) {
        #[cfg(test)]
        if Fault::WrongPermutation.is_on() {
            return;
        }
        let head = column_of.iter().map(|&at| self.head[at as usize]);
        let head: Vec<u32> = head.collect();
        self.scratch.positions_at = None;
        self.head[..head.len()].copy_from_slice(&head);
        let permuted = &mut self.scratch.permuted;
        for list in [
            &mut self.lower,
            &mut self.upper,
            &mut self.cost,
            &mut self.values,
            &mut self.weights,
        ] {
            permuted.clear();
            permuted.extend(column_of.iter().map(|&at| list[at as usize]));
            list[..permuted.len()].copy_from_slice(permuted);
        }
    }

    /// Drops the inequalities and cuts whose slack is basic.
    pub(super) fn drop_basic_slacks(&mut self, lp: &ReducedLp) {
        let (size, columns) = (self.size(), lp.columns());
        let first = lp.equalities;
        if !self.basic_slack[first..size].contains(&true) {
            return;
        }
        for position in 0..size {
            let slack = (self.head[position] as usize).checked_sub(columns);
            if let Some(row) = slack.map(|place| self.rows[place] as usize)
                && row < lp.rows
                && Self::prices_outside(lp)
            {
                let (blocks, weight) = (&lp.hyperplanes.blocks, self.weights[position]);
                self.outside.set_weight(blocks, row, weight);
            }
        }
        let is_kept = |variable: usize| {
            let row = variable.checked_sub(columns);
            row.is_none_or(|row| row < first)
        };
        let mut basic_slack = std::mem::take(&mut self.basic_slack);
        self.keep(lp, |row| !basic_slack[row], is_kept);
        basic_slack[first..size].fill(false);
        self.basic_slack = basic_slack;
        self.find_rows(lp);
        self.stale = true;
    }

    /// Drops rows that are not kept, and as many positions, by their variables.
    fn keep(
        &mut self,
        lp: &ReducedLp,
        keeps_row: impl Fn(usize) -> bool,
        keeps_variable: impl Fn(usize) -> bool,
    ) {
        let (size, first) = (self.size(), lp.equalities);
        let mut kept = 0;
        for position in 0..size {
            if keeps_variable(self.head[position] as usize) {
                self.head[kept] = self.head[position];
                for list in [
                    &mut self.lower,
                    &mut self.upper,
                    &mut self.cost,
                    &mut self.values,
                    &mut self.weights,
                ] {
                    list[kept] = list[position];
                }
                kept += 1;
            }
        }
        let mut next = first;
        for row in (first..size).filter(|&row| keeps_row(row)) {
            self.rows[next] = self.rows[row];
            self.duals[next] = self.duals[row];
            next += 1;
        }
        self.rows.truncate(next);
        self.duals[next..].fill(0.0);
    }

    /// Drops basic slacks, and the rows of hyperplanes that are tight with the columns of their groups; returns the
    /// references with which the basis is the same. Factors are to be computed anew.
    pub(super) fn refer_to_tight(&mut self, lp: &ReducedLp) -> Vec<u8> {
        self.drop_basic_slacks(lp);
        let mut references = lp.hyperplanes.references().to_vec();
        let tight = lp.hyperplanes.tight(self);
        let (mut keeps_row, mut keeps_column) = (vec![true; self.size()], vec![true; lp.plain]);
        for new in &tight {
            let column = lp.hyperplanes.groups[new.group].column;
            keeps_row[new.place] = false;
            keeps_column[column] = false;
            references[new.group] = new.number;
            self.sense[column] = 1.0;
        }
        let keeps_variable = |variable: usize| keeps_column.get(variable) != Some(&false);
        self.keep(lp, |row| keeps_row[row], keeps_variable);
        references
    }
}
