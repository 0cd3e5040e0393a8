//! The sparse LU factorisation of a basis matrix, which never changes once it is made.
//!
//! Pivots are chosen in three steps: column and row singletons; the rest of the rows (the bump) by
//! Markowitz counts; cuts, whose rows are dense, last. Every choice takes the first of equals, so the
//! factors are a function of the matrix alone. The column that is pivoted in a row gets the number of
//! that row: rows and positions of the basis have one numbering, and systems are solved in place.

use std::ops::Range;

use super::inverse::Singular;
use super::solve_vector::{ELEMENTS, SolveVector};
use super::sparse::Sparse;

mod bump;

/// The smallest pivot element.
const SMALLEST_PIVOT: f64 = 1e-9;
/// The smallest pivot of a row singleton, relative to the largest element of its column: others
/// would have large multipliers, and are left to the bump.
const SINGLETON_THRESHOLD: f64 = 0.01;
/// Elements that elimination or a solve leaves at or below this are zero.
const DROP: f64 = 1e-14;

/// The entries of a column: row and value.
fn entries_of(matrix: &Sparse, column: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
    let entries = matrix.list(column).iter();
    entries.map(|&(row, value)| (row as usize, value))
}

/// The factors L × U × D of a basis matrix: L and U are triangular with ones on the diagonal, which are not stored, and D is
/// diagonal.
#[derive(Debug, Default, Clone)]
pub(super) struct Lu {
    /// One over the pivot of each row, the elements of D.
    reciprocals: Vec<f64>,
    /// The pivots whose lists have entries, and where their lists end: L by columns in the order of pivots, U by columns in
    /// the reverse order; then U by rows in the order of pivots, and L by rows in the reverse order.
    pivots: Vec<u16>,
    ends: Vec<u32>,
    /// The number of pivots of the columns.
    columns: usize,
    indices: Vec<u16>,
    values: Vec<f64>,
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
        size_of::<Self>()
            + size_of_val(&*self.reciprocals)
            + size_of_val(&*self.pivots)
            + size_of_val(&*self.ends)
            + size_of_val(&*self.indices)
            + size_of_val(&*self.values)
    }

    /// Solves B × x = `vector` in place.
    #[inline]
    pub(super) fn ftran(&self, vector: &mut SolveVector) {
        self.solve(0..self.columns, vector);
        self.divide(&mut vector[..]);
    }

    /// Solves x × B = `vector` in place.
    #[inline]
    pub(super) fn btran(&self, vector: &mut SolveVector) {
        self.divide(&mut vector[..]);
        self.solve(self.columns..self.pivots.len(), vector);
    }

    /// Solves with the lists of these pivots, one after the other. Elements that are rounding errors count as zero: what
    /// follows from them would be rounding errors too, in place of zeros.
    fn solve(&self, lists: Range<usize>, vector: &mut [f64; ELEMENTS]) {
        let mut start = lists.start.checked_sub(1).map_or(0, |at| self.ends[at]);
        for (&pivot, &end) in self.pivots[lists.clone()].iter().zip(&self.ends[lists]) {
            let value = vector[usize::from(pivot)];
            if value.abs() > DROP {
                let list = start as usize..end as usize;
                let values = self.values[list.clone()].iter();
                for (&index, coefficient) in self.indices[list].iter().zip(values) {
                    vector[usize::from(index)] -= coefficient * value;
                }
            }
            start = end;
        }
    }

    /// Divides by the elements of D.
    #[inline]
    fn divide(&self, vector: &mut [f64]) {
        for (value, reciprocal) in vector.iter_mut().zip(&self.reciprocals) {
            *value *= reciprocal;
        }
    }

    /// Drops all lists.
    fn clear(&mut self) {
        self.pivots.clear();
        self.ends.clear();
        self.indices.clear();
        self.values.clear();
    }

    /// Adds lists from `start` on, without empty ones: pivots, and where their lists end.
    fn add_lists(&mut self, mut start: u32, lists: impl ExactSizeIterator<Item = (u16, u32)>) {
        // No branch: the processor would not foresee which lists are empty.
        let mut count = self.pivots.len();
        self.pivots.resize(count + lists.len(), 0);
        self.ends.resize(count + lists.len(), 0);
        for (pivot, end) in lists {
            (self.pivots[count], self.ends[count]) = (pivot, end);
            count += usize::from(end > start);
            start = end;
        }
        self.pivots.truncate(count);
        self.ends.truncate(count);
    }

    /// Adds the entries of lists.
    fn add_entries<'a>(&mut self, entries: impl Iterator<Item = &'a Entry> + Clone) {
        self.indices.extend(entries.clone().map(|entry| entry.row));
        self.values.extend(entries.map(|entry| entry.value));
    }

    /// Adds the rows of a factor in an order of pivots. `next` is work space.
    fn add_rows<'a>(
        &mut self,
        entries: &[Entry],
        pivots: &[Pivot],
        order: impl ExactSizeIterator<Item = &'a Pivot>,
        next: &mut Vec<u32>,
    ) {
        next.clear();
        next.resize(pivots.len(), 0);
        for entry in entries {
            next[usize::from(entry.row)] += 1;
        }
        let start = self.indices.len() as u32;
        let mut end = start;
        let lists = order.map(|pivot| {
            let count = &mut next[usize::from(pivot.row)];
            end += std::mem::replace(count, end);
            (pivot.row, end)
        });
        self.add_lists(start, lists);
        let length = start as usize + entries.len();
        self.indices.resize(length, 0);
        self.values.resize(length, 0.0);
        for entry in entries {
            let next = &mut next[usize::from(entry.row)];
            self.indices[*next as usize] = pivots[usize::from(entry.pivot)].row;
            self.values[*next as usize] = entry.value;
            *next += 1;
        }
    }
}

