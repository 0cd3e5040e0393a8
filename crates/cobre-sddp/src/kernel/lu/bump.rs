//! The bump: the part of a matrix that is left when there are no singletons.

use super::{DROP, Entry, Factorizer, RowState, SMALLEST_PIVOT, entries_of};
use crate::kernel::inverse::Singular;
use crate::kernel::sparse::Sparse;

/// The smallest pivot, relative to the largest element of its column.
const THRESHOLD: f64 = 0.1;
/// Columns that are searched for a pivot, unless none of them has one.
const SEARCHED: usize = 3;
/// The smallest pivot of a row that is no cut.
const SMALLEST_ELEMENT: f64 = 1e-8;

/// The rows that are left without those of cuts, the columns that are left, and sets of both as bits. The elements of cuts
/// are those of the factorisation.
#[derive(Debug, Default)]
pub(super) struct Bump {
    /// Their numbers in the whole matrix, and the other way round for rows.
    rows: Vec<usize>,
    columns: Vec<usize>,
    places: Vec<u16>,
    /// The words of a set.
    words: usize,
    /// By row and column, where they are not zero.
    elements: Vec<f64>,
    /// By row: the columns whose elements are not zero. By column: the rows that are left and whose elements are not zero.
    row_sets: Vec<u64>,
    column_sets: Vec<u64>,
    /// The sizes of these.
    row_counts: Vec<u32>,
    column_counts: Vec<u32>,
    /// By count: the columns that have it; and the least one that columns can have.
    columns_by_count: Vec<u64>,
    least: usize,
    /// By column: its elements in the pivot rows so far, with the rows of the whole matrix.
    upper: Vec<Vec<(u16, f64)>>,
    /// The cuts that are left.
    cuts: Vec<usize>,
    /// The pivot row: columns, counts of these before, and elements.
    pivot_row: Vec<(usize, u32, f64)>,
}

/// The members of a set, in order.
fn members(set: &[u64]) -> impl Iterator<Item = usize> + Clone {
    (0..).zip(set).flat_map(|(word, &bits)| {
        let mut left = bits;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left = left.checked_sub(1)? & left;
            Some(word * 64 + bit)
        })
    })
}

fn has(set: &[u64], member: usize) -> bool {
    set[member / 64] >> (member % 64) & 1 != 0
}

fn insert(set: &mut [u64], member: usize) {
    set[member / 64] |= 1 << (member % 64);
}

fn remove(set: &mut [u64], member: usize) {
    set[member / 64] &= !(1 << (member % 64));
}

impl Factorizer {
    /// Eliminates what singletons have left.
    pub(super) fn eliminate_bump(&mut self, matrix: &Sparse) -> Result<(), Singular> {
        let mut bump = std::mem::take(&mut self.bump);
        let result = self.eliminate_all(matrix, &mut bump);
        self.bump = bump;
        result
    }

    fn eliminate_all(&mut self, matrix: &Sparse, bump: &mut Bump) -> Result<(), Singular> {
        self.fill(bump, matrix)?;
        for _ in 0..bump.rows.len() {
            let (row, column) = bump.choose().ok_or(Singular)?;
            let pivot = bump.elements[row * bump.columns.len() + column];
            if pivot.is_nan() || pivot.abs() < SMALLEST_PIVOT {
                return Err(Singular);
            }
            self.begin(bump, matrix, (bump.rows[row], column), pivot);
            self.eliminate(bump, (row, column), pivot);
        }
        self.eliminate_cuts(bump, matrix)
    }

    fn fill(&self, bump: &mut Bump, matrix: &Sparse) -> Result<(), Singular> {
        let left = |&row: &usize| self.row_states[row] == RowState::Left;
        bump.rows.clear();
        bump.rows.extend((0..self.size).filter(left));
        bump.columns.clear();
        let left = |&column: &usize| !self.column_done[column];
        bump.columns.extend((0..self.size).filter(left));
        if bump.rows.len() + self.cut_rows.len() != bump.columns.len() {
            return Err(Singular);
        }
        bump.places.resize(self.size, 0);
        for (at, &row) in bump.rows.iter().enumerate() {
            bump.places[row] = at as u16;
        }
        bump.clear(self.cut_rows.len());
        for at in 0..bump.columns.len() {
            for (row, value) in entries_of(matrix, bump.columns[at]) {
                if self.row_states[row] == RowState::Left && value != 0.0 {
                    bump.set(usize::from(bump.places[row]), at, value);
                }
            }
        }
        bump.sort_columns();
        Ok(())
    }

