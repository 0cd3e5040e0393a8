//! What users bring, read into problems that the engine can solve: StochOptFormat files.

mod error;
mod stoch_opt_format;
mod unique;

pub use error::CaseError;

use std::path::Path;

use cobre_sddp::problem::Problem;
use cobre_sddp::risk::Risk;

/// What the command line adds to a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// A bound that the cost to go is never below (or the revenue to go above).
    pub bound: Option<f64>,
    /// How uncertain costs are weighed.
    pub risk: Risk,
}

/// Reads the problem at `path`; its name says what kind of file it is.
///
/// # Errors
/// A file that cannot be read, and everything that is wrong with one that can.
pub fn read(path: &Path, options: &Options) -> Result<Problem, CaseError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() || !name.ends_with(".sof.json") {
        return Err(CaseError::UnknownKind {
            path: path.to_owned(),
        });
    }
    let text = std::fs::read(path).map_err(|source| CaseError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    stoch_opt_format::read(&text, options).map_err(|errors| CaseError::Invalid {
        path: path.to_owned(),
        errors,
    })
}
