//! The basis cache of a work unit: bases that were optimal, within a number of bytes.

use serde::{Deserialize, Serialize};

use super::basis::{Basis, StageInput};
use super::basis_values::{BasisValues, NO_VALUE};
use super::cached_basis::CachedBasis;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;

/// Bases kept after a visit beyond one per opening.
const MORE_KEPT: usize = 24;
/// Visits that a basis keeps its inverse without being used.
const FACTORED_VISITS: u32 = 1;
/// A basis of so many bytes and an inverse of so many pivots keeps it for as long as it is there. Older inverses are
/// computed anew, for their errors grow.
const SMALL_BYTES: usize = 8 << 10;
const YOUNG: u32 = 5;
/// Small bases that are kept for their memory.
const MOST_SPARE: usize = 64;

/// The cached bases of a work unit at a node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct BasisCache {
    #[expect(clippy::vec_box, reason = "bases come and go with every visit")]
    entries: Vec<Box<CachedBasis>>,
    /// The most openings of a visit so far. Shorter visits, those of a forward pass between backward passes, do not age
    /// the bases.
    openings: usize,
    /// True if every entry is checked against the linear program of the node: those that were read
    /// need not fit it.
    #[serde(skip)]
    checked: bool,
}

/// The work space of a basis cache: what a visit computes of its bases, and the memory of bases that are gone.
#[derive(Debug, Default)]
pub(super) struct CacheWorkspace {
    /// The values of the bases of small nodes.
    values: BasisValues,
    #[expect(clippy::vec_box, reason = "as they come from a cache")]
    spare: Vec<Box<CachedBasis>>,
}

impl CacheWorkspace {
    fn keep(&mut self, mut basis: Box<CachedBasis>) {
        basis.drop_lu();
        if self.spare.len() < MOST_SPARE && basis.bytes() <= SMALL_BYTES {
            self.spare.push(basis);
        }
    }
}

impl BasisCache {
    /// The most bases that a unit with visits of so many openings keeps.
    pub(crate) fn most(openings: usize) -> usize {
        openings + MORE_KEPT
    }

    /// Drops bases with cuts that are not in use any more, and evaluates the others at the incoming
    /// states, the first parameters.
    pub(super) fn start_visit(
        &mut self,
        work: &mut CacheWorkspace,
        input: StageInput<'_>,
        parameters: &[f64],
        openings: usize,
    ) {
        let (lp, cuts) = (input.lp, input.cuts);
        self.openings = self.openings.max(openings);
        let older = u32::from(openings == self.openings);
        if !self.checked {
            self.entries.retain(|entry| entry.fits(lp));
            self.checked = true;
        }
        let states = &parameters[..lp.states];
        work.values.clear(parameters.len() - lp.states);
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(at) {
            if entry.is_gone(cuts) {
                work.keep(self.entries.swap_remove(at));
                continue;
            }
            entry.evaluate(states);
            entry.idle += older;
            if lp.is_dense {
                let (at_visit, slopes) = entry.at_visit(lp);
                work.values.push(at_visit, slopes);
            }
            at += 1;
        }
    }

    /// The number of bases.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The basis with the highest objective value, the first of equals.
    #[inline]
    pub(super) fn best(
        &self,
        work: &CacheWorkspace,
        lp: &ReducedLp,
        parameters: &[f64],
    ) -> Option<usize> {
        if lp.is_dense {
            return work.values.best(&parameters[lp.states..]);
        }
        let (mut most, mut found) = (NO_VALUE, None);
        for (at, entry) in self.entries.iter().enumerate() {
            let value = entry.value(lp, parameters);
            if value > most {
                (most, found) = (value, Some(at));
            }
        }
        found
    }

    /// The references of hyperplane groups that a basis has.
    pub(super) fn references(&self, at: usize) -> &[u8] {
        self.entries[at].references()
    }

    /// Copies a cached basis to the working basis.
    pub(super) fn load(
        &mut self,
        work: &mut CacheWorkspace,
        at: usize,
        input: StageInput<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<(), SolveError> {
        let entry = &mut self.entries[at];
        if entry.load(input, basis)? {
            basis.refine_values(input)?;
            let idle = entry.idle;
            entry.store(input, basis)?;
            entry.idle = idle;
            entry.evaluate(&parameters[..input.lp.states]);
            if input.lp.is_dense {
                let (at_visit, slopes) = entry.at_visit(input.lp);
                work.values.set(at, at_visit, slopes);
            }
        }
        Ok(())
    }

    /// Notes that a basis was used; the working basis is the same.
    pub(super) fn used(&mut self, at: usize, lp: &ReducedLp, basis: &Basis) {
        self.entries[at].idle = 0;
        self.entries[at].factor(lp, basis);
    }

    /// Adds a basis; checks that it is dual feasible.
    pub(super) fn add(
        &mut self,
        work: &mut CacheWorkspace,
        input: StageInput<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<usize, SolveError> {
        let mut entry = work.spare.pop().unwrap_or_default();
        entry.store(input, basis)?;
        entry.evaluate(&parameters[..input.lp.states]);
        if input.lp.is_dense {
            let (at_visit, slopes) = entry.at_visit(input.lp);
            work.values.push(at_visit, slopes);
        }
        self.entries.push(entry);
        Ok(self.entries.len() - 1)
    }

    /// Removes the latest basis.
    pub(super) fn drop_latest(&mut self, work: &mut CacheWorkspace) {
        self.entries.pop();
        work.values.pop();
    }

    /// The objective value of a basis, and its gradient by parameter.
    pub(super) fn value(&self, at: usize, lp: &ReducedLp, parameters: &[f64]) -> (f64, &[f64]) {
        let entry = &self.entries[at];
        (entry.value(lp, parameters), entry.slopes())
    }

    /// Ends a visit: drops the bases that have been idle longest, and inverses that were not
    /// used lately; then more of both until the bases take at most `basis_bytes` each on average of the most that are
    /// kept.
    pub(super) fn end_visit(&mut self, work: &mut CacheWorkspace, basis_bytes: usize) {
        let most = Self::most(self.openings);
        while self.entries.len() > most
            && let Some((at, 1..)) = self.idlest(|_| true)
        {
            work.keep(self.entries.swap_remove(at));
        }
        let mut bytes = 0;
        for entry in &mut self.entries {
            let mut own = entry.bytes();
            let stays = own <= SMALL_BYTES && entry.age() <= YOUNG;
            if entry.idle >= FACTORED_VISITS && !stays {
                entry.drop_factors();
                own = entry.bytes();
            }
            bytes += own;
        }
        let most_bytes = most.saturating_mul(basis_bytes);
        while bytes > most_bytes {
            if let Some((at, _)) = self.idlest(CachedBasis::is_factored) {
                self.entries[at].drop_factors();
            } else if let Some((at, _)) = self.idlest(|_| true) {
                self.entries.swap_remove(at);
            }
            bytes = self.bytes();
        }
        // Not after every visit, which would move all bases each time.
        if self.entries.capacity() > 2 * most {
            self.entries.shrink_to(most);
        }
    }

    /// The bytes of all bases.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes()).sum()
    }

    /// The first of these bases that have been idle longest, and for how many visits.
    fn idlest(&self, of: impl Fn(&CachedBasis) -> bool) -> Option<(usize, u32)> {
        let mut found: Option<(usize, u32)> = None;
        for (at, entry) in self.entries.iter().enumerate() {
            if of(entry) && found.is_none_or(|(_, idle)| entry.idle > idle) {
                found = Some((at, entry.idle));
            }
        }
        found
    }
}
