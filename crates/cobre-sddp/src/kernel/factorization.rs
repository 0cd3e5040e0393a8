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
use super::reduced_lp::ReducedLp;
use super::solve_vector::SolveVector;

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
        Self::Dense(Inverse::default())
    }
}

/// LU factors, and the updates since they were computed.
#[derive(Debug, Default)]
pub(super) struct ProductForm {
    lu: Arc<Lu>,
    updates: Vec<Update>,
    elements: Vec<Element>,
    /// By position: the newest element of the pivot columns there since it was pivoted on last, or [`NO_ELEMENT`].
    newest: Vec<u32>,
    size: usize,
    pivots: usize,
    vector: SolveVector,
    /// By update, work space of BTRAN: the inner product of its elements and the vector. All zero between two solves.
    products: SolveVector,
}

/// A change of the basis by one column or one row, with its elements by position.
#[derive(Debug, Clone, Copy)]
struct Update {
    kind: UpdateKind,
    /// Its position, and with a pivot the element that was the newest there.
    position: u16,
    before: u32,
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
enum UpdateKind {
    /// The pivot column of the variable that has entered: without the pivot, whose reciprocal this
    /// is.
    Pivot(f64),
    /// The row that was added, with its slack basic.
    Row,
}

/// An element of an update.
#[derive(Debug, Clone, Copy)]
struct Element {
    value: f64,
    position: u16,
    /// The number of its update.
    update: u16,
    /// The element of an earlier pivot column at the same position that is next, or [`NO_ELEMENT`].
    before: u32,
}

const NO_ELEMENT: u32 = u32::MAX;

impl Update {
    /// Its elements among those of all updates.
    #[inline]
    fn elements<'a>(&self, all: &'a [Element]) -> &'a [Element] {
        &all[self.start as usize..self.end as usize]
    }
}

/// Adds to the inner products of pivot columns what an element of the vector contributes: `at` is its newest element.
#[inline]
fn contribute(elements: &[Element], mut at: u32, by: f64, products: &mut SolveVector) {
    while let Some(element) = elements.get(at as usize) {
        products[usize::from(element.update)] += element.value * by;
        at = element.before;
    }
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
                    Self::Sparse(ProductForm::default())
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
                for (position, &value) in vector[..factors.size].iter().enumerate() {
                    if value != 0.0 {
                        factors.set_for_btran(position, value);
                    }
                }
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
                factors.set_for_btran(position, 1.0);
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
        self.elements.clear();
        self.newest.clear();
        self.newest.resize(self.size, NO_ELEMENT);
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
        let vector = &mut self.vector;
        for update in &self.updates {
            let own = vector[usize::from(update.position)];
            let elements = update.elements(&self.elements);
            vector[usize::from(update.position)] = match update.kind {
                UpdateKind::Pivot(reciprocal) => {
                    if own == 0.0 {
                        continue;
                    }
                    let step = own * reciprocal;
                    for element in elements {
                        vector[usize::from(element.position)] -= element.value * step;
                    }
                    step
                }
                UpdateKind::Row => {
                    let terms = elements.iter();
                    let terms =
                        terms.map(|element| element.value * vector[usize::from(element.position)]);
                    terms.sum::<f64>() - own
                }
            };
        }
        self.write(into);
    }

    /// Sets an element of the vector for BTRAN, zero before.
    #[inline]
    fn set_for_btran(&mut self, position: usize, value: f64) {
        self.vector[position] = value;
        contribute(
            &self.elements,
            self.newest[position],
            value,
            &mut self.products,
        );
    }

    /// Solves `into` × B = the vector. An element of the vector contributes to the inner products with the pivot
    /// columns of earlier updates as soon as it is known, so elements that are zero take no time.
    #[inline]
    fn btran(&mut self, into: &mut [f64]) {
        let (vector, products) = (&mut self.vector, &mut self.products);
        for (number, update) in self.updates.iter().enumerate().rev() {
            let own = vector[usize::from(update.position)];
            vector[usize::from(update.position)] = match update.kind {
                UpdateKind::Pivot(reciprocal) => {
                    let product = std::mem::take(&mut products[number]);
                    let new = (own - product) * reciprocal;
                    if new != 0.0 {
                        contribute(&self.elements, update.before, new, products);
                    }
                    new
                }
                UpdateKind::Row => {
                    if own == 0.0 {
                        continue;
                    }
                    for element in update.elements(&self.elements) {
                        let change = element.value * own;
                        vector[usize::from(element.position)] += change;
                        contribute(&self.elements, element.before, change, products);
                    }
                    -own
                }
            };
        }
        self.lu.btran(&mut self.vector);
        self.write(into);
    }

    /// Adds an update. Each element is chained to the newest one at its position; those of a pivot column become the
    /// newest, and none before it is reached from its own position any more.
    #[inline]
    fn push(
        &mut self,
        kind: UpdateKind,
        position: usize,
        elements: impl Iterator<Item = (usize, f64)>,
    ) {
        let (start, update) = (self.elements.len() as u32, self.updates.len() as u16);
        let is_pivot = matches!(kind, UpdateKind::Pivot(_));
        for (at, value) in elements.filter(|element| element.0 != position) {
            let newest = &mut self.newest[at];
            self.elements.push(Element {
                value,
                position: at as u16,
                update,
                before: *newest,
            });
            if is_pivot {
                *newest = (self.elements.len() - 1) as u32;
            }
        }
        let before = match kind {
            UpdateKind::Pivot(_) => std::mem::replace(&mut self.newest[position], NO_ELEMENT),
            UpdateKind::Row => {
                self.newest.push(NO_ELEMENT);
                NO_ELEMENT
            }
        };
        self.updates.push(Update {
            kind,
            position: position as u16,
            before,
            start,
            end: self.elements.len() as u32,
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
