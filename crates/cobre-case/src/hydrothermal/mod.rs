//! Hydrothermal cases: a directory of JSON and Parquet.
//!
//! [`files`] says what may be written, [`system`] what it means, [`sampling`] what is uncertain, and
//! [`model`] makes linear programs of it. Each adds what is wrong to one list. [`results`] says what their
//! solutions mean.

mod date;
mod files;
mod fits;
mod hydraulic_warnings;
mod json;
mod model;
mod number;
mod results;
mod sampling;
mod settings;
mod size;
mod system;
mod table;
mod warnings;

use std::path::Path;
use std::sync::Arc;

use self::files::Files;
use self::results::SimulationTables;
use self::sampling::OpeningSampler;
use self::system::System;
use crate::finding::{Finding, Findings, Place};
use crate::{Case, Options};

pub(crate) use self::fits::read as read_fits;
pub use self::fits::{FittedPlane, ProductionFit};
pub use self::results::simulation_tables;

/// True if a directory looks like a case.
pub(crate) fn is_case(path: &Path) -> bool {
    let files = files::json_files();
    files
        .iter()
        .any(|(file, needed, _)| *needed && path.join(file).exists())
}

/// True if there is anything at a path: a directory or a link to nothing is not what was meant, but it is
/// there.
fn is_there(path: &Path) -> bool {
    let absent = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    !path.symlink_metadata().is_err_and(absent)
}

/// The case in a directory, with everything that looks wrong, or everything that is wrong.
pub(crate) fn read(
    path: &Path,
    options: &Options,
    overrides: Option<&str>,
) -> Result<Case, Vec<Finding>> {
    let mut findings = Findings::default();
    let Some(files) = Files::read(path, overrides, &mut findings) else {
        return Err(findings.sorted());
    };
    if !size::check(&files, &mut findings) {
        return Err(findings.sorted());
    }
    let system = System::resolve(&files, &mut findings);
    let settings = settings::resolve(&files.config, &mut findings);
    let sampling = OpeningSampler::resolve(&files, &system, &mut findings);
    if findings.any_wrong() {
        return Err(findings.sorted());
    }
    warnings::find(&files, &system, &mut findings);
    match model::build(&system, &sampling, options) {
        Ok((problem, layouts)) => {
            warnings::scale(&problem, &mut findings);
            Ok(Case {
                kind: "hydrothermal",
                problem,
                tables: Arc::new(SimulationTables::new(&files, &system, layouts)),
                settings: Some(settings),
                warnings: findings.sorted(),
            })
        }
        Err(problems) => {
            for problem in problems {
                findings.wrong(&Place::file("."), problem);
            }
            Err(findings.sorted())
        }
    }
}

/// The JSON Schemas of the files of a case: the file's path below the case, and the schema.
pub fn schemas() -> Vec<(&'static str, serde_json::Value)> {
    let files = files::json_files().into_iter();
    let titled = files.map(|(file, _, mut schema)| {
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = file.into();
        (file, schema)
    });
    titled.collect()
}

/// A table of the format: its path below a case, and its columns: name, what it holds, whether it may
/// be left out, and what it means.
pub type TableDescription = (
    &'static str,
    Vec<(&'static str, &'static str, bool, &'static str)>,
);

/// The tables of a case.
pub fn tables() -> Vec<TableDescription> {
    let tables = files::tables().into_iter();
    let described = tables.map(|(file, columns)| {
        let columns = columns.into_iter();
        let columns =
            columns.map(|(name, holds, optional, means)| (name, holds.name(), optional, means));
        (file, columns.collect())
    });
    described.collect()
}
