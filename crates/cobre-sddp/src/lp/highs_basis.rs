//! Warm-start bases of HiGHS, in a form that survives a change of the rows.

use serde::{Deserialize, Serialize};

use crate::policy::Cuts;

/// The status of a basic variable in HiGHS.
const BASIC: i32 = 1;
/// The last status of HiGHS.
const LAST_STATUS: i8 = 4;
/// The most cuts that become rows because they are new; others do when they are violated.
const MAX_NEW_CUTS: usize = 8;

/// The basis of the last visit's first opening, by columns, rows of the template, and cuts by slot;
/// and the cuts that were tight for some opening of that visit. A cut that is gone and was part of
/// the basis leaves one basic variable too many, which the solver repairs.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct HighsBasis {
    columns: Vec<i8>,
    rows: Vec<i8>,
    /// Cuts whose slack is nonbasic, with the status of their row.
    tight: Vec<(u32, i8)>,
    /// The cuts that are rows at the start of the next visit, in order.
    working: Vec<u32>,
    /// The newest cut of the last visit.
    newest: Option<u32>,
}

/// True if a row or column with this status is at a bound.
pub(super) fn is_tight(status: i32) -> bool {
    status != BASIC
}

impl HighsBasis {
    /// True if a basis that may have been read can be one of a linear program with so many columns and rows, those of
    /// cuts not among them.
    pub(super) fn fits(&self, columns: usize, rows: usize) -> bool {
        let known = |status: &i8| (0..=LAST_STATUS).contains(status);
        self.columns.len() == columns
            && self.rows.len() == rows
            && self.columns.iter().chain(&self.rows).all(known)
            && self.tight.iter().all(|(_, status)| known(status))
    }

    /// True if there is no basis yet.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The cuts that are rows at the start of a visit: those that were tight at the last one and
    /// are still in use, and the newest of those added since.
    pub(super) fn first_rows(&self, cuts: &Cuts<'_>) -> Vec<u32> {
        if self.is_empty() {
            return Vec::new();
        }
        let slots = cuts.slots();
        let mut rows: Vec<u32> = Vec::with_capacity(self.working.len());
        for slot in &self.working {
            if slots.contains(slot) && !rows.contains(slot) {
                rows.push(*slot);
            }
        }
        let new = |slot: &&u32| self.newest.is_none_or(|newest| **slot > newest);
        let mut fresh: Vec<u32> = slots.iter().filter(new).copied().collect();
        fresh.sort_unstable();
        rows.extend_from_slice(&fresh[fresh.len().saturating_sub(MAX_NEW_CUTS)..]);
        rows
    }

    /// Stores the statuses of HiGHS; rows after the template's are those of `slots`.
    pub(super) fn keep(&mut self, columns: &[i32], rows: &[i32], slots: &[u32]) {
        let status = |status: &i32| *status as i8;
        self.columns.clear();
        self.columns.extend(columns.iter().map(status));
        let (own, of_cuts) = rows.split_at(rows.len() - slots.len());
        self.rows.clear();
        self.rows.extend(own.iter().map(status));
        let of_cuts = slots.iter().zip(of_cuts);
        let tight = of_cuts.filter(|(_, status)| is_tight(**status));
        self.tight = tight.map(|(slot, status)| (*slot, *status as i8)).collect();
    }

    /// Ends a visit at which the cuts `working` were tight for some opening.
    pub(super) fn end_visit(&mut self, working: Vec<u32>, cuts: &Cuts<'_>) {
        self.working = working;
        self.newest = cuts.slots().iter().copied().max();
    }

    /// Returns the statuses for HiGHS when the rows after the template's are those of `slots`.
    pub(super) fn restore(&self, columns: &mut Vec<i32>, rows: &mut Vec<i32>, slots: &[u32]) {
        columns.clear();
        columns.extend(self.columns.iter().map(|&status| i32::from(status)));
        rows.clear();
        rows.extend(self.rows.iter().map(|&status| i32::from(status)));
        rows.extend(slots.iter().map(|slot| {
            let found = self.tight.iter().find(|(tight, _)| tight == slot);
            found.map_or(BASIC, |(_, status)| (*status).into())
        }));
    }
}
