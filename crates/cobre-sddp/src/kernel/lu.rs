//! The sparse LU factorisation of a basis matrix, which never changes once it is made.
//!
//! Pivots are chosen in three steps: column and row singletons; the rest of the rows (the bump) by
//! Markowitz counts; cuts, whose rows are dense, last. Every choice takes the first of equals, so the
//! factors are a function of the matrix alone. The column that is pivoted in a row gets the number of
//! that row: rows and positions of the basis have one numbering, and systems are solved in place.

use super::inverse::Singular;
use super::sparse::Sparse;

mod bump;

/// The smallest pivot element.
const SMALLEST_PIVOT: f64 = 1e-9;
/// The smallest pivot of a row singleton, relative to the largest element of its column: others
/// would have large multipliers, and are left to the bump.
const SINGLETON_THRESHOLD: f64 = 0.01;
/// Elements that elimination or a solve leaves at or below this are zero.
const DROP: f64 = 1e-14;

/// Columns, or rows, of a triangular matrix in the order in which a system is solved.
#[derive(Debug, Default)]
struct Triangle {
    pivots: Vec<u16>,
    starts: Vec<u32>,
    indices: Vec<u16>,
    values: Vec<f64>,
}

impl Triangle {
    fn with_room(pivots: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(pivots + 1);
        starts.push(0);
        Self {
            pivots: Vec::with_capacity(pivots),
            starts,
            indices: Vec::with_capacity(entries),
            values: Vec::with_capacity(entries),
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.pivots)
            + size_of_val(&*self.starts)
            + size_of_val(&*self.indices)
            + size_of_val(&*self.values)
    }

    #[inline]
    fn list(&self, at: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.starts[at] as usize..self.starts[at + 1] as usize;
        let values = self.values[range.clone()].iter();
        let indices = self.indices[range].iter();
        indices
            .zip(values)
            .map(|(&index, &value)| (usize::from(index), value))
    }

    /// Solves; the diagonal is all ones. Elements that are rounding errors count as zero: what follows from them would be
    /// rounding errors too, in place of zeros.
    #[inline]
    fn solve(&self, vector: &mut [f64]) {
        for (at, &pivot) in self.pivots.iter().enumerate() {
            let value = vector[usize::from(pivot)];
            if value.abs() > DROP {
                for (index, coefficient) in self.list(at) {
                    vector[index] -= coefficient * value;
                }
            }
        }
    }
}

/// The entries of a column: row and value.
fn entries_of(matrix: &Sparse, column: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
    let entries = matrix.list(column).iter();
    entries.map(|&(row, value)| (row as usize, value))
}

/// The factors L × U × D of a basis matrix: L and U are triangular with ones on the diagonal, which are not stored, and D is
/// diagonal.
#[derive(Debug, Default)]
pub(super) struct Lu {
    /// One over the pivot of each row, the elements of D.
    reciprocals: Vec<f64>,
    /// L by columns in the order of pivots, and by rows in the reverse order; without empty ones.
    lower: Triangle,
    lower_rows: Triangle,
    /// U by columns in the reverse order of pivots, and by rows in that order; without empty ones.
    upper: Triangle,
    upper_rows: Triangle,
}

impl Lu {
    /// The factors of minus the identity.
    pub(super) fn minus_identity(size: usize) -> Self {
        Self {
            reciprocals: vec![-1.0; size],
            ..Self::default()
        }
    }

    /// The number of rows.
    pub(super) fn size(&self) -> usize {
        self.reciprocals.len()
    }

    /// The bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        let parts = [&self.lower, &self.lower_rows, &self.upper, &self.upper_rows];
        let parts = parts.map(Triangle::bytes);
        size_of::<Self>() + size_of_val(&*self.reciprocals) + parts.iter().sum::<usize>()
    }

    /// Solves B × x = `vector` in place.
    #[inline]
    pub(super) fn ftran(&self, vector: &mut [f64]) {
        self.lower.solve(vector);
        self.upper.solve(vector);
        self.divide(vector);
    }

    /// Solves x × B = `vector` in place.
    #[inline]
    pub(super) fn btran(&self, vector: &mut [f64]) {
        self.divide(vector);
        self.upper_rows.solve(vector);
        self.lower_rows.solve(vector);
    }

    /// Divides by the elements of D.
    #[inline]
    fn divide(&self, vector: &mut [f64]) {
        for (value, reciprocal) in vector.iter_mut().zip(&self.reciprocals) {
            *value *= reciprocal;
        }
    }
}

