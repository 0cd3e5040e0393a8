//! Whether all ranks were asked the same. A rank that read another file would add cuts of another
//! problem, and no collective would notice.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::error::SddpError;
use crate::problem::Problem;
use crate::ranks::{Backend, Ranks};
use crate::run::Settings;

/// What ranks must have in common, in the order of their fingerprints.
const PARTS: [&str; 2] = ["problem", "settings"];

/// Compares what the ranks were asked; all of them find the same difference.
///
/// # Errors
/// When a rank has another problem or other settings than rank 0, threads and the place of results
/// apart, and when a rank is gone.
pub(crate) fn agree<C: Backend>(
    ranks: &Ranks<'_, C>,
    problem: &Problem,
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
    let mine = [fingerprint(problem), fingerprint(&common)].concat();
    let all = ranks.gather_one(&mine)?;
    for (rank, theirs) in all.iter().enumerate() {
        let words = mine.len() / PARTS.len();
        let pairs = theirs.chunks(words).zip(all[0].chunks(words));
        if let Some((what, _)) = PARTS.iter().zip(pairs).find(|(_, pair)| pair.0 != pair.1) {
            return Err(SddpError::Disagreement { rank, what });
        }
    }
    Ok(())
}

/// The SHA-256 of all that `value` says of itself, as text.
pub(crate) fn sha256(value: &impl fmt::Debug) -> String {
    hex(&digest(value))
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes more");
        text
    })
}

fn digest(value: &impl fmt::Debug) -> [u8; 32] {
    let mut hasher = Hasher(Sha256::new());
    write!(hasher, "{value:?}").expect("hashing does not fail");
    hasher.0.finalize().into()
}

/// The SHA-256 of all that `value` says of itself, as numbers that ranks can gather.
fn fingerprint(value: &impl fmt::Debug) -> Vec<f64> {
    let digest = digest(value);
    let words = digest.chunks(4);
    words
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")).into())
        .collect()
}

/// Hashes what is written to it.
struct Hasher(Sha256);

impl fmt::Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