/// An entry of a factor: its row, the number of the pivot of its column, and its value.
#[derive(Debug, Clone, Copy)]
struct Entry {
    row: u16,
    pivot: u16,
    value: f64,
}

impl Entry {
    fn new(row: usize, pivot: u16, value: f64) -> Self {
        let row = row as u16;
        Self { row, pivot, value }
    }
}

/// A row during a factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowState {
    Left,
    /// Pivoted as that of a singleton.
    Done,
    Cut,
}

/// The factorisation of a matrix: its pivots so far, and work space that is reused.
#[derive(Debug, Default)]
pub(super) struct Factorizer {
    size: usize,
    /// By row: its entries, as column and place among those of the matrix.
    row_starts: Vec<u32>,
    row_entries: Vec<(u32, u32)>,
    row_states: Vec<RowState>,
    /// By row that is no cut: the number of its columns that are left, and their numbers combined by exclusive or, which
    /// is the number of the last one.
    row_counts: Vec<u32>,
    row_columns: Vec<u32>,
    /// By column: the entries that are left, without those of cuts.
    column_counts: Vec<u32>,
    column_done: Vec<bool>,
    cut_rows: Vec<u16>,
    /// By column and cut: the element, as elimination leaves it.
    cuts: Vec<f64>,
    /// Cuts with an element in a column, and their multipliers.
    factors: Vec<(usize, f64)>,
    /// Columns and rows that are singletons, or were.
    singletons: Vec<u32>,
    /// Pivots in order.
    pivots: Vec<Pivot>,
    /// Entries of the factors by pivot.
    lower: Vec<Entry>,
    upper: Vec<Entry>,
    bump: bump::Bump,
    /// By pivot: its reciprocal.
    scales: Vec<f64>,
    /// By row: the place of its next entry.
    next: Vec<u32>,
    /// The factors, with more room than they take.
    lists: Lu,
}