/// The factorisation of a matrix: its pivots so far, and work space that is reused.
#[derive(Debug, Default)]
pub(super) struct Factorizer {
    size: usize,
    /// By row: its entries.
    row_starts: Vec<usize>,
    row_entries: Vec<(u32, f64)>,
    /// By row that is no cut and by column: the entries that are left, without those of cuts.
    row_counts: Vec<u32>,
    column_counts: Vec<u32>,
    /// By row: its number among cuts.
    cut_of: Vec<Option<u32>>,
    cut_rows: Vec<usize>,
    /// By cut: its row, as elimination leaves it.
    cuts: Vec<f64>,
    row_done: Vec<bool>,
    column_done: Vec<bool>,
    /// Pivots in order: row, column, value, and where its entries begin.
    pivots: Vec<Pivot>,
    /// Entries of the factors by pivot: row and value.
    lower: Vec<(u32, f64)>,
    upper: Vec<(u32, f64)>,
    bump: bump::Bump,
}

#[derive(Debug, Clone, Copy)]
struct Pivot {
    row: usize,
    column: usize,
    value: f64,
    lower: usize,
    upper: usize,
}

impl Factorizer {
    /// Factorises a matrix. `is_cut` tells rows that are pivoted last. Writes to `column_of`, by row,
    /// the column that is pivoted there.
    pub(super) fn factorize(
        &mut self,
        matrix: &Sparse,
        is_cut: impl Fn(usize) -> bool,
        column_of: &mut Vec<u32>,
    ) -> Result<Lu, Singular> {
        self.start(matrix, is_cut);
        self.eliminate_singletons(matrix)?;
        self.eliminate_bump(matrix)?;
        column_of.clear();
        column_of.resize(self.size, 0);
        for pivot in &self.pivots {
            column_of[pivot.row] = pivot.column as u32;
        }
        Ok(self.collect())
    }

    fn start(&mut self, matrix: &Sparse, is_cut: impl Fn(usize) -> bool) {
        let size = matrix.count();
        self.size = size;
        self.cut_rows.clear();
        self.cut_of.clear();
        for row in 0..size {
            self.cut_of
                .push(is_cut(row).then_some(self.cut_rows.len() as u32));
            if is_cut(row) {
                self.cut_rows.push(row);
            }
        }
        for list in [&mut self.row_done, &mut self.column_done] {
            list.clear();
            list.resize(size, false);
        }
        for list in [&mut self.row_counts, &mut self.column_counts] {
            list.clear();
            list.resize(size, 0);
        }
        self.cuts.clear();
        self.cuts.resize(self.cut_rows.len() * size, 0.0);
        self.pivots.clear();
        self.lower.clear();
        self.upper.clear();
        self.row_starts.clear();
        self.row_starts.resize(size + 1, 0);
        for &(row, _) in matrix.entries() {
            self.row_starts[row as usize + 1] += 1;
        }
        for row in 0..size {
            self.row_starts[row + 1] += self.row_starts[row];
        }
        let mut next = self.row_starts.clone();
        self.row_entries.clear();
        self.row_entries.resize(matrix.entries().len(), (0, 0.0));
        for column in 0..size {
            for (row, value) in entries_of(matrix, column) {
                self.row_entries[next[row]] = (column as u32, value);
                next[row] += 1;
                if let Some(cut) = self.cut_of[row] {
                    self.cuts[cut as usize * size + column] = value;
                } else {
                    self.row_counts[row] += 1;
                    self.column_counts[column] += 1;
                }
            }
        }
    }

    fn is_cut(&self, row: usize) -> bool {
        self.cut_of[row].is_some()
    }

