//! The factorisation of the basis matrix: a dense inverse for small stages, sparse LU factors with
//! product-form updates for large ones. The linear program alone decides which.
//!
//! The matrix has the rows of the basis and, by position, the columns of its basic variables; a
//! slack variable has −1 in its row.

use std::sync::Arc;

#[cfg(test)]
use super::fault::Fault;
use super::inverse::{Inverse, padded};
use super::lu::Lu;
use super::solve_vector::{ELEMENTS, SolveVector};
use super::reduced_lp::ReducedLp;

/// Updates after which the factors are computed anew.
const MAX_UPDATES: usize = 70;

/// Updates after which the factors are computed anew: fewer for the small stages of tests.
fn max_updates() -> usize {
    #[cfg(test)]
    if super::fault::is_always_sparse() {
        return 12;
    }
    MAX_UPDATES
}

/// Elements of a pivot column that count as zero.
pub(super) const DROP: f64 = 1e-14;

/// The factorisation of a basis matrix.
#[derive(Debug)]
pub(super) enum Factorization {
    Dense(Inverse),
    Sparse(ProductForm),
}

impl Default for Factorization {
    fn default() -> Self {
        Self::Sparse(ProductForm::default())
    }
}

/// LU factors, and the updates since they were computed.
#[derive(Debug, Default)]
pub(super) struct ProductForm {
    lu: Arc<Lu>,
    updates: Vec<Update>,
    indices: Vec<u16>,
    values: Vec<f64>,
    size: usize,
    pivots: usize,
    vector: SolveVector,
}

/// A change of the basis by one column or one row, with its elements by position.
#[derive(Debug, Clone, Copy)]
struct Update {
    kind: UpdateKind,
    /// Its position.
    position: u16,
    start: usize,
    end: usize,
}

impl Update {
    /// Its elements among those of all updates: positions and values.
    #[inline]
    fn elements<'a>(&self, indices: &'a [u16], values: &'a [f64]) -> (&'a [u16], &'a [f64]) {
        (&indices[self.start..self.end], &values[self.start..self.end])
    }
}

/// The inner product of an update's elements and a vector, in two sums that do not wait for each other.
#[inline]
fn dot(indices: &[u16], values: &[f64], vector: &[f64; ELEMENTS]) -> f64 {
    let (indices, values) = (indices.chunks_exact(2), values.chunks_exact(2));
    let rest = indices.remainder().iter().zip(values.remainder());
    let (mut even, mut odd) = (0.0, 0.0);
    for (&index, &value) in rest {
        even += value * vector[usize::from(index)];
    }
    for (indices, values) in indices.zip(values) {
        even += values[0] * vector[usize::from(indices[0])];
        odd += values[1] * vector[usize::from(indices[1])];
    }
    even + odd
}

#[derive(Debug, Clone, Copy)]
enum UpdateKind {
    /// The pivot column of the variable that has entered: without the pivot, whose reciprocal this
    /// is.
    Pivot(f64),
    /// The row that was added, with its slack basic.
    Row,
}

impl Factorization {
    /// Makes room for any basis of the linear program.
    pub(super) fn fit(&mut self, lp: &ReducedLp) {
        match self {
            Self::Dense(inverse) if lp.is_dense => inverse.fit(lp.largest_basis()),
            Self::Sparse(_) if !lp.is_dense => {}
            other => {
                *other = if lp.is_dense {
                    Self::Dense(Inverse::new(lp.largest_basis()))
                } else {
                    Self::default()
                };
            }
        }
    }

    /// Sets the matrix to minus the identity.
    pub(super) fn set_to_minus_identity(&mut self, size: usize) {
        match self {
            Self::Dense(inverse) => inverse.set_to_minus_identity(size),
            Self::Sparse(factors) => factors.set(Arc::new(Lu::minus_identity(size))),
        }
    }

    /// Solves B × `into` = `vector`, which has padded length.
    #[inline]
    pub(super) fn ftran(&mut self, vector: &[f64], into: &mut [f64]) {
        match self {
            Self::Dense(inverse) => inverse.times(vector, into),
            Self::Sparse(factors) => {
                factors.clear();
                factors.vector[..vector.len()].copy_from_slice(vector);
                factors.ftran(into);
            }
        }
    }

    /// Solves B × `into` = a sparse vector.
    #[inline]
    pub(super) fn ftran_sparse(&mut self, vector: &[(usize, f64)], into: &mut [f64]) {
        match self {
            Self::Dense(inverse) => inverse.times_sparse(vector, into),
            Self::Sparse(factors) => {
                factors.clear();
                for &(row, value) in vector {
                    factors.vector[row] += value;
                }
                factors.ftran(into);
            }
        }
    }

    /// Solves `into` × B = `vector`.
    #[inline]
    pub(super) fn btran(&mut self, vector: &[f64], into: &mut [f64]) {
        match self {
            Self::Dense(inverse) => inverse.times_left(vector, into),
            Self::Sparse(factors) => {
                factors.clear();
                let size = factors.size;
                factors.vector[..size].copy_from_slice(&vector[..size]);
                factors.btran(into);
            }
        }
    }

