//! The basis a work unit keeps, in a form that survives a change of the rows.

use crate::policy::Cuts;

/// The solver's number for a basic variable.
const BASIC: i32 = 1;

/// A basis by columns, rows of the template, and cuts by slot. Cuts it does not know are basic, so
/// it fits whatever cuts there are; a cut it relied on that is gone leaves one basic variable too
/// many, which the solver repairs.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Basis {
    columns: Vec<i8>,
    rows: Vec<i8>,
    /// Cuts that are not basic, by slot in ascending order.
    tight: Vec<(u32, i8)>,
}

impl Basis {
    /// Whether there is none yet.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Keeps the solver's statuses; the first `template_rows` rows are the template's.
    pub(super) fn keep(
        &mut self,
        columns: &[i32],
        rows: &[i32],
        template_rows: usize,
        cuts: &Cuts<'_>,
    ) {
        self.columns.clear();
        self.columns
            .extend(columns.iter().map(|&status| status as i8));
        let (own, of_cuts) = rows.split_at(template_rows);
        self.rows.clear();
        self.rows.extend(own.iter().map(|&status| status as i8));
        self.tight.clear();
        let tight = of_cuts
            .iter()
            .zip(cuts.slots())
            .filter(|(status, _)| **status != BASIC);
        self.tight
            .extend(tight.map(|(&status, &slot)| (slot, status as i8)));
        self.tight.sort_unstable();
    }

    /// The solver's statuses for the rows there are now.
    pub(super) fn restore(&self, columns: &mut Vec<i32>, rows: &mut Vec<i32>, cuts: &Cuts<'_>) {
        columns.clear();
        columns.extend(self.columns.iter().map(|&status| i32::from(status)));
        rows.clear();
        rows.extend(self.rows.iter().map(|&status| i32::from(status)));
        let start = rows.len();
        rows.resize(start + cuts.slots().len(), BASIC);
        if cuts.slots().is_sorted() {
            for &(slot, status) in &self.tight {
                if let Ok(at) = cuts.slots().binary_search(&slot) {
                    rows[start + at] = status.into();
                }
            }
            return;
        }
        for (at, slot) in cuts.slots().iter().enumerate() {
            if let Ok(found) = self.tight.binary_search_by_key(slot, |(slot, _)| *slot) {
                rows[start + at] = self.tight[found].1.into();
            }
        }
    }
}