    /// The entries of a row in columns that are left.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let entries = &self.row_entries[self.row_starts[row]..self.row_starts[row + 1]];
        let entries = entries
            .iter()
            .map(|&(column, value)| (column as usize, value));
        entries.filter(|entry| !self.column_done[entry.0])
    }

    fn begin(&mut self, row: usize, column: usize, value: f64) {
        self.pivots.push(Pivot {
            row,
            column,
            value,
            lower: self.lower.len(),
            upper: self.upper.len(),
        });
        self.row_done[row] = true;
        self.column_done[column] = true;
    }

    fn eliminate_singletons(&mut self, matrix: &Sparse) -> Result<(), Singular> {
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        columns.extend((0..self.size).filter(|&column| self.column_counts[column] == 1));
        let is_singleton = |row: &usize| self.row_counts[*row] == 1 && !self.is_cut(*row);
        rows.extend((0..self.size).filter(is_singleton));
        let (mut next_column, mut next_row) = (0, 0);
        loop {
            if let Some(&column) = columns.get(next_column) {
                next_column += 1;
                if !self.column_done[column] && self.column_counts[column] == 1 {
                    self.column_singleton(matrix, column, &mut columns)?;
                }
            } else if let Some(&row) = rows.get(next_row) {
                next_row += 1;
                if !self.row_done[row] && self.row_counts[row] == 1 {
                    self.row_singleton(matrix, row, &mut rows);
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Pivots a column with one entry left: its row is a row of U, and only cuts have multipliers.
    fn column_singleton(
        &mut self,
        matrix: &Sparse,
        column: usize,
        columns: &mut Vec<usize>,
    ) -> Result<(), Singular> {
        let mut left =
            entries_of(matrix, column).filter(|&(row, _)| !self.row_done[row] && !self.is_cut(row));
        let (row, value) = left.next().ok_or(Singular)?;
        if value.abs() < SMALLEST_PIVOT {
            return Err(Singular);
        }
        self.begin(row, column, value);
        for (other, value) in entries_of(matrix, column) {
            if other != row && !self.is_cut(other) {
                self.upper.push((other as u32, value));
            }
        }
        self.eliminate_in_cuts(row, column, value);
        let entries = self.row_starts[row]..self.row_starts[row + 1];
        for at in entries {
            let other = self.row_entries[at].0 as usize;
            if !self.column_done[other] {
                self.column_counts[other] -= 1;
                if self.column_counts[other] == 1 {
                    columns.push(other);
                }
            }
        }
        Ok(())
    }

    /// Pivots a row with one entry left: its column is a column of L, and nothing fills in.
    fn row_singleton(&mut self, matrix: &Sparse, row: usize, rows: &mut Vec<usize>) {
        let Some((column, value)) = self.row(row).next() else {
            return;
        };
        let left = |other: usize| !self.row_done[other] && !self.is_cut(other);
        let left = entries_of(matrix, column).filter(|&(other, _)| left(other));
        let largest = left.fold(0.0, |most: f64, entry| most.max(entry.1.abs()));
        if value.abs() < (SINGLETON_THRESHOLD * largest).max(SMALLEST_PIVOT) {
            return;
        }
        self.begin(row, column, value);
        for (other, entry) in entries_of(matrix, column) {
            if other == row || self.is_cut(other) {
                continue;
            }
            if self.row_done[other] {
                self.upper.push((other as u32, entry));
            } else {
                self.lower.push((other as u32, entry / value));
                self.row_counts[other] -= 1;
                if self.row_counts[other] == 1 {
                    rows.push(other);
                }
            }
        }
        self.eliminate_in_cuts(row, column, value);
    }

    /// Eliminates a column from the cuts.
    fn eliminate_in_cuts(&mut self, row: usize, column: usize, pivot: f64) {
        let size = self.size;
        for (cut, &cut_row) in self.cut_rows.iter().enumerate() {
            let entries = &mut self.cuts[cut * size..][..size];
            let factor = entries[column] / pivot;
            entries[column] = 0.0;
            if factor.abs() < DROP {
                continue;
            }
            self.lower.push((cut_row as u32, factor));
            let own = &self.row_entries[self.row_starts[row]..self.row_starts[row + 1]];
            for &(other, value) in own {
                if !self.column_done[other as usize] {
                    entries[other as usize] -= factor * value;
                }
            }
        }
    }

    /// The factors by columns and by rows.
    fn collect(&mut self) -> Lu {
        let mut reciprocals = vec![0.0; self.size];
        let mut end = self.upper.len();
        for pivot in self.pivots.iter().rev() {
            let reciprocal = 1.0 / pivot.value;
            reciprocals[pivot.row] = reciprocal;
            for entry in &mut self.upper[pivot.upper..end] {
                entry.1 *= reciprocal;
            }
            end = pivot.upper;
        }
        let mut starts: Vec<usize> = self.pivots.iter().map(|pivot| pivot.lower).collect();
        starts.push(self.lower.len());
        let lower = self.triangle(&starts, &self.lower, false);
        let lower_rows = self.transposed(&starts, &self.lower, true);
        starts.clear();
        starts.extend(self.pivots.iter().map(|pivot| pivot.upper));
        starts.push(self.upper.len());
        Lu {
            reciprocals,
            lower: without_empty(lower),
            lower_rows: without_empty(lower_rows),
            upper: without_empty(self.triangle(&starts, &self.upper, true)),
            upper_rows: without_empty(self.transposed(&starts, &self.upper, false)),
        }
    }

    /// The pivots in order, or in reverse.
    fn order(&self, reverse: bool) -> impl Iterator<Item = usize> {
        let count = self.pivots.len();
        (0..count).map(move |at| if reverse { count - 1 - at } else { at })
    }

    /// The columns of a factor.
    fn triangle(&self, starts: &[usize], entries: &[(u32, f64)], reverse: bool) -> Triangle {
        let mut triangle = Triangle::with_room(self.size, entries.len());
        for at in self.order(reverse) {
            triangle.pivots.push(self.pivots[at].row as u16);
            for &(index, value) in &entries[starts[at]..starts[at + 1]] {
                triangle.indices.push(index as u16);
                triangle.values.push(value);
            }
            triangle.starts.push(triangle.indices.len() as u32);
        }
        triangle
    }

    /// The rows of a factor.
    fn transposed(&self, starts: &[usize], entries: &[(u32, f64)], reverse: bool) -> Triangle {
        let mut triangle = Triangle::with_room(self.size, entries.len());
        let mut place = vec![0; self.size];
        for (number, at) in self.order(reverse).enumerate() {
            let row = self.pivots[at].row;
            triangle.pivots.push(row as u16);
            place[row] = number;
        }
        triangle.starts.resize(self.size + 1, 0);
        for &(row, _) in entries {
            triangle.starts[place[row as usize] + 1] += 1;
        }
        for at in 0..self.size {
            triangle.starts[at + 1] += triangle.starts[at];
        }
        triangle.indices.resize(entries.len(), 0);
        triangle.values.resize(entries.len(), 0.0);
        let mut next = triangle.starts.clone();
        for (at, pivot) in self.pivots.iter().enumerate() {
            for &(row, value) in &entries[starts[at]..starts[at + 1]] {
                let next = &mut next[place[row as usize]];
                triangle.indices[*next as usize] = pivot.row as u16;
                triangle.values[*next as usize] = value;
                *next += 1;
            }
        }
        triangle
    }
}

/// The same without pivots that have no entries.
fn without_empty(mut triangle: Triangle) -> Triangle {
    let mut kept = 0;
    for at in 0..triangle.pivots.len() {
        if triangle.starts[at + 1] > triangle.starts[at] {
            triangle.pivots[kept] = triangle.pivots[at];
            triangle.starts[kept + 1] = triangle.starts[at + 1];
            kept += 1;
        }
    }
    triangle.pivots.truncate(kept);
    triangle.starts.truncate(kept + 1);
    triangle
}

#[cfg(test)]
mod tests;