    /// Writes a row of the inverse.
    #[inline]
    pub(super) fn inverse_row(&mut self, position: usize, into: &mut [f64]) {
        match self {
            Self::Dense(inverse) => {
                let row = inverse.row(position);
                into[..row.len()].copy_from_slice(row);
            }
            Self::Sparse(factors) => {
                factors.clear();
                factors.vector[position] = 1.0;
                factors.btran(into);
            }
        }
    }

    /// Adds a row to a matrix of `size` rows, with its slack basic in it: `row` has the coefficients of basic
    /// variables, by position. `border` is work space.
    pub(super) fn add_row(&mut self, size: usize, row: &[(usize, f64)], border: &mut [f64]) {
        match self {
            Self::Dense(inverse) => {
                let border = &mut border[..size];
                border.fill(0.0);
                for &(position, coefficient) in row {
                    border[position] += coefficient;
                }
                inverse.border(border);
            }
            Self::Sparse(factors) => factors.add_row(row),
        }
    }

    /// Puts a variable with the transformed column `column` into position `position`. Sparse factors use the elements
    /// that `nonzero` lists.
    #[inline]
    pub(super) fn exchange(&mut self, position: usize, (column, nonzero): (&[f64], &[u32])) {
        match self {
            Self::Dense(inverse) => inverse.exchange(position, column),
            Self::Sparse(factors) => factors.exchange(position, column, nonzero),
        }
    }

    /// True if the factors are to be computed anew.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        match self {
            Self::Dense(_) => false,
            Self::Sparse(factors) => factors.pivots > max_updates(),
        }
    }

    /// The sparse factors.
    #[inline]
    pub(super) fn sparse(&self) -> Option<&ProductForm> {
        match self {
            Self::Dense(_) => None,
            Self::Sparse(factors) => Some(factors),
        }
    }
}

impl ProductForm {
    /// The factors, without the updates since.
    pub(super) fn lu(&self) -> &Arc<Lu> {
        &self.lu
    }

    /// Takes new factors.
    pub(super) fn set(&mut self, lu: Arc<Lu>) {
        self.size = lu.size();
        self.lu = lu;
        self.updates.clear();
        self.indices.clear();
        self.values.clear();
        self.pivots = 0;
    }

    /// Sets the vector to zero.
    #[inline]
    fn clear(&mut self) {
        self.vector[..padded(self.size)].fill(0.0);
    }

    /// Writes the solution that the vector holds.
    #[inline]
    fn write(&self, into: &mut [f64]) {
        let length = padded(self.size);
        into[..length].copy_from_slice(&self.vector[..length]);
    }

    /// Solves B × `into` = the vector.
    #[inline]
    fn ftran(&mut self, into: &mut [f64]) {
        self.lu.ftran(&mut self.vector);
        let vector = &mut *self.vector;
        for update in &self.updates {
            let own = vector[usize::from(update.position)];
            let (indices, values) = update.elements(&self.indices, &self.values);
            vector[usize::from(update.position)] = match update.kind {
                UpdateKind::Pivot(reciprocal) => {
                    if own == 0.0 {
                        continue;
                    }
                    let step = own * reciprocal;
                    for (&index, value) in indices.iter().zip(values) {
                        vector[usize::from(index)] -= value * step;
                    }
                    step
                }
                UpdateKind::Row => dot(indices, values, vector) - own,
            };
        }
        self.write(into);
    }

    /// Solves `into` × B = the vector.
    #[inline]
    fn btran(&mut self, into: &mut [f64]) {
        let vector = &mut *self.vector;
        for update in self.updates.iter().rev() {
            let own = vector[usize::from(update.position)];
            let (indices, values) = update.elements(&self.indices, &self.values);
            vector[usize::from(update.position)] = match update.kind {
                UpdateKind::Pivot(reciprocal) => (own - dot(indices, values, vector)) * reciprocal,
                UpdateKind::Row => {
                    if own == 0.0 {
                        continue;
                    }
                    for (&index, value) in indices.iter().zip(values) {
                        vector[usize::from(index)] += value * own;
                    }
                    -own
                }
            };
        }
        self.lu.btran(&mut self.vector);
        self.write(into);
    }

    #[inline]
    fn push(
        &mut self,
        kind: UpdateKind,
        position: usize,
        elements: impl Iterator<Item = (usize, f64)>,
    ) {
        let start = self.indices.len();
        for (at, value) in elements {
            if at != position {
                self.indices.push(at as u16);
                self.values.push(value);
            }
        }
        self.updates.push(Update {
            kind,
            position: position as u16,
            start,
            end: self.indices.len(),
        });
    }

    fn add_row(&mut self, row: &[(usize, f64)]) {
        let elements = row.iter().copied();
        let nonzero = elements.filter(|element| element.1.abs() > DROP);
        self.push(UpdateKind::Row, self.size, nonzero);
        self.size += 1;
    }

    fn exchange(&mut self, position: usize, column: &[f64], nonzero: &[u32]) {
        let reciprocal = 1.0 / column[position];
        #[cfg(test)]
        if Fault::LostUpdate.is_on() && self.pivots % 10 == 9 {
            self.pivots += 1;
            return;
        }
        let nonzero = nonzero.iter().map(|&at| (at as usize, column[at as usize]));
        self.push(UpdateKind::Pivot(reciprocal), position, nonzero);
        self.pivots += 1;
    }
}
