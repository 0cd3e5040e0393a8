//! The basis cache of a work unit: bases that were optimal, within a number of bytes.

use serde::{Deserialize, Serialize};

use super::basis::{Basis, StageInput};
use super::cached_basis::CachedBasis;
use super::reduced_lp::ReducedLp;
use super::simplex::SolveError;

/// Values below this come from bounds that an opening removes.
const NO_VALUE: f64 = -1e20;
/// Bases kept after a visit beyond one per opening.
const MORE_KEPT: usize = 24;
/// Visits that a basis keeps its inverse without being used.
const FACTORED_VISITS: u32 = 1;

/// The cached bases of a work unit at a node.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct BasisCache {
    entries: Vec<CachedBasis>,
    /// The most openings of a visit so far. Shorter visits, those of a forward pass between backward passes, do not age
    /// the bases.
    openings: usize,
    /// True if every entry is checked against the linear program of the node: those that were read
    /// need not fit it.
    #[serde(skip)]
    checked: bool,
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
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(at) {
            if entry.is_gone(cuts) {
                self.entries.swap_remove(at);
                continue;
            }
            entry.evaluate(states);
            entry.idle += older;
            at += 1;
        }
    }

    /// The number of bases.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The basis with the highest objective value, the first of equals.
    #[inline]
    pub(super) fn best(&self, lp: &ReducedLp, parameters: &[f64]) -> Option<usize> {
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
        at: usize,
        input: StageInput<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<(), SolveError> {
        let entry = &mut self.entries[at];
        if entry.load(input, basis)? {
            basis.refine_values(input)?;
            let idle = entry.idle;
            *entry = CachedBasis::of(input, basis)?;
            entry.idle = idle;
            entry.evaluate(&parameters[..input.lp.states]);
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
        input: StageInput<'_>,
        basis: &mut Basis,
        parameters: &[f64],
    ) -> Result<usize, SolveError> {
        let mut entry = CachedBasis::of(input, basis)?;
        entry.evaluate(&parameters[..input.lp.states]);
        self.entries.push(entry);
        Ok(self.entries.len() - 1)
    }

    /// Removes the latest basis.
    pub(super) fn drop_latest(&mut self) {
        self.entries.pop();
    }

    /// The objective value of a basis, and its gradient by parameter.
    pub(super) fn value(&self, at: usize, lp: &ReducedLp, parameters: &[f64]) -> (f64, &[f64]) {
        let entry = &self.entries[at];
        (entry.value(lp, parameters), entry.slopes())
    }

    /// Ends a visit: drops the bases that have been idle longest, and inverses that were not
    /// used lately; then more of both until the bases take at most `basis_bytes` each on average of the most that are
    /// kept.
    pub(super) fn end_visit(&mut self, basis_bytes: usize) {
        let most = Self::most(self.openings);
        while self.entries.len() > most && self.idlest(|_| true) > Some(0) {
            self.remove_idlest();
        }
        for entry in &mut self.entries {
            if entry.idle >= FACTORED_VISITS {
                entry.drop_factors();
            }
        }
        let most_bytes = most.saturating_mul(basis_bytes);
        while self.bytes() > most_bytes {
            let idle = self.idlest(CachedBasis::is_factored);
            let idlest = |entry: &&mut CachedBasis| entry.is_factored() && Some(entry.idle) == idle;
            match self.entries.iter_mut().find(idlest) {
                Some(entry) => entry.drop_factors(),
                None => self.remove_idlest(),
            }
        }
        self.entries.shrink_to(most);
    }

    /// The bytes of all bases.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(CachedBasis::bytes).sum()
    }

    /// The most visits that one of these bases has been idle.
    fn idlest(&self, of: impl Fn(&CachedBasis) -> bool) -> Option<u32> {
        let entries = self.entries.iter().filter(|entry| of(entry));
        entries.map(|entry| entry.idle).max()
    }

    /// Removes the first of the bases that have been idle longest.
    fn remove_idlest(&mut self) {
        let idle = self.idlest(|_| true);
        let at = self
            .entries
            .iter()
            .position(|entry| Some(entry.idle) == idle);
        if let Some(at) = at {
            self.entries.swap_remove(at);
        }
    }
}
