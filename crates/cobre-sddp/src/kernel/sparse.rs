//! Sparse matrices by rows or by columns.

use super::basis::NO_ROW;

/// Lists of (index, value), stored one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Sparse {
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Sparse {
    /// The lists, in order.
    pub(super) fn new(lists: &[Vec<(u32, f64)>]) -> Self {
        let mut all = Self::default();
        all.clear();
        for list in lists {
            all.push(list.iter().copied());
        }
        all
    }

    /// Drops all lists.
    pub(super) fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
        self.entries.clear();
    }

    /// Adds a list.
    pub(super) fn push(&mut self, list: impl Iterator<Item = (u32, f64)>) {
        self.entries.extend(list);
        self.starts.push(self.entries.len());
    }

    /// Adds a list of the entries of another one that are not zero and have a place, by their index, with these places as
    /// indices; and `more`.
    #[inline]
    pub(super) fn push_placed(
        &mut self,
        list: &[(u32, f64)],
        places: &[u32],
        more: impl Iterator<Item = (u32, f64)>,
    ) {
        // No branch: the processor would not foresee which entries have places.
        let mut end = self.entries.len();
        self.entries.resize(end + list.len(), (0, 0.0));
        for &(index, value) in list {
            let place = places[index as usize];
            self.entries[end] = (place, value);
            end += usize::from(place != NO_ROW) & usize::from(value != 0.0);
        }
        self.entries.truncate(end);
        self.push(more);
    }

    /// The number of lists.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The entries of all lists.
    pub(super) fn entries(&self) -> &[(u32, f64)] {
        &self.entries
    }

    /// The transpose, whose first dimension is `count`.
    pub(super) fn transposed(&self, count: usize) -> Self {
        let mut lists = vec![Vec::new(); count];
        for list in 0..self.count() {
            for &(index, value) in self.list(list) {
                lists[index as usize].push((list as u32, value));
            }
        }
        Self::new(&lists)
    }

    /// The place of the first entry of a list among all.
    pub(super) fn start(&self, number: usize) -> usize {
        self.starts[number]
    }

    /// Sets the value of an entry, by its place among all.
    #[inline]
    pub(super) fn set(&mut self, place: usize, value: f64) {
        self.entries[place].1 = value;
    }

    /// These entries of all, to change their values.
    pub(super) fn values_mut(&mut self, range: std::ops::Range<usize>) -> &mut [(u32, f64)] {
        &mut self.entries[range]
    }

    #[inline]
    pub(super) fn list(&self, number: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[number]..self.starts[number + 1]]
    }
}
