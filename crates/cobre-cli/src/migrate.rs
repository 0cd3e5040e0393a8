//! `cobre migrate`: a case in the form of the other release of the format.

use std::path::PathBuf;

use crate::exit::{self, say};

/// In front of every message.
const NAME: &str = "cobre migrate";

/// Writes a hydrothermal case in the form of the other release of the format: one of 0.5 as 0.18, one of 0.18 as 0.5.
///
/// The new case is the same model. If the other release has no place for something, that is said, and nothing is
/// written.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory of the case
    #[arg(value_name = "DIR")]
    case: PathBuf,

    /// Directory of the new case; it must be new or empty
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

/// Rewrites and returns the code to exit with.
pub(crate) fn run(args: &Args) -> u8 {
    let migrated = match cobre_case::migrate(&args.case) {
        Ok(migrated) => migrated,
        Err(error) => return exit::fail(exit::INVALID_INPUT, NAME, &exit::told(&error)),
    };
    let (from, to) = (migrated.from.name(), migrated.to.name());
    if !migrated.lost.is_empty() {
        let lost = migrated.lost.join("\n  ");
        let problem = format!("release {to} has no place for\n  {lost}\nnothing was written");
        return exit::fail(exit::INVALID_INPUT, NAME, &problem);
    }
    let (case, new) = (args.case.display(), args.new.display());
    match migrated.files.write(&args.new) {
        Ok(()) => {
            say!("{new}: {case} in the form of release {to} (was {from})");
            exit::DONE
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            exit::fail(exit::INVALID_INPUT, NAME, &format!("{new}: {error}"))
        }
        Err(error) => exit::fail(exit::IO, NAME, &format!("cannot write {new}: {error}")),
    }
}