/// A pivot: row, column, value, and where its entries begin.
#[derive(Debug, Clone, Copy)]
struct Pivot {
    row: u16,
    column: u16,
    value: f64,
    lower: u32,
    upper: u32,
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
        self.eliminate_columns(matrix)?;
        self.eliminate_rows(matrix);
        self.eliminate_bump(matrix)?;
        column_of.clear();
        column_of.resize(self.size, 0);
        for pivot in &self.pivots {
            column_of[usize::from(pivot.row)] = u32::from(pivot.column);
        }
        Ok(self.collect())
    }

    fn start(&mut self, matrix: &Sparse, is_cut: impl Fn(usize) -> bool) {
        let size = matrix.count();
        self.size = size;
        self.cut_rows.clear();
        self.row_states.clear();
        self.row_states.resize(size, RowState::Left);
        for row in (0..size).filter(|&row| is_cut(row)) {
            self.row_states[row] = RowState::Cut;
            self.cut_rows.push(row as u16);
        }
        self.column_done.clear();
        self.column_done.resize(size, false);
        for list in [
            &mut self.row_counts,
            &mut self.row_columns,
            &mut self.column_counts,
        ] {
            list.clear();
            list.resize(size, 0);
        }
        self.pivots.clear();
        self.lower.clear();
        self.upper.clear();
        self.list_rows(matrix);
        self.list_cuts(matrix);
    }

    /// Lists the matrix by rows, and counts.
    fn list_rows(&mut self, matrix: &Sparse) {
        for &(row, _) in matrix.entries() {
            self.row_counts[row as usize] += 1;
        }
        self.row_starts.clear();
        let mut start = 0;
        self.row_starts.extend(self.row_counts.iter().map(|&count| {
            start += count;
            start - count
        }));
        self.row_starts.push(start);
        self.next.clear();
        self.next.extend_from_slice(&self.row_starts);
        self.row_entries.resize(matrix.entries().len(), (0, 0));
        for column in 0..self.size {
            let list = matrix.list(column);
            self.column_counts[column] = list.len() as u32;
            for (place, &(row, _)) in (matrix.start(column) as u32..).zip(list) {
                let next = &mut self.next[row as usize];
                self.row_entries[*next as usize] = (column as u32, place);
                *next += 1;
                self.row_columns[row as usize] ^= column as u32;
            }
        }
    }

    /// Moves the entries of cuts to a table.
    fn list_cuts(&mut self, matrix: &Sparse) {
        let count = self.cut_rows.len();
        self.cuts.clear();
        self.cuts.resize(count * self.size, 0.0);
        for (cut, &row) in self.cut_rows.iter().enumerate() {
            let row = usize::from(row);
            let list = self.row_starts[row] as usize..self.row_starts[row + 1] as usize;
            for &(column, place) in &self.row_entries[list] {
                let value = matrix.entries()[place as usize].1;
                self.cuts[column as usize * count + cut] = value;
                self.column_counts[column as usize] -= 1;
            }
        }
    }

    /// Pivots columns with one entry left, in turn: their rows are rows of U, and only cuts have multipliers.
    fn eliminate_columns(&mut self, matrix: &Sparse) -> Result<(), Singular> {
        let mut columns = std::mem::take(&mut self.singletons);
        columns.clear();
        let counts = (0..).zip(&self.column_counts);
        columns.extend(counts.filter(|count| *count.1 == 1).map(|count| count.0));
        let mut at = 0;
        while let Some(&column) = columns.get(at) {
            at += 1;
            // Its row can be that of another column by now.
            if self.column_counts[column as usize] == 1 {
                let row = self.pivot_column(matrix, column as usize)?;
                let list = self.row_starts[row] as usize..self.row_starts[row + 1] as usize;
                for &(other, _) in &self.row_entries[list] {
                    let count = &mut self.column_counts[other as usize];
                    *count -= 1;
                    if *count == 1 {
                        columns.push(other);
                    }
                }
            }
        }
        self.singletons = columns;
        Ok(())
    }

    /// Pivots a column with one entry left; returns its row.
    fn pivot_column(&mut self, matrix: &Sparse, column: usize) -> Result<usize, Singular> {
        let (number, upper) = (self.pivots.len() as u16, self.upper.len());
        let mut found = None;
        for (row, value) in entries_of(matrix, column) {
            match self.row_states[row] {
                RowState::Left => found = Some((row, value)),
                RowState::Done => self.upper.push(Entry::new(row, number, value)),
                RowState::Cut => {}
            }
        }
        let (row, value) = found.ok_or(Singular)?;
        if value.abs() < SMALLEST_PIVOT {
            return Err(Singular);
        }
        self.row_states[row] = RowState::Done;
        self.add_pivot(row, column, value, (self.lower.len(), upper));
        self.eliminate_in_cuts(matrix, (row, column), value);
        Ok(row)
    }

    /// Pivots rows with one entry left, in turn: their columns are columns of L, and nothing fills in.
    fn eliminate_rows(&mut self, matrix: &Sparse) {
        let mut rows = std::mem::take(&mut self.singletons);
        rows.clear();
        let counts = (0..).zip(&self.row_counts).zip(&self.row_states);
        let left = counts.filter(|row| *row.1 == RowState::Left);
        let singletons = left.map(|row| row.0).filter(|count| *count.1 == 1);
        rows.extend(singletons.map(|count| count.0));
        let mut at = 0;
        while let Some(&row) = rows.get(at) {
            at += 1;
            // Its column can be that of another row by now.
            if self.row_counts[row as usize] == 1 {
                self.pivot_row(matrix, row as usize, &mut rows);
            }
        }
        self.singletons = rows;
    }

    /// Pivots a row with one entry left, if that is large enough; adds the rows to `rows` that have one entry left then.
    fn pivot_row(&mut self, matrix: &Sparse, row: usize, rows: &mut Vec<u32>) {
        let column = self.row_columns[row] as usize;
        let (mut largest, mut value): (f64, f64) = (0.0, 0.0);
        for (other, entry) in entries_of(matrix, column) {
            if self.row_states[other] == RowState::Left {
                largest = largest.max(entry.abs());
            }
            if other == row {
                value = entry;
            }
        }
        if value.abs() < (SINGLETON_THRESHOLD * largest).max(SMALLEST_PIVOT) {
            return;
        }
        let number = self.pivots.len() as u16;
        self.row_states[row] = RowState::Done;
        self.row_counts[row] = 0;
        self.add_pivot(row, column, value, (self.lower.len(), self.upper.len()));
        for (other, entry) in entries_of(matrix, column) {
            match self.row_states[other] {
                RowState::Left => {
                    self.lower.push(Entry::new(other, number, entry / value));
                    self.row_columns[other] ^= column as u32;
                    self.row_counts[other] -= 1;
                    if self.row_counts[other] == 1 {
                        rows.push(other as u32);
                    }
                }
                RowState::Done if other != row => {
                    self.upper.push(Entry::new(other, number, entry));
                }
                _ => {}
            }
        }
        self.eliminate_in_cuts(matrix, (row, column), value);
    }

    /// Adds a pivot. `starts` are where its entries begin, of L and of U.
    fn add_pivot(&mut self, row: usize, column: usize, value: f64, starts: (usize, usize)) {
        self.column_done[column] = true;
        self.pivots.push(Pivot {
            row: row as u16,
            column: column as u16,
            value,
            lower: starts.0 as u32,
            upper: starts.1 as u32,
        });
    }

    /// Eliminates the column of the latest pivot from the cuts.
    fn eliminate_in_cuts(&mut self, matrix: &Sparse, (row, column): (usize, usize), pivot: f64) {
        let count = self.cut_rows.len();
        let number = self.pivots.len() as u16 - 1;
        self.factors.clear();
        let elements = &mut self.cuts[column * count..][..count];
        for (cut, element) in elements.iter_mut().enumerate() {
            if *element == 0.0 {
                continue;
            }
            let factor = std::mem::take(element) / pivot;
            if factor.abs() < DROP {
                continue;
            }
            let cut_row = usize::from(self.cut_rows[cut]);
            self.lower.push(Entry::new(cut_row, number, factor));
            self.factors.push((cut, factor));
        }
        if self.factors.is_empty() {
            return;
        }
        let list = self.row_starts[row] as usize..self.row_starts[row + 1] as usize;
        for &(other, place) in &self.row_entries[list] {
            if !self.column_done[other as usize] {
                let value = matrix.entries()[place as usize].1;
                let elements = &mut self.cuts[other as usize * count..][..count];
                for &(cut, factor) in &self.factors {
                    elements[cut] -= factor * value;
                }
            }
        }
    }

    /// The factors by columns and by rows.
    fn collect(&mut self) -> Lu {
        let lists = &mut self.lists;
        lists.clear();
        lists.reciprocals.resize(self.size, 0.0);
        self.scales.clear();
        for pivot in &self.pivots {
            let reciprocal = 1.0 / pivot.value;
            lists.reciprocals[usize::from(pivot.row)] = reciprocal;
            self.scales.push(reciprocal);
        }
        for entry in &mut self.upper {
            entry.value *= self.scales[usize::from(entry.pivot)];
        }
        let (lower, upper) = (self.lower.len() as u32, self.upper.len() as u32);
        let count = self.pivots.len();
        let ends = (0..count).map(|at| self.pivots.get(at + 1).map_or(lower, |next| next.lower));
        let pivots = self.pivots.iter().zip(ends);
        lists.add_lists(0, pivots.map(|(pivot, end)| (pivot.row, end)));
        lists.add_entries(self.lower.iter());
        let pivots = self.pivots.iter().rev();
        let ends = pivots.map(|pivot| (pivot.row, lower + upper - pivot.upper));
        lists.add_lists(lower, ends);
        lists.add_entries(self.upper.iter().rev());
        lists.columns = lists.pivots.len();
        lists.add_rows(
            &self.upper,
            &self.pivots,
            self.pivots.iter(),
            &mut self.next,
        );
        let reverse = self.pivots.iter().rev();
        lists.add_rows(&self.lower, &self.pivots, reverse, &mut self.next);
        lists.clone()
    }
}

#[cfg(test)]
mod tests;
