//! Sparse matrices by rows or by columns.

/// Lists of (index, value), stored one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Sparse {
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Sparse {
    /// The lists, in order.
    pub(super) fn new(lists: &[Vec<(u32, f64)>]) -> Self {
        let mut starts = vec![0];
        let mut entries = Vec::new();
        for list in lists {
            entries.extend_from_slice(list);
            starts.push(entries.len());
        }
        Self { starts, entries }
    }

    /// The transpose, whose first dimension is `count`.
    pub(super) fn transposed(&self, count: usize) -> Self {
        let mut lists = vec![Vec::new(); count];
        for list in 0..self.starts.len() - 1 {
            for &(index, value) in self.list(list) {
                lists[index as usize].push((list as u32, value));
            }
        }
        Self::new(&lists)
    }

    #[inline]
    pub(super) fn list(&self, number: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[number]..self.starts[number + 1]]
    }
}
