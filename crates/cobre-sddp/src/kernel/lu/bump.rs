//! The bump: the part of a matrix that is left when there are no singletons.

use super::{DROP, Factorizer, SMALLEST_PIVOT, entries_of};
use crate::kernel::inverse::Singular;
use crate::kernel::sparse::Sparse;

/// The smallest pivot, relative to the largest element of its column.
const THRESHOLD: f64 = 0.1;
/// Columns that are searched for a pivot, unless none of them has one.
const SEARCHED: usize = 3;
/// The smallest pivot of a row that is no cut.
const SMALLEST_ELEMENT: f64 = 1e-8;

/// The rows that are left, those of cuts last, as a dense matrix.
#[derive(Debug, Default)]
pub(super) struct Bump {
    /// Their numbers in the whole matrix, and the other way round for rows that are no cuts.
    rows: Vec<usize>,
    columns: Vec<usize>,
    places: Vec<Option<u32>>,
    /// The number of rows that are no cuts.
    plain: usize,
    elements: Vec<f64>,
    /// The rows that are left, in order.
    left: Vec<usize>,
    column_done: Vec<bool>,
    /// Nonzero elements that are left, without those of cuts.
    row_counts: Vec<usize>,
    column_counts: Vec<usize>,
    /// By column: its elements in the pivot rows so far.
    upper: Vec<Vec<(u32, f64)>>,
    pivot_row: Vec<(usize, f64)>,
    /// The nonzero elements of a column that is searched: row and magnitude.
    searched: Vec<(usize, f64)>,
}

impl Factorizer {
    /// Eliminates what singletons have left.
    pub(super) fn eliminate_bump(&mut self, matrix: &Sparse) -> Result<(), Singular> {
        let mut bump = std::mem::take(&mut self.bump);
        let result = self.eliminate_rows(matrix, &mut bump);
        self.bump = bump;
        result
    }

    fn eliminate_rows(&mut self, matrix: &Sparse, bump: &mut Bump) -> Result<(), Singular> {
        self.fill(bump, matrix)?;
        for _ in 0..bump.rows.len() {
            let (row, column) = bump.choose().ok_or(Singular)?;
            let pivot = bump.elements[row * bump.columns.len() + column];
            if pivot.is_nan() || pivot.abs() < SMALLEST_PIVOT {
                return Err(Singular);
            }
            let whole_column = bump.columns[column];
            self.begin(bump.rows[row], whole_column, pivot);
            for (other, value) in entries_of(matrix, whole_column) {
                if bump.places[other].is_none() && !self.is_cut(other) {
                    self.upper.push((other as u32, value));
                }
            }
            self.upper.append(&mut bump.upper[column]);
            bump.eliminate(row, column, pivot, &mut self.lower);
        }
        Ok(())
    }

    fn fill(&self, bump: &mut Bump, matrix: &Sparse) -> Result<(), Singular> {
        let left = |&row: &usize| !self.row_done[row] && !self.is_cut(row);
        bump.rows.clear();
        bump.rows.extend((0..self.size).filter(left));
        bump.plain = bump.rows.len();
        bump.rows.extend(&self.cut_rows);
        bump.columns.clear();
        bump.columns
            .extend((0..self.size).filter(|&column| !self.column_done[column]));
        let (rows, columns) = (bump.rows.len(), bump.columns.len());
        if rows != columns {
            return Err(Singular);
        }
        bump.places.clear();
        bump.places.resize(self.size, None);
        for (at, &row) in bump.rows[..bump.plain].iter().enumerate() {
            bump.places[row] = Some(at as u32);
        }
        bump.elements.clear();
        bump.elements.resize(rows * columns, 0.0);
        for (at, &column) in bump.columns.iter().enumerate() {
            for (row, value) in entries_of(matrix, column) {
                if let Some(row) = bump.places[row] {
                    bump.elements[row as usize * columns + at] = value;
                }
            }
            for cut in 0..self.cut_rows.len() {
                bump.elements[(bump.plain + cut) * columns + at] =
                    self.cuts[cut * self.size + column];
            }
        }
        bump.count();
        Ok(())
    }
}

impl Bump {
    /// Counts the nonzero elements, at the start.
    fn count(&mut self) {
        let size = self.rows.len();
        self.left.clear();
        self.left.extend(0..size);
        self.column_done.clear();
        self.column_done.resize(size, false);
        for list in [&mut self.row_counts, &mut self.column_counts] {
            list.clear();
            list.resize(size, 0);
        }
        self.upper.iter_mut().for_each(Vec::clear);
        if self.upper.len() < size {
            self.upper.resize(size, Vec::new());
        }
        let rows = self.elements.chunks_exact(size.max(1)).take(self.plain);
        for (row, elements) in rows.enumerate() {
            for (column, &element) in elements.iter().enumerate() {
                if element != 0.0 {
                    self.row_counts[row] += 1;
                    self.column_counts[column] += 1;
                }
            }
        }
    }