    /// Adds a pivot with its entries of U.
    fn begin(
        &mut self,
        bump: &mut Bump,
        matrix: &Sparse,
        (row, column): (usize, usize),
        pivot: f64,
    ) {
        let (number, whole) = (self.pivots.len() as u16, bump.columns[column]);
        self.add_pivot(row, whole, pivot, (self.lower.len(), self.upper.len()));
        for (other, value) in entries_of(matrix, whole) {
            if self.row_states[other] == RowState::Done {
                self.upper.push(Entry::new(other, number, value));
            }
        }
        let entries = bump.upper[column].iter();
        self.upper
            .extend(entries.map(|&(other, value)| Entry::new(usize::from(other), number, value)));
    }

    /// Eliminates the pivot column from the rows that are left.
    fn eliminate(&mut self, bump: &mut Bump, (row, column): (usize, usize), pivot: f64) {
        let number = self.pivots.len() as u16 - 1;
        bump.take_pivot_row(row, column);
        for word in 0..bump.words {
            let mut left = bump.column_sets[column * bump.words + word];
            while left != 0 {
                let other = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let factor = bump.eliminate(other, column, pivot);
                self.lower
                    .push(Entry::new(bump.rows[other], number, factor));
            }
        }
        bump.end_pivot_row();
        let cuts = std::mem::take(&mut bump.cuts);
        self.eliminate_in(&cuts, bump, column, pivot);
        bump.cuts = cuts;
    }

    /// Eliminates the pivot column from these cuts.
    fn eliminate_in(&mut self, cuts: &[usize], bump: &Bump, column: usize, pivot: f64) {
        let (count, number) = (self.cut_rows.len(), self.pivots.len() as u16 - 1);
        let whole = bump.columns[column];
        for &cut in cuts {
            let element = std::mem::take(&mut self.cuts[whole * count + cut]);
            if element == 0.0 {
                continue;
            }
            let factor = element / pivot;
            let cut_row = usize::from(self.cut_rows[cut]);
            self.lower.push(Entry::new(cut_row, number, factor));
            for &(other, _, value) in &bump.pivot_row {
                let element = &mut self.cuts[bump.columns[other] * count + cut];
                let after = *element - factor * value;
                *element = if after.abs() < DROP { 0.0 } else { after };
            }
        }
    }

    /// Eliminates cuts in the columns that are left, which are as many: the largest element is next.
    fn eliminate_cuts(&mut self, bump: &mut Bump, matrix: &Sparse) -> Result<(), Singular> {
        let count = self.cut_rows.len();
        let mut columns: Vec<usize> = (0..bump.columns.len()).collect();
        columns.retain(|&at| !self.column_done[bump.columns[at]]);
        let mut cuts = std::mem::take(&mut bump.cuts);
        while !cuts.is_empty() {
            let (mut most, mut found) = (0.0, None);
            for &cut in &cuts {
                for &column in &columns {
                    let element = self.cuts[bump.columns[column] * count + cut];
                    if element.abs() > most {
                        (most, found) = (element.abs(), Some((cut, column, element)));
                    }
                }
            }
            let (cut, column, pivot) = found.ok_or(Singular)?;
            if most < SMALLEST_PIVOT {
                return Err(Singular);
            }
            cuts.retain(|&other| other != cut);
            columns.retain(|&other| other != column);
            let row = usize::from(self.cut_rows[cut]);
            self.begin(bump, matrix, (row, column), pivot);
            bump.pivot_row.clear();
            for &other in &columns {
                let element = self.cuts[bump.columns[other] * count + cut];
                if element != 0.0 {
                    bump.pivot_row.push((other, 0, element));
                    bump.upper[other].push((row as u16, element));
                }
            }
            self.eliminate_in(&cuts, bump, column, pivot);
        }
        bump.cuts = cuts;
        Ok(())
    }
}

impl Bump {
    /// Makes room, and empties all sets.
    fn clear(&mut self, cuts: usize) {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        self.words = columns.div_ceil(64);
        if self.elements.len() < rows * columns {
            self.elements.resize(rows * columns, 0.0);
        }
        for (list, count) in [
            (&mut self.row_sets, rows),
            (&mut self.column_sets, columns),
            (&mut self.columns_by_count, rows + 1),
        ] {
            list.clear();
            list.resize(count * self.words, 0);
        }
        for (list, count) in [
            (&mut self.row_counts, rows),
            (&mut self.column_counts, columns),
        ] {
            list.clear();
            list.resize(count, 0);
        }
        self.upper.iter_mut().for_each(Vec::clear);
        if self.upper.len() < columns {
            self.upper.resize(columns, Vec::new());
        }
        self.cuts.clear();
        self.cuts.extend(0..cuts);
    }

