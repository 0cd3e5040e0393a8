//! Hydrothermal cases: a directory of JSON and Parquet.
//!
//! [`files`] says what may be written, [`system`] what it means, [`chance`] what is uncertain, and
//! [`model`] makes linear programs of it. Each adds what is wrong to one list.

mod chance;
mod date;
mod files;
mod json;
mod model;
mod number;
mod settings;
mod system;
mod table;

use std::path::Path;

use self::chance::Chance;
use self::files::Files;
use self::system::System;
use crate::finding::{Finding, Findings, Place};
use crate::{Case, Options};

/// Whether a directory looks like a case.
pub(crate) fn is_case(path: &Path) -> bool {
    let files = files::json_files();
    files
        .iter()
        .any(|(file, needed, _)| *needed && path.join(file).exists())
}

/// The case in a directory, with everything that looks wrong, or everything that is wrong.
pub(crate) fn read(path: &Path, options: &Options) -> Result<Case, Vec<Finding>> {
    let mut findings = Findings::default();
    let Some(files) = Files::read(path, &mut findings) else {
        return Err(findings.sorted());
    };
    let system = System::resolve(&files, &mut findings);
    let settings = settings::resolve(&files.config, &mut findings);
    let chance = Chance::resolve(&files, &system, &mut findings);
    if findings.any_wrong() {
        return Err(findings.sorted());
    }
    match model::build(&system, &chance, options) {
        Ok(problem) => Ok(Case {
            problem,
            settings: Some(settings),
            warnings: findings.sorted(),
        }),
        Err(problems) => {
            for problem in problems {
                findings.wrong(&Place::file("."), problem);
            }
            Err(findings.sorted())
        }
    }
}
