//! The dense inverse of a basis. Elements are in lanes of their own, or sums have a fixed number of lanes, so vector
//! instructions give the same bits.

use cobre_simd::vectorized;

/// The number of partial sums of a dot product: the order of summation is the same on every
/// machine.
pub(super) const LANES: usize = 4;

/// The largest stride at which the inverse is copied with its padding.
const SMALL: usize = 32;

/// A square matrix whose rows lie `stride` apart, with zeros up to a multiple of [`LANES`].
#[derive(Debug, Default, Clone)]
pub(super) struct Inverse {
    size: usize,
    stride: usize,
    data: Vec<f64>,
}

/// The basis is singular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Singular;

/// The padded length of vectors for a matrix of this size.
pub(super) fn padded(size: usize) -> usize {
    size.next_multiple_of(LANES)
}

/// The dot product, by lanes.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let groups = one.as_chunks::<LANES>().0.iter();
    for (one, other) in groups.zip(other.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += one[lane] * other[lane];
        }
    }
    // As halves of a vector are added.
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// Adds `factor` × `row` to `into`, both of padded length.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it is compiled for two kinds of processors"
)]
fn add_multiple(into: &mut [f64], factor: f64, row: &[f64]) {
    let groups = into.as_chunks_mut::<LANES>().0.iter_mut();
    for (into, row) in groups.zip(row.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            into[lane] += factor * row[lane];
        }
    }
}

impl Inverse {
    /// A matrix of size 0 that can grow to `most`.
    pub(super) fn new(most: usize) -> Self {
        let mut inverse = Self::default();
        inverse.fit(most);
        inverse
    }

    /// Makes it a matrix of size 0 that can grow to `most`.
    pub(super) fn fit(&mut self, most: usize) {
        (self.size, self.stride) = (0, padded(most));
        if self.stride <= SMALL {
            // Small ones are copied with their padding.
            self.data.clear();
        }
        self.data.resize(self.stride * self.stride, 0.0);
    }

