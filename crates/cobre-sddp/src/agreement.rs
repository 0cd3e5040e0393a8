//! The check that all ranks have the same input. A rank that read another file would add cuts of
//! another problem, and no collective would notice.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use bytemuck::{Pod, Zeroable};

use crate::checkpoint::Provenance;
use crate::error::SddpError;
use crate::fingerprint::Fingerprint;
use crate::ranks::{Backend, Ranks};
use crate::settings::Settings;

/// The inputs that ranks must agree on.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Inputs {
    problem: Fingerprint,
    settings: Fingerprint,
    policy: Fingerprint,
}

impl Inputs {
    /// The first input that differs from that of another rank.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let pairs = [
            ("problem", self.problem, other.problem),
            ("settings", self.settings, other.settings),
            ("policy", self.policy, other.policy),
        ];
        let mut different = pairs.into_iter().filter(|pair| pair.1 != pair.2);
        different.next().map(|pair| pair.0)
    }
}

/// Compares the inputs of the ranks; all of them find the same difference.
///
/// # Errors
/// When a rank has another problem, other settings or another policy to start from than rank 0,
/// threads and the place of results apart, and when a rank is gone.
pub(crate) fn agree<C: Backend>(
    ranks: &Ranks<'_, C>,
    provenance: &Provenance,
    settings: &Settings,
) -> Result<(), SddpError> {
    if ranks.size() == 1 {
        return Ok(());
    }
    let common = Settings {
        threads: NonZeroUsize::MIN,
        output: settings.output.as_ref().map(|_| PathBuf::new()),
        ..settings.clone()
    };
    let all = ranks.gather_one(Inputs {
        problem: provenance.problem,
        settings: Fingerprint::of(&common),
        policy: Fingerprint::of(&provenance.policy),
    })?;
    for (rank, inputs) in all.iter().enumerate() {
        if let Some(what) = inputs.difference(&all[0]) {
            return Err(SddpError::Disagreement { rank, what });
        }
    }
    Ok(())
}
