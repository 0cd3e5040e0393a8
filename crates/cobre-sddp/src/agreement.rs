//! Whether all ranks were asked the same. A rank that read another file would add cuts of another
//! problem, and no collective would notice.

use std::path::PathBuf;

use crate::checkpoint::Origin;
use crate::error::SddpError;
use crate::fingerprint::Fingerprint;
use crate::ranks::{Backend, Ranks};
use crate::run::Settings;

/// What ranks must have in common, in the order of their fingerprints.
const PARTS: [&str; 3] = ["problem", "settings", "policy"];

/// Compares what the ranks were asked; all of them find the same difference.
///
/// # Errors
/// When a rank has another problem, other settings or another policy to start from than rank 0,
/// threads and the place of results apart, and when a rank is gone.
pub(crate) fn agree<C: Backend>(
    ranks: &Ranks<'_, C>,
    origin: &Origin,
    settings: &Settings,
) -> Result<(), SddpError> {
    if ranks.size() == 1 {
        return Ok(());
    }
    let common = Settings {
        threads: 1,
        output: settings.output.as_ref().map(|_| PathBuf::new()),
        ..settings.clone()
    };
    let policy = Fingerprint::of(&origin.policy);
    let mine = [origin.problem, Fingerprint::of(&common), policy].map(Fingerprint::numbers);
    let mine = mine.as_flattened();
    let all = ranks.gather_one(mine)?;
    for (rank, theirs) in all.iter().enumerate() {
        let words = mine.len() / PARTS.len();
        let pairs = theirs.chunks(words).zip(all[0].chunks(words));
        if let Some((what, _)) = PARTS.iter().zip(pairs).find(|(_, pair)| pair.0 != pair.1) {
            return Err(SddpError::Disagreement { rank, what });
        }
    }
    Ok(())
}
