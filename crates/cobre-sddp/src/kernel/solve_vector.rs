//! The vector in which systems with sparse factors are solved.

use std::ops::{Deref, DerefMut};

/// The elements of a [`SolveVector`]: one for every 16-bit index, so that no look-up needs a check of bounds.
pub(super) const ELEMENTS: usize = 1 << u16::BITS;

/// A vector in which systems are solved. Pages of elements beyond the size of the basis are never touched, and take no
/// memory.
#[derive(Debug)]
pub(super) struct SolveVector(Box<[f64; ELEMENTS]>);

impl Default for SolveVector {
    fn default() -> Self {
        // Not made on the stack, and of zeros from the operating system.
        let elements = vec![0.0; ELEMENTS].into_boxed_slice().try_into();
        Self(elements.unwrap_or_else(|_| unreachable!("it has that many elements")))
    }
}

impl Deref for SolveVector {
    type Target = [f64; ELEMENTS];

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for SolveVector {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