    fn element(&self, row: usize, column: usize) -> f64 {
        self.elements[row * self.columns.len() + column]
    }

    /// The next pivot: row and column.
    fn choose(&mut self) -> Option<(usize, usize)> {
        if self.left.first().is_none_or(|&row| row >= self.plain) {
            return self.largest_of_cuts();
        }
        let mut searched = std::mem::take(&mut self.searched);
        let found = self.least_count(&mut searched);
        self.searched = searched;
        found
    }

    /// The element of rows that are no cuts that is pivoted next.
    fn least_count(&self, searched: &mut Vec<(usize, f64)>) -> Option<(usize, usize)> {
        let left = (0..self.columns.len())
            .filter(|&column| !self.column_done[column] && self.column_counts[column] > 0);
        let least = left
            .clone()
            .map(|column| self.column_counts[column])
            .min()?;
        let shortest = left
            .clone()
            .filter(|&column| self.column_counts[column] == least);
        self.least_fill(shortest.take(SEARCHED), searched)
            .or_else(|| self.least_fill(left, searched))
    }

    /// The element with the least Markowitz count among those that are large enough.
    fn least_fill(
        &self,
        columns: impl Iterator<Item = usize>,
        searched: &mut Vec<(usize, f64)>,
    ) -> Option<(usize, usize)> {
        let (mut least, mut found) = (f64::INFINITY, None);
        // Cuts fill in too.
        let cuts = 0.3 * (self.rows.len() - self.plain) as f64;
        for column in columns {
            let rows = self.left.iter().take_while(|&&row| row < self.plain);
            let elements = rows.map(|&row| (row, self.element(row, column).abs()));
            searched.clear();
            searched.extend(elements.filter(|element| element.1 > 0.0));
            let sizes = searched.iter().map(|element| element.1);
            let largest = sizes.fold(0.0, f64::max);
            if largest < SMALLEST_ELEMENT {
                continue;
            }
            for &(row, size) in &*searched {
                if size < THRESHOLD * largest {
                    continue;
                }
                let column_rest = (self.column_counts[column] - 1) as f64 + cuts;
                let fill = (self.row_counts[row] - 1) as f64 * column_rest;
                if fill < least {
                    (least, found) = (fill, Some((row, column)));
                }
            }
        }
        found
    }

    fn largest_of_cuts(&self) -> Option<(usize, usize)> {
        let (mut most, mut found) = (0.0, None);
        for &row in self.left.iter().filter(|&&row| row >= self.plain) {
            for column in (0..self.columns.len()).filter(|&column| !self.column_done[column]) {
                let size = self.element(row, column).abs();
                if size > most {
                    (most, found) = (size, Some((row, column)));
                }
            }
        }
        found
    }

    /// Eliminates the pivot column from the rows that are left; adds the multipliers to `lower`.
    fn eliminate(&mut self, row: usize, column: usize, pivot: f64, lower: &mut Vec<(u32, f64)>) {
        let width = self.columns.len();
        self.left.retain(|&other| other != row);
        self.column_done[column] = true;
        let is_plain = row < self.plain;
        self.pivot_row.clear();
        for other in 0..width {
            let element = self.elements[row * width + other];
            if element != 0.0 && !self.column_done[other] {
                self.pivot_row.push((other, element));
                self.upper[other].push((self.rows[row] as u32, element));
                self.column_counts[other] -= usize::from(is_plain);
            }
        }
        for &other in &self.left {
            let elements = &mut self.elements[other * width..][..width];
            if elements[column] == 0.0 {
                continue;
            }
            let factor = elements[column] / pivot;
            elements[column] = 0.0;
            lower.push((self.rows[other] as u32, factor));
            let is_plain = other < self.plain;
            self.row_counts[other] -= usize::from(is_plain);
            for &(at, value) in &self.pivot_row {
                let before = elements[at];
                let after = before - factor * value;
                let after = if after.abs() < DROP { 0.0 } else { after };
                elements[at] = after;
                if is_plain {
                    self.row_counts[other] += usize::from(after != 0.0);
                    self.row_counts[other] -= usize::from(before != 0.0);
                    self.column_counts[at] += usize::from(after != 0.0);
                    self.column_counts[at] -= usize::from(before != 0.0);
                }
            }
        }
    }
}