    /// Sets an element, at the start.
    fn set(&mut self, row: usize, column: usize, value: f64) {
        let words = self.words;
        self.elements[row * self.columns.len() + column] = value;
        insert(&mut self.row_sets[row * words..][..words], column);
        insert(&mut self.column_sets[column * words..][..words], row);
        self.row_counts[row] += 1;
        self.column_counts[column] += 1;
    }

    /// Sorts columns by their counts, at the start.
    fn sort_columns(&mut self) {
        for (column, &count) in self.column_counts.iter().enumerate() {
            let set = &mut self.columns_by_count[count as usize * self.words..][..self.words];
            insert(set, column);
        }
        self.least = 1;
    }

    /// The next pivot: row and column.
    fn choose(&mut self) -> Option<(usize, usize)> {
        let shortest = loop {
            let start = self.least * self.words;
            let set = self.columns_by_count.get(start..start + self.words)?;
            if set.iter().any(|&word| word != 0) {
                break set;
            }
            self.least += 1;
        };
        self.least_fill(members(shortest).take(SEARCHED))
            .or_else(|| {
                let columns = 0..self.columns.len();
                self.least_fill(columns.filter(|&column| self.column_counts[column] > 0))
            })
    }

    /// The element with the least Markowitz count among those that are large enough.
    fn least_fill(&self, columns: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
        let (mut least, mut found) = (f64::INFINITY, None);
        let width = self.columns.len();
        // Cuts fill in too.
        let cuts = 0.3 * (width - self.rows.len()) as f64;
        for column in columns {
            let set = &self.column_sets[column * self.words..][..self.words];
            let elements = members(set).map(|row| (row, self.elements[row * width + column].abs()));
            let sizes = elements.clone().map(|element| element.1);
            let largest = sizes.fold(0.0, f64::max);
            if largest < SMALLEST_ELEMENT {
                continue;
            }
            let column_rest = f64::from(self.column_counts[column] - 1) + cuts;
            for (row, _) in elements.filter(|element| element.1 >= THRESHOLD * largest) {
                let fill = f64::from(self.row_counts[row] - 1) * column_rest;
                if fill < least {
                    (least, found) = (fill, Some((row, column)));
                }
            }
        }
        found
    }

    /// Takes out the pivot row and the pivot column.
    fn take_pivot_row(&mut self, row: usize, column: usize) {
        let (words, width) = (self.words, self.columns.len());
        let count = std::mem::take(&mut self.column_counts[column]) as usize;
        remove(&mut self.columns_by_count[count * words..][..words], column);
        remove(&mut self.column_sets[column * words..][..words], row);
        self.pivot_row.clear();
        for other in members(&self.row_sets[row * words..][..words]) {
            if other != column {
                let element = self.elements[row * width + other];
                self.upper[other].push((self.rows[row] as u16, element));
                remove(&mut self.column_sets[other * words..][..words], row);
                let count = &mut self.column_counts[other];
                self.pivot_row.push((other, *count, element));
                *count -= 1;
            }
        }
    }

    /// Eliminates the pivot column from a row; returns the multiplier.
    fn eliminate(&mut self, row: usize, column: usize, pivot: f64) -> f64 {
        let (words, width) = (self.words, self.columns.len());
        let elements = &mut self.elements[row * width..][..width];
        let set = &mut self.row_sets[row * words..][..words];
        let factor = elements[column] / pivot;
        remove(set, column);
        self.row_counts[row] -= 1;
        for &(other, _, value) in &self.pivot_row {
            let is_set = has(set, other);
            let before = if is_set { elements[other] } else { 0.0 };
            let after = before - factor * value;
            elements[other] = after;
            if after.abs() < DROP {
                if is_set {
                    remove(set, other);
                    remove(&mut self.column_sets[other * words..][..words], row);
                    self.row_counts[row] -= 1;
                    self.column_counts[other] -= 1;
                }
            } else if !is_set {
                insert(set, other);
                insert(&mut self.column_sets[other * words..][..words], row);
                self.row_counts[row] += 1;
                self.column_counts[other] += 1;
            }
        }
        factor
    }

    /// Moves the columns of the pivot row to their new counts.
    fn end_pivot_row(&mut self) {
        let words = self.words;
        for &(column, before, _) in &self.pivot_row {
            let count = self.column_counts[column];
            if count != before {
                let set = &mut self.columns_by_count[before as usize * words..][..words];
                remove(set, column);
                let set = &mut self.columns_by_count[count as usize * words..][..words];
                insert(set, column);
                self.least = self.least.min(count.max(1) as usize);
            }
        }
    }
}