    /// True if no row can be added.
    pub(super) fn is_full(&self) -> bool {
        self.size == self.stride
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.stride..][..padded(self.size)]
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        let length = padded(self.size);
        let rows = self.data.chunks_exact(self.stride.max(1));
        rows.take(self.size).map(move |row| &row[..length])
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        let length = padded(self.size);
        let rows = self.data.chunks_exact_mut(self.stride.max(1));
        rows.take(self.size).map(move |row| &mut row[..length])
    }

    /// Sets the matrix to minus the identity.
    pub(super) fn set_to_minus_identity(&mut self, size: usize) {
        self.size = size;
        for (number, row) in self.rows_mut().enumerate() {
            row.fill(0.0);
            row[number] = -1.0;
        }
    }

    /// Computes `self` × `vector`, which has padded length.
    #[inline]
    pub(super) fn times(&self, vector: &[f64], into: &mut [f64]) {
        vectorized(
            #[inline(always)]
            || {
                let vector = &vector[..padded(self.size)];
                for (row, into) in self.rows().zip(into) {
                    *into = dot(row, vector);
                }
            },
        );
    }

    /// Computes `self` × a sparse vector.
    #[inline]
    pub(super) fn times_sparse(&self, vector: &[(usize, f64)], into: &mut [f64]) {
        for (row, into) in self.rows().zip(into) {
            let terms = vector.iter();
            *into = terms.fold(0.0, |sum, &(at, value)| sum + row[at] * value);
        }
    }

    /// Computes `vector` × `self`.
    #[inline]
    pub(super) fn times_left(&self, vector: &[f64], into: &mut [f64]) {
        let into = &mut into[..padded(self.size)];
        into.fill(0.0);
        vectorized(
            #[inline(always)]
            || {
                for (row, &factor) in self.rows().zip(vector) {
                    if factor != 0.0 {
                        add_multiple(into, factor, row);
                    }
                }
            },
        );
    }

    /// Adds a row whose slack is basic in it: `row` holds the coefficients of the basic variables,
    /// by position.
    pub(super) fn border(&mut self, row: &[f64]) {
        let new = self.size;
        let start = new * self.stride;
        let (before, rest) = self.data.split_at_mut(start);
        let added = &mut rest[..self.stride];
        added.fill(0.0);
        let length = padded(new);
        vectorized(
            #[inline(always)]
            || {
                let sums = &mut added[..length];
                for (old, &factor) in before.chunks_exact(self.stride).zip(row) {
                    if factor != 0.0 {
                        add_multiple(sums, factor, &old[..length]);
                    }
                }
            },
        );
        added[new] = -1.0;
        self.size += 1;
        if new.is_multiple_of(LANES) {
            // A new block of lanes begins.
            let stride = self.stride;
            for old in before.chunks_exact_mut(stride) {
                old[new..new + LANES].fill(0.0);
            }
        }
    }

    /// Pivots a variable with the transformed column `column` into position `place`.
    #[inline]
    pub(super) fn exchange(&mut self, place: usize, column: &[f64]) {
        let (size, stride, length) = (self.size, self.stride, padded(self.size));
        let (before, rest) = self.data.split_at_mut(place * stride);
        let (own, after) = rest.split_at_mut(stride);
        let (own, factor) = (&mut own[..length], 1.0 / column[place]);
        let (above, below) = (&column[..place], &column[place + 1..size]);
        vectorized(
            #[inline(always)]
            || {
                for value in &mut *own {
                    *value *= factor;
                }
                for (rows, factors) in [(before, above), (after, below)] {
                    for (row, &factor) in rows.chunks_exact_mut(stride).zip(factors) {
                        if factor != 0.0 {
                            // Minus a product is plus the product of minus one factor, bit for bit.
                            add_multiple(&mut row[..length], -factor, own);
                        }
                    }
                }
            },
        );
    }

    /// Drops a row and a column; the last of each moves to its place.
    pub(super) fn drop(&mut self, row: usize, column: usize) {
        let (last, length, stride) = (self.size - 1, padded(self.size), self.stride);
        if row != last {
            let from = last * stride;
            self.data.copy_within(from..from + length, row * stride);
        }
        for row in self.rows_mut() {
            row[column] = row[last];
            row[last] = 0.0;
        }
        self.size = last;
    }

    /// Inverts `matrix`, which is by rows, `size` × `size`, and is overwritten.
    pub(super) fn invert(&mut self, size: usize, matrix: &mut [f64]) -> Result<(), Singular> {
        self.size = size;
        for (number, row) in self.rows_mut().enumerate() {
            row.fill(0.0);
            row[number] = 1.0;
        }
        let (mut own, mut right) = (Vec::new(), Vec::new());
        for column in 0..size {
            let mut best = column;
            for row in column + 1..size {
                if matrix[row * size + column].abs() > matrix[best * size + column].abs() {
                    best = row;
                }
            }
            let pivot = matrix[best * size + column];
            if pivot.abs() < 1e-11 {
                return Err(Singular);
            }
            if best != column {
                for at in 0..size {
                    matrix.swap(best * size + at, column * size + at);
                    self.data
                        .swap(best * self.stride + at, column * self.stride + at);
                }
            }
            self.eliminate(matrix, column, 1.0 / pivot, (&mut own, &mut right));
        }
        Ok(())
    }

    /// Eliminates `column` of the matrix; `own` and `right` are work space.
    fn eliminate(
        &mut self,
        matrix: &mut [f64],
        column: usize,
        factor: f64,
        (own, right): (&mut Vec<f64>, &mut Vec<f64>),
    ) {
        let (size, length) = (self.size, padded(self.size));
        own.clear();
        own.extend_from_slice(&matrix[column * size..][..size]);
        right.clear();
        right.extend_from_slice(&self.data[column * self.stride..][..length]);
        for value in own.iter_mut().chain(&mut *right) {
            *value *= factor;
        }
        vectorized(
            #[inline(always)]
            || {
                let rows = matrix.chunks_exact_mut(size).zip(self.rows_mut());
                for (number, (row, inverse)) in rows.enumerate() {
                    let factor = row[column];
                    if number == column {
                        row.copy_from_slice(own);
                        inverse.copy_from_slice(right);
                    } else if factor != 0.0 {
                        for (value, own) in row[column..].iter_mut().zip(&own[column..]) {
                            *value -= factor * own;
                        }
                        add_multiple(inverse, -factor, right);
                    }
                }
            },
        );
    }

    /// Appends the matrix: small ones with padding, large ones without.
    pub(super) fn save(&self, into: &mut Vec<f64>) {
        if self.stride <= SMALL {
            into.extend_from_slice(&self.data[..self.size * self.stride]);
            return;
        }
        for row in self.rows() {
            into.extend_from_slice(row);
        }
    }

    /// The length of what [`save`](Self::save) writes.
    pub(super) fn saved(&self) -> usize {
        Self::saved_length(self.stride, self.size)
    }

    /// The length of what [`save`](Self::save) writes of an inverse of this size, with room for
    /// `most` rows.
    pub(super) fn saved_length(most: usize, size: usize) -> usize {
        let stride = padded(most);
        size * if stride <= SMALL {
            stride
        } else {
            padded(size)
        }
    }

    /// Copies the matrix in, as [`save`](Self::save) wrote it.
    pub(super) fn load(&mut self, size: usize, from: &[f64]) {
        self.size = size;
        if self.stride <= SMALL {
            self.data[..from.len()].copy_from_slice(from);
            return;
        }
        let saved = from.chunks_exact(padded(size).max(1));
        for (row, saved) in self.rows_mut().zip(saved) {
            row.copy_from_slice(saved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(matrix: &[f64], inverse: &Inverse, size: usize) -> f64 {
        let mut worst: f64 = 0.0;
        for row in 0..size {
            for column in 0..size {
                let terms = (0..size).map(|k| matrix[row * size + k] * inverse.row(k)[column]);
                let expected = f64::from(u8::from(row == column));
                worst = worst.max((terms.sum::<f64>() - expected).abs());
            }
        }
        worst
    }

    fn matrix(size: usize, seed: f64) -> Vec<f64> {
        let number = |at: usize| ((at * at) as f64 * 12.9898 + seed).sin() * 3.0;
        (0..size * size).map(number).collect()
    }

    #[test]
    fn an_inverse_times_its_matrix_is_the_identity() {
        for size in 1..14 {
            let original = matrix(size, 1.0);
            let mut inverse = Inverse::new(16);
            let mut copy = original.clone();
            assert_eq!(inverse.invert(size, &mut copy), Ok(()));
            assert!(product(&original, &inverse, size) < 1e-9, "{size}");
        }
    }

    #[test]
    fn a_singular_matrix_has_none() {
        let mut inverse = Inverse::new(4);
        assert_eq!(inverse.invert(2, &mut [1.0, 2.0, 2.0, 4.0]), Err(Singular));
    }

    #[test]
    fn bordering_exchanging_and_dropping_keep_the_inverse() {
        for size in 1..10 {
            // A border of −1 in the corner, then an exchange at some place, then a drop.
            let original = matrix(size, 2.0);
            let mut inverse = Inverse::new(12);
            let mut copy = original.clone();
            assert_eq!(inverse.invert(size, &mut copy), Ok(()));
            let row: Vec<f64> = (0..size).map(|at| at as f64 - 1.5).collect();
            inverse.border(&row);
            let larger = size + 1;
            let mut bordered = vec![0.0; larger * larger];
            for at in 0..size {
                let from = &original[at * size..][..size];
                bordered[at * larger..][..size].copy_from_slice(from);
            }
            bordered[size * larger..][..size].copy_from_slice(&row);
            bordered[larger * larger - 1] = -1.0;
            assert!(product(&bordered, &inverse, larger) < 1e-9, "{size}");
            let place = size / 2;
            let entering: Vec<(usize, f64)> = (0..larger).map(|at| (at, 1.0 + at as f64)).collect();
            let mut column = vec![0.0; larger];
            inverse.times_sparse(&entering, &mut column);
            inverse.exchange(place, &column);
            for (at, value) in entering {
                bordered[at * larger + place] = value;
            }
            assert!(product(&bordered, &inverse, larger) < 1e-8, "{size}");
            // Position `size` still holds the border's own variable: both can go.
            inverse.drop(size, size);
            let mut smaller = vec![0.0; size * size];
            for at in 0..size {
                let from = &bordered[at * larger..][..size];
                smaller[at * size..][..size].copy_from_slice(from);
            }
            assert!(product(&smaller, &inverse, size) < 1e-8, "{size}");
        }
    }
}
