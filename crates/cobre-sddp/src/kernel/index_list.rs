//! Lists of indices that are filled without a branch for each: an index is written to the next place, which is taken or
//! not.

use std::ops::Deref;

/// A list of indices. What lies beyond its end is never set to zero.
#[derive(Debug, Default)]
pub(super) struct IndexList {
    places: Vec<u32>,
    count: usize,
}

impl IndexList {
    /// Drops all indices.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Drops all indices; returns this many places, of which the first `count` are the list once
    /// [`set_count`](Self::set_count) says so.
    pub(super) fn places(&mut self, most: usize) -> &mut [u32] {
        self.count = 0;
        if self.places.len() < most {
            self.places.resize(most, 0);
        }
        &mut self.places[..most]
    }

    /// The first `count` places are the list.
    pub(super) fn set_count(&mut self, count: usize) {
        self.count = count;
    }
}

impl Deref for IndexList {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        &self.places[..self.count]
    }
}
