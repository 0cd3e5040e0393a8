//! The policy of a warm start.

use std::borrow::Cow;

use super::stored::{Manifest, Policy, StoredCut, terminal_fits};
use crate::error::SddpError;
use crate::output::PolicyFile;
use crate::problem::Problem;

/// The policy of a warm start, as a rank has it. Cuts move to memory that the ranks of a node of the machine share, so one
/// rank of them has to read them: the leader (`is_leader` of a backend).
#[derive(Debug, Clone, Copy)]
pub enum GivenPolicy<'a> {
    /// All of it.
    Whole(&'a Policy),
    /// Its files, which are read node by node.
    Stored(&'a PolicyFile),
    /// Its manifest: the leader of this rank's node has the cuts.
    Elsewhere(&'a Manifest),
}

impl<'a> From<&'a Policy> for GivenPolicy<'a> {
    fn from(policy: &'a Policy) -> Self {
        Self::Whole(policy)
    }
}

impl<'a> From<&'a PolicyFile> for GivenPolicy<'a> {
    fn from(file: &'a PolicyFile) -> Self {
        Self::Stored(file)
    }
}

impl<'a> GivenPolicy<'a> {
    /// The fingerprint.
    pub(crate) fn sha256(self) -> String {
        match self {
            Self::Whole(policy) => policy.sha256(),
            Self::Stored(file) => file.manifest().sha256.clone(),
            Self::Elsewhere(manifest) => manifest.sha256.clone(),
        }
    }

    /// The whole policy, if this rank has it.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub(crate) fn whole(self) -> Result<Option<Cow<'a, Policy>>, SddpError> {
        match self {
            Self::Whole(policy) => Ok(Some(Cow::Borrowed(policy))),
            Self::Stored(file) => {
                let manifest = file.manifest().clone();
                let cuts = (0..manifest.nodes.len()).map(|node| file.cuts(node));
                let cuts = cuts.collect::<Result<_, _>>()?;
                Ok(Some(Cow::Owned(Policy { manifest, cuts })))
            }
            Self::Elsewhere(_) => Ok(None),
        }
    }

    /// The number of cuts of a node that this rank has.
    pub(super) fn count(self, node: usize) -> usize {
        match self {
            Self::Whole(policy) => policy.cuts[node].len(),
            Self::Stored(file) => file.count(node),
            Self::Elsewhere(_) => 0,
        }
    }

    /// The cuts of a node that this rank has.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub(super) fn cuts(self, node: usize) -> Result<Cow<'a, [StoredCut]>, SddpError> {
        match self {
            Self::Whole(policy) => Ok(Cow::Borrowed(&policy.cuts[node])),
            Self::Stored(file) => file.cuts(node).map(Cow::Owned),
            Self::Elsewhere(_) => Ok(Cow::Borrowed(&[])),
        }
    }

    /// Checks that this policy is one of `problem`, as far as this rank has it.
    ///
    /// # Errors
    /// [`SddpError::Misfit`] with the first difference, and files that cannot be read.
    pub(crate) fn fits(self, problem: &Problem, is_leader: bool) -> Result<(), SddpError> {
        let fits = match self {
            Self::Whole(policy) => policy.fits(problem),
            Self::Stored(file) => {
                file.manifest().fits(problem).map_err(SddpError::Misfit)?;
                let last = |node: &usize| !problem.has_successors(*node);
                for node in (0..problem.nodes.len()).filter(last) {
                    let fits = terminal_fits(problem, node, &file.cuts(node)?);
                    fits.map_err(SddpError::Misfit)?;
                }
                Ok(())
            }
            Self::Elsewhere(_) if is_leader => Err(
                "this rank leads its node and has no cuts: a leader needs the whole policy"
                    .to_owned(),
            ),
            Self::Elsewhere(manifest) => manifest.fits(problem),
        };
        fits.map_err(SddpError::Misfit)
    }
}
