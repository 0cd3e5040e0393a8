//! The objective values of cached bases at the openings of a visit.

use super::lane_search::largest_above;
use crate::policy::LANES;

/// Values below this come from bounds that an opening removes.
pub(super) const NO_VALUE: f64 = -1e20;

/// The objective values of the cached bases of a visit as affine functions of the parameters of an opening, in blocks of
/// lanes.
#[derive(Debug, Default)]
pub(super) struct BasisValues {
    /// By basis, the part from the incoming states; `NEG_INFINITY` fills up the last block.
    at_visit: Vec<f64>,
    /// Block by block, the slopes by parameter.
    slopes: Vec<f64>,
    /// Numbers of a block of `slopes`.
    width: usize,
    count: usize,
}

impl BasisValues {
    /// Drops all values; those that come have so many slopes.
    pub(super) fn clear(&mut self, parameters: usize) {
        self.at_visit.clear();
        self.slopes.clear();
        // At least one row, so that blocks have a size.
        (self.width, self.count) = (parameters.max(1) * LANES, 0);
    }

    /// Adds the value of a basis.
    #[inline]
    pub(super) fn push(&mut self, at_visit: f64, slopes: &[f64]) {
        let needed = self.count / LANES + 1;
        if self.at_visit.len() < needed * LANES {
            self.at_visit.resize(needed * LANES, f64::NEG_INFINITY);
            self.slopes.resize(needed * self.width, 0.0);
        }
        self.set(self.count, at_visit, slopes);
        self.count += 1;
    }

    /// Replaces the value of the basis at a place.
    #[inline]
    pub(super) fn set(&mut self, place: usize, at_visit: f64, slopes: &[f64]) {
        self.at_visit[place] = at_visit;
        let (block, lane) = (place / LANES, place % LANES);
        let rows = self.slopes[block * self.width..].as_chunks_mut::<LANES>();
        for (row, slope) in rows.0.iter_mut().zip(slopes) {
            row[lane] = *slope;
        }
    }

    /// Removes the latest value.
    pub(super) fn pop(&mut self) {
        if let Some(last) = self.count.checked_sub(1) {
            self.at_visit[last] = f64::NEG_INFINITY;
            self.count = last;
        }
    }

    /// The basis with the highest value for these parameters of an opening, the first of equals.
    #[inline]
    pub(super) fn best(&self, parameters: &[f64]) -> Option<usize> {
        let slopes = self.slopes.chunks_exact(self.width.max(1));
        let bounds = (0.0, NO_VALUE);
        largest_above(&self.at_visit, slopes, parameters, bounds).map(|found| found.0)
    }
}
